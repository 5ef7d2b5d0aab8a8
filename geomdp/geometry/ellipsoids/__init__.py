"""Ellipsoids of least trace or volume around a body."""
