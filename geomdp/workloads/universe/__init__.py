"""The sets that records come from, and how records are read."""
