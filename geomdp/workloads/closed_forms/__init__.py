"""Computations that workloads share: transforms, diameters, interactions, quadratic forms.

The answers of all elements of a small universe are listed here, too.
"""
