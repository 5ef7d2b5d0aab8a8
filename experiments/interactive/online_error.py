"""Online release: error against the number of records, epsilon, sparsity and the universe.

Paper: Blum-Roth 2011, "Fast private data release algorithms for sparse queries", Theorems 3.3 and
3.8, run as Dwork-Roth's Algorithm 11 with corrected constants; formula sheet BR-OIC, BR-SMW, BR-MW.

Claim: with probability 1 - beta all k adaptive answers are within 3 alpha0, where alpha0 is solved
from the update bound of the rule and falls as n^(-1/2), up to logarithms. For sparse multiplicative
weights alpha0 depends on the sparsity m only logarithmically, and not on the universe. For dense
multiplicative weights alpha0 grows with ln |X|. The queries of panels (a) to (c) ask first for the
heaviest elements, then for random elements.

Further queries have a set distance from the hypothesis. An adversary who sees the hypothesis can
choose such queries. The threshold is 2 alpha0, and with probability 1 - beta all comparisons with
it err by at most alpha0. Then queries at 0.95 alpha0 cause no update, and all queries at 3.05
alpha0 cause one. Queries at 1.9 alpha0 that cause no update keep an error of nearly two thirds of
the promised 3 alpha0. Released values have Laplace noise of the stated scale. Up to logarithms, the
measured noise falls as n^(-1/2) and as epsilon^(-1/2). If all queries are at 3.05 alpha0, the
largest error is the largest of 60 Laplace moduli, whose law is known exactly. For these distances,
alpha0 is solved from the equation of the formula sheet, without the library. How many updates are
needed is the subject of `update_bounds`.

Run time on one core: quick 2 s, full 30 s.
"""

import enum
import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
import scipy.optimize
import scipy.stats

import experiments.engine.tools as ex
import geomdp as gd
from experiments.shared.known_shares import falling_shares
from geomdp.workloads import DenseQuery, SparseQuery

PRIVACY = gd.ApproxDP(1.0, 1e-6)
QUERIES, BETA = 60, 0.05
#: Distances of queries from the hypothesis, in units of alpha0. The threshold is 2. The comparisons
#: with the threshold err by at most 1, with probability at least 1 - beta. Then no query at NEAR
#: causes an update, and every query at FAR causes one. LEFT is just below 2.
NEAR, LEFT, FAR = 0.95, 1.9, 3.05


def dense_updates(universe: int, alpha: float) -> int:
    """floor(B(alpha)) of multiplicative weights, B = 4 ln |X| / alpha^2 (BR-MW)."""
    return math.floor(4 * math.log(universe) / alpha**2)


def sparse_updates(sparsity: int, alpha: float) -> int:
    """floor(B(alpha)) of sparse weights on s slots, B = 4 (ln s + 1) / alpha^2 (BR-SMW)."""
    least = 4 * sparsity / alpha**2
    # The iteration converges to the solution of s = least (ln s + 1). The number of slots is this
    # solution, rounded up.
    slots = least
    for _ in range(100):
        slots = least * (math.log(slots) + 1)
    return math.floor(4 * (math.log(math.ceil(slots)) + 1) / alpha**2)


def value_scale(n: int, updates: int, epsilon: float = PRIVACY.epsilon) -> float:
    """Scale of the noise on a value, if c = `updates` values share epsilon / 9 and delta / 2."""
    shortcut = math.sqrt(8 * updates * math.log(2 / PRIVACY.delta))
    return 9 * shortcut / (epsilon * n)


def solved_accuracy(
    n: int, *, sparsity: int | None = None, universe: int = 0, epsilon: float = PRIVACY.epsilon
) -> float:
    """alpha0 = 9 sqrt(8 c ln(2/delta)) (ln 2k + ln(4c/beta)) / (eps n), c = floor(B(alpha0)).

    k is `QUERIES`. B is the bound of sparse weights or, if no `sparsity` is given, of dense weights
    on `universe` elements.
    """

    def excess(alpha: float) -> float:
        c = dense_updates(universe, alpha) if sparsity is None else sparse_updates(sparsity, alpha)
        return alpha - value_scale(n, c, epsilon) * (math.log(2 * QUERIES) + math.log(4 * c / BETA))

    return float(scipy.optimize.bisect(excess, 1e-6, 1.0, xtol=1e-15, rtol=1e-12))


