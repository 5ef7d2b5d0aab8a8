"""Mechanisms that move the noisy answers of another one closer to the truth."""
