"""The mechanisms the advisor compares, each with the conditions under which it applies."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from geomdp.bodies import Body, neighbour_body
from geomdp.mechanisms import (
    AdditiveMechanism,
    Ball,
    Cone,
    Ellipsoid,
    Gaussian,
    Hierarchical,
    KNorm,
    Laplace,
    Matrix,
    Mechanism,
    PairMarginals,
    Recursive,
    SecondMoment,
    Spectral,
    TightCone,
)
from geomdp.mechanisms.additive_noise.cone import cone_lift
from geomdp.privacy import ZCDP, Adjacency, ApproxDP, Exact, Privacy, PureDP
from geomdp.workloads import Marginals, MarginalTables, Parities, Workload
from geomdp.workloads import SecondMoment as SecondMomentWorkload
from geomdp.workloads.structure.sign_products import sign_products
from geomdp.workloads.structure.table_contrasts import table_contrasts

#: Largest effective dimension, and largest product of universe size and effective dimension, for
#: which an outer slab body is refined. Measured on one core: 7 s at 1024 elements in dimension 55,
#: 21 s at 1440 in 94, and 60 s at 1600 in 132, which is more than a release should wait for.
MAX_REFINED_DIMENSION, MAX_REFINED = 100, 150_000
#: Largest effective dimension in which the best ellipsoid is sought: 200 takes 3 s of one core for
#: random signs on 1000 elements, 255 takes 9 s for prefix sums.
MAX_ELLIPSOID_DIMENSION = 200


class InapplicableError(ValueError):
    """A candidate does not apply to the question; the message says why."""


class UntriedError(InapplicableError):
    """A candidate applies but would take too long to set up; it might be better than the rest."""


@dataclass(frozen=True)
class Question:
    """What advice is asked for: all of it public.

    Parameters
    ----------
    workload : Workload
        m queries.
    n : int
        Number of records, or the declared normaliser.
    privacy : PureDP, ApproxDP or ZCDP
        Guarantee wanted.
    adjacency : Adjacency
        Neighbour relation.
    exact_only : bool
        Whether heuristic samplers are left out.
    """

    workload: Workload
    n: int
    privacy: Privacy
    adjacency: Adjacency
    exact_only: bool

    @property
    def pure(self) -> PureDP:
        """The guarantee, if it is pure; else `InapplicableError`."""
        if not isinstance(self.privacy, PureDP):
            raise InapplicableError("it is calibrated for pure differential privacy only")
        return self.privacy

    @property
    def concentrated(self) -> ZCDP | ApproxDP:
        """The guarantee, if it is not pure; else `InapplicableError`."""
        if isinstance(self.privacy, PureDP):
            raise InapplicableError("Gaussian noise is never purely private")
        return self.privacy


def laplace(question: Question) -> AdditiveMechanism:
    """Independent Laplace noise."""
    return Laplace(
        question.workload, n=question.n, privacy=question.pure, adjacency=question.adjacency
    )


def gaussian(question: Question) -> AdditiveMechanism:
    """Isotropic Gaussian noise."""
    return Gaussian(
        question.workload, n=question.n, privacy=question.concentrated, adjacency=question.adjacency
    )


def ball(question: Question) -> AdditiveMechanism:
    """K-norm noise of a ball."""
    return Ball(
        question.workload, n=question.n, privacy=question.pure, adjacency=question.adjacency
    )


def cone(question: Question) -> AdditiveMechanism:
    """Noise from the cone over a body that holds the answers."""
    privacy = question.pure
    if cone_lift(question.workload) is None:
        raise InapplicableError("no body that holds the answers is known to have an exact sampler")
    return Cone(question.workload, n=question.n, privacy=privacy, adjacency=question.adjacency)


def tight_cone(question: Question) -> AdditiveMechanism:
    """Noise from the cone over the moment body of tables, cut by inequalities."""
    privacy = question.pure
    if table_contrasts(question.workload) is None:
        raise InapplicableError("its answers are not linear in tables of two columns")
    return TightCone(question.workload, n=question.n, privacy=privacy, adjacency=question.adjacency)


def spectral(question: Question) -> AdditiveMechanism:
    """K-norm noise on moment matrices of signs."""
    privacy = question.pure
    if sign_products(question.workload) is None:
        raise InapplicableError("its answers are not linear in pairwise products of signs")
    return Spectral(question.workload, n=question.n, privacy=privacy, adjacency=question.adjacency)


def ellipsoid(question: Question) -> AdditiveMechanism:
    """K-norm noise of the best ellipsoid, up to `MAX_ELLIPSOID_DIMENSION` where it is searched."""
    privacy, dimension = question.pure, question.workload.affine_hull().dimension
    # Of tables, marginals and parities it is known by symmetry.
    symmetric = isinstance(question.workload, MarginalTables | Marginals | Parities)
    if dimension > MAX_ELLIPSOID_DIMENSION and not symmetric:
        raise UntriedError(
            f"the best ellipsoid would take too long to find: dimension {dimension}, of at most "
            f"{MAX_ELLIPSOID_DIMENSION}"
        )
    return Ellipsoid(question.workload, n=question.n, privacy=privacy, adjacency=question.adjacency)


def knorm_exact(question: Question) -> AdditiveMechanism:
    """K-norm noise of the best body with an exact sampler."""
    return KNorm(
        question.workload,
        n=question.n,
        privacy=question.pure,
        adjacency=question.adjacency,
        exact=True,
    )


def knorm(question: Question) -> AdditiveMechanism:
    """K-norm noise of the neighbour body, or of its outer slab body up to `MAX_REFINED`."""
    privacy = question.pure
    if question.exact_only:
        raise InapplicableError(
            "with an exact sampler it is KNorm(exact=True), and exact_only rules out any other"
        )
    body = neighbour_body(question.workload, question.adjacency)
    if not body.implements(Body.sample_uniform):
        size, dimension = question.workload.universe.size, body.affine_hull().dimension
        large = size is None or size * dimension > MAX_REFINED
        if large or dimension > MAX_REFINED_DIMENSION:
            raise UntriedError(
                f"its outer slab body would take too long to refine: {size or 'infinitely many'} "
                f"elements in dimension {dimension}, of at most {MAX_REFINED} / dimension in at "
                f"most {MAX_REFINED_DIMENSION}"
            )
    return KNorm(question.workload, n=question.n, privacy=privacy, adjacency=question.adjacency)


def knorm_apart(question: Question) -> AdditiveMechanism:
    """`knorm` where that differs from `knorm_exact`: where its body has no exact sampler."""
    mechanism = knorm(question)
    if isinstance(mechanism.guarantee.sampler, Exact):
        raise InapplicableError("its body has an exact sampler, so it is KNorm(exact=True)")
    return mechanism


def matrix(question: Question) -> AdditiveMechanism:
    """Noise on an optimised strategy, then least squares."""
    return Matrix(
        question.workload, n=question.n, privacy=question.privacy, adjacency=question.adjacency
    )


def hierarchical(question: Question) -> AdditiveMechanism:
    """K-norm noise on counts of several resolutions, then least squares."""
    return Hierarchical(
        question.workload, n=question.n, privacy=question.pure, adjacency=question.adjacency
    )


def recursive(question: Question) -> AdditiveMechanism:
    """Hardt-Talwar noise of the best body with an exact sampler, where it splits that body."""
    mechanism = Recursive(
        question.workload, n=question.n, privacy=question.pure, adjacency=question.adjacency
    )
    if len(mechanism.noise.levels) == 1:
        raise InapplicableError("its recursion would stop at once, which is KNorm(exact=True)")
    return mechanism


def second_moment(question: Question) -> Mechanism:
    """Wishart noise on second moments, then the nearest attainable matrix."""
    workload = question.workload
    if not isinstance(workload, SecondMomentWorkload):
        raise InapplicableError("the queries are not the second moments of records in a unit ball")
    return SecondMoment(
        workload, n=question.n, privacy=question.privacy, adjacency=question.adjacency
    )


def pair_marginals(question: Question) -> Mechanism:
    """Two-way conjunctions by way of the second moments of scaled records."""
    workload = question.workload
    if not isinstance(workload, Marginals) or workload.k != 2:
        raise InapplicableError("the queries are not the 2-way conjunctions of binary columns")
    return PairMarginals(
        workload, n=question.n, privacy=question.privacy, adjacency=question.adjacency
    )


#: Additive candidates by name, simplest first: this order breaks ties.
ADDITIVE: dict[str, Callable[[Question], AdditiveMechanism]] = {
    "Laplace": laplace,
    "Gaussian": gaussian,
    "Ball": ball,
    "Cone": cone,
    "TightCone": tight_cone,
    "Spectral": spectral,
    "KNorm(exact=True)": knorm_exact,
    "Ellipsoid": ellipsoid,
    "Matrix": matrix,
    "Hierarchical": hierarchical,
    "Recursive": recursive,
    "KNorm": knorm_apart,
}
#: Candidates for one kind of workload each, which project their answers themselves.
SPECIAL: dict[str, Callable[[Question], Mechanism]] = {
    "SecondMoment": second_moment,
    "PairMarginals": pair_marginals,
}
