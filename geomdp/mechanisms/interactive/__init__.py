"""Mechanisms that answer queries one at a time, or build a hypothesis in rounds."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
