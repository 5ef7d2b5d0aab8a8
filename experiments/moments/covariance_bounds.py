"""Covariance of a distribution, and 2-way marginals from second moments, beside explicit bounds.

Paper: Nikolov 2022, "Private query release via the Johnson-Lindenstrauss transform"
(arXiv 2208.07410), Theorems 3 and 23; formula sheet JL-T3, JL-T23, JL-WIS.

Claims: the private covariance of n records differs from the covariance of their *distribution*, in
root mean square, by at most the sum of three bounds: 3 / n^(1/2) for sampling, the bound on the
error of private second moments, and twice the bound on the error of a private mean. For records
uniform on the sphere, sampling alone errs by ((1 - 1/d) / n)^(1/2), and this error remains as
epsilon grows. The measured noise is 0.9 to 1 times the sum without its term 3 / n^(1/2). This noise
is the length of the noise on the second moments plus twice the length of the noise on the mean,
each noise at epsilon / 2. All 2-way marginals of d binary attributes are computed from the second
moments of x / d^(1/2). Their errors stay below (d / (d - 1))^(1/2) times the bound for second
moments. Every bound is at most 8 times the measured error.

All noise has an exact sampler. Run time on one core: quick 2 s, full 1 minute.
"""

import enum
import math
from dataclasses import dataclass
from itertools import repeat

import numpy as np
import pandas as pd

import experiments.engine.tools as ex
import geomdp as gd
from experiments.shared.unit_vectors import Spectrum, unit_vectors
from geomdp._numerics.linalg import svec
from geomdp.bounds.upper import covariance_error, two_way_marginals_error

#: The measured noise must be at least this share of the noise in the bound.
LEAST = 0.9


def lengths(d: int, n: int, epsilon: float, draws: int, rng: np.random.Generator) -> ex.FloatArray:
    """Independent draws of ||Z|| + 2 ||z||, with each noise at epsilon / 2."""
    privacy = gd.PureDP(epsilon / 2)
    Z = gd.mechanisms.Cone(gd.workloads.SecondMoment(d), n=n, privacy=privacy).noise
    z = gd.mechanisms.Ball(gd.workloads.Means(d), n=n, privacy=privacy).noise
    long, short = (np.linalg.norm(noise.sample(rng, draws), axis=1) for noise in (Z, z))
    return np.asarray((long + 2 * short) / n)


#: Draws of the noise for one point.
DRAWS = 2000
#: Measured errors are at least this share of their bound.
LEAST_SHARE = 1 / 8


class Panel(enum.StrEnum):
    """A panel of the figure, named by its horizontal axis; the last is named by its queries."""

    RECORDS = "n"
    EPSILON = "epsilon"
    DIMENSION = "d"
    MARGINALS = "marginals"


class Quantity(ex.Curve):
    """Three errors, and the noise alone. The legend shows all but `NOISE`, in this order."""

    PRIVATE = "private covariance", "C0", "o"
    SAMPLED = "covariance of the sample", ex.GREY, "s"
    PAIRS = "2-way marginals", "C2", "v"
    NOISE = "noise"


@dataclass(frozen=True)
class Config:
    panel: Panel  # Panel in which the point is drawn
    quantity: Quantity  # Error that is measured, or the noise
    d: int  # Dimension of the records, or number of attributes
    n: int  # Number of records
    epsilon: float  # Epsilon of the pure guarantee
    samples: int  # Number of independent samples of n records


def compute(config: Config, rng: np.random.Generator) -> ex.Row:
    """Mean squared error over the samples, and the bound; for noise, its mean length."""
    d, n = config.d, config.n
    if config.quantity is Quantity.PAIRS:
        bound = two_way_marginals_error(d, n=n, epsilon=config.epsilon)
        squares = marginal_errors(config, rng)
    else:
        bound = covariance_error(d, n=n, epsilon=config.epsilon)
        if config.quantity is Quantity.NOISE:
            measured = ex.MeanSquare.of(lengths(d, n, config.epsilon, DRAWS, rng))
            return {**measured.columns(), "bound": bound - 3 / math.sqrt(n)}
        squares = covariance_errors(config, rng)
    return {**ex.MeanSquare.of(squares).columns(), "bound": bound}


def covariance_errors(config: Config, rng: np.random.Generator) -> list[float]:
    """Squared Frobenius distances of private or sample covariances from the true one, I / d."""
    setting = {"n": config.n, "privacy": gd.PureDP(config.epsilon)}
    M = gd.mechanisms.Covariance(gd.workloads.SecondMoment(config.d), **setting)
    truth = svec(np.eye(config.d) / config.d)
    squares = []
    for _ in range(config.samples):
        records = unit_vectors(Spectrum.ISOTROPIC, config.n, config.d, rng)
        if config.quantity is Quantity.PRIVATE:
            found = M.release(records, rng=rng).answers
        else:
            found = svec(np.cov(records, rowvar=False, bias=True))
        squares.append(float(np.sum((found - truth) ** 2)))
    return squares


