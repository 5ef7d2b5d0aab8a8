"""Planted faults: small edits of the library that a test must notice."""
