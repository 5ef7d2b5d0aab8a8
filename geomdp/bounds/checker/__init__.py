"""Check a lower bound from its file alone.

The checker shares no code with the constructions and imports nothing else of geomdp. It starts from
the JSON text. `geomdp.bounds.certificates.files` describes the format.
`geomdp.bounds.certificates.certificate` and `geomdp.bounds.certificates.rung` explain the proof. If
a number in the file differs from the recomputed number by more than rounding, the file is rejected,
even if the bound would still hold. Only a distance, and the error that follows from it, may be
stated smaller than it is. A file may be hostile. So its size, its nesting, the digits of
its numbers and the work of the check are limited.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
