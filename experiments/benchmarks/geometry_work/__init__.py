"""What the script `geometry` times: instances, methods, physical limits and goals."""
