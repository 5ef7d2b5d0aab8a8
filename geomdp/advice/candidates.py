"""The candidates: for each mechanism, when it applies, how it is built, and how it is described."""

from __future__ import annotations

import enum
import itertools
import math
import re
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from geomdp import mechanisms, workloads
from geomdp._numerics.linalg import farthest_points
from geomdp._numerics.randomness import PUBLIC_SEED
from geomdp.advice.setting import (
    InapplicableError,
    Setting,
    UntriedError,
    axes_work,
    breadth_work,
)
from geomdp.bodies import neighbour_body, sensitivity_polytope
from geomdp.bodies.base import Body
from geomdp.mechanisms import AdditiveMechanism, Fitted, Mechanism, Projected, Shrunk
from geomdp.mechanisms.additive_noise.cone import MAX_TRIPLES, MAX_WORK, cone_lift
from geomdp.mechanisms.additive_noise.sums import MAX_ANSWERS, Change
from geomdp.mechanisms.projected import MAX_DRAWS
from geomdp.mechanisms.reduced_answers import distortion_bound, width_limit
from geomdp.noise.few_queries import MOST_COORDINATES
from geomdp.privacy import ZCDP, ApproxDP, PureDP
from geomdp.privacy.definitions import largest_epsilon
from geomdp.workloads import Workload, explicit_answers
from geomdp.workloads.structure import pair_levels, sign_products
from geomdp.workloads.tables import ProductQueries, TableQueries, cells_of

# Steps of post-processing. They read noisy answers but no records, so they cost no privacy


@dataclass(frozen=True)
class Step:
    """A step of post-processing that improves noisy answers; `does` begins with a participle."""

    kind: type[Projected] | type[Fitted] | type[Shrunk]
    does: str

    @property
    def name(self) -> str:
        return self.kind.__name__

    @property
    def prefix(self) -> str:
        """What precedes the name of the noise on the command line."""
        return f"{self.name.lower()}-"

    def after(self, noise: Mechanism) -> Mechanism:
        assert isinstance(noise, AdditiveMechanism)
        return self.kind(noise)


SHRUNK = Step(
    Shrunk, "moving the noisy answers towards those of uniform data, and to attainable ones,"
)
PROJECTED = Step(Projected, "moving the noisy answers to the nearest attainable ones")
#: The proved bound after this step is mostly twice the bound for `PROJECTED`, but the errors in
#: releases are mostly smaller. So this step is judged by simulation (`with_fit`).
FITTED = Step(
    Fitted, "taking the attainable answers that fit the noisy ones best in the norm of the noise"
)
STEPS = (PROJECTED, FITTED, SHRUNK)


# One candidate: a mechanism that the advisor compares with others


class Guarantees(enum.Enum):
    """The guarantees that a mechanism can give; the command line lists the values of this enum."""

    PURE = "any; releases are epsilon-DP"
    PURE_OR_RHO = "any; for --delta, releases are epsilon-DP"
    PURE_OR_DELTA = "any; for --rho, releases are epsilon-DP, unless answers are on a line"
    CONCENTRATED = "--epsilon --delta, or --rho"
    ANY = "any"

    def met_by(self, setting: Setting) -> Setting:
        """The setting, with a guarantee that the mechanism gives and that implies the one asked."""
        own = OWN_DEFINITIONS.get(self)
        if self is Guarantees.PURE_OR_DELTA and is_rho_of_line(setting):
            return setting
        if own is not None and not isinstance(setting.privacy, own):
            return replace(setting, privacy=setting.pure)
        if self is Guarantees.CONCENTRATED and isinstance(setting.privacy, PureDP):
            raise InapplicableError("Gaussian noise is never purely private")
        return setting

    def most_epsilon(self, setting: Setting) -> float:
        """An epsilon for which the noise of every such mechanism is epsilon-DP; inf if unknown."""
        match self.met_by(setting).privacy:
            case PureDP(epsilon=epsilon):
                return epsilon
            case ZCDP(rho=rho):
                # Of all geometric and Laplace noise with this rho, Laplace noise has the most.
                return largest_epsilon(rho, 0.0)
            case _:
                return math.inf


#: The definition of privacy, beside `PureDP`, that a mechanism with pure noise states itself.
OWN_DEFINITIONS: dict[Guarantees, tuple[type, ...]] = {
    Guarantees.PURE: (),
    Guarantees.PURE_OR_RHO: (ZCDP,),
    Guarantees.PURE_OR_DELTA: (ApproxDP,),
}


