"""Uniform points of `TableMoments` by rejection, in float64 and in ball arithmetic."""
