"""Random sign matrices with limited independence, by hashing over GF(2^64)."""

from geomdp.geometry.hashing.signs import HashedSigns

__all__ = ["HashedSigns"]