@dataclass(frozen=True)
class Candidate:
    """A mechanism that the advisor compares with others.

    `check` and `build` (by default `kind`) raise `InapplicableError` if it does not apply, and
    `UntriedError` before a step that costs more than the budget, `useful` if it need not be
    compared. The set-up takes `share` times `axes_work`. `suits` is a sentence on "It" or "Its".
    With `depends_on_n`, the candidate is built after the others. `name` and `flag` are by default
    those of `kind`.
    """

    kind: type[Mechanism]
    summary: str
    suits: str
    name: str = ""
    flag: str = ""
    guarantees: Guarantees = Guarantees.PURE
    check: Callable[[Setting], None] | None = None
    share: float = 0.0
    build: Callable[[Setting], Mechanism] | None = None
    useful: Callable[[Setting], None] | None = None
    depends_on_n: bool = False

    def __post_init__(self) -> None:
        words = re.sub("(?<=[a-z])(?=[A-Z])", "-", self.kind.__name__)
        object.__setattr__(self, "name", self.name or self.kind.__name__)
        object.__setattr__(self, "flag", self.flag or words.lower())

    @property
    def steps(self) -> tuple[Step, ...]:
        """The steps that can follow the mechanism."""
        return STEPS if issubclass(self.kind, AdditiveMechanism) else ()

    def is_stronger(self, setting: Setting) -> bool:
        """Whether the noise is always purely private, and the guarantee asked is not."""
        return self.guarantees in OWN_DEFINITIONS and not isinstance(setting.privacy, PureDP)

    def built(self, setting: Setting, step: Step | None = None) -> Mechanism:
        """Build the mechanism, followed by `step`, for a caller who asks for it by name."""
        met = self.guarantees.met_by(setting)
        if self.check is not None:
            self.check(met)
        if self.share:
            met.check_cost("set-up", work=self.share * axes_work(met.workload))
        mechanism = met.made(self.kind) if self.build is None else self.build(met)
        return mechanism if step is None else step.after(mechanism)

    def compared(self, setting: Setting) -> Mechanism:
        """Build the mechanism for a comparison, unless `useful` raises `InapplicableError`."""
        self.guarantees.met_by(setting)
        if self.useful is not None:
            self.useful(setting)
        return self.built(setting)


# When candidates apply, and when they differ from others

#: An outer body of slabs is refined up to this dimension of the answers' hull, and this product of
#: dimension and size of the universe: 7 s for 1024 elements in dimension 55, 60 s for 1600 in 132.
MAX_REFINED_DIMENSION, MAX_REFINED = 100, 150_000
#: Largest dimension in which the best ellipsoid is computed numerically. Measured: 3 s in dimension
#: 200 (random signs on 1000 elements), 9 s in dimension 255 (prefix sums).
MAX_ELLIPSOID_DIMENSION = 200
#: Operations of the set-ups of a ball or an ellipsoid, of the bodies of `knorm_exact`, and of the
#: levels of `recursive`, divided by `axes_work`.
BALL_SHARE, BODIES_SHARE, LEVELS_SHARE = 0.8, 1.6, 4.0

#: Geometric noise is compared only if the error of Laplace noise is larger by at least this share.
SAME_ERROR = 1e-4


def requires(holds: Callable[[Workload], bool], why: str) -> Callable[[Setting], None]:
    """A check that raises `InapplicableError` unless the workload `holds`."""

    def check(setting: Setting) -> None:
        if not holds(setting.workload):
            raise InapplicableError(why)

    return check


check_whole = requires(
    lambda workload: workload.whole_answers, "the answers are not known to be whole numbers"
)


def geometric_differs(setting: Setting) -> None:
    check_whole(setting)
    if isinstance(setting.privacy, ApproxDP):
        setting = replace(setting, privacy=setting.pure)
    least = setting.made(mechanisms.Geometric).predicted_rmse.value
    if setting.made(mechanisms.Laplace).predicted_rmse.value < least * (1 + SAME_ERROR):
        raise InapplicableError("its error is not 0.01% below that of Laplace")


def is_rho_of_line(setting: Setting) -> bool:
    """Whether zCDP is asked for cells on a line, where the noise of a ball is Laplace noise."""
    workload, small = setting.workload, setting.workload.n_queries <= MOST_COORDINATES
    cells = small and isinstance(workload, TableQueries | workloads.Histogram)
    return cells and isinstance(setting.privacy, ZCDP) and workload.affine_hull().dimension == 1


