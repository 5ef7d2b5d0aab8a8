"""Ellipsoids of least trace around a set of vectors."""
