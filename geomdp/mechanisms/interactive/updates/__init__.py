"""Update rules: how a public hypothesis follows noisy answers, and how many updates suffice."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
