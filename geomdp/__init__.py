"""Convex optimisation and geometry in differential privacy.

A workload is a list of statistical queries. The convex hull of its answers on all possible records
is its sensitivity polytope. The geometry of this convex body gives private mechanisms, their
predicted errors, and bounds on what is possible.

The subpackages `workloads`, `bodies`, `geometry`, `noise`, `mechanisms`, `privacy`, `bounds`,
`advice`, `audit`, `data` and `tabulation` hold everything. The names below are used most.
"""

import lazy_loader

__version__ = "0.1.0"
__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
