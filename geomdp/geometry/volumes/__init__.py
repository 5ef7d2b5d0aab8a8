"""Volumes and second moments of bodies."""
