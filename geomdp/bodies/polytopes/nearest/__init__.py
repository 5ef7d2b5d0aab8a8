"""Nearest points of convex hulls, by Wolfe's active-set method with column generation (X-MNP)."""
