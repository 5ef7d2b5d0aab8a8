"""Lower and upper bounds on the records that random sign queries need, against universe size.

Paper: Nikolov 2022 (arXiv 2208.07410), Theorems 1, 21 and 24; formula sheet JL-T1, JL-T21, JL-T24,
JL-L6, JL-L13b, JL-L14.

Claim: packings prove that k queries on N elements need a number of records that grows as ln N, for
every pure-DP mechanism. For small N, data sets on orthogonal lines prove a larger number. The lower
bound is the largest number that is proved. The upper bound is from the best mechanism with an exact
sampler and a proved error. For small N this is K-norm noise on the frequencies of the elements, or
on counts of several partitions (`Hierarchical`), and the number of records grows as sqrt(N). For
every N the upper bound is at most the number of records that ball noise needs,
2 sqrt(k (k + 1)) / (alpha epsilon) (up to a constant the first term of Theorem 1). Releases at the
n of the upper bound confirm this bound, for data at one element, at a mix of ten elements and at
all elements equally. The term ln N / (alpha^2 epsilon) needs optimal noise in a random projection,
for which no exact sampler is known.

Run time on one core: quick 6 s, full 4 minutes.
"""

import math
from dataclasses import dataclass

import numpy as np
import pandas as pd

import experiments.engine.tools as ex
import geomdp as gd
from experiments.shared.workloads import Kind, workload

EPSILON = 1.0
#: Number of distinct elements in each data set; None for all elements.
PLACES = {"one element": 1, "mix of ten": 10, "all equally": None}


@dataclass(frozen=True)
class Config:
    queries: int  # Number k of random sign queries
    log_size: int  # Binary logarithm of the universe's size N
    alpha: float  # Target mean l2 error per query
    releases: int  # Releases for each of the three data sets at the n of the upper bound


def compute(config: Config, rng: np.random.Generator) -> list[ex.Row]:
    """Both bounds, and the measured error of the upper bound's mechanism at its n."""
    Q = workload(Kind.SIGNS, config.queries, 2**config.log_size)
    found = gd.sample_complexity_bracket(Q, EPSILON, config.alpha, rng=rng)
    M = found.upper.certificate
    if not isinstance(M, gd.mechanisms.Mechanism):
        raise TypeError(f"the upper bound must come from a mechanism, got {M!r}")
    common: ex.Row = {
        "lower": found.lower.records,
        "packings": by_packings(found),
        "upper": found.upper.records,
        "mechanism": type(M).__name__,
        "sampler": str(M.guarantee.sampler),
    }
    return [
        {**common, "place": place, **measured(M, Q, distinct, config.releases, rng)}
        for place, distinct in PLACES.items()
    ]


def by_packings(found: gd.advice.Bracket) -> int:
    """Largest number of records for which packings alone exclude the target error."""
    chains = [
        bound
        for bound in found.lower_candidates
        if isinstance(bound.certificate, gd.bounds.Certificate)
        and all(rung.kind == "packing" for rung in bound.certificate.rungs)
    ]
    return max((bound.records for bound in chains), default=0)


def measured(
    mechanism: gd.mechanisms.Mechanism,
    Q: gd.workloads.Workload,
    distinct: int | None,
    releases: int,
    rng: np.random.Generator,
) -> ex.Row:
    """Mean l2 error per query over releases on one data set."""
    elements = Q.universe.elements(0, Q.universe.size)
    chosen = rng.choice(elements, min(distinct or len(elements), len(elements)), replace=False)
    records = np.resize(chosen, (mechanism.n, *elements.shape[1:]))
    truth = Q.answers(records)
    errors = [
        float(np.linalg.norm(mechanism.release(records, rng=rng).answers - truth))
        for _ in range(releases)
    ]
    scaled = np.array(errors) / math.sqrt(Q.n_queries)
    return {
        "error": float(scaled.mean()),
        "error_stderr": float(scaled.std(ddof=1)) / math.sqrt(releases),
        "count": releases,
    }


def brackets(table: pd.DataFrame) -> pd.DataFrame:
    """One row per N, smallest first."""
    return table.groupby("log_size").first().sort_index()


