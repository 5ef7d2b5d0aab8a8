"""Noise for few queries: lattice noise for whole answers, and staircase noise for a real answer."""
