"""Check a lower bound from its file alone.

The checker shares no code with the constructions and imports nothing else of geomdp. It starts from
the JSON text, whose format is in `geomdp.bounds.certificates.files`; the argument is in
`geomdp.bounds.certificates.rung` and `geomdp.bounds.certificates.certificate`. A certificate is
rejected at the first number that differs from the recomputed one, even if the bound would still
hold. Files are taken to be hostile: their size, depth, digits and work are limited.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
