"""Lessons: the geometry of private release in class, as notebooks with sliders and exercises."""
