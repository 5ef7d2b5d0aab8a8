"""Uniform points of a body: exact samplers, hit-and-run kernels, chains and their diagnostics."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
