"""Upper and lower bounds on the number of records that private mechanisms need."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
