"""Upper and lower bounds on the number of records that private mechanisms need.

Parameters outside the ranges that a docstring states raise ``ValueError``. A function that finds a
lower bound raises `SideConditionError` if the bound does not exclude even one record.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
