"""Noise for few queries: on lattices of whole numbers, and staircase noise for one real number."""
