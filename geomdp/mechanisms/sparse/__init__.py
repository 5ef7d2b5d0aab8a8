"""Sparse queries: a noisy random projection of the histogram of the records."""
