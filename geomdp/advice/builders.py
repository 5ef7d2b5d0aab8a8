"""Builders of the candidates: each builds a mechanism, or raises an error that says why not."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace

from geomdp.advice.costs import (
    axes_work,
    contrast_memory,
    residual_memory,
    residual_work,
    slabs_work,
    table_levels,
    tight_draws_work,
)
from geomdp.advice.setting import InapplicableError, Setting, UntriedError
from geomdp.bodies import Body, neighbour_body
from geomdp.mechanisms import (
    AdditiveMechanism,
    Ball,
    Cone,
    Ellipsoid,
    Geometric,
    KNorm,
    Laplace,
    LatticeBox,
    Mechanism,
    PairMarginals,
    Recursive,
    ResidualGaussian,
    SecondMoment,
    Spectral,
    Staircase,
    TightCone,
)
from geomdp.mechanisms.additive_noise.cone import cone_lift
from geomdp.mechanisms.few_queries.lattice import MAX_ANSWERS, listed_lattice
from geomdp.mechanisms.few_queries.lattice_mechanism import InexactSumsError
from geomdp.noise.few_queries.lattice_box import MOST_COORDINATES
from geomdp.privacy import PureDP
from geomdp.workloads import Marginals, MarginalTables, Parities
from geomdp.workloads import SecondMoment as SecondMomentWorkload
from geomdp.workloads.structure.sign_products import sign_products
from geomdp.workloads.table_queries import TableQueries

#: Limits for the refinement of an outer slab body (an intersection of slabs around a body) by
#: further slabs. The first limits the effective dimension, the dimension of the answers' hull.
#: The second limits the product of the universe size and the effective dimension. Measured on one
#: core: 7 s for 1024 elements in dimension 55, 21 s for 1440 elements in dimension 94, and 60 s for
#: 1600 elements in dimension 132. A minute is too long for a release.
MAX_REFINED_DIMENSION, MAX_REFINED = 100, 150_000
#: Largest effective dimension in which the best ellipsoid is computed numerically. Measured on one
#: core: 3 s in dimension 200 (random signs on 1000 elements), 9 s in dimension 255 (prefix sums).
MAX_ELLIPSOID_DIMENSION = 200
#: Operations of three set-ups, each divided by `axes_work` (the number of queries times the square
#: of the effective dimension). The set-ups are those of a ball or an ellipsoid, of the bodies of
#: `knorm_exact`, and of the levels of `recursive`. For all pair tables of 40 binary columns,
#: `axes_work` is 2 * 10^9, and the three set-ups took 1.4 s, 2.8 s and 7 s.
BALL_SHARE, BODIES_SHARE, LEVELS_SHARE = 0.8, 1.6, 4.0

#: Geometric noise is compared only if the error of Laplace noise is larger by at least this share.
SAME_ERROR = 1e-4


def plain(kind: Callable[..., Mechanism]) -> Callable[[Setting], Mechanism]:
    """A builder that calls the class `kind` as ``kind(workload, n=, privacy=, adjacency=)``."""

    def build(setting: Setting) -> Mechanism:
        return kind(
            setting.workload, n=setting.n, privacy=setting.privacy, adjacency=setting.adjacency
        )

    return build


def ball(setting: Setting) -> Mechanism:
    setting.check_cost("set-up", work=BALL_SHARE * axes_work(setting.workload))
    return plain(Ball)(setting)


def geometric(setting: Setting) -> Mechanism:
    _check_whole(setting)
    with _exact_sums():
        return plain(Geometric)(setting)


def _check_whole(setting: Setting) -> None:
    if not setting.workload.whole_answers:
        raise InapplicableError("the answers are not known to be whole numbers")


@contextmanager
def _exact_sums() -> Iterator[None]:
    """Turn `InexactSumsError` into `InapplicableError`: noise on whole numbers needs exact sums."""
    try:
        yield
    except InexactSumsError as reason:
        raise InapplicableError(str(reason)) from None


def geometric_differs(setting: Setting) -> None:
    """Raise `InapplicableError` if Laplace noise, which is simpler, errs less than 0.01% more."""
    setting = replace(setting, privacy=setting.pure)
    least = geometric(setting).predicted_rmse.value
    if plain(Laplace)(setting).predicted_rmse.value < least * (1 + SAME_ERROR):
        raise InapplicableError("the error of Laplace is larger by less than 0.01%")


def lattice_box(setting: Setting) -> LatticeBox:
    workload = setting.workload
    if workload.n_queries > MOST_COORDINATES:
        raise InapplicableError(f"it is made for at most {MOST_COORDINATES} queries")
    _check_whole(setting)
    if listed_lattice(workload, setting.adjacency) is None:
        raise InapplicableError(
            f"it must list all answers, but there are more than {MAX_ANSWERS}, or one is above 2^52"
        )
    with _exact_sums():
        return LatticeBox(workload, n=setting.n, privacy=setting.pure, adjacency=setting.adjacency)


def lattice_box_differs(setting: Setting) -> None:
    """Raise `InapplicableError` for one query whose sums on neighbours differ by at most a unit."""
    noise = lattice_box(setting).noise
    if noise.dimension == 1 and noise.counts[0] == 1:
        raise InapplicableError(
            "one record changes the query by at most one unit, so it is Geometric"
        )


def staircase(setting: Setting) -> Mechanism:
    if setting.workload.n_queries != 1:
        raise InapplicableError("it is made for one query")
    return plain(Staircase)(setting)


def residual_gaussian(setting: Setting) -> Mechanism:
    workload = setting.workload
    if not isinstance(workload, TableQueries):
        raise InapplicableError("the queries are not the cells of tables of columns")
    setting.check_cost("set-up", memory=residual_memory(workload), work=residual_work(workload))
    return plain(ResidualGaussian)(setting)


def cone(setting: Setting) -> Mechanism:
    levels = table_levels(setting.workload)
    if levels is not None and max(levels) > 2:
        # Only tables with a column of more than two levels (values) need a moment body, which takes
        # much memory. The body of all other tables is an elliptope (a set of correlation matrices).
        setting.check_cost("moment body", memory=contrast_memory(levels))
    if cone_lift(setting.workload) is None:
        raise InapplicableError("no body with an exact sampler is known to contain the answers")
    return plain(Cone)(setting)


def tight_cone(setting: Setting) -> Mechanism:
    """Noise from the cone over a body of moments of tables; inequalities make the body smaller."""
    levels = table_levels(setting.workload)
    if levels is None:
        raise InapplicableError("the answers are not linear in tables of two columns")
    setting.check_cost("moment body", memory=contrast_memory(levels))
    setting.check_cost("second moment", work=tight_draws_work(levels))
    return plain(TightCone)(setting)


def tight_cone_differs(setting: Setting) -> None:
    """Raise `InapplicableError` for one-way tables, where `KNorm(exact=True)` has less error."""
    match setting.workload:
        case MarginalTables(k=1):
            raise InapplicableError(
                "its body has dimensions for pairs of columns, which one-way tables do not need: "
                "the noise of KNorm(exact=True) has only the dimensions of the answers"
            )


def spectral(setting: Setting) -> Mechanism:
    """K-norm noise on moment matrices of signs."""
    if sign_products(setting.workload) is None:
        raise InapplicableError("the answers are not linear in pairwise products of signs")
    return plain(Spectral)(setting)


def knorm_exact(setting: Setting) -> AdditiveMechanism:
    """K-norm noise of the best body with an exact sampler."""
    setting.check_cost("set-up", work=BODIES_SHARE * axes_work(setting.workload))
    return KNorm(
        setting.workload,
        n=setting.n,
        privacy=setting.pure,
        adjacency=setting.adjacency,
        exact=True,
    )


def knorm(setting: Setting) -> Mechanism:
    """K-norm noise of the neighbour body, or of an outer slab body if it has no exact sampler."""
    body = neighbour_body(setting.workload, setting.adjacency)
    if not body.implements(Body.sample_uniform):
        # Take the dimension from the workload, which often knows it in closed form. Computing the
        # dimension from the points of the body would take seconds.
        workload = setting.workload
        size, dimension = workload.universe.size, workload.affine_hull().dimension
        large = size is None or size * dimension > MAX_REFINED
        if large or dimension > MAX_REFINED_DIMENSION:
            raise UntriedError(
                f"its outer slab body would take too long to refine: the universe has "
                f"{size or 'infinitely many'} elements and the answers have dimension {dimension}; "
                f"the limit is {MAX_REFINED} for the product and {MAX_REFINED_DIMENSION} for the "
                "dimension"
            )
    return plain(KNorm)(setting)


def knorm_differs(setting: Setting) -> None:
    """Raise `InapplicableError` if `knorm_exact` is as good as `knorm`, or if `exact_only` is set.

    `UntriedError` if the guarantee is not pure, and the outer slab body would take too long.
    """
    if setting.exact_only:
        raise InapplicableError(
            "if its sampler is exact, KNorm(exact=True) is no worse; if not, exact_only excludes it"
        )
    if neighbour_body(setting.workload, setting.adjacency).implements(Body.sample_uniform):
        raise InapplicableError("its body has an exact sampler, so KNorm(exact=True) is no worse")
    if not isinstance(setting.privacy, PureDP):
        setting.check_cost("outer slab body", work=slabs_work(setting.workload))


def ellipsoid(setting: Setting) -> Mechanism:
    """K-norm noise of the best ellipsoid; `UntriedError` if it is costly, without closed form."""
    dimension = setting.workload.affine_hull().dimension
    # For tables, marginals and parities, symmetry gives the best ellipsoid in closed form.
    symmetric = isinstance(setting.workload, MarginalTables | Marginals | Parities)
    if dimension > MAX_ELLIPSOID_DIMENSION and not symmetric:
        raise UntriedError(
            "the best ellipsoid would take too long to find: the answers have dimension "
            f"{dimension}, and the limit is {MAX_ELLIPSOID_DIMENSION}"
        )
    setting.check_cost("set-up", work=BALL_SHARE * axes_work(setting.workload))
    return plain(Ellipsoid)(setting)


def recursive(setting: Setting) -> Mechanism:
    """Hardt-Talwar noise of the best body with an exact sampler, in two or more levels."""
    setting.check_cost("set-up", work=LEVELS_SHARE * axes_work(setting.workload))
    mechanism = Recursive(
        setting.workload, n=setting.n, privacy=setting.pure, adjacency=setting.adjacency
    )
    if len(mechanism.noise.levels) == 1:
        raise InapplicableError(
            "its recursion would have only one level, so it is KNorm(exact=True)"
        )
    return mechanism


def pure_matrix_differs(setting: Setting) -> None:
    """Raise `InapplicableError` for pure privacy, where the candidate is the same as `Matrix`."""
    if isinstance(setting.privacy, PureDP):
        raise InapplicableError("for pure privacy, it is the same as Matrix")


def second_moment(setting: Setting) -> Mechanism:
    """Noise on second moments, then the nearest second moments that records can have."""
    workload = setting.workload
    if not isinstance(workload, SecondMomentWorkload):
        raise InapplicableError("the queries are not the second moments of records in a unit ball")
    return SecondMoment(workload, n=setting.n, privacy=setting.privacy, adjacency=setting.adjacency)


def pair_marginals(setting: Setting) -> Mechanism:
    """Two-way conjunctions that are computed from noisy second moments of scaled records."""
    workload = setting.workload
    if not isinstance(workload, Marginals) or workload.k != 2:
        raise InapplicableError("the queries are not the 2-way conjunctions of binary columns")
    return PairMarginals(
        workload, n=setting.n, privacy=setting.privacy, adjacency=setting.adjacency
    )
