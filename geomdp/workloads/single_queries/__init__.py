"""Queries given one at a time, and lists of sparse ones."""
