"""Mechanisms that answer queries one at a time, or build a hypothesis in rounds."""