def run_at_gap(
    distance: float, sparsity: int, online: gd.OnlineConstruction[SparseQuery]
) -> tuple[list[float], float]:
    """Absolute noise of answers that update the hypothesis, and largest error of all others."""
    noise, left = [], 0.0
    for i in range(QUERIES):
        query = SparseQuery.counting(range(i * sparsity, (i + 1) * sparsity))
        truth = online.hypothesis.evaluate(query) + distance
        answer = online.ask_truth(query, truth)
        error = abs(float(answer.value or 0.0) - truth)
        if answer.above:
            noise.append(error)
        else:
            left = max(left, error)
    return noise, left


def at_gap(n: int, sparsity: int, gap: float, runs: int, rng: np.random.Generator) -> ex.Row:
    """Updates, noise and errors over the runs of one trial."""
    alpha = solved_accuracy(n, sparsity=sparsity)
    updated, noise, left = [], [], 0.0
    for child in rng.spawn(runs):
        online: gd.OnlineConstruction[SparseQuery] = gd.OnlineConstruction(
            gd.SparseMultiplicativeWeights(sparsity),
            n=n, queries=QUERIES, privacy=PRIVACY, beta=BETA, rng=child,
        )  # fmt: skip
        moduli, error = run_at_gap(gap * alpha, sparsity, online)
        updated.append(len(moduli))
        noise += moduli
        left = max(left, error)
    return {
        "untouched": sum(count == 0 for count in updated),
        "all_updated": sum(count == QUERIES for count in updated),
        "values": len(noise),
        "noise": sum(noise) / value_scale(n, sparse_updates(sparsity, alpha)),
        "left": left / (3 * alpha),
    }


def threshold(table: pd.DataFrame) -> ex.Claims:
    """Which queries cause an update, and the error of queries just below the threshold."""
    by_gap = table.groupby("gap").agg(
        runs=("runs", "sum"), untouched=("untouched", "sum"), all_updated=("all_updated", "sum")
    )
    near, far = by_gap.loc[NEAR], by_gap.loc[FAR]
    left = table[table.gap == LEFT].groupby(["n", "sparsity"]).left.max()
    tails = [
        scipy.stats.binom.cdf(right, runs, 1 - BETA)
        for right, runs in ((near.untouched, near.runs), (far.all_updated, far.runs))
    ]
    yield ex.Claim(
        f"no query that is off by {NEAR} alpha0 causes an update, and every query that is off "
        f"by {FAR} alpha0 does",
        ex.not_rare(tails, ex.LEVEL / 2),
        f"{near.untouched:.0f} of {near.runs:.0f} and {far.all_updated:.0f} of {far.runs:.0f} runs",
        f"probability at least {1 - BETA} at each of the two distances",
        "BR-OIC",
    )
    yield ex.Claim(
        "at every n and m, the largest error of an adversary's queries is nearly two thirds "
        "of 3 alpha0",
        ex.Verdict(left.between(0.6, 1).all(), left.max()),
        f"{left.min():.3f} to {left.max():.3f} times 3 alpha0 at {len(left)} pairs, by "
        f"queries that are off by {LEFT} alpha0 and cause no update",
        "0.6 to 1",
        "BR-OIC, BR-ACC, BR-T3.8",
    )


#: Least and largest power of n with which the measured noise may fall. The theorem says -1/2 up to
#: logarithms; -1/3 and -1 are excluded.
POWERS = (-0.6, -0.4)


def falls(table: pd.DataFrame) -> ex.Claim:
    """At the least sparsity, the mean modulus of the noise falls with n at the expected power."""
    m = int(table.sparsity.min())
    sums = table[table.sparsity == m].groupby("n")[["noise", "values"]].sum()
    scales = [value_scale(n, sparse_updates(m, solved_accuracy(n, sparsity=m))) for n in sums.index]
    means = sums.noise / sums["values"] * scales
    # Moduli are exponential, so a mean of v of them has the relative standard error v^(-1/2).
    squares = [
        ex.MeanSquare(mean**2, 2 * mean**2 / math.sqrt(count), int(count))
        for mean, count in zip(means, sums["values"], strict=True)
    ]
    slope = ex.log_log_slope([*sums.index], squares, ex.LEVEL)
    name = "up to logarithms, the noise of released values falls as n^(-1/2)"
    return ex.slopes_lie_within(name, "BR-T3.8", {(f"m = {m}",): slope}, *POWERS)


