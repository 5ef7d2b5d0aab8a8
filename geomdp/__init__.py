"""Convex optimisation and geometry in differential privacy.

A workload is a list of statistical queries. Its sensitivity polytope is the convex hull of the
answers of all possible records. The geometry of this body gives private mechanisms, predicted
errors, and lower bounds on the error of every private mechanism.

The main subpackages are `workloads`, `bodies`, `geometry`, `noise`, `mechanisms`, `privacy`,
`bounds`, `advice`, `audit`, `data`, `tabulation` and `plotting`. The names used most can also be
imported from `geomdp` itself.
"""

import lazy_loader

__version__ = "0.1.0"
__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
