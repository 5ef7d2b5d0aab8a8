"""Read records in chunks, declare their columns, and encode records into a universe."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
