"""Smooth queries on the cube: Chebyshev moments, and answers to queries from these moments."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
