"""Nearest points of hulls: Wolfe's active set with column generation (X-MNP)."""
