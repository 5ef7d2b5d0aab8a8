"""What several workloads compute with: transforms, diameters, quadratic forms, enumeration."""