def check_lattice_box(setting: Setting) -> None:
    if setting.workload.n_queries > MOST_COORDINATES:
        raise InapplicableError(f"it is made for at most {MOST_COORDINATES} queries")
    check_whole(setting)
    if Change(setting.workload, setting.adjacency).lattice is None:
        raise InapplicableError(
            f"it must list all answers, but there are more than {MAX_ANSWERS}, or one is above 2^52"
        )


def lattice_box_differs(setting: Setting) -> None:
    check_lattice_box(setting)
    noise = replace(setting, privacy=setting.pure).made(mechanisms.LatticeBox).noise
    if noise.dimension == 1 and noise.counts[0] == 1:
        raise InapplicableError(
            "one record changes the query by at most one unit, so it is Geometric"
        )


#: Costs of Gaussian noise on residuals: bytes per cell of a table and per set of columns within
#: one, and operations per cell and per set.
RESIDUAL_BYTES, CELL_OPERATIONS, SUBSET_OPERATIONS = 48, 40, 300


def check_residual_gaussian(setting: Setting) -> None:
    workload = setting.workload
    if not isinstance(workload, TableQueries | ProductQueries):
        raise InapplicableError("the queries are not those of tables of columns")
    cells = workload.n_queries
    subsets = sum(2 ** len(table) for table in cells_of(workload).tables)
    work = CELL_OPERATIONS * cells + SUBSET_OPERATIONS * subsets
    setting.check_cost("set-up", memory=float(RESIDUAL_BYTES * (cells + subsets)), work=float(work))


#: Number of draws from which the second moment of the body of `TightCone` is simulated.
MOMENT_DRAWS = 1024
#: Operations of a draw from the body of `TightCone`, divided by L^2 P, for L levels of all columns
#: together and P = L minus the number of columns: 1.5 ms for 10 columns with 40 levels in all.
TRY_OPERATIONS = 34
#: Bytes of an entry of a sparse matrix that is filled from lists.
LISTED_ENTRY = 64


def check_cone(setting: Setting) -> None:
    levels = pair_levels(setting.workload)
    if levels is not None and max(levels) > 2:  # the body of binary tables is an elliptope
        _check_moment_body(setting, levels)
    if cone_lift(setting.workload) is None:
        raise InapplicableError("no body with an exact sampler is known to contain the answers")


def check_tight_cone(setting: Setting) -> None:
    levels = pair_levels(setting.workload)
    if levels is None:
        raise InapplicableError("the answers are not linear in tables of two columns")
    _check_moment_body(setting, levels)
    work = sum(levels) ** 2 * (sum(levels) - len(levels))
    # An event says that a column has a certain level; those of a binary column are complements.
    events = [count if count > 2 else 1 for count in levels]
    triples = sum(a * b * c for a, b, c in itertools.combinations(events, 3))
    if work <= MAX_WORK and triples <= MAX_TRIPLES:  # else nothing cuts the body
        setting.check_cost("second moment", work=float(MOMENT_DRAWS * TRY_OPERATIONS * work))


def _check_moment_body(setting: Setting, levels: tuple[int, ...]) -> None:
    """Check the memory for a basis of the contrasts of columns, and their map to pair tables."""
    own = [count - 1 for count in levels]
    contrasts = sum(own) + (sum(own) ** 2 - sum(q * q for q in own)) // 2
    # A cell of a table depends on all contrasts of the table.
    entries = sum(math.prod(table) ** 2 for table in itertools.combinations(levels, 2))
    setting.check_cost("moment body", memory=float(8 * contrasts**2 + LISTED_ENTRY * entries))


def knorm_exact(setting: Setting) -> AdditiveMechanism:
    """K-norm noise of the best body with an exact sampler."""
    setting.check_cost("set-up", work=BODIES_SHARE * axes_work(setting.workload))
    return replace(setting, privacy=setting.pure).made(mechanisms.KNorm, exact=True)


def check_knorm(setting: Setting) -> None:
    if neighbour_body(setting.workload, setting.adjacency).implements(Body.sample_uniform):
        return
    # The workload often knows the dimension in closed form.
    size, dimension = setting.workload.universe.size, setting.workload.affine_hull().dimension
    large = size is None or size * dimension > MAX_REFINED
    if large or dimension > MAX_REFINED_DIMENSION:
        raise UntriedError(
            "its outer slab body would take too long to refine: the universe has "
            f"{size or 'infinitely many'} elements and the answers have dimension {dimension}; "
            f"the limit is {MAX_REFINED} for the product and {MAX_REFINED_DIMENSION} for the "
            "dimension"
        )