def marginal_errors(config: Config, rng: np.random.Generator) -> list[float]:
    """Mean squared errors per marginal, for fresh uniform records."""
    Q = gd.workloads.Marginals(config.d, 2)
    M = gd.mechanisms.PairMarginals(Q, n=config.n, privacy=gd.PureDP(config.epsilon))
    squares = []
    for _ in range(config.samples):
        records = Q.universe.sample(config.n, rng)
        error = M.release(records, rng=rng).answers - Q.answers(records)
        squares.append(float(np.mean(error**2)))
    return squares


POINT = ["panel", "d", "n", "epsilon"]


def claims(table: pd.DataFrame) -> ex.Claims:
    of = {quantity: table[table.quantity == quantity] for quantity in Quantity}
    private, noise = of[Quantity.PRIVATE], of[Quantity.NOISE]
    limits = noise.groupby("d").bound.first()
    statement = "the error of the private covariance is 1/8 to 1 times the bound of Theorem 3"
    yield bounded(statement, "JL-T3", private)
    statement = "the error of 2-way marginals is 1/8 to 1 times the bound of Theorem 23"
    yield bounded(statement, "JL-T23", of[Quantity.PAIRS])
    yield sampling(of[Quantity.SAMPLED])
    yield floor(private[private.panel == Panel.EPSILON])
    rows = private[private.panel == Panel.DIMENSION]
    (slope,) = ex.slopes_by(rows, ["quantity"], "d").values()
    name = "the error grows with the dimension d, but no faster than d^(3/2)"
    verdict = ex.Verdict(
        slope.low > 0 and slope.low <= 1.5 and slope.value >= 0.5, slope.value / 1.5
    )
    yield ex.Claim(name, verdict, f"{slope}", "1/2 to 3/2", "JL-T3")
    points = {d: (mean, limits[d]) for d, mean in ex.pooled_along(noise, "d").items()}
    level = ex.LEVEL / (2 * len(points))
    shares = {d: mean.value / noise for d, (mean, noise) in points.items()}
    reach = {d: ex.quantile(level, m.count) * m.stderr / noise for d, (m, noise) in points.items()}
    yield ex.Claim(
        f"the mean length of noise, ||Z|| + 2 ||z||, is {LEAST:g} to 1 times the noise term of "
        "Theorem 3",
        ex.Verdict(
            all(shares[d] + reach[d] >= LEAST and shares[d] - reach[d] <= 1 for d in points),
            max(shares.values()),
        ),
        f"{len(points)} dimensions, ratio {min(shares.values()):.3f} to {max(shares.values()):.3f}",
        f"{LEAST:g} to 1; Z is the noise on the second moments, z the noise on the mean",
        "JL-T3, JL-WIS, JL-L15",
    )


def bounded(name: str, id: str, rows: pd.DataFrame) -> ex.Claim:
    """Claim that errors lie between `LEAST_SHARE` of the bound and, up to chance, the bound."""
    means, bounds = ex.pooled_by(rows, POINT), rows.groupby(POINT).bound.first()
    tail = ex.LEVEL / len(means)
    intervals = {key: mean.root_interval(2 * tail) for key, mean in means.items()}
    shares = [mean.root / bounds[key] for key, mean in means.items()]
    verdict = ex.Verdict(
        all(low <= bounds[key] for key, (low, _) in intervals.items())
        and min(shares) >= LEAST_SHARE,
        max(shares),
    )
    measured = f"{len(shares)} points, {min(shares):.3f} to {max(shares):.3f} of it"
    return ex.Claim(name, verdict, measured, "1/8 to 1", id)


def sampling(rows: pd.DataFrame) -> ex.Claim:
    """Claim that the sample covariance of uniform records errs by about ((1 - 1/d) / n)^(1/2)."""
    means = ex.pooled_by(rows, POINT)
    scores = []
    for (_, d, n, _), mean in means.items():
        # The formula is for second moments. `np.cov` also subtracts m m^T, where m is the sample
        # mean. The matrix m m^T has size 1 / n. It changes the mean squared error by a share of
        # order 1 / n.
        exact = (1 - 1 / d) / n
        room = ex.quantile(ex.LEVEL / (2 * len(means)), mean.count) * mean.stderr + 5 * exact / n
        scores.append(abs(mean.value - exact) / room)
    name = (
        "the covariance of a sample has the error ((1 - 1/d) / n)^(1/2), which is below the bound "
        "3 / n^(1/2)"
    )
    measured = f"{len(scores)} points, furthest off by {max(scores):.2f} of what chance allows"
    return ex.Claim(name, ex.at_most(scores, 1), measured, "within chance", "JL-T3")


