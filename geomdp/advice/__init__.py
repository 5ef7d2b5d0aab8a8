"""Advice before any record is seen: which mechanism to use, and how many records are needed."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
