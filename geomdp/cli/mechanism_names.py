"""Mechanisms by the names the command line uses: one table that builds and lists them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from geomdp.advice import candidates
from geomdp.advice.bounded_candidates import coarse, jl
from geomdp.advice.candidates import InapplicableError, Question
from geomdp.mechanisms import Fitted, Mechanism, Projected, Shrunk
from geomdp.mechanisms.additive_noise.base import AdditiveMechanism
from geomdp.privacy import Exact

#: The name that leaves the choice to `geomdp.advise`.
AUTO = "auto"
#: Put before a name, they add the projection onto the sensitivity polytope, the fit over it in the
#: norm of the noise, or shrinkage before the projection.
PROJECTED, FITTED, SHRUNK = "projected-", "fitted-", "shrunk-"
AFTER: dict[str, Callable[[AdditiveMechanism], Mechanism]] = {
    PROJECTED: Projected,
    FITTED: Fitted,
    SHRUNK: Shrunk,
}


@dataclass(frozen=True)
class MechanismKind:
    """One row of the table of mechanisms."""

    name: str
    flags: str
    summary: str
    build: Callable[[Question], Mechanism]


def build_mechanism(name: str, question: Question) -> Mechanism:
    """The mechanism that `name` stands for.

    Raises
    ------
    ValueError
        For an unknown name, a mechanism that does not apply to the question, or a heuristic
        sampler where an exact one is required.
    """
    prefix = next((prefix for prefix in AFTER if name.startswith(prefix)), "")
    plain = name.removeprefix(prefix)
    kind = next((kind for kind in MECHANISM_KINDS if kind.name == plain), None)
    if kind is None:
        known = ", ".join(kind.name for kind in MECHANISM_KINDS)
        raise ValueError(
            f"--mechanism must be {AUTO} or one of {known}, or {PROJECTED}, {FITTED} or {SHRUNK} "
            f"before one of them; got {name!r}"
        )
    try:
        # Exactness is judged below, in the words of the command line.
        mechanism = kind.build(replace(question, exact_only=False))
    except InapplicableError as error:
        raise ValueError(f"--mechanism {name} does not apply: {error}") from error
    if prefix:
        if not isinstance(mechanism, AdditiveMechanism):
            raise ValueError(f"--mechanism {plain} projects its answers already, got {name!r}")
        mechanism = AFTER[prefix](mechanism)
    if question.exact_only and not isinstance(mechanism.guarantee.sampler, Exact):
        raise ValueError(
            f"--mechanism {name} needs --allow-heuristic here: its sampler is "
            f"{mechanism.guarantee.sampler}"
        )
    return mechanism


MECHANISM_KINDS = (
    MechanismKind(
        "laplace", "--epsilon", "independent Laplace noise on every query", candidates.laplace
    ),
    MechanismKind(
        "ball", "--epsilon", "K-norm noise of the ball around all changes", candidates.ball
    ),
    MechanismKind(
        "ellipsoid",
        "--epsilon",
        "K-norm noise of the best ellipsoid around all changes",
        candidates.ellipsoid,
    ),
    MechanismKind(
        "knorm-exact",
        "--epsilon",
        "K-norm noise of the best body that has an exact sampler",
        candidates.knorm_exact,
    ),
    MechanismKind(
        "knorm",
        "--epsilon",
        "K-norm noise of the body of all changes; may be heuristic",
        candidates.knorm,
    ),
    MechanismKind(
        "cone",
        "--epsilon",
        "noise from the cone over a body around the answers, where one is known",
        candidates.cone,
    ),
    MechanismKind(
        "tight-cone",
        "--epsilon",
        "the same for tables of two columns, from a body cut closer to the answers",
        candidates.tight_cone,
    ),
    MechanismKind(
        "spectral",
        "--epsilon",
        "K-norm noise on moment matrices of signs; ahead of cone for 20 binary columns or more",
        candidates.spectral,
    ),
    MechanismKind(
        "recursive",
        "--epsilon",
        "Hardt-Talwar noise of the best exact body, split into its parts",
        candidates.recursive,
    ),
    MechanismKind(
        "matrix",
        "--epsilon, or --epsilon --delta, or --rho",
        "noise on an optimised strategy, then least squares",
        candidates.matrix,
    ),
    MechanismKind(
        "hierarchical",
        "--epsilon",
        "K-norm noise on counts of several resolutions, then least squares",
        candidates.hierarchical,
    ),
    MechanismKind(
        "jl",
        "--epsilon",
        "K-norm noise after a random projection to the best number of dimensions",
        jl,
    ),
    MechanismKind(
        "coarse",
        "--epsilon, or --epsilon --delta, or --rho",
        "projected noise for answers rounded to a few of them",
        coarse,
    ),
    MechanismKind(
        "second-moment",
        "--epsilon, or --epsilon --delta, or --rho",
        "Wishart noise on second moments, then the nearest attainable matrix",
        candidates.second_moment,
    ),
    MechanismKind(
        "pair-marginals",
        "--epsilon, or --epsilon --delta, or --rho",
        "2-way conjunctions by way of second moments",
        candidates.pair_marginals,
    ),
    MechanismKind(
        "gaussian",
        "--epsilon --delta, or --rho",
        "Gaussian noise in the span of the answers",
        candidates.gaussian,
    ),
)
