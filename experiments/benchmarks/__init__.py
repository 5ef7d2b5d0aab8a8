"""Scripts that measure geomdp instead of reproducing a paper."""
