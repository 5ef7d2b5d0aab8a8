"""Certificates of lower bounds: built, written to files, read back."""
