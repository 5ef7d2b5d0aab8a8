"""Every `Mechanism` class, with settings for its contract tests, or the file that has them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from geomdp.geometry import GaussianMap, JLLaw, RademacherMap, SparseMap
from geomdp.mechanisms import (
    JL,
    Ball,
    Coarse,
    Cone,
    Ellipsoid,
    Fitted,
    Gaussian,
    Geometric,
    Hierarchical,
    KNorm,
    Laplace,
    LatticeBox,
    Matrix,
    Mechanism,
    PairMarginals,
    Projected,
    Recursive,
    ResidualGaussian,
    SecondMoment,
    Shrunk,
    Spectral,
    Staircase,
    TightCone,
)
from geomdp.noise.recursive import Variant
from geomdp.privacy import ZCDP, Adjacency, ApproxDP, Privacy, PureDP
from geomdp.workloads import (
    Explicit,
    LinearMap,
    Marginals,
    MarginalTables,
    Parities,
    Prefixes,
    RandomSigns,
    Workload,
)

PURE, CONCENTRATED, APPROXIMATE = PureDP(1.0), ZCDP(0.5), ApproxDP(1.0, 1e-6)


@dataclass(frozen=True)
class Entry:
    """One mechanism family.

    Parameters
    ----------
    kind : type
        The exported class.
    privacy : Privacy
        A guarantee that the class accepts.
    build : callable
        (workload, n, privacy, adjacency) -> mechanism.
    home : str
        Name in `WORKLOADS` of the workload for tests that need only one workload.
    density : bool
        Whether the noise has a density in closed form. Tests of density ratios need it.
    """

    kind: type[Mechanism]
    privacy: Privacy
    build: Callable[[Workload, int, Privacy, Adjacency], Mechanism]
    home: str = "tables"
    density: bool = True


def plain(kind, privacy, *, home="tables", density=True, **options):
    def build(workload, n, privacy, adjacency):
        return kind(workload, n=n, privacy=privacy, adjacency=adjacency, **options)

    return Entry(kind, privacy, build, home, density)


def projected(inner: Entry) -> Entry:
    return Entry(Projected, inner.privacy, lambda *setting: Projected(inner.build(*setting)))


def fitted(inner: Entry) -> Entry:
    return Entry(Fitted, inner.privacy, lambda *setting: Fitted(inner.build(*setting)))


def shrunk(inner: Entry) -> Entry:
    return Entry(Shrunk, inner.privacy, lambda *setting: Shrunk(inner.build(*setting)))


def jl(inner: Entry) -> Entry:
    return jl_of(inner, GaussianMap())


def jl_of(inner: Entry, law: JLLaw) -> Entry:
    return Entry(JL, inner.privacy, lambda *setting: JL(inner.build(*setting), 1, rng=7, law=law))


def coarse(inner: Entry) -> Entry:
    # The radius 0.3 is small enough that the net has all four corners of the audited square. So an
    # audit sees every difference of answers.
    return Entry(Coarse, inner.privacy, lambda *setting: Coarse(inner.build(*setting), 0.3))


ADDITIVE: dict[str, Entry] = {
    "Laplace": plain(Laplace, PURE),
    # These two are only for workloads with whole-number answers. test_few_queries.py tests the
    # probability ratios of their noise.
    "Geometric": plain(Geometric, PURE, density=False),
    "LatticeBox": plain(LatticeBox, PURE, density=False),
    "Ball": plain(Ball, PURE),
    "Ellipsoid": plain(Ellipsoid, PURE),
    "KNorm exact": plain(KNorm, PURE, exact=True),
    "KNorm": plain(KNorm, PURE),
    # Cone mechanisms need a workload with answers in a body that has an exact sampler. The density
    # of their noise has no closed form.
    "Cone": plain(Cone, PURE, home="two-way marginals", density=False),
    "Cone categorical": plain(Cone, PURE, density=False),
    "TightCone": plain(TightCone, PURE, density=False),
    # Noise of the intrinsic variant has a density in closed form.
    "Recursive": plain(Recursive, PURE, home="stretched", variant=Variant.INTRINSIC),
    # Noise of measurements that overlap has no density in closed form.
    "Matrix": plain(Matrix, PURE, density=False),
    "Matrix listed": plain(Matrix, PURE, home="stretched", density=False),
    "Matrix Gaussian": plain(Matrix, CONCENTRATED, density=False),
    "Hierarchical": plain(Hierarchical, PURE, density=False),
    "Gaussian zCDP": plain(Gaussian, CONCENTRATED),
    "Gaussian approximate": plain(Gaussian, APPROXIMATE),
}
POST_PROCESSED: dict[str, Entry] = {
    "Projected Ball": projected(ADDITIVE["Ball"]),
    "Projected Laplace": projected(ADDITIVE["Laplace"]),
    "Projected Gaussian": projected(ADDITIVE["Gaussian zCDP"]),
    "Fitted Hierarchical": fitted(ADDITIVE["Hierarchical"]),
    "Shrunk Ball": shrunk(ADDITIVE["Ball"]),
    "JL Ball": jl(ADDITIVE["Ball"]),
    "JL Ball, signs": jl_of(ADDITIVE["Ball"], RademacherMap()),
    "JL Ball, sparse": jl_of(ADDITIVE["Ball"], SparseMap(0.9)),
    "JL Gaussian": jl(ADDITIVE["Gaussian zCDP"]),
    "Coarse Ball": coarse(ADDITIVE["Ball"]),
}
MECHANISMS = ADDITIVE | POST_PROCESSED
#: Mechanisms whose error has no bound where the number of records is private.
REPLACE_ONLY = [name for name, entry in MECHANISMS.items() if entry.kind in (Shrunk, JL, Coarse)]
#: Each mechanism with each neighbour relation that it accepts.
SETTINGS = [
    (name, adjacency)
    for name in MECHANISMS
    for adjacency in Adjacency
    if adjacency is Adjacency.REPLACE_ONE or name not in REPLACE_ONLY
]
#: Mechanisms for one kind of workload only, and the files with their contract tests.
ON_REALS: dict[type[Mechanism], str] = {
    SecondMoment: "test_second_moment.py",
    PairMarginals: "test_pair_marginals.py",
    ResidualGaussian: "test_residual_gaussian.py",
    Spectral: "test_spectral.py",
    Staircase: "test_few_queries.py",
}

#: Small workloads. Their sensitivity polytopes are boxes, simplices, general polytopes, flat
#: polytopes, and a box with sides so different that the recursion splits it.
WORKLOADS: dict[str, Workload] = {
    "one-way marginals": Marginals(3, 1),
    "two-way marginals": Marginals(4, 2),
    "parities": Parities(4, 2),
    "prefixes": Prefixes(5),
    "tables": MarginalTables([2, 3, 2], 2),
    "signs": RandomSigns(4, 12, 3),
    "stretched": LinearMap(Marginals(4, 1), np.diag([1.0, 0.3, 0.1, 0.03])),
    "flat": Explicit(
        np.random.default_rng(0).standard_normal((6, 3))
        @ np.random.default_rng(1).standard_normal((3, 9))
    ),
}


#: Names of `MECHANISMS` without a correctly rounded release, each with the reason that the guide
#: gives in its table. At present there are none.
WITHOUT: dict[str, str] = {}
