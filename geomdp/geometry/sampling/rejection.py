"""Exact uniform points by rejection inside an envelope that has them."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from functools import partial

import numpy as np

from geomdp._seeds import PUBLIC_SEED
from geomdp._typing import FloatArray
from geomdp._validation import real_number, whole
from geomdp.bodies import Body, Box, MissingOracle
from geomdp.bodies.base import MEMBERSHIP_TOLERANCE
from geomdp.privacy import Exact, SamplerStatus

#: Proposals are drawn in batches of at most this many entries: 16 MB of float64.
BATCH_ENTRIES = 1 << 21
#: Fewest proposals at a time: tests of membership cost the less per point the more there are.
FEWEST = 64
#: Hits after which the rate is known well enough, to a relative 12%.
ENOUGH_HITS = 64


@dataclass(frozen=True)
class RejectionSampler:
    """Exact independent uniform points of a body, by rejection of uniform points of an envelope.

    A uniform point of the envelope that lies in the body is uniform on it. Two things are checked
    once, from the bodies alone: that the envelope holds the body, and that a share of at least
    `least_rate` of proposals is accepted.

    Parameters
    ----------
    body : Body
        K in R^m, with membership.
    envelope : Body
        Holds K, has the same affine hull and a uniform sampler of its own. That it holds K can be
        verified if K lists its vertices, if the envelope is a box or symmetric and bounded by
        listed hyperplanes and K has a support function, and for balls and ellipsoids of at least
        the radius of K.
    least_rate : float
        Smallest share of accepted proposals that is put up with, in (0, 1].

    Raises
    ------
    MissingOracle
        If the envelope has no sampler.
    ValueError
        If the bodies differ in dimension, the envelope does not hold K or that cannot be verified,
        or fewer proposals than `least_rate` are accepted.

    References
    ----------
    Von Neumann 1951; formula sheet SAM-4.
    """

    body: Body
    envelope: Body
    least_rate: float = 1e-4
    #: Share of the public proposals that was accepted; draws take 1 / rate proposals on average.
    rate: float = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        body, envelope = self.body, self.envelope
        if not 0 < real_number(self.least_rate) <= 1:
            raise ValueError(f"least_rate must be in (0, 1], got {self.least_rate!r}")
        if not envelope.implements(Body.sample_uniform):
            raise MissingOracle(envelope, "exact sampler", "its own sample_uniform")
        if body.dimension != envelope.dimension:
            raise ValueError(
                f"envelope must have dimension {body.dimension}, got {envelope.dimension}"
            )
        if not _same_hull(body, envelope):
            raise ValueError(f"envelope must have the affine hull of {body!r}, got {envelope!r}")
        held = holds(envelope, body)
        if held is None:
            raise ValueError(f"envelope cannot be verified to hold {body!r}, got {envelope!r}")
        if not held:
            raise ValueError(f"envelope must hold {body!r}, got {envelope!r}")
        object.__setattr__(self, "rate", self._measured_rate())

    @property
    def status(self) -> SamplerStatus:
        """Always `Exact`."""
        return Exact()

    def draw(self, rng: np.random.Generator, n: int) -> FloatArray:
        """Independent uniform points (n, m), about n / `rate` proposals."""
        n = whole(n, "n")
        points = np.empty((0, self.body.dimension))
        while len(points) < n:
            wanted = math.ceil((n - len(points)) / self.rate)
            points = np.vstack([points, self._accepted(self._batch(wanted), rng)])
        return points[:n]

    def _batch(self, wanted: int) -> int:
        return min(max(wanted, FEWEST), max(BATCH_ENTRIES // self.body.dimension, FEWEST))

    def _accepted(self, proposals: int, rng: np.random.Generator) -> FloatArray:
        points = self.envelope.sample_uniform(proposals, rng)
        hull = self.body.affine_hull()
        # Rounding takes points off a lower-dimensional hull; otherwise membership is exact.
        tolerance = 0.0 if hull.dimension == hull.ambient else MEMBERSHIP_TOLERANCE
        return np.asarray(points[self.body.contains(points, tolerance)])

    def _measured_rate(self) -> float:
        """Share of accepted proposals, until enough are or too few have been."""
        rng = np.random.default_rng(PUBLIC_SEED)
        # A rate at the limit then shows 10 hits, and none with probability e^-10.
        limit = math.ceil(10 / self.least_rate)
        tried, hits = 0, 0
        while hits < ENOUGH_HITS and tried < limit:
            count = min(self._batch(max(tried, FEWEST)), limit - tried)
            tried, hits = tried + count, hits + len(self._accepted(count, rng))
        if hits < self.least_rate * tried:
            raise ValueError(
                f"envelope must fit the body: {hits} of {tried} uniform points of "
                f"{self.envelope!r} lie in {self.body!r}, less than {self.least_rate:g} of them"
            )
        return hits / tried


def holds(envelope: Body, body: Body) -> bool | None:
    """Whether `envelope` holds `body` up to rounding, or None if that cannot be verified.

    Both must have the same affine hull.
    """
    if body.implements(Body.vertex_list):
        return bool(envelope.contains(body.vertex_list()).all())
    reach = 1 + MEMBERSHIP_TOLERANCE
    has_support = body.implements(Body.support)
    if has_support and isinstance(envelope, Box):
        axes = np.eye(body.dimension)
        slack = MEMBERSHIP_TOLERANCE * envelope.radius()
        above = body.support(axes) <= envelope.upper + slack
        return bool((above & (-body.support(-axes) >= envelope.lower - slack)).all())
    if not envelope.symmetric:
        return None
    if has_support:
        # A symmetric set holds the body iff it holds its symmetric hull.
        gauge = envelope.largest_gauge(partial(_largest_height, body))
        if gauge is not None:
            return gauge <= reach
    radius = body.radius()
    gauge = envelope.gauge_bound(math.sqrt(body.dimension) * radius, radius)
    # The radius may be an upper bound only, and norms say less than the body itself.
    return True if gauge is not None and gauge <= reach else None


def _largest_height(body: Body, directions: FloatArray) -> FloatArray:
    """Support function of the symmetric hull, rows of (b, m): (b,)."""
    return np.maximum(body.support(directions), body.support(-directions))


def _same_hull(body: Body, envelope: Body) -> bool:
    """Whether both have one affine hull, up to rounding."""
    hull, other = body.affine_hull(), envelope.affine_hull()
    points = hull.offset + np.vstack([np.zeros(hull.ambient), body.radius() * hull.basis.T])
    off = other.residual(points).max()
    return hull.dimension == other.dimension and off <= MEMBERSHIP_TOLERANCE * body.radius()