def at_epsilon(
    n: int, sparsity: int, gap: float, epsilon: float, runs: int, rng: np.random.Generator
) -> ex.Row:
    """The largest error of a run: measured mean square, and exact root mean square."""
    alpha = solved_accuracy(n, sparsity=sparsity, epsilon=epsilon)
    largest, promised = [], []
    for child in rng.spawn(runs):
        online: gd.OnlineConstruction[gd.workloads.SparseQuery] = gd.OnlineConstruction(
            gd.SparseMultiplicativeWeights(sparsity),
            n=n, queries=QUERIES, privacy=gd.ApproxDP(epsilon, PRIVACY.delta), beta=BETA, rng=child,
        )  # fmt: skip
        noise, left = run_at_gap(gap * alpha, sparsity, online)
        # A query that causes no update keeps its whole distance to the hypothesis as its error.
        largest.append(max([*noise, left]))
        promised.append(online.accuracy)
    scale = value_scale(n, sparse_updates(sparsity, alpha), epsilon)
    return {
        **ex.MeanSquare.of(np.square(largest)).columns(),
        "guaranteed": promised[0],
        "predicted": scale * largest_modulus(QUERIES),
        "predicted_stderr": 0.0,
        "prediction": "exact",
    }


def largest_modulus(count: int) -> float:
    """Root mean square of the largest of `count` independent exponential variables of mean 1.

    The largest is a sum of independent exponentials of means 1, 1/2, ..., 1/count.
    """
    means = 1 / np.arange(1, count + 1)
    return math.sqrt(means.sum() ** 2 + (means**2).sum())


def claims_on_epsilon(table: pd.DataFrame) -> ex.Claims:
    """Two-sided tests of the largest noise at every epsilon, and of its slope against epsilon."""
    slopes = ex.slopes_by(table, ["sparsity"], "epsilon")
    name = f"the largest of {QUERIES} errors has the exact root mean square at every epsilon"
    yield ex.agrees_with_prediction(name, "BR-OIC, SV-NUM", table, ["epsilon"])
    name = "up to logarithms, the largest error of released values falls as epsilon^(-1/2)"
    yield ex.slopes_lie_within(
        name, "BR-T3.8", {(f"m = {m}",): slope for (m,), slope in slopes.items()}, *POWERS
    )


def draw_epsilons(axes: ex.Axes, table: pd.DataFrame, look: ex.Look, label: str) -> None:
    """Largest errors against epsilon, with their exact law and the promised accuracy."""
    stated = table.groupby("epsilon")[["guaranteed", "predicted"]].first()
    ex.draw_theory(axes, stated.index, stated.guaranteed, look.colour, "_")
    ex.draw_theory(axes, stated.index, stated.predicted, "black", "exact", (1, 1.5))
    ex.draw_measured(axes, ex.pooled_along(table, "epsilon"), look, label, joined=False)


class Panel(enum.StrEnum):
    """Panels, by the quantity on the x axis; `GAPS` is measured but has no panel."""

    GAPS = "gaps"
    RECORDS = "records"
    SPARSITY = "sparsity"
    UNIVERSE = "universe"
    EPSILON = "epsilon"


class Rule(ex.Curve):
    """Update rules."""

    SPARSE = "sparse multiplicative weights", "C0", "D"
    DENSE = "multiplicative weights", "C2", "o"


@dataclass(frozen=True)
class Config:
    panel: Panel  # Where the point is shown; `GAPS` are not drawn
    rule: Rule  # Update rule
    n: int  # Number of records
    sparsity: int  # Sparsity m of the queries
    universe: int  # Number of elements, unknown to the sparse rule; 0 for `GAPS` and `EPSILON`
    #: Distance of queries from the hypothesis in units of alpha0; used by `GAPS` and `EPSILON`.
    gap: float
    runs: int  # Independent runs in one cell
    epsilon: float = PRIVACY.epsilon  # Varies in the panel `EPSILON` only


def run(config: Config, rng: np.random.Generator) -> tuple[float, int, Any]:
    """Largest error over the queries of one run, number of updates, and the mechanism."""
    sparse, m = config.rule is Rule.SPARSE, config.sparsity
    rule: Any = (
        gd.SparseMultiplicativeWeights(m)
        if sparse
        else gd.mechanisms.MultiplicativeWeights(config.universe)
    )
    online: gd.OnlineConstruction[Any] = gd.OnlineConstruction(
        rule, n=config.n, queries=QUERIES, privacy=PRIVACY, beta=BETA, rng=rng
    )
    shares, worst = falling_shares(config.universe), 0.0
    for i in range(QUERIES):
        # First the heaviest elements, where the uniform hypothesis is most wrong; then random
        # elements.
        support = np.arange(m) + i * m if i < QUERIES // 2 else rng.choice(len(shares), m, False)
        support = np.unique(support % len(shares))
        query: Any
        if sparse:
            query = SparseQuery.counting(support.tolist())
        else:
            query = DenseQuery(np.isin(np.arange(len(shares)), support).astype(float))
        truth = float(shares[support].sum())
        answer = online.ask_truth(query, truth)
        worst = max(worst, abs(float(answer.value) - truth))
    return worst, online.updates, online


