"""Euclidean projection on convex bodies with a duality-gap certificate."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
