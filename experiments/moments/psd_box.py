"""Second moments of records in a cube: an exact uniform sampler of matrices, and cone noise.

Paper: Lewandowski, Kurowicka and Joe 2009 (correlation matrices); formula sheet X-PSDBOX, X-LKJ,
X-CONE, GEN-3.

Claim: the set {M psd, M_ii <= 1} of d x d matrices contains x x^T for all records x in [-1, 1]^d.
D^(1/2) R D^(1/2) is a uniform point of this set, if R is uniform on the correlation matrices, D is
diagonal with D_ii = u_i^(2 / (d + 1)), and the u_i are uniform on [0, 1] and independent of each
other and of R. Diagonal entries of a uniform point have mean square (d + 1) / (d + 5), and the
other entries have (d + 1) / (d + 3)^2. Cone noise of this body answers all second moments with pure
privacy under replace-one. It needs only bounds on the coordinates, and its error is predicted in
closed form. From d = 2 on, cone noise errs less than Laplace noise, and the gain grows with d.

Run time on one core: quick 1 s, full 10 s.
"""

import math
from dataclasses import dataclass
from functools import cache

import numpy as np
import pandas as pd

import experiments.engine.tools as ex
import geomdp as gd

#: Number of records of one release.
N = 100


class Subject(ex.Curve):
    """Measured entries and mechanisms, in the order of the legend."""

    DIAGONAL = "$M_{ii}$", "C2", "o"
    OFF_DIAGONAL = "$M_{ij}$", "C5", "^", ex.HOLLOW
    CONE = "cone noise of the body", "C0", "v"
    LAPLACE = "Laplace noise", "C1", "s"


ENTRIES = (Subject.DIAGONAL, Subject.OFF_DIAGONAL)
MECHANISMS = (Subject.CONE, Subject.LAPLACE)


@dataclass(frozen=True)
class Config:
    subject: Subject  # Entry of a uniform matrix, or mechanism
    order: int  # Order d of the matrices: number of coordinates of a record
    draws: int  # Number of matrices or of releases


@cache
def mechanism(subject: Subject, d: int) -> gd.mechanisms.Cone | gd.mechanisms.Laplace:
    """The mechanism for all second moments of records in [-1, 1]^d, 1-DP under replace-one."""
    Q, privacy = gd.workloads.BoxSecondMoment(d), gd.PureDP(1.0)
    if subject is Subject.CONE:
        return gd.mechanisms.Cone(Q, n=N, privacy=privacy)
    return gd.mechanisms.Laplace(Q, n=N, privacy=privacy)


def compute(config: Config, rng: np.random.Generator) -> ex.Row:
    """Measured mean squares with their predictions."""
    return (entries if config.subject in ENTRIES else releases)(config, rng)


def entries(config: Config, rng: np.random.Generator) -> ex.Row:
    """Mean square of one entry of a uniform matrix."""
    d = config.order
    points = gd.bodies.PsdBox(d).sample_uniform(config.draws, rng)
    diagonal = config.subject is Subject.DIAGONAL
    # svec lists rows of the upper triangle: M_11, then sqrt(2) M_12.
    values = points[:, 0] if diagonal else points[:, 1] / math.sqrt(2)
    exact = (d + 1) / (d + 5) if diagonal else (d + 1) / (d + 3) ** 2
    prediction = gd.mechanisms.Prediction(
        math.sqrt(exact), gd.mechanisms.PredictionKind.EXACT, "X-PSDBOX"
    )
    return {**ex.MeanSquare.of(values**2).columns(), **ex.predicted_columns(prediction)}


def releases(config: Config, rng: np.random.Generator) -> ex.Row:
    """Mean squared error per answer over releases, all on the same records."""
    M = mechanism(config.subject, config.order)
    return ex.release_columns(M, rng.uniform(-1, 1, (N, config.order)), config.draws, rng)


def cone_error(d: int) -> float:
    """Error of cone noise at epsilon = 1, (8 (m + 1) (m + 2) E |U - c|^2 / m)^(1/2) / N (X-CONE).

    There are m = d (d + 1) / 2 answers. The matrix U is uniform on the body, and c = E U. An entry
    off the diagonal occurs twice in U. Among the answers it occurs once, multiplied by sqrt(2).
    """
    m, mean = d * (d + 1) / 2, (d + 1) / (d + 3)
    on = (d + 1) / (d + 5) - mean**2
    off = (d + 1) / (d + 3) ** 2
    return math.sqrt(8 * (m + 1) * (m + 2) * (d * on + d * (d - 1) * off) / m) / N


def claims(table: pd.DataFrame) -> ex.Claims:
    errors = table[table.subject.isin(MECHANISMS)]
    predicted = errors.groupby(["subject", "order"]).predicted.first()
    gains = predicted[Subject.LAPLACE] / predicted[Subject.CONE]
    gains = gains[gains.index > 1]
    name = "entries of uniform matrices have the stated mean squares"
    yield ex.agrees_with_prediction(
        name, "X-PSDBOX", table[table.subject.isin(ENTRIES)], ("subject", "order")
    )
    name = "cone noise and Laplace noise have the predicted errors"
    yield ex.agrees_with_prediction(name, "X-CONE, GEN-3", errors, ("subject", "order"))
    off = [abs(value / cone_error(int(d)) - 1) for d, value in predicted[Subject.CONE].items()]
    name = "n^2 times the squared error of cone noise is 8 (m + 1) (m + 2) E |U - c|^2 / m"
    measured = f"{len(off)} orders, off by {max(off):.1e} at most"
    theory = "equal, for epsilon = 1"
    yield ex.Claim(name, ex.at_most(max(off), 1e-9), measured, theory, "X-CONE, X-PSDBOX")
    yield ex.Claim(
        "from d = 2 on, cone noise errs less than Laplace noise, and the factor grows with d",
        ex.in_order((gains > 1).all() and gains.is_monotonic_increasing),
        f"{gains.iloc[0]:.3f} times less at d = {gains.index[0]}, "
        f"{gains.iloc[-1]:.3f} times less at d = {gains.index[-1]}",
        "above 1, growing",
        "X-PSDBOX",
    )


LOOKS = Subject.looks()


def plot(table: pd.DataFrame) -> ex.Figure:
    titles = ["entries of uniform matrices", "error of a release"]
    heights = ["root mean square of an entry", "error per query (RMSE)"]
    figure, (left, right) = ex.panels((7.2, 3.5), titles, "order $d$ of the matrices", heights)
    for axes, subjects in ((left, ENTRIES), (right, MECHANISMS)):
        for subject in subjects:
            mine = table[table.subject == subject]
            ex.draw_predicted(axes, mine, "order", LOOKS[subject], subject)
        axes.set_xticks(sorted(table.order.unique()))
    left.set_ylim(0, 1)
    ex.log_axes(right, "y")
    for axes in (left, right):
        ex.label_curves(axes)
    return ex.headline(
        figure,
        "Second moments in a cube: cone noise beats Laplace noise for d > 1",
        rf"1-DP, $n={N}$ records. Marks: measured; dashed: predicted exactly before any data.",
    )


def grid(orders: tuple[int, ...], draws: int, count: int) -> tuple[Config, ...]:
    """Mechanisms at every order, and entries at every order above 1."""
    return (
        *[Config(entry, d, draws) for entry in ENTRIES for d in orders if d > 1],
        *ex.product(Config, MECHANISMS, orders, count),
    )


QUICK = ex.Sweep(grid((1, 2, 3, 5, 8), 8000, 300))
FULL = ex.Sweep(grid((1, 2, 3, 4, 5, 6, 8, 10, 12), 200_000, 4000))
