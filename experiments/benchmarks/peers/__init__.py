"""Peers of the benchmarks: other packages, and plain code without geomdp."""
