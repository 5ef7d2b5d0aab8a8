"""Commands that need no records: advice, brackets, curves, widths, lists and lessons."""
