"""Convex optimisation and geometry in differential privacy.

A workload of statistical queries becomes a convex body, its sensitivity polytope; the geometry of
that body gives private mechanisms, their predicted errors, and bounds on what is possible.

The subpackages `workloads`, `bodies`, `geometry`, `noise`, `mechanisms`, `privacy`, `bounds`,
`advice`, `audit`, `data` and `tabulation` hold everything; the names below are those used most.
"""

import lazy_loader

__version__ = "0.1.0"
__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