#: Operations to refine an outer body of slabs (`SlabBody`), divided by N r^2 for N elements and a
#: hull of dimension r. Measured: 7 s for N = 1024 and r = 55, and 22 s for N = 2000 and r = 64.
SLAB_OPERATIONS = 2500


def knorm_differs(setting: Setting) -> None:
    if setting.exact_only:
        raise InapplicableError(
            "if its sampler is exact, KNorm(exact=True) is no worse; if not, exact_only excludes it"
        )
    if neighbour_body(setting.workload, setting.adjacency).implements(Body.sample_uniform):
        raise InapplicableError("its body has an exact sampler, so KNorm(exact=True) is no worse")
    if not isinstance(setting.privacy, PureDP):
        size = setting.workload.universe.size
        elements = math.inf if size is None else float(size)
        work = SLAB_OPERATIONS * elements * setting.workload.affine_hull().dimension ** 2
        setting.check_cost("outer slab body", work=work)


def check_ellipsoid(setting: Setting) -> None:
    dimension = setting.workload.affine_hull().dimension
    # Symmetry gives the best ellipsoid of these in closed form.
    symmetric = workloads.MarginalTables | workloads.Marginals | workloads.Parities
    if dimension > MAX_ELLIPSOID_DIMENSION and not isinstance(setting.workload, symmetric):
        raise UntriedError(
            "the best ellipsoid would take too long to find: the answers have dimension "
            f"{dimension}, and the limit is {MAX_ELLIPSOID_DIMENSION}"
        )


def recursive(setting: Setting) -> Mechanism:
    """Hardt-Talwar noise of the best body with an exact sampler, in two or more levels."""
    mechanism = setting.made(mechanisms.Recursive)
    if len(mechanism.noise.levels) == 1:
        raise InapplicableError(
            "its recursion would have only one level, so it is KNorm(exact=True)"
        )
    return mechanism


def pure_matrix_differs(setting: Setting) -> None:
    if isinstance(setting.privacy, PureDP):
        raise InapplicableError("for pure privacy, it is the same as Matrix")


# Candidates that first reduce the answers, to fewer dimensions or to a few points (a net). If the
# error of the reduction alone is not below the least so far, nothing else is set up.

#: Largest number of points of a net, and largest universe for which nets are compared: few points
#: are rarely near all answers of more elements.
MAX_NET, MAX_ROUNDED = 32, 1 << 9
#: Largest dimension of the answers' hull for which JL is tried, where a set-up takes tenths of a
#: second for each of about ten maps.
MAX_JL_DIMENSION = 512
#: Number of random directions over which `gaussian_width` averages.
WIDTH_DIRECTIONS = 4096


def jl(setting: Setting) -> Mechanism:
    """`JL` with exact K-norm noise, and with the number of rows that has the least prediction."""
    setting.check_public_count()
    workload, effective = setting.workload, setting.workload.affine_hull().dimension
    if effective < 2:
        raise InapplicableError("the answers have one dimension, which cannot be reduced")

    def check_distortion(width: float) -> None:
        least = distortion_bound(width, workload.l2_diameter(), effective - 1)
        setting.check_floor("distortion alone", least / math.sqrt(workload.n_queries))

    check_distortion(0.0)  # the Gaussian width of the answers is slow to estimate
    if effective > MAX_JL_DIMENSION:
        raise UntriedError(f"its maps would take too long in dimension {effective}")
    auto = mechanisms.AutoDimension()
    supports = WIDTH_DIRECTIONS + MAX_DRAWS * len(auto.tried(effective))
    setting.check_cost("distortion", work=supports * breadth_work(workload))
    check_distortion(width_limit(sensitivity_polytope(workload)))
    return mechanisms.JL(knorm_exact(setting), auto, PUBLIC_SEED)


