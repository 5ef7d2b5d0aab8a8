"""Computations that workloads share: transforms, diameters, quadratic forms, enumeration."""
