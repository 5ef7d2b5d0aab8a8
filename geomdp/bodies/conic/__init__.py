"""Spectral bodies, elliptopes, moment bodies, and bodies given by a CVXPY problem."""
