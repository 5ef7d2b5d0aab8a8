"""The polar body, whose gauge is the support function of the body and vice versa."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from geomdp._typing import FloatArray
from geomdp.bodies.arguments import Verb
from geomdp.bodies.base import Body
from geomdp.bodies.oracles import Facets

#: The verb of K that answers for a verb of its polar.
_TRADED: dict[Verb, Verb] = {
    Body.support: Body.gauge,
    Body.extreme_point: Body.facets,
    Body.gauge: Body.support,
    Body.facets: Body.extreme_point,
}


@dataclass(frozen=True, eq=False)
class Polar(Body):
    """The polar body K* = {z : <z, x> <= 1 for all x in K} of a body with 0 in its interior.

    Its support function is the gauge of K, its gauge the support function of K, and its extreme
    points are the normals of K's facets; (K*)* = K.

    Parameters
    ----------
    body : Body
        K, full-dimensional.

    Raises
    ------
    ValueError
        If K is lower-dimensional or known not to contain 0 in its interior.
    """

    body: Body

    def __post_init__(self) -> None:
        K = self.body
        if not isinstance(K, Body) or K.effective_dimension < K.dimension:
            raise ValueError(f"body must be a full-dimensional Body, got {K!r}")
        axes = np.vstack([np.eye(K.dimension), -np.eye(K.dimension)])
        if K.implements(Body.support) and K.support(axes).min() <= 0:
            raise ValueError(f"body must contain 0 in its interior to have a polar, got {K!r}")

    def _summary(self) -> str:
        return f"of {self.body!r}"

    @property
    def dimension(self) -> int:
        """Dimension m."""
        return self.body.dimension

    @property
    def symmetric(self) -> bool:
        """Whether K is."""
        return self.body.symmetric

    def implements(self, verb: Verb) -> bool:
        """Whether K has the verb that answers for it."""
        return verb in _TRADED and self.body.implements(_TRADED[verb])

    def support(self, directions: FloatArray) -> FloatArray:
        """The gauge of K."""
        return self.body.gauge(directions)

    def extreme_point(self, directions: FloatArray) -> FloatArray:
        """The normal of K where the ray leaves it; any point of the polar for direction 0."""
        return self.body.facets(directions).normals

    def gauge(self, points: FloatArray) -> FloatArray:
        """The support function of K."""
        return self.body.support(points)

    def facets(self, points: FloatArray) -> Facets:
        """Support function and extreme point of K."""
        normals = self.body.extreme_point(points)
        return Facets(np.einsum("bm,bm->b", points, normals), normals)