def coarse(setting: Setting) -> Mechanism:
    """Projected noise on answers rounded to the best net of 2, 4, ... up to `MAX_NET` points."""
    setting.check_public_count()
    root = math.sqrt(setting.workload.n_queries)
    points = farthest_points(
        explicit_answers(setting.workload),
        lambda rows: np.asarray(np.linalg.norm(rows, axis=1)),
        most=MAX_NET + 1,
    )
    # The first s points are at least radii[s - 1] apart, and every answer is within radii[s] of
    # one: with a separation between the two, `Coarse` finds the net of the first s points. For each
    # power of 2, take the largest such s up to this power.
    drops = np.flatnonzero(points.radii[2:] < points.radii[1:-1]) + 2
    powers = (1 << i for i in range(1, MAX_NET.bit_length()))
    sizes = sorted({int(drops[drops <= power].max(initial=0)) for power in powers} - {0})
    if not sizes:
        raise InapplicableError(f"its net would hold more than {MAX_NET} answers, or all of them")
    # Check the error of rounding before the noise is set up.
    setting.check_floor("rounding alone", points.radii[sizes[-1]] / root)
    pure = isinstance(setting.privacy, PureDP)
    noise = knorm_exact(setting) if pure else setting.made(mechanisms.Gaussian)
    trials = [
        mechanisms.Coarse(
            Projected(noise), (points.radii[size - 1] + points.radii[size]) / 2 / root
        )
        for size in reversed(sizes)
        if points.radii[size] / root < setting.least
    ]
    return min(trials, key=lambda trial: trial.predicted_rmse.value)


# The table of candidates

