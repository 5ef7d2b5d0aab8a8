"""Check a lower bound from its file alone, which `reading` describes.

The checker shares no code with the constructions and imports nothing else of geomdp. The bound
sc > v says that every number of records n <= v is excluded: no private mechanism has error at most
alpha on all data sets of n records. The steps of the proof, called rungs, each exclude a range of
numbers n. The modules of the checker state what each kind of rung proves.

If a number in the file differs from the recomputed number by more than rounding, the file is
rejected, even if the bound would still hold. Only a distance, and the error that follows from it,
may be stated smaller than it is. A file may be hostile. So its size, its nesting, the digits of its
numbers and the work of the check are limited.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
