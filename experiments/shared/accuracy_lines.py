"""Records and mechanisms of the accuracy table, line by line."""

import enum
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt

import geomdp as gd
from experiments.shared.rand_sample import real_sample
from experiments.shared.workloads import Line, line_workload
from geomdp.advice import Advice
from geomdp.bounds import RMS, orthogonal_lines_error

PRIVACY = gd.PureDP(1.0)
#: Number of latent classes of synthetic records, and the public seed of their probabilities.
CLASSES, CLASS_SEED = 4, 0


class Method(enum.StrEnum):
    """Mechanisms: ours, then the peers, then those in `NOT_OURS`."""

    CONE = "cone"
    TIGHT_CONE = "cone, cut"
    SPECTRAL = "spectral"
    HIERARCHICAL = "K-norm on levels"
    KNORM = "K-norm, exact"
    RECURSIVE = "recursive"
    PROJECTED_CONE = "cone, projected"
    FITTED_CONE = "cone, fitted"
    SHRUNK_CONE = "cone, shrunk"
    PROJECTED_HIERARCHICAL = "K-norm on levels, projected"
    FITTED_HIERARCHICAL = "K-norm on levels, fitted"
    PROJECTED_KNORM = "K-norm, projected"
    JL = "JL around K-norm"
    LAPLACE = "Laplace"
    BALL = "ball"
    MATRIX = "matrix"
    GEOMETRIC = "geometric, closed form"
    PROJECTED_LAPLACE = "Laplace, projected"
    PROJECTED_MATRIX = "matrix, projected"
    FITTED_MATRIX = "matrix, fitted"
    GRAPHICAL = "matrix + graphical model"
    JOINT = "Laplace, joint table"
    LIFTED = "cone, lifted"
    ADVISED = "advised"


#: Methods that are neither ours nor peers. `LIFTED` is an error in closed form that no mechanism of
#: the library has. `ADVISED` is the mechanism that `advise` offers, which can be a peer.
NOT_OURS = (Method.LIFTED, Method.ADVISED)
#: Methods that exist without this library: independent noise, optimised strategies with least
#: squares (matrix mechanism, HDMM), ball noise and graphical models. Answers with Laplace noise and
#: answers of optimised strategies are also post-processed (projected or fitted). The optimised
#: strategies come from the class `Matrix`, so it is a peer and its errors never count as ours.
PEERS = (
    Method.JOINT, Method.LAPLACE, Method.BALL, Method.MATRIX, Method.GEOMETRIC,
    Method.PROJECTED_LAPLACE, Method.PROJECTED_MATRIX, Method.FITTED_MATRIX, Method.GRAPHICAL,
)  # fmt: skip
#: Post-processed mechanisms. Their error depends on the records.
PROJECTED = (
    Method.PROJECTED_CONE, Method.FITTED_CONE, Method.SHRUNK_CONE, Method.PROJECTED_HIERARCHICAL,
    Method.FITTED_HIERARCHICAL, Method.PROJECTED_KNORM, Method.JL, Method.PROJECTED_LAPLACE,
    Method.PROJECTED_MATRIX, Method.FITTED_MATRIX, Method.GRAPHICAL,
)  # fmt: skip


@dataclass(frozen=True)
class Config:
    """One mechanism on one line of the table."""

    line: Line  # Workload
    n: int  # Number of records
    method: Method  # Mechanism
    releases_per_trial: int  # Independent releases in one cell; 0 for a prediction alone
    epsilon: float = 1.0  # Privacy; releases are made at epsilon = 1 only


def draw_records(line: Line, n: int, rng: np.random.Generator) -> npt.NDArray[Any]:
    """Records of one release, drawn anew each time."""
    Q = line_workload(line)
    if line is Line.BINARY:
        sample = real_sample()
        return sample[rng.choice(len(sample), n, replace=False)]
    if not isinstance(Q, gd.workloads.MarginalTables):
        return np.asarray(Q.universe.sample(n, rng))
    fixed = np.random.default_rng(CLASS_SEED)
    classes = rng.integers(CLASSES, size=n)
    records = np.empty((n, len(Q.levels)), dtype=Q.universe.sample(1, rng).dtype)
    for column, levels in enumerate(Q.levels):
        thresholds = fixed.dirichlet(np.ones(levels), CLASSES).cumsum(axis=1)[classes]
        records[:, column] = (rng.random(n)[:, None] > thresholds[:, :-1]).sum(axis=1)
    return records


