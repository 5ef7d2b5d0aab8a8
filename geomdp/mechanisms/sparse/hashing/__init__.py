"""Random sign matrices with limited independence, by hashing over GF(2^64)."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
