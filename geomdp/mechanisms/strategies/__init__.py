"""A strategy measures other queries than those asked, and computes the answers from the results."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
