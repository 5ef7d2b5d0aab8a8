"""Bodies with only a few methods of another body, for tests of algorithms that need no more."""

from dataclasses import dataclass

import numpy as np

from geomdp._typing import BoolArray, FloatArray
from geomdp.bodies.base import MEMBERSHIP_TOLERANCE, Body


@dataclass(frozen=True, eq=False)
class _Stripped(Body):
    """A body with only the dimension of another body."""

    inner: Body

    @property
    def dimension(self) -> int:
        return self.inner.dimension


class OracleOnly(_Stripped):
    """A body with only the dimension and the extreme points of another body."""

    def extreme_point(self, directions: FloatArray) -> FloatArray:
        return self.inner.extreme_point(directions)


class MembershipOnly(_Stripped):
    """A body with only the support function, membership test and affine hull of another body."""

    def support(self, directions: FloatArray) -> FloatArray:
        return self.inner.support(directions)

    def contains(self, points: FloatArray, tolerance: float = MEMBERSHIP_TOLERANCE) -> BoolArray:
        return self.inner.contains(points, tolerance)

    def affine_hull(self):
        return self.inner.affine_hull()


class SamplerOnly(_Stripped):
    """A body with only the support function and the exact sampler of another body."""

    def support(self, directions: FloatArray) -> FloatArray:
        return self.inner.support(directions)

    def sample_uniform(self, n: int, rng: np.random.Generator) -> FloatArray:
        return self.inner.sample_uniform(n, rng)
