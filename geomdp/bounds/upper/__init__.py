"""Closed upper bounds of the papers."""
