"""Mechanisms that add noise to the exact answers."""
