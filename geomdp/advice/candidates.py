"""The table of candidates: for each mechanism, what the advisor and the command line need."""

from __future__ import annotations

import enum
from collections.abc import Callable
from dataclasses import dataclass, replace

from geomdp.advice.builders import (
    ball,
    coarse,
    cone,
    ellipsoid,
    geometric,
    geometric_differs,
    jl,
    knorm,
    knorm_differs,
    knorm_exact,
    lattice_box,
    lattice_box_differs,
    pair_marginals,
    plain,
    pure_matrix_differs,
    recursive,
    residual_gaussian,
    second_moment,
    spectral,
    staircase,
    tight_cone,
    tight_cone_differs,
)
from geomdp.advice.setting import InapplicableError, Setting
from geomdp.mechanisms import (
    JL,
    AdditiveMechanism,
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
from geomdp.privacy import PureDP

# Steps of post-processing. They read noisy answers but no records, so they cost no privacy


@dataclass(frozen=True)
class Step:
    """A step of post-processing that improves noisy answers.

    `does` begins with a participle. `prefix` precedes the name of the noise on the command line.
    """

    kind: Callable[[AdditiveMechanism], Mechanism]
    name: str
    prefix: str
    does: str


SHRUNK = Step(
    Shrunk,
    "Shrunk",
    "shrunk-",
    "moving the noisy answers towards those of uniform data, and to attainable ones,",
)
PROJECTED = Step(
    Projected, "Projected", "projected-", "moving the noisy answers to the nearest attainable ones"
)
#: The proved bound on the error after this step is at least the bound for `PROJECTED`, and mostly
#: twice as large. But in releases, the errors after this step are mostly smaller than after
#: `PROJECTED`. So the advisor judges this step by simulation on public data sets (`with_fit`).
FITTED = Step(
    Fitted,
    "Fitted",
    "fitted-",
    "taking the attainable answers that fit the noisy ones best in the norm of the noise",
)
STEPS = (PROJECTED, FITTED, SHRUNK)


# One candidate: a mechanism that the advisor compares with others


class Guarantees(enum.Enum):
    """The guarantees that a mechanism can give; the command line lists the values of this enum."""

    PURE = "any; releases are epsilon-DP"
    CONCENTRATED = "--epsilon --delta, or --rho"
    ANY = "any"

    def met_by(self, setting: Setting) -> Setting:
        """The setting, with a guarantee that the mechanism can give and that implies the one asked.

        `CONCENTRATED` raises `InapplicableError` if pure privacy is asked.
        """
        if self is Guarantees.PURE:
            return replace(setting, privacy=setting.pure)
        if self is Guarantees.CONCENTRATED and isinstance(setting.privacy, PureDP):
            raise InapplicableError("Gaussian noise is never purely private")
        return setting


def any_setting(setting: Setting) -> None:
    """Raise no error: the candidate is compared in every setting in which it applies."""
    del setting


@dataclass(frozen=True, repr=False)
class Candidate:
    """A mechanism that the advisor compares with others.

    `build` and `useful` raise `InapplicableError` if the mechanism does not apply or need not be
    compared, and `UntriedError` before a step that costs more than the budget. `suits` is a
    sentence that begins with "It" or "Its". With `depends_on_n`, the candidate is built after the
    others. `log_concave` noise is also symmetric; `projection_floor` holds only for such noise.
    """

    kind: type[Mechanism]
    flag: str
    guarantees: Guarantees
    summary: str
    suits: str
    build: Callable[[Setting], Mechanism]
    steps: tuple[Step, ...] = ()
    name: str = ""
    useful: Callable[[Setting], None] = any_setting
    depends_on_n: bool = False
    log_concave: bool = True

    def __post_init__(self) -> None:
        object.__setattr__(self, "name", self.name or self.kind.__name__)

    def __repr__(self) -> str:
        return f"Candidate({self.name}, --mechanism {self.flag})"

    def is_stronger(self, setting: Setting) -> bool:
        """Whether the mechanism is purely private, and the guarantee asked is not pure privacy."""
        return self.guarantees is Guarantees.PURE and not isinstance(setting.privacy, PureDP)

    def built(self, setting: Setting) -> Mechanism:
        """Build the mechanism for a caller who asks for it by name."""
        return self.build(self.guarantees.met_by(setting))

    def compared(self, setting: Setting) -> Mechanism:
        """Build the mechanism for a comparison, unless `useful` raises `InapplicableError`."""
        met = self.guarantees.met_by(setting)
        self.useful(setting)
        return self.build(met)


# The table of candidates

#: Names of two candidates: exact K-norm noise, and such noise on the answers after a random map to
#: fewer dimensions.
EXACT_NOISE, JL_NAME = "KNorm(exact=True)", "JL(KNorm(exact=True))"
#: Name of the matrix mechanism with Laplace noise if the requested guarantee is not pure DP.
PURE_MATRIX = "Matrix(pure)"
#: All candidates, the simplest first. If candidates are equal by all other rules of the ranking,
#: the first one wins.
CANDIDATES = (
    Candidate(
        kind=Laplace,
        flag="laplace",
        guarantees=Guarantees.PURE,
        summary="independent Laplace noise on every query",
        suits="It adds independent noise to every query. This is best if one record changes few "
        "answers.",
        build=plain(Laplace),
        steps=STEPS,
    ),
    Candidate(
        kind=Geometric,
        flag="geometric",
        guarantees=Guarantees.PURE,
        summary="like laplace, with noise on whole numbers, for queries that count",
        suits="Its noise is whole, like the counts to which it is added. For large epsilon it is "
        "almost always 0.",
        build=geometric,
        steps=STEPS,
        useful=geometric_differs,
        log_concave=False,
    ),
    Candidate(
        kind=Staircase,
        flag="staircase",
        guarantees=Guarantees.PURE,
        summary="for one query, the epsilon-DP noise of least variance",
        suits="It answers one query. No other epsilon-DP noise on a real number has less variance.",
        build=staircase,
        steps=STEPS,
        log_concave=False,
    ),
    Candidate(
        kind=Gaussian,
        flag="gaussian",
        guarantees=Guarantees.CONCENTRATED,
        summary="Gaussian noise in the span of the answers",
        suits="It adds the same Gaussian noise in every direction in which answers differ.",
        build=plain(Gaussian),
        steps=STEPS,
    ),
    Candidate(
        kind=ResidualGaussian,
        flag="residual-gaussian",
        guarantees=Guarantees.CONCENTRATED,
        summary="Gaussian noise on the residuals of tables; allows hundreds of columns",
        suits="It adds Gaussian noise to the part of each table that tables of fewer columns do "
        "not tell, with the best variance for each part. All tables are computed from these parts.",
        build=residual_gaussian,
        steps=STEPS,
    ),
    Candidate(
        kind=Ball,
        flag="ball",
        guarantees=Guarantees.PURE,
        summary="K-norm noise of the ball around all changes by one record",
        suits="Its noise is the same in every direction in which answers differ.",
        build=ball,
        steps=STEPS,
    ),
    Candidate(
        kind=Cone,
        flag="cone",
        guarantees=Guarantees.PURE,
        summary="noise from the cone over a body around the answers, if such a body is known",
        suits="Its noise has the shape of a body around all answers, so answers that change "
        "together share their noise.",
        build=cone,
        steps=STEPS,
    ),
    Candidate(
        kind=TightCone,
        flag="tight-cone",
        guarantees=Guarantees.PURE,
        summary="like cone, for tables of two columns, with a body that is closer to the answers",
        suits="Its noise has the shape of a body around all answers. This body is cut close to "
        "them by inequalities that all counts satisfy.",
        build=tight_cone,
        steps=STEPS,
        useful=tight_cone_differs,
    ),
    Candidate(
        kind=Spectral,
        flag="spectral",
        guarantees=Guarantees.PURE,
        summary="K-norm noise on moment matrices of signs; better than cone for 20 binary columns "
        "or more",
        suits="Its noise is added to the matrix of all pairwise products, and only a small part of "
        "the noise is in each entry. Every answer is a sum of a few entries.",
        build=spectral,
        steps=STEPS,
    ),
    Candidate(
        kind=KNorm,
        name=EXACT_NOISE,
        flag="knorm-exact",
        guarantees=Guarantees.PURE,
        summary="K-norm noise of the best body that has an exact sampler",
        suits="Its noise has the shape of what one record can change: it is large only in "
        "directions in which one record changes answers much.",
        build=knorm_exact,
        steps=STEPS,
    ),
    Candidate(
        kind=Ellipsoid,
        flag="ellipsoid",
        guarantees=Guarantees.PURE,
        summary="K-norm noise of the best ellipsoid around all changes by one record",
        suits="Its noise is larger in directions in which one record changes answers more.",
        build=ellipsoid,
        steps=STEPS,
    ),
    Candidate(
        kind=Matrix,
        flag="matrix",
        guarantees=Guarantees.ANY,
        summary="noise on an optimised strategy, then least squares",
        suits="It measures a few well-chosen sums with noise and computes the answers from them, "
        "so that queries share the noise.",
        build=plain(Matrix),
        steps=STEPS,
    ),
    Candidate(
        kind=Matrix,
        name=PURE_MATRIX,
        flag="matrix-pure",
        guarantees=Guarantees.PURE,
        summary="matrix with Laplace noise, also for --delta and --rho",
        suits="It measures a few well-chosen sums with Laplace noise and computes the answers from "
        "them. Laplace noise can be smaller than Gaussian noise for a small delta.",
        build=plain(Matrix),
        steps=STEPS,
        useful=pure_matrix_differs,
    ),
    Candidate(
        kind=Hierarchical,
        flag="hierarchical",
        guarantees=Guarantees.PURE,
        summary="K-norm noise on counts of several resolutions, then least squares",
        suits="It counts at several resolutions with noise and combines them, so that no answer "
        "adds up many noisy counts.",
        build=plain(Hierarchical),
        steps=STEPS,
    ),
    Candidate(
        kind=LatticeBox,
        flag="lattice-box",
        guarantees=Guarantees.PURE,
        summary="K-norm noise of a box on whole numbers, for few queries and a large epsilon",
        suits="Its noise is whole, like the counts to which it is added. For large epsilon it is "
        "almost always 0 in all queries together.",
        build=lattice_box,
        steps=STEPS,
        useful=lattice_box_differs,
        log_concave=False,
    ),
    Candidate(
        kind=Recursive,
        flag="recursive",
        guarantees=Guarantees.PURE,
        summary="Hardt-Talwar noise of the best body that has an exact sampler, split into levels",
        suits="It splits the directions of the answers into levels of different size, and divides "
        "the budget among them.",
        build=recursive,
        steps=STEPS,
    ),
    Candidate(
        kind=KNorm,
        flag="knorm",
        guarantees=Guarantees.PURE,
        summary="K-norm noise of the body of all changes by one record; its sampler can be "
        "heuristic",
        suits="Its noise has the shape of what one record can change: it is large only in "
        "directions in which one record changes answers much.",
        build=knorm,
        steps=STEPS,
        useful=knorm_differs,
    ),
    Candidate(
        kind=SecondMoment,
        flag="second-moment",
        guarantees=Guarantees.ANY,
        summary="noise on the matrix of second moments, then the nearest attainable matrix",
        suits="It adds noise to the matrix of second moments and takes the nearest matrix that "
        "records can have.",
        build=second_moment,
    ),
    Candidate(
        kind=PairMarginals,
        flag="pair-marginals",
        guarantees=Guarantees.ANY,
        summary="2-way conjunctions, computed from second moments",
        suits="It computes conjunctions from the second moments of scaled records. These second "
        "moments need little noise.",
        build=pair_marginals,
    ),
    Candidate(
        kind=JL,
        name=JL_NAME,
        flag="jl",
        guarantees=Guarantees.PURE,
        summary="K-norm noise after a random projection to the best number of dimensions",
        suits="It answers a few random sums of the queries. With so few records, noise in all "
        "directions would cost more than this reduction loses.",
        build=jl,
        depends_on_n=True,
    ),
    Candidate(
        kind=Coarse,
        name="Coarse(Projected)",
        flag="coarse",
        guarantees=Guarantees.ANY,
        summary="projected noise for answers that are rounded to a few points",
        suits="It rounds the answers of each record to one of a few points, which need less noise.",
        build=coarse,
        depends_on_n=True,
    ),
)
