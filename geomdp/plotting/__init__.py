"""Pictures: bodies in two and three dimensions, noise, walks and projections, and error curves.

Most functions take the axes to draw on, and return the matplotlib artists that were added.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
