"""Check a lower bound from its file alone.

Shares no code with the constructions: everything here starts from the JSON text (its format is in
`geomdp.bounds.certificates.files`, the argument in `geomdp.bounds.certificates.certificate`), and
imports nothing else of geomdp. A certificate is rejected at the first number that is not what it
should be, also where another number would prove as much.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
