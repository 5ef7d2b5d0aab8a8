"""Statistical tests of privacy claims, which can refute a claim but never prove it."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
