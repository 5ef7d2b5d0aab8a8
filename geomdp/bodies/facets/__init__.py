"""Gauges, facets and chords of hulls of points, by the simplex method on the dual problem."""
