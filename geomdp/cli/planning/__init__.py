"""Commands without records: advice, audits, brackets, checks, curves, widths, lists, lessons."""
