"""Facets of hulls of points: gauges and chords by the simplex method on the dual."""