def claims(table: pd.DataFrame) -> ex.Claims:
    sides = brackets(table)
    ratio = sides.upper / (sides.lower + 1)
    tail = ex.LEVEL / len(table)
    reach = ex.quantile(tail, int(table["count"].min())) * table.error_stderr
    logs = np.log(sides.index.to_numpy(float))
    slope = float(np.polyfit(logs, np.log(sides.packings.to_numpy(float)), 1)[0])
    k, alpha = int(table.queries.iloc[0]), float(table.alpha.iloc[0])
    ball = math.ceil(2 * math.sqrt(k * (k + 1)) / (alpha * EPSILON))
    name = "the lower bound is below the upper bound"
    words = (
        f"{len(sides)} sizes of the universe, upper / (lower + 1) is {ratio.min():.1f} to "
        f"{ratio.max():.1f}"
    )
    yield ex.Claim(name, ex.below(sides.lower, sides.upper), words, "at least 1", "JL-L6, JL-L14")
    yield ex.Claim(
        "with the n of the upper bound, mechanisms err at most alpha on data at one element, "
        "at ten and at all",
        ex.at_most(table.error, table.alpha + reach),
        f"{len(table)} points, error at most {(table.error / table.alpha).max():.3f} alpha",
        "at most 1",
        "JL-L13b, JL-L14",
    )
    name = "the number of records that packings exclude grows as ln N"
    words = f"exponent of ln N {slope:.2f}, N = 2^{sides.index[0]} to 2^{sides.index[-1]}"
    theory = "1, in [0.7, 1.3] after rounding to whole records"
    yield ex.Claim(name, ex.between(slope, 0.7, 1.3), words, theory, "JL-T24")
    name = "the upper bound never exceeds the number of records that ball noise needs"
    words = f"{sides.upper.min():.0f} to {sides.upper.max():.0f} records"
    theory = f"at most {ball}"
    yield ex.Claim(name, ex.at_most(sides.upper, ball), words, theory, "JL-T1, first term; JL-L15")
    name = "the mechanisms of the upper bounds have exact samplers"
    words = ", ".join(sorted(set(sides.mechanism)))
    yield ex.Claim(name, ex.same_names((sides.sampler == "exact").all()), words, "exact", "SAM-4")


UPPER = "best mechanism, proved"
LOWER = "impossible below, proved"
PACKINGS = "packings alone"
#: The three terms of Theorem 1: labels and dashes.
RATES = {
    r"Theorem 1: $k/(\alpha\varepsilon)$": (1, 2),
    r"Theorem 1: $\sqrt{k\ln N}/(\alpha\varepsilon)$": (5, 2, 1, 2),
    r"Theorem 1: $\ln N/(\alpha^2\varepsilon)$": (5, 2),
}


def plot(table: pd.DataFrame) -> ex.Figure:
    k, alpha = int(table.queries.iloc[0]), float(table.alpha.iloc[0])
    figure = ex.Figure(figsize=(7.2, 3.9))
    axes, sides = figure.subplots(), brackets(table)
    N = 2.0 ** sides.index.to_numpy()
    terms = (
        np.full(len(N), k / (alpha * EPSILON)),
        np.sqrt(k * np.log(N)) / (alpha * EPSILON),
        np.log(N) / (alpha**2 * EPSILON),
    )
    for values, (label, dashes) in zip(terms, RATES.items(), strict=True):
        ex.draw_theory(axes, N, values, ex.GREY, label, dashes)
    ex.draw_points(axes, N, sides.upper, ex.Look("C0", "o"), UPPER)
    ex.draw_points(axes, N, sides.lower, ex.Look("0.3", "^"), LOWER)
    ex.draw_points(axes, N, sides.packings, ex.Look("0.3", "v", filled=False), PACKINGS)
    axes.set_xscale("log", base=2)
    ex.log_axes(axes, "y")
    axes.set_ylim(bottom=max(0.5, float(sides.packings.min()) / 2))
    axes.set(xlabel="elements $N$ of the universe", ylabel="number of records $n$ needed")
    ex.draw_impossible(axes, N, sides.lower)
    ex.label_curves(axes)
    apart = math.ceil((sides.upper / sides.lower).max())
    return ex.headline(
        figure,
        f"How many records are needed is known within a factor of {apart}",
        rf"{k} random sign queries, error $\alpha={alpha:g}$, $\varepsilon={EPSILON:g}$, pure DP.",
    )


QUICK = ex.Sweep(ex.product(Config, 32, (2, 3, 4, 5, 6), 0.1, 100))
FULL = ex.Sweep(ex.product(Config, 32, range(2, 13), 0.1, 200))
