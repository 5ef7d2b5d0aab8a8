"""Uniform points of the moment body of tables by rejection, in float64 and ball arithmetic."""
