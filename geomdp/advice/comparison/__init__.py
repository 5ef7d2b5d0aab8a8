"""The comparison of candidates: which are built, which are left out and why, and which is best."""
