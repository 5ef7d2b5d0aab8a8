"""Means and second moments of real records."""
