"""Polytopes: hulls of points, intersections of halfspaces, simplices, triangulations."""