def compute(config: Config, rng: np.random.Generator) -> ex.Row:
    """Measure the largest errors. `at_gap` measures `GAPS`, and `at_epsilon` measures `EPSILON`."""
    if config.panel is Panel.GAPS:
        return at_gap(config.n, config.sparsity, config.gap, config.runs, rng)
    if config.panel is Panel.EPSILON:
        return at_epsilon(config.n, config.sparsity, config.gap, config.epsilon, config.runs, rng)
    results = [run(config, child) for child in rng.spawn(config.runs)]
    errors = np.array([worst for worst, _, _ in results])
    online = results[0][2]
    return {
        **ex.MeanSquare.of(errors**2).columns(),
        "within": int(np.count_nonzero(errors <= online.accuracy)),
        "guaranteed": online.accuracy,
        "stated": 3 * stated_accuracy(config),
        "updates": max(updates for _, updates, _ in results),
        "updates_allowed": online.updates_allowed,
    }


def stated_accuracy(config: Config) -> float:
    """alpha0, solved from the equation of the formula sheet."""
    if config.rule is Rule.SPARSE:
        return solved_accuracy(config.n, sparsity=config.sparsity)
    return solved_accuracy(config.n, universe=config.universe)


POINT = ["panel", "rule", "n", "sparsity", "universe"]


#: Largest relative difference between the library's alpha0 and the alpha0 solved here.
SOLVED = 1e-9


def claims(table: pd.DataFrame) -> ex.Claims:
    gaps, against_epsilon = (table[table.panel == each] for each in (Panel.GAPS, Panel.EPSILON))
    yield from promises(table[~table.panel.isin([Panel.GAPS, Panel.EPSILON])])
    yield from threshold(gaps)
    count, total = int(gaps["values"].sum()), float(gaps.noise.sum())
    law = scipy.stats.gamma(count)
    chance = 2 * min(law.cdf(total), law.sf(total)) if count else 0.0
    name = "released values have Laplace noise of scale 9 sqrt(8 c ln(2/delta)) / (epsilon n)"
    measured = (
        f"{count} values, mean modulus {total / max(count, 1):.3f} times the scale, "
        f"p-value {chance:.2g} (Gamma)"
    )
    yield ex.Claim(name, ex.not_rare(chance, ex.LEVEL), measured, "1", "BR-OIC, SV-NUM")
    yield falls(gaps[gaps.gap == FAR])
    yield from claims_on_epsilon(against_epsilon)


def promises(table: pd.DataFrame) -> ex.Claims:
    """The promised 3 alpha0: binomial tests of runs, and comparison with the solved equation."""
    points = table.groupby(POINT, as_index=False).agg(
        within=("within", "sum"),
        releases=("releases", "sum"),
        guaranteed=("guaranteed", "first"),
        stated=("stated", "first"),
    )
    off = float((points.guaranteed / points.stated - 1).abs().max())
    tails = scipy.stats.binom.cdf(points.within, points.releases, 1 - BETA)
    universe = points[points.panel == Panel.UNIVERSE].set_index(["rule", "universe"]).guaranteed
    sparse, dense = universe[Rule.SPARSE], universe[Rule.DENSE].sort_index()
    sparsity = points[points.panel == Panel.SPARSITY].sort_values("sparsity")
    growth = sparsity.guaranteed.iloc[-1] / sparsity.guaranteed.iloc[0]
    name = f"all {QUERIES} answers are within 3 alpha0"
    measured = (
        f"{points.within.sum():.0f} of {points.releases.sum():.0f} runs, {len(points)} points; "
        f"at most {table.updates.max():.0f} updates, {table.updates_allowed.min():.0f} or more "
        "allowed"
    )
    theory = f"probability at least {1 - BETA} at each"
    yield ex.Claim(name, ex.not_rare(tails, ex.LEVEL / len(points)), measured, theory, "BR-OIC")
    yield ex.Claim(
        "the promised 3 alpha0 solves the equation of the formula sheet for all n, sparsities "
        "m and universes",
        ex.at_most(off, SOLVED),
        f"{len(points)} points, relative differences at most {off:.1g}",
        f"at most {SOLVED:g}",
        "BR-OIC, BR-T3.8, BR-SMW, BR-MW",
    )
    yield ex.Claim(
        "the promised error does not depend on the universe for sparse weights, and grows "
        "with it for dense weights",
        ex.in_order(sparse.nunique() == 1 and bool((np.diff(dense) > 0).all())),
        f"{sparse.iloc[0]:.3f} for sparse weights; {dense.iloc[0]:.3f} to "
        f"{dense.iloc[-1]:.3f} for dense weights",
        "constant; increasing",
        "BR-SMW, BR-MW",
    )
    yield ex.Claim(
        "the promised error 3 alpha0 grows more slowly than m^0.1 with the sparsity m",
        ex.at_most(growth, (sparsity.sparsity.iloc[-1] / sparsity.sparsity.iloc[0]) ** 0.1),
        f"factor {growth:.3f} for m from {sparsity.sparsity.iloc[0]} to "
        f"{sparsity.sparsity.iloc[-1]}",
        "(ln m)^(1/4), up to constants",
        "BR-T3.8, DISC-8",
    )


