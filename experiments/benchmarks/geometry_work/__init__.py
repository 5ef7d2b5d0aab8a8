"""Parts of the script `geometry`: instances, timed methods, physical limits and goals."""
