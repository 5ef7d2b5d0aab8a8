"""Outer bodies made of slabs, refined where they are loose."""
