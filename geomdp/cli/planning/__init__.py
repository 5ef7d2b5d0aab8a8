"""Commands that need no records: advice, audits, bounds, curves, widths, lists and lessons."""
