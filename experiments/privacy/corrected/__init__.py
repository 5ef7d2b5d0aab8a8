"""Published statements and their corrections: what the figure of corrections measures."""
