"""Commands that need no records: advice, brackets, curves, widths, and lists of what there is."""
