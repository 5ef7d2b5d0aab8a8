"""Upper bounds from papers, in closed form: numbers of records needed, and errors of mechanisms."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
