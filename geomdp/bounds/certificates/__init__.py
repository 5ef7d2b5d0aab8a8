"""Certificates of lower bounds: how they are built, written to files and read back."""