LOOKS = Rule.looks()


def plot(table: pd.DataFrame) -> ex.Figure:
    epsilons = table[table.panel == Panel.EPSILON]
    table = table[table.panel != Panel.GAPS]
    first = table[table.panel == Panel.RECORDS].iloc[0]
    second = table[table.panel == Panel.SPARSITY].iloc[0]
    third = epsilons.iloc[0]
    titles = [
        f"$m={first.sparsity}$, $|X|={first.universe}$",
        f"$n=10^{round(math.log10(second.n))}$",
        "the same $n$",
        rf"$m={third.sparsity}$, $n=10^{{{round(math.log10(third.n))}}}$: queries far off",
    ]
    labels = ["records $n$", "sparsity $m$", "universe $|X|$", r"$\varepsilon$"]
    ylabel = f"largest error of {QUERIES} answers"
    figure, panels = ex.panels((7.2, 6.0), titles, labels, ylabel, sharey=True, rows=2)
    columns = {Panel.RECORDS: "n", Panel.SPARSITY: "sparsity", Panel.UNIVERSE: "universe"}
    draw_epsilons(panels[3], epsilons, LOOKS[Rule.SPARSE], "sparse")
    ex.log_axes(panels[3])
    for axes, (panel, column) in zip(panels[:3], columns.items(), strict=True):
        rows = table[table.panel == panel]
        for rule in rows.rule.unique():
            curve(axes, rows[rows.rule == rule], column, Rule(rule))
        ex.log_axes(axes)
    for axes in panels[1:3]:
        ex.label_curves(axes)
    ex.label_curves(panels[3], ["exact"])
    result = "Sparse weights answer with an error that does not depend on the universe"
    settings = r"Multiplicative weights, sparse or dense. Dashed: guarantees $3\alpha_0$."
    return ex.headline(figure, result, settings)


def curve(axes: ex.Axes, table: pd.DataFrame, column: str, rule: Rule) -> None:
    """Root mean square of the largest errors, with the guarantee."""
    promised = table.groupby(column).guaranteed.first()
    ex.draw_theory(axes, promised.index, promised, LOOKS[rule].colour, "_")
    name = "sparse" if rule is Rule.SPARSE else "dense"
    ex.draw_measured(axes, ex.pooled_along(table, column), LOOKS[rule], name)


def grid(
    ns: tuple[int, ...],
    sparsities: tuple[int, ...],
    universes: tuple[int, ...],
    epsilons: tuple[float, ...],
    runs: int,
) -> tuple[Config, ...]:
    """The four panels, and queries at a set distance from the hypothesis."""
    return (
        *ex.product(Config, Panel.RECORDS, Rule, ns, 4, 1024, 0.0, runs),
        *ex.product(Config, Panel.SPARSITY, Rule.SPARSE, 10**7, sparsities, 4096, 0.0, runs),
        *ex.product(Config, Panel.UNIVERSE, Rule, 10**7, 4, universes, 0.0, runs),
        *(
            Config(Panel.GAPS, Rule.SPARSE, n, m, 0, gap, runs)
            for n, m in ((10**7, 1), (10**7, 64), (10**9, 1))
            for gap in (NEAR, LEFT, FAR)
        ),
        *ex.product(Config, Panel.EPSILON, Rule.SPARSE, 10**9, 1, 0, FAR, 10 * runs, epsilons),
    )


QUICK = ex.Sweep(grid((10**6, 10**7, 10**8), (1, 10, 100), (64, 1024), (0.01, 0.1, 1.0), runs=5))
FULL = ex.Sweep(
    grid(
        (10**6, 10**7, 10**8, 10**9, 10**10),
        (1, 4, 16, 64, 256, 1024),
        (64, 256, 1024, 4096, 16_384),
        (0.01, 0.03, 0.1, 0.3, 1.0),
        runs=20,
    ),
    trials=2,
)
