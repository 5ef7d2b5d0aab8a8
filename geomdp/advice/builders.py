"""Builders of the candidates: each builds a mechanism, or raises an error that says why not."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace

import numpy as np

from geomdp._numerics.randomness import PUBLIC_SEED
from geomdp._typing import FloatArray
from geomdp.advice.costs import (
    PRODUCT_SPEED,
    WIDTH_DIRECTIONS,
    axes_work,
    breadth_work,
    contrast_memory,
    residual_memory,
    residual_work,
    slabs_work,
    table_levels,
    tight_draws_work,
)
from geomdp.advice.setting import InapplicableError, Setting, UntriedError
from geomdp.bodies import Body, neighbour_body, sensitivity_polytope
from geomdp.geometry.farthest_points import farthest_points
from geomdp.mechanisms import (
    JL,
    AdditiveMechanism,
    AutoDimension,
    Ball,
    Coarse,
    Cone,
    Ellipsoid,
    Gaussian,
    Geometric,
    KNorm,
    Laplace,
    LatticeBox,
    Mechanism,
    PairMarginals,
    Projected,
    Recursive,
    ResidualGaussian,
    SecondMoment,
    Spectral,
    Staircase,
    TightCone,
)
from geomdp.mechanisms.additive_noise.cone import cone_lift
from geomdp.mechanisms.additive_noise.few_queries import (
    MAX_ANSWERS,
    InexactSumsError,
    listed_lattice,
)
from geomdp.mechanisms.projected import MAX_DRAWS
from geomdp.mechanisms.reduced_answers import best_dimension, distortion_bound, width_limit
from geomdp.noise.few_queries import MOST_COORDINATES
from geomdp.privacy import PureDP
from geomdp.workloads import (
    Marginals,
    MarginalTables,
    Parities,
    Workload,
    WorkloadSizeError,
    explicit_answers,
)
from geomdp.workloads import SecondMoment as SecondMomentWorkload
from geomdp.workloads.structure import sign_products
from geomdp.workloads.tables import TableQueries

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


# Candidates that first reduce the answers, to fewer dimensions or to a few points (a net). If the
# error of the reduction alone is not below the least so far, nothing else is set up.

#: Largest number of points of a net. With more points, the noise would hardly be smaller than for
#: all answers.
MAX_NET = 32
#: Number of random elements that are drawn before all answers are listed. Their answers give a
#: lower bound on the rounding error of every net. If there are many queries, fewer elements are
#: drawn, so that the number of their answers is at most `SAMPLED_ANSWERS` (32 MB).
SAMPLED, SAMPLED_ANSWERS = 1 << 9, 1 << 22
#: Largest dimension of the answers' hull for which JL is tried. About ten maps are tried. In this
#: dimension, the set-up of the noise for one map takes tenths of a second.
MAX_JL_DIMENSION = 512


def jl(setting: Setting) -> Mechanism:
    """`JL` with exact K-norm noise, and with the number of rows that has the least prediction.

    The result has a new map, because the error bound does not hold for the best of several maps.
    """
    setting.check_public_count()
    workload, effective = setting.workload, setting.workload.affine_hull().dimension
    if effective < 2:
        raise InapplicableError("the answers have one dimension, which cannot be reduced")
    theorem = math.ceil(setting.pure.epsilon * setting.n)
    sizes = {*AutoDimension().tried(effective), *([theorem] if theorem < effective else [])}
    diameter, root = workload.l2_diameter(), math.sqrt(workload.n_queries)
    # The distortion grows with the Gaussian width of the set of answers. Try width 0 first, because
    # estimating the width is slow.
    setting.check_floor("distortion alone", distortion_bound(0.0, diameter, max(sizes)) / root)
    if effective > MAX_JL_DIMENSION:
        raise UntriedError(f"its maps would take too long in dimension {effective}")
    supports = WIDTH_DIRECTIONS + MAX_DRAWS * len(sizes)
    setting.check_cost("distortion", work=supports * breadth_work(workload))
    width = width_limit(sensitivity_polytope(workload))
    setting.check_floor("distortion alone", distortion_bound(width, diameter, max(sizes)) / root)
    inner = knorm_exact(setting)
    rng = np.random.default_rng(PUBLIC_SEED)
    able = [
        rows
        for rows in sorted(sizes, reverse=True)
        if distortion_bound(width, diameter, rows) / root < setting.least
    ]
    # All trial maps and the new map are successive draws of one generator.
    return JL(inner, best_dimension(inner, dict.fromkeys(able, rng)), rng)


def coarse(setting: Setting) -> Mechanism:
    """Projected noise on answers rounded to the best net of 2, 4, ... up to `MAX_NET` points."""
    setting.check_public_count()
    workload = setting.workload
    size, root = workload.universe.size, math.sqrt(workload.n_queries)
    if size is None or size > SAMPLED:
        setting.check_floor("rounding alone", _rounding_floor(workload) / root)
    if size is not None:
        work = size * workload.n_queries * (MAX_NET + 1) / PRODUCT_SPEED
        setting.check_cost("net", work=work)
    points = farthest_points(explicit_answers(workload), _lengths, most=MAX_NET + 1)
    # The first s points are at least radii[s - 1] apart. Every answer is within radii[s] of one of
    # the first s points. `Coarse` builds its net for a given separation of the points. With a
    # separation between radii[s] and radii[s - 1], it finds the net of the first s points. This
    # needs radii[s] < radii[s - 1]. For each power of 2, take the largest such s up to this power.
    drops = np.flatnonzero(points.radii[2:] < points.radii[1:-1]) + 2
    powers = (1 << i for i in range(1, MAX_NET.bit_length()))
    sizes = sorted({int(drops[drops <= power].max(initial=0)) for power in powers} - {0})
    if not sizes:
        raise InapplicableError(f"its net would hold more than {MAX_NET} answers, or all of them")
    # Check the error of rounding before the noise is set up.
    setting.check_floor("rounding alone", points.radii[sizes[-1]] / root)
    trials = [
        Coarse(Projected(inner), (points.radii[size - 1] + points.radii[size]) / 2 / root)
        for inner in _exact_noises(setting)
        for size in reversed(sizes)
        if points.radii[size] / root < setting.least
    ]
    return min(trials, key=lambda trial: trial.predicted_rmse.value)


def _rounding_floor(workload: Workload) -> float:
    """A lower bound, for every net of `MAX_NET` points, on the largest distance of an answer to it.

    Of 33 answers that are pairwise t apart, two have the same nearest point in a net of 32, and one
    of them is at least t / 2 away from it. The bound is 0 if the search finds fewer different
    answers.
    """
    count = min(SAMPLED, SAMPLED_ANSWERS // workload.n_queries)
    if count <= MAX_NET:
        return 0.0
    elements = workload.universe.sample(count, np.random.default_rng(PUBLIC_SEED))
    found = farthest_points(workload.evaluate(elements), _lengths, most=MAX_NET + 1)
    return float(found.radii[MAX_NET]) / 2 if len(found.radii) > MAX_NET else 0.0


def _exact_noises(setting: Setting) -> list[AdditiveMechanism]:
    """Exact K-norm noise, unless it costs too much, and Gaussian noise unless privacy is pure."""
    if isinstance(setting.privacy, PureDP):
        return [knorm_exact(setting)]
    gaussian = Gaussian(
        setting.workload, n=setting.n, privacy=setting.privacy, adjacency=setting.adjacency
    )
    try:
        return [gaussian, knorm_exact(setting)]
    except (UntriedError, WorkloadSizeError):
        return [gaussian]


def _lengths(rows: FloatArray) -> FloatArray:
    return np.asarray(np.linalg.norm(rows, axis=1))
