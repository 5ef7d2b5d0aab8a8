"""Check a lower bound from its file alone.

The checker shares no code with the constructions and imports nothing else of geomdp. It starts from
the JSON text. `geomdp.bounds.certificates.files` describes the format. The argument is in
`geomdp.bounds.certificates.rung` and `geomdp.bounds.certificates.certificate`. If a number in the
file differs from the recomputed number, the file is rejected, even if the bound would still hold.
A file may be hostile, so its size, depth, digits and work are limited.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
