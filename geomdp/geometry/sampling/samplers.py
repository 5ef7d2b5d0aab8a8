"""Uniform points of a body, from an exact sampler if the body has one, else by hit-and-run."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Protocol, runtime_checkable

import numpy as np

from geomdp._numerics.seeds import PUBLIC_SEED
from geomdp._typing import FloatArray, RandomState
from geomdp._validation import positive, whole
from geomdp.bodies import Body
from geomdp.bodies.operand import checked_body
from geomdp.bodies.oracles import MissingOracle
from geomdp.bodies.polytopes.triangulated import triangulated
from geomdp.geometry.results import Diagnostics, Samples
from geomdp.geometry.sampling.chains import Mixing, measure_mixing, run_chains
from geomdp.geometry.sampling.diagnostics import diagnose
from geomdp.geometry.sampling.rounding import Walk, prepared_walk
from geomdp.privacy import Exact, Heuristic, SamplerStatus

#: Number of chains of the pilot run that measures mixing.
PILOT_CHAINS = 64
#: Number of chains of `sample_uniform`.
CHAINS = 128
#: Largest number of chains that move together in `ChainSampler.draw`. The limit saves memory,
#: because the products of all facet normals with the points of these chains are stored.
LOCKSTEP = 256
#: Length of the burn-in in integrated autocorrelation times. If correlations decay exponentially,
#: the integrated time is twice the decay time. After 10 integrated times the correlation with the
#: start is then e^-20, near 2e-9.
RELAXATIONS = 10.0
#: Longest burn-in that is allowed, in integrated autocorrelation times. A burn-in of this length is
#: far longer than useful.
MOST_RELAXATIONS = 1e6
#: Number of integrated autocorrelation times between two successive states of a chain that
#: `sample_uniform` keeps. If correlations decay exponentially, the correlation of two successive
#: kept states is about e^-4.
SPACING = 2.0


@runtime_checkable
class UniformSampler(Protocol):
    """A sampler of uniform points of a body, for the noise distribution of a mechanism.

    Examples
    --------
    >>> import geomdp as gd
    >>> from geomdp.geometry import sampling
    >>> sampler = sampling.ExactSampler(gd.bodies.Ball(3))
    >>> isinstance(sampler, sampling.UniformSampler)
    True
    """

    @property
    def body(self) -> Body:
        """The body in R^m that is sampled."""

    @property
    def status(self) -> SamplerStatus:
        """Whether the distribution of a draw is exact, approximate or heuristic."""

    def draw(self, rng: np.random.Generator, n: int) -> FloatArray:
        """Independent points (n, m)."""


@dataclass(frozen=True)
class ExactSampler:
    """Exact independent uniform points, by the body's own sampler (SAM-4).

    Parameters
    ----------
    body : Body
        A body that implements `sample_uniform`.

    Raises
    ------
    MissingOracle
        If the body does not implement `sample_uniform`.

    Examples
    --------
    >>> import numpy as np
    >>> import geomdp as gd
    >>> from geomdp.geometry import sampling
    >>> sampler = sampling.ExactSampler(gd.bodies.Ball(3))
    >>> sampler.draw(np.random.default_rng(0), 5).shape
    (5, 3)
    >>> sampler.status
    Exact()
    """

    body: Body

    def __post_init__(self) -> None:
        if not checked_body(self.body).implements(Body.sample_uniform):
            raise MissingOracle(self.body, "exact sampler", "a sample_uniform of its own")

    @property
    def status(self) -> SamplerStatus:
        """Always `Exact`."""
        return Exact()

    def draw(self, rng: np.random.Generator, n: int) -> FloatArray:
        """Independent uniform points (n, m)."""
        return self.body.sample_uniform(whole(n, "n"), rng)


@dataclass(frozen=True)
class ChainSampler:
    """Approximately uniform points, each the end of its own Markov chain (SAM-3).

    The preparation reads no records: it makes the body nearly isotropic, and sets the burn-in to
    `relaxations` autocorrelation times of a pilot run, whose diagnostics are in the status. A draw
    starts a new chain for every point and runs the full burn-in, so all points are independent. No
    bound on the distance of their distribution from the uniform distribution is proved.

    Parameters
    ----------
    body : Body
        A body with chords, or with a membership test from which bisection finds the chords.
    relaxations : float
        Length of the burn-in in integrated autocorrelation times.
    rng : Generator, int or None
        Randomness of the preparation; by default the public seed.

    Raises
    ------
    MissingOracle
        If the body lacks what the chains need, such as chords or a membership test.
    ValueError
        If the body is unbounded or a point, or `relaxations` is not above 0 and at most 1e6.

    Examples
    --------
    >>> import numpy as np
    >>> import geomdp as gd
    >>> from geomdp.geometry import sampling
    >>> K = gd.bodies.Intersection([gd.bodies.Ball(2), gd.bodies.Box.centred([0.8, 0.8])])
    >>> sampler = sampling.ChainSampler(K)
    >>> points = sampler.draw(np.random.default_rng(0), 5)
    >>> points.shape, bool(K.contains(points).all())
    ((5, 2), True)
    >>> type(sampler.status).__name__
    'Heuristic'
    """

    body: Body
    relaxations: float = RELAXATIONS
    rng: RandomState = field(default=PUBLIC_SEED, repr=False, compare=False)
    walk: Walk = field(init=False, repr=False, compare=False)
    burn_in: int = field(init=False, repr=False, compare=False)
    mixing: Mixing = field(init=False, repr=False, compare=False)
    diagnostics: Diagnostics = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        if positive(self.relaxations, "relaxations") > MOST_RELAXATIONS:
            raise ValueError(
                f"relaxations must be at most {MOST_RELAXATIONS:g}, got {self.relaxations!r}"
            )
        rng = np.random.default_rng(self.rng)
        walk = prepared_walk(checked_body(self.body), rng)
        mixing = pilot(walk, rng)
        object.__setattr__(self, "walk", walk)
        object.__setattr__(self, "mixing", mixing)
        object.__setattr__(self, "burn_in", math.ceil(self.relaxations * mixing.correlation_time))
        found = diagnose(mixing.chains.draws, mixing.chains.steps)
        object.__setattr__(self, "diagnostics", found)

    @property
    def status(self) -> SamplerStatus:
        """`Heuristic`, with the kernel, the steps and the diagnostics of the pilot run."""
        agreed = "" if self.mixing.agreed else " whose chains did not agree"
        return Heuristic(
            f"{self.walk.kernel.name}, {self.burn_in} steps; pilot{agreed}: {self.diagnostics}"
        )

    def draw(self, rng: np.random.Generator, n: int) -> FloatArray:
        """End points (n, m) of n fresh independent chains."""
        n = whole(n, "n")
        parts = []
        for first in range(0, n, LOCKSTEP):
            points = self.walk.starts(min(LOCKSTEP, n - first), rng)
            for _ in range(self.burn_in):
                points = self.walk.kernel.step(rng, self.walk.body, points)
            parts.append(self.walk.embed(points))
        return np.concatenate(parts)


def pilot(walk: Walk, rng: np.random.Generator, chains: int = PILOT_CHAINS) -> Mixing:
    """Measure the autocorrelation time of `walk` with starts moved halfway towards the boundary.

    The diagnostics need starts that are farther from the centre than uniform points.
    """
    starts = walk.starts(chains, rng)
    _, reach = walk.body.chord(starts, starts)
    outward = 1 + reach / 2
    return measure_mixing(walk.kernel, walk.body, starts * outward[:, None], rng)


def sample_uniform(body: Body, n: int, rng: RandomState = None) -> Samples:
    """Uniform points of `body` within its affine hull.

    With an exact sampler, or for a small polytope with listed vertices (which can be cut into
    simplices), the points are exactly uniform and independent.

    For other bodies the points come from hit-and-run (coordinate hit-and-run on polytopes with
    listed facets) in a nearly isotropic position. There are 128 independent chains, or n if n is
    less. Each runs for 10 autocorrelation times of a pilot run, and then keeps one point every 2.
    Points of one chain are nearly but not exactly independent. `ChainSampler` gives independent
    points at a higher cost. The result has the status of the sampler, and diagnostics of the chains
    (of the pilot run, if each chain gives fewer than 4 points).

    Parameters
    ----------
    body : Body
        A body in R^m with an exact sampler, chords or a membership test.
    n : int
        Number of points, at least 1.
    rng : Generator, int or None
        Source of all randomness.

    Raises
    ------
    MissingOracle
        If the body has no exact sampler and lacks what the chains need, such as a membership test.
    ValueError
        If n is below 1, or if chains are needed and the body is unbounded or a single point.

    Examples
    --------
    >>> import geomdp as gd
    >>> exact = gd.sample_uniform(gd.bodies.CrossPolytope(4), 1000, rng=0)
    >>> exact.points.shape, exact.sampler
    ((1000, 4), Exact())
    >>> lens = gd.bodies.Intersection([gd.bodies.Ball(2), gd.bodies.Box.centred([2.0, 0.5])])
    >>> by_chains = gd.sample_uniform(lens, 1000, rng=0)
    >>> type(by_chains.sampler).__name__, by_chains.diagnostics.worst_r_hat < 1.1
    ('Heuristic', True)
    """
    n, rng = whole(n, "n"), np.random.default_rng(rng)
    if checked_body(body).implements(Body.sample_uniform):
        return Samples(body.sample_uniform(n, rng), Exact())
    simplices = triangulated(body)
    if simplices is not None:
        return Samples(simplices.sample_uniform(n, rng), Exact())
    sampler = ChainSampler(body, rng=rng)
    walk, chains = sampler.walk, min(CHAINS, n)
    run = run_chains(
        walk.kernel,
        walk.body,
        walk.starts(chains, rng),
        rng,
        draws=-(-n // chains),
        burn_in=sampler.burn_in,
        thinning=math.ceil(SPACING * sampler.mixing.correlation_time),
    )
    enough = chains > 1 and run.draws.shape[1] >= 4
    embedded = walk.embed(run.draws)
    diagnostics = diagnose(embedded, run.steps) if enough else sampler.diagnostics
    # Take the first draw of every chain, then the second draws, and so on, up to n points.
    points = embedded.swapaxes(0, 1).reshape(-1, body.dimension)[:n]
    return Samples(np.ascontiguousarray(points), sampler.status, diagnostics)
