"""Mechanisms that answer queries one at a time."""
