"""Every `Mechanism` class, with settings for its contract tests, or the file that has them."""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from geomdp.geometry import GaussianMap, JLLaw, RademacherMap, SparseMap
from geomdp.mechanisms import (
    JL,
    Ball,
    Coarse,
    Cone,
    Covariance,
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
from geomdp.workloads import SecondMoment as Moments

PURE, CONCENTRATED, APPROXIMATE = PureDP(1.0), ZCDP(0.5), ApproxDP(1.0, 1e-6)
#: A delta so large that few dimensions have noise far from pure noise, and that audits notice it.
LOOSE = ApproxDP(1.0, 0.05)


@dataclass(frozen=True)
class Entry:
    """One mechanism family."""

    kind: type
    privacy: Privacy
    build: Callable[[Workload, int, Privacy, Adjacency], Mechanism]
    #: Name in `HOMES` of the workload for tests that need only one workload.
    home: str = "tables"
    #: Whether the noise has a density in closed form. Tests of density ratios need it.
    density: bool = True


def plain(kind, privacy, *, home="tables", density=True, **options):
    def build(workload, n, privacy, adjacency):
        return kind(workload, n=n, privacy=privacy, adjacency=adjacency, **options)

    return Entry(kind, privacy, build, home, density)


def after(kind, inner: Entry, *arguments, **options) -> Entry:
    """The post-processing `kind` of the mechanisms of `inner`."""

    def build(*setting):
        return kind(inner.build(*setting), *arguments, **options)

    return Entry(kind, inner.privacy, build)


def jl(inner: Entry, law: JLLaw = GaussianMap()) -> Entry:  # noqa: B008
    return after(JL, inner, 1, rng=7, law=law)


ADDITIVE: dict[str, Entry] = {
    "Laplace": plain(Laplace, PURE),
    "Laplace zCDP": plain(Laplace, CONCENTRATED),
    # These two are only for workloads with whole-number answers. test_few_queries.py tests the
    # probability ratios of their noise.
    "Geometric": plain(Geometric, PURE, density=False),
    "Geometric zCDP": plain(Geometric, CONCENTRATED, density=False),
    "LatticeBox": plain(LatticeBox, PURE, density=False),
    "Ball": plain(Ball, PURE),
    "Ellipsoid": plain(Ellipsoid, PURE),
    "Ball approximate": plain(Ball, LOOSE),
    "Ellipsoid approximate": plain(Ellipsoid, LOOSE),
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
    "Projected Ball": after(Projected, ADDITIVE["Ball"]),
    "Projected Laplace": after(Projected, ADDITIVE["Laplace"]),
    "Projected Gaussian": after(Projected, ADDITIVE["Gaussian zCDP"]),
    "Fitted Hierarchical": after(Fitted, ADDITIVE["Hierarchical"]),
    "Shrunk Ball": after(Shrunk, ADDITIVE["Ball"]),
    "JL Ball": jl(ADDITIVE["Ball"]),
    "JL Ball, signs": jl(ADDITIVE["Ball"], RademacherMap()),
    "JL Ball, sparse": jl(ADDITIVE["Ball"], SparseMap(0.9)),
    "JL Gaussian": jl(ADDITIVE["Gaussian zCDP"]),
    # The radius 0.3 is small enough that the net has all four corners of the audited square. So an
    # audit sees every difference of answers.
    "Coarse Ball": after(Coarse, ADDITIVE["Ball"], 0.3),
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
#: Mechanisms for one kind of workload only, their home.
OWN: dict[str, Entry] = {
    "SecondMoment": plain(SecondMoment, PURE, home="moments"),
    "SecondMoment shrunk": plain(SecondMoment, PURE, home="moments", shrink=True),
    "PairMarginals": plain(PairMarginals, PURE, home="two-way marginals"),
    "ResidualGaussian": plain(ResidualGaussian, CONCENTRATED),
}
#: Covariances are no means of answers, so this class is no `Mechanism`.
COVARIANCE: dict[str, Entry] = {"Covariance": plain(Covariance, PURE, home="moments")}
#: All classes with a release, and each with the neighbour relations that it accepts.
ENTRIES = MECHANISMS | OWN | COVARIANCE
RELEASES = [
    *SETTINGS,
    *((name, adjacency) for name in OWN for adjacency in Adjacency),
    ("Covariance", Adjacency.REPLACE_ONE),
]
#: Other mechanisms for one kind of workload, and the files with their contract tests.
ELSEWHERE: dict[type[Mechanism], str] = {
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
#: The workloads of `Entry.home`.
HOMES: dict[str, Workload] = WORKLOADS | {"moments": Moments(3)}


#: Number of records of the mechanisms of `build`.
N = 20


def fresh(
    name: str, workload: Workload, adjacency: Adjacency = Adjacency.REPLACE_ONE, n: int = N
) -> Mechanism:
    entry = ENTRIES[name]
    return entry.build(workload, n, entry.privacy, adjacency)


#: Use changes a mechanism only by keeping computed values, so tests share the mechanisms.
build = functools.cache(fresh)


def home(name: str) -> Workload:
    return HOMES[ENTRIES[name].home]


#: Names of `MECHANISMS` without a correctly rounded release, each with the reason that the guide
#: gives in its table. At present there are none.
WITHOUT: dict[str, str] = {}
