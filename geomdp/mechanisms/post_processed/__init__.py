"""Mechanisms that post-process the noisy answers of another mechanism to lower the error."""
