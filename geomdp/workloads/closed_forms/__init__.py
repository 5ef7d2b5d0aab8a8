"""Computations that workloads share: transforms, diameters, interactions, quadratic forms."""