@cache
def built(line: Line, method: Method) -> gd.mechanisms.Mechanism:
    """The mechanism for n = 1; `with_n` gives it for other n. `for_records` builds JL."""
    Q, M = line_workload(line), gd.mechanisms
    builders: Mapping[Method, Callable[[], gd.mechanisms.Mechanism]] = {
        Method.LAPLACE: lambda: M.Laplace(Q, n=1, privacy=PRIVACY),
        Method.BALL: lambda: M.Ball(Q, n=1, privacy=PRIVACY),
        Method.MATRIX: lambda: M.Matrix(Q, n=1, privacy=PRIVACY),
        Method.GRAPHICAL: lambda: M.Matrix(Q, n=1, privacy=PRIVACY),
        Method.CONE: lambda: M.Cone(Q, n=1, privacy=PRIVACY),
        Method.TIGHT_CONE: lambda: M.TightCone(Q, n=1, privacy=PRIVACY),
        Method.SPECTRAL: lambda: M.Spectral(Q, n=1, privacy=PRIVACY),
        Method.HIERARCHICAL: lambda: M.Hierarchical(Q, n=1, privacy=PRIVACY),
        Method.KNORM: lambda: M.KNorm(Q, n=1, privacy=PRIVACY, exact=True),
        Method.RECURSIVE: lambda: M.Recursive(Q, n=1, privacy=PRIVACY),
    }
    # With a hundred columns, the plain cone mechanism is used instead of the cut one.
    cone = Method.CONE if line is Line.HUNDRED else Method.TIGHT_CONE
    after: Mapping[Method, tuple[Callable[..., gd.mechanisms.Mechanism], Method]] = {
        Method.PROJECTED_CONE: (M.Projected, cone),
        Method.FITTED_CONE: (M.Fitted, cone),
        Method.SHRUNK_CONE: (M.Shrunk, cone),
        Method.PROJECTED_HIERARCHICAL: (M.Projected, Method.HIERARCHICAL),
        Method.FITTED_HIERARCHICAL: (M.Fitted, Method.HIERARCHICAL),
        Method.PROJECTED_MATRIX: (M.Projected, Method.MATRIX),
        Method.PROJECTED_KNORM: (M.Projected, Method.KNORM),
        Method.FITTED_MATRIX: (M.Fitted, Method.MATRIX),
        Method.PROJECTED_LAPLACE: (M.Projected, Method.LAPLACE),
    }
    if method in after:
        wrap, inner = after[method]
        return wrap(built(line, inner))
    return builders[method]()


#: Seed of JL's public map. For each line and each n, all releases use the same map.
JL_SEED = 0


@cache
def advice(line: Line, n: int, epsilon: float) -> Advice:
    """The advice of `advise`, restricted to mechanisms with exact samplers."""
    privacy = gd.PureDP(epsilon)
    return gd.advise(line_workload(line), n=n, privacy=privacy, exact_only=True)


def for_records(line: Line, method: Method, n: int) -> gd.mechanisms.Mechanism:
    """The mechanism for n records at epsilon = 1. JL has min(n, half the dimension) rows."""
    if method is Method.ADVISED:
        return advice(line, n, PRIVACY.epsilon).best
    if method is not Method.JL:
        return built(line, method).with_n(n)
    inner = built(line, Method.KNORM).with_n(n)
    assert isinstance(inner, gd.mechanisms.AdditiveMechanism)
    rows = min(n, inner.workload.affine_hull().dimension // 2)
    return gd.mechanisms.JL(inner, rows, rng=JL_SEED)


def excluded_error(line: Line, n: int, epsilon: float = PRIVACY.epsilon) -> float:
    """A lower bound, by orthogonal lines, on the worst RMS error of every epsilon-DP mechanism."""
    return orthogonal_lines_error(line_workload(line), n, epsilon=epsilon, metric=RMS())
