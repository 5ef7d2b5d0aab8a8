"""What can no mechanism do? Packings, lines, volumes and brackets."""