def floor(rows: pd.DataFrame) -> ex.Claim:
    """The error falls as epsilon grows, until at large epsilon the sampling error remains."""
    means = ex.pooled_along(rows, "epsilon")
    first, last = min(means), max(means)
    d, n = int(rows.d.iloc[0]), int(rows.n.iloc[0])
    remains = means[last].root / math.sqrt((1 - 1 / d) / n)
    fall = means[first].root / means[last].root
    return ex.Claim(
        "as epsilon grows, the error falls to the sampling error",
        ex.Verdict(
            0.8 <= remains <= 1.3 and fall >= 4, max(remains / 1.3, 0.8 / remains, 4 / fall)
        ),
        f"at epsilon = {last:g}, {fall:.1f} times less than at {first:g} and {remains:.3f} times "
        "the sampling error",
        "at least 4 times less; 0.8 to 1.3 times the sampling error",
        "JL-T3",
    )


#: The figure shows these quantities. It leaves out `Quantity.NOISE`.
LOOKS = Quantity.looks()
BOUNDS = {
    Quantity.PRIVATE: "Theorem 3",
    Quantity.SAMPLED: r"sampling in Theorem 3: $3/\sqrt{n}$",
    Quantity.PAIRS: "Theorem 23",
}
LABELS = {
    Panel.RECORDS: "records $n$",
    Panel.EPSILON: r"$\varepsilon$",
    Panel.DIMENSION: "dimension $d$",
    Panel.MARGINALS: "records $n$",
}
HEIGHTS = [*["Frobenius error (RMS)"] * 3, "error per marginal (RMS)"]


def plot(table: pd.DataFrame) -> ex.Figure:
    figure, panels = ex.panels(
        (7.2, 6.2), map(fixed, repeat(table), Panel), [*LABELS.values()], HEIGHTS, rows=2
    )
    for axes, panel in zip(panels, Panel, strict=True):
        draw(axes, table[table.panel == panel], varied(panel))
    ex.shared_legend(figure, {"measured": [*LOOKS], "bound": [*BOUNDS.values()]})
    result = "With many records, a private covariance errs as little as the sample"
    settings = "Pure DP. Error against the covariance of the distribution. Dashed: explicit bounds."
    return ex.headline(figure, result, settings)


def varied(panel: Panel) -> str:
    """The column on the horizontal axis of a panel."""
    return "n" if panel is Panel.MARGINALS else str(panel)


def fixed(table: pd.DataFrame, panel: Panel) -> str:
    """Text with the parameters that are fixed in a panel."""
    first = table[(table.panel == panel) & (table.quantity != Quantity.NOISE)].iloc[0]
    parts = {"d": f"$d={first.d}$", "n": f"$n={first.n}$"}
    parts["epsilon"] = rf"$\varepsilon={first.epsilon:g}$"
    return ", ".join(text for name, text in parts.items() if name != varied(panel))


def draw(axes: ex.Axes, rows: pd.DataFrame, x: str) -> None:
    """All quantities of a panel, with their bounds."""
    for quantity, look in LOOKS.items():
        mine = rows[rows.quantity == quantity].sort_values(x)
        if mine.empty:
            continue
        bound = 3 / np.sqrt(mine.n) if quantity == Quantity.SAMPLED else mine.bound
        ex.draw_theory(axes, mine[x], bound, look.colour, BOUNDS[quantity])
        means = ex.pooled_along(mine, x)
        ex.draw_measured(axes, means, look, quantity)
    ex.log_axes(axes)
    if x == "d":
        ex.label_ticks(axes, sorted(rows.d.unique()))


def grid(
    ns: tuple[int, ...], epsilons: tuple[float, ...], ds: tuple[int, ...], samples: int
) -> tuple[Config, ...]:
    """One panel against each of n, epsilon and d, and one of marginals of 10 attributes."""
    both = (Quantity.PRIVATE, Quantity.SAMPLED)
    return (
        *ex.product(Config, Panel.RECORDS, both, 5, ns, 1.0, samples),
        *ex.product(Config, Panel.EPSILON, both, 5, 3000, epsilons, samples),
        *ex.product(Config, Panel.DIMENSION, both, ds, 3000, 0.3, samples),
        *ex.product(Config, Panel.DIMENSION, Quantity.NOISE, ds, 10**6, 0.003, DRAWS),
        *ex.product(Config, Panel.MARGINALS, Quantity.PAIRS, 10, ns, 1.0, samples),
    )


QUICK = ex.Sweep(grid((100, 10_000), (0.1, 100.0), (2, 16), samples=40))
FULL = ex.Sweep(
    grid(
        (30, 100, 300, 1000, 3000, 10_000, 30_000, 100_000),
        (0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 100.0),
        (2, 4, 8, 16, 32),
        samples=200,
    )
)
