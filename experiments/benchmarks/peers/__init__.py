"""What benchmarks compare with: other packages, and plain code without geomdp."""
