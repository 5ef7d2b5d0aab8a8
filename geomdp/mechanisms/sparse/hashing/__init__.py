"""Random sign matrices with limited independence, by hashing over GF(2^64)."""