#: Names of two candidates.
EXACT_NOISE, JL_NAME = "KNorm(exact=True)", "JL(KNorm(exact=True))"
#: All candidates, the simplest first, which wins if all other rules of the ranking find them equal.
CANDIDATES = (
    Candidate(
        kind=mechanisms.Laplace,
        guarantees=Guarantees.PURE_OR_RHO,
        summary="independent Laplace noise on every query",
        suits="It adds independent noise to every query. This is best if one record changes few "
        "answers.",
    ),
    Candidate(
        kind=mechanisms.Geometric,
        guarantees=Guarantees.PURE_OR_RHO,
        summary="like laplace, with noise on whole numbers, for queries that count",
        suits="Its noise is whole, like the counts to which it is added. For large epsilon it is "
        "almost always 0.",
        check=check_whole,
        useful=geometric_differs,
    ),
    Candidate(
        kind=mechanisms.Staircase,
        summary="for one query, the epsilon-DP noise of least variance",
        suits="It answers one query. No other epsilon-DP noise on a real number has less variance.",
        check=requires(lambda workload: workload.n_queries == 1, "it is made for one query"),
    ),
    Candidate(
        kind=mechanisms.Gaussian,
        guarantees=Guarantees.CONCENTRATED,
        summary="Gaussian noise in the span of the answers",
        suits="It adds the same Gaussian noise in every direction in which answers differ.",
    ),
    Candidate(
        kind=mechanisms.ResidualGaussian,
        guarantees=Guarantees.CONCENTRATED,
        summary="Gaussian noise on the residuals of tables, also with prefixes and ranges; allows "
        "hundreds of columns",
        suits="It adds Gaussian noise to the part of each table that tables of fewer columns do "
        "not tell, with the best variance for each part. Answers are computed from these parts.",
        check=check_residual_gaussian,
    ),
    Candidate(
        kind=mechanisms.Ball,
        guarantees=Guarantees.PURE_OR_DELTA,
        summary="K-norm noise of the ball around all changes by one record",
        suits="Its noise is the same in every direction in which answers differ.",
        share=BALL_SHARE,
    ),
    Candidate(
        kind=mechanisms.Cone,
        summary="noise from the cone over a body around the answers, if such a body is known",
        suits="Its noise has the shape of a body around all answers, so answers that change "
        "together share their noise.",
        check=check_cone,
    ),
    Candidate(
        kind=mechanisms.TightCone,
        summary="like cone, for tables of two columns, with a body that is closer to the answers",
        suits="Its noise has the shape of a body around all answers. This body is cut close to "
        "them by inequalities that all counts satisfy.",
        check=check_tight_cone,
        useful=requires(
            lambda workload: not isinstance(workload, workloads.MarginalTables) or workload.k > 1,
            "its body has dimensions for pairs of columns, which one-way tables do not need: "
            "the noise of KNorm(exact=True) has only the dimensions of the answers",
        ),
    ),
    Candidate(
        kind=mechanisms.Spectral,
        summary="K-norm noise on moment matrices of signs; better than cone for 20 binary columns "
        "or more",
        suits="Its noise is added to the matrix of all pairwise products, and only a small part of "
        "the noise is in each entry. Every answer is a sum of a few entries.",
        check=requires(
            lambda workload: sign_products(workload) is not None,
            "the answers are not linear in pairwise products of signs",
        ),
    ),
    Candidate(
        kind=mechanisms.KNorm,
        name=EXACT_NOISE,
        flag="knorm-exact",
        summary="K-norm noise of the best body that has an exact sampler",
        suits="Its noise has the shape of what one record can change: it is large only in "
        "directions in which one record changes answers much.",
        build=knorm_exact,
    ),
    Candidate(
        kind=mechanisms.Ellipsoid,
        guarantees=Guarantees.PURE_OR_DELTA,
        summary="K-norm noise of the best ellipsoid around all changes by one record",
        suits="Its noise is larger in directions in which one record changes answers more.",
        check=check_ellipsoid,
        share=BALL_SHARE,
    ),
    Candidate(
        kind=mechanisms.Matrix,
        guarantees=Guarantees.ANY,
        summary="noise on an optimised strategy, then least squares",
        suits="It measures a few well-chosen sums with noise and computes the answers from them, "
        "so that queries share the noise.",
    ),
    Candidate(
        kind=mechanisms.Matrix,
        name="Matrix(pure)",
        flag="matrix-pure",
        summary="matrix with Laplace noise, also for --delta and --rho",
        suits="It measures a few well-chosen sums with Laplace noise and computes the answers from "
        "them. Laplace noise can be smaller than Gaussian noise for a small delta.",
        useful=pure_matrix_differs,
    ),
    Candidate(
        kind=mechanisms.Hierarchical,
        summary="K-norm noise on counts of several resolutions, then least squares",
        suits="It counts at several resolutions with noise and combines them, so that no answer "
        "adds up many noisy counts.",
    ),
    Candidate(
        kind=mechanisms.LatticeBox,
        summary="K-norm noise of a box on whole numbers, for few queries and a large epsilon",
        suits="Its noise is whole, like the counts to which it is added. For large epsilon it is "
        "almost always 0 in all queries together.",
        check=check_lattice_box,
        useful=lattice_box_differs,
    ),
    Candidate(
        kind=mechanisms.Recursive,
        summary="Hardt-Talwar noise of the best body that has an exact sampler, split into levels",
        suits="It splits the directions of the answers into levels of different size, and divides "
        "the budget among them.",
        share=LEVELS_SHARE,
        build=recursive,
    ),
    Candidate(
        kind=mechanisms.KNorm,
        summary="K-norm noise of the body of all changes by one record; its sampler can be "
        "heuristic",
        suits="Its noise has the shape of what one record can change: it is large only in "
        "directions in which one record changes answers much.",
        check=check_knorm,
        useful=knorm_differs,
    ),
    Candidate(
        kind=mechanisms.SecondMoment,
        guarantees=Guarantees.ANY,
        summary="noise on the matrix of second moments, then the nearest attainable matrix",
        suits="It adds noise to the matrix of second moments and takes the nearest matrix that "
        "records can have.",
        check=requires(
            lambda workload: isinstance(workload, workloads.SecondMoment),
            "the queries are not the second moments of records in a unit ball",
        ),
    ),
    Candidate(
        kind=mechanisms.PairMarginals,
        guarantees=Guarantees.ANY,
        summary="2-way conjunctions, computed from second moments",
        suits="It computes conjunctions from the second moments of scaled records. These second "
        "moments need little noise.",
        check=requires(
            lambda workload: isinstance(workload, workloads.Marginals) and workload.k == 2,
            "the queries are not the 2-way conjunctions of binary columns",
        ),
    ),
    Candidate(
        kind=mechanisms.JL,
        name=JL_NAME,
        summary="K-norm noise after a random projection to the best number of dimensions",
        suits="It answers a few random sums of the queries. With so few records, noise in all "
        "directions would cost more than this reduction loses.",
        build=jl,
        depends_on_n=True,
    ),
    Candidate(
        kind=mechanisms.Coarse,
        name="Coarse(Projected)",
        guarantees=Guarantees.ANY,
        summary="projected noise for answers that are rounded to a few points",
        suits="It rounds the answers of each record to one of a few points, which need less noise.",
        build=coarse,
        useful=requires(
            lambda workload: (workload.universe.size or math.inf) <= MAX_ROUNDED,
            f"nets of {MAX_NET} points are compared for at most {MAX_ROUNDED} kinds of records",
        ),
        depends_on_n=True,
    ),
)


def candidate_named(flag: str) -> tuple[Step | None, Candidate | None]:
    """The step that the prefix of `flag` names, or None, and the candidate, None if unknown."""
    step = next((step for step in STEPS if flag.startswith(step.prefix)), None)
    plain = flag if step is None else flag.removeprefix(step.prefix)
    return step, next((row for row in CANDIDATES if row.flag == plain), None)
