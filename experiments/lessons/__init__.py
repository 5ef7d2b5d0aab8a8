"""A course on the geometry of private release: notebooks with sliders and exercises."""
