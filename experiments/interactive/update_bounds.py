"""Number of updates against accuracy for the four update rules, on streams made to force updates.

Paper: Blum-Roth 2011, "Fast private data release algorithms for sparse queries", Theorem 3.5;
Dwork-Roth 2014, Theorems 4.10, 5.8 and 5.11; formula sheet BR-SMW, BR-MW, BR-FK, BR-MED.

Claim: let an update be a query on which the hypothesis is off by alpha or more, with an answer
within alpha of the truth. However queries are chosen, a rule run at accuracy alpha is updated at
most B(alpha) times, where B is the bound for this rule. The adversary here sees the data and the
hypothesis. It compares random queries and, except for the median rule, queries adapted to the
hypothesis. Among those that allow an update, it takes the query on which the hypothesis is off
least, with the worst allowed answer.

Other streams, each built for one rule, show how much of the bounds is needed. The median rule makes
all updates that its bound allows, the perceptron more than 0.8 of them, and both kinds of
multiplicative weights between 0.4 and 8/15. The proof for multiplicative weights says that the
relative entropy falls by at least alpha^2 / 4 with each update. By Hoeffding's lemma it falls by at
least alpha^2 / 2 - alpha^2 / 32, so no stream forces more than 8/15 times B(alpha) updates.

Run time on one core: quick 2 s, full 1 minute.
"""

import enum
import math
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
import pandas as pd

import experiments.engine.tools as ex
from geomdp.mechanisms.interactive.updates import (
    Median,
    MultiplicativeWeights,
    Perceptron,
    SparseMultiplicativeWeights,
    net,
    net_fineness,
    net_size,
)
from geomdp.workloads import DenseQuery, SparseQuery

#: Sparsity of sparse queries, and number of elements that carry data.
SPARSITY, ATOMS = 4, 32
#: Number of random queries that the adversary compares each time, and number of failures in a row
#: after which it gives up.
CANDIDATES, PATIENCE = 8, 30


class DenseStream:
    """Queries on a finite universe, given by their values on all elements."""

    def __init__(self, size: int, rng: np.random.Generator) -> None:
        self.data = rng.dirichlet(np.full(size, 0.1))
        self._rng = rng

    def candidates(self, hypothesis: Any) -> list[DenseQuery]:
        """Random 0/1 queries, and queries adapted to the hypothesis if it is given by a vector."""
        queries = [self._rng.integers(2, size=len(self.data)) for _ in range(CANDIDATES)]
        current = getattr(hypothesis, "distribution", getattr(hypothesis, "vector", None))
        if current is not None:
            heavier = self.data > current
            for share in (0.0, 0.2):
                flips = self._rng.random(len(self.data)) < share
                queries += [heavier ^ flips, ~heavier ^ flips]
        return [DenseQuery(np.asarray(values, dtype=float)) for values in queries]

    def truth(self, query: DenseQuery) -> float:
        """Mean of the query under the data."""
        return float(query.values @ self.data)


class SparseStream:
    """Sparse queries on a universe whose elements are not listed in advance."""

    def __init__(self, rng: np.random.Generator) -> None:
        weights = np.sort(rng.dirichlet(np.full(ATOMS, 0.1)))[::-1]
        self.data = {f"atom {i}": float(weight) for i, weight in enumerate(weights)}
        self._rng = rng
        self._fresh = 0

    def candidates(self, hypothesis: Any) -> list[SparseQuery]:
        """Random queries, and queries on elements that the hypothesis over- or underrates most."""
        names = list(self.data)
        gaps = np.array([self.data[x] - hypothesis.weight(x) for x in names])
        order = np.argsort(gaps)
        supports = [[names[i] for i in order[-SPARSITY:]], [names[i] for i in order[:SPARSITY]]]
        for _ in range(CANDIDATES):
            supports.append([names[i] for i in self._rng.choice(ATOMS, SPARSITY - 1, False)])
            self._fresh += 1
            supports[-1].append(f"no data {self._fresh}")
        return [SparseQuery.counting(support) for support in supports]

    def truth(self, query: SparseQuery) -> float:
        """Mean of the query under the data."""
        return math.fsum(self.data.get(x, 0.0) for x in query.support)


def count_updates(hypothesis: Any, stream: DenseStream | SparseStream, alpha: float) -> int:
    """Number of updates that the adversary forces with the data and queries of a stream."""
    updates, idle = 0, 0
    while idle < PATIENCE:
        queries: Any = stream.candidates(hypothesis)
        gaps = np.array([stream.truth(q) - hypothesis.evaluate(q) for q in queries])
        # The rule learns least from the smallest gap that is large enough for an update.
        allowed = np.flatnonzero(np.abs(gaps) >= alpha)
        if len(allowed) == 0:
            idle += 1
            continue
        idle = 0
        chosen = allowed[np.argmin(np.abs(gaps[allowed]))]
        answer = stream.truth(queries[chosen]) - math.copysign(0.999 * alpha, gaps[chosen])
        hypothesis.update(queries[chosen], answer)
        updates += 1
    return updates


SLIGHTLY = 1 + 1e-6
#: Error of the answers that are given to a rule, in units of alpha; it must be below 1.
ANSWER_ERROR = 0.999


def multiplicative_weights(hypothesis: Any, alpha: float) -> int:
    """Number of updates of multiplicative weights on a finite universe.

    The relative entropy of the data to the hypothesis starts at ln M for M elements. An update by a
    query f with gap alpha lowers this entropy by eta alpha - ln E e^(eta (f - E f)), where eta is
    the learning rate and E the mean over the weights. By Hoeffding's lemma this decrease is at
    least eta alpha - eta^2 / 8. The decrease is hardly larger than this if f is 0 on elements with
    half of the total weight and 1 on the others.
    """
    updates = 0
    while True:
        weights = hypothesis.distribution
        rest = 1 - weights[0]
        if rest < alpha * SLIGHTLY:
            return updates
        # The query is 1 on the lightest other elements, of total weight at most 1/2.
        order = 1 + np.argsort(weights[1:], kind="stable")
        room = min(0.5, rest - alpha * SLIGHTLY)
        before = np.concatenate([[0.0], np.cumsum(weights[order])[:-1]])
        values = np.zeros(len(weights))
        values[order] = np.clip((room - before) / weights[order], 0.0, 1.0)
        values[0] = min((alpha * SLIGHTLY + values @ weights) / rest, 1.0)
        hypothesis.update(DenseQuery(values), values[0] - ANSWER_ERROR * alpha)
        updates += 1


def sparse_weights(hypothesis: Any, alpha: float) -> int:
    """Number of updates of sparse weights by queries on element 0 alone.

    The weight of this element starts at 1/s, because the rule starts with equal weights on s slots.
    """
    updates = 0
    while True:
        value = alpha * SLIGHTLY / (1 - hypothesis.weight(0))
        if value > 1:
            return updates
        hypothesis.update(SparseQuery([0], [value]), value - ANSWER_ERROR * alpha)
        updates += 1


def perceptron(hypothesis: Any, alpha: float) -> int:
    """Number of updates of the perceptron's vector x of M entries, which moves from 0 towards e_0.

    ||x - e_0||^2 starts at 1. An update by a query f with gap alpha lowers this squared distance by
    (2 alpha^2 / M) - (alpha / M)^2 ||f||^2. The least decrease is alpha^2 / M, for ||f||^2 = M.
    After the first update, two queries take turns: (c, 1, .., 1) raises the entries of x, and
    (0, 1, .., 1) lowers all entries but the first. The sum of all entries but the first goes from
    alpha / M to alpha and back. The number c is the least for which the gap is large enough for an
    update.
    """
    updates = 0
    while True:
        first, *others = hypothesis.vector.tolist()
        total, size = sum(others), 1 + len(others)
        if total >= alpha:
            value, other, answer = 0.0, 1.0, ANSWER_ERROR * alpha
        else:
            other = 1.0 if updates else SLIGHTLY / (size - 1)
            value = (alpha * SLIGHTLY + other * total) / (1 - first)
            if value > 1:
                return updates
            answer = value - ANSWER_ERROR * alpha
        hypothesis.update(DenseQuery(np.array([value, *[other] * (size - 1)])), answer)
        updates += 1


def halving_net(alpha: float) -> Median:
    """The median rule for the net of all data sets of floor(1 / alpha) records on two elements.

    The fineness of this net is below alpha.
    """
    records = int(1 / alpha)
    return Median(net(2, records), net_fineness(2, records, n_queries=1))


def median(hypothesis: Any, alpha: float) -> int:
    """Number of updates of `halving_net` by queries that ask for the share of element 1."""
    updates, query = 0, DenseQuery(np.array([0.0, 1.0]))
    while hypothesis.evaluate(query) >= alpha:
        hypothesis.update(query, ANSWER_ERROR * alpha)
        updates += 1
    return updates


#: Size of the universe of multiplicative weights and of the perceptron.
SIZE = 32
#: Size of the universe of the median rule, which enumerates its candidates.
SMALL = 4


class Rule(ex.Curve):
    """Update rules."""

    DENSE = "multiplicative weights", "C0", "o"
    SPARSE = "sparse multiplicative weights", "C5", "D"
    PERCEPTRON = "perceptron", "C2", "v", ex.HOLLOW
    MEDIAN = "median", "C4", "s"


class Stream(enum.StrEnum):
    """Source of the queries: the adversary, or the stream built for the rule."""

    ADVERSARY = "adversary"
    EXTREMAL = "extremal"


@dataclass(frozen=True)
class Config:
    rule: Rule  # Update rule
    stream: Stream  # Source of the queries
    alpha: float  # Accuracy
    streams: int  # Independent data sets and streams in one cell


@cache
def build(rule: Rule, alpha: float) -> Any:
    """The rule; the net of the median rule is an alpha/2-net for all 0/1 queries."""
    match rule:
        case Rule.DENSE:
            return MultiplicativeWeights(SIZE)
        case Rule.SPARSE:
            return SparseMultiplicativeWeights(SPARSITY)
        case Rule.PERCEPTRON:
            return Perceptron(SIZE)
        case Rule.MEDIAN:
            records = net_size(2**SMALL, alpha / 2)
            return Median(net(SMALL, records), net_fineness(SMALL, records, 2**SMALL))


EXTREMAL = {
    Rule.DENSE: multiplicative_weights,
    Rule.SPARSE: sparse_weights,
    Rule.PERCEPTRON: perceptron,
    Rule.MEDIAN: median,
}


def random_stream(rule: Rule, rng: np.random.Generator) -> DenseStream | SparseStream:
    """Data and queries for a rule."""
    if rule is Rule.SPARSE:
        return SparseStream(rng)
    return DenseStream(SMALL if rule is Rule.MEDIAN else SIZE, rng)


def extremal_rule(config: Config) -> Any:
    """The rule; the median rule has the net that its extremal stream halves."""
    if config.rule is Rule.MEDIAN:
        return halving_net(config.alpha)
    return build(config.rule, config.alpha)


def compute(config: Config, rng: np.random.Generator) -> ex.Row:
    """Mean and largest number of updates over the streams of one trial, and the bound."""
    if config.stream is Stream.EXTREMAL:
        rule = extremal_rule(config)
        counts = [EXTREMAL[config.rule](rule.start(config.alpha), config.alpha)]
    else:
        rule = build(config.rule, config.alpha)
        counts = [
            count_updates(rule.start(config.alpha), random_stream(config.rule, child), config.alpha)
            for child in rng.spawn(config.streams)
        ]
    bound = rule.bound(config.alpha)
    return {"updates": np.mean(counts), "largest": max(counts), "bound": bound}


SOURCES = {
    Rule.DENSE: "BR-MW",
    Rule.SPARSE: "BR-SMW",
    Rule.PERCEPTRON: "BR-FK",
    Rule.MEDIAN: "BR-MED",
}
#: Least and largest share of the bound that extremal streams reach. The largest shares are proved:
#: for both kinds of multiplicative weights, the bound assumes that an update lowers the relative
#: entropy by alpha^2 / 4. In fact an update lowers this entropy by at least
#: alpha^2 / 2 - alpha^2 / 32, and 1/4 is 8/15 of 1/2 - 1/32.
SHARES = {
    Rule.DENSE: (0.45, 8 / 15),
    Rule.SPARSE: (0.4, 8 / 15),
    Rule.PERCEPTRON: (0.8, 1.0),
    Rule.MEDIAN: (1.0, 1.0),
}


def claims(table: pd.DataFrame) -> ex.Claims:
    extremal = table[table.stream == Stream.EXTREMAL]
    yield from within_bounds(table)
    yield from (is_needed(extremal, rule) for rule in Rule)


def is_needed(table: pd.DataFrame, rule: Rule) -> ex.Claim:
    """The extremal stream forces a share of the allowed updates that lies between two limits."""
    rows = table[table.rule == rule]
    share = rows.largest / np.maximum(np.floor(rows.bound), 1)
    low, high = SHARES[rule]
    return ex.Claim(
        f"{rule}: an extremal stream forces the expected share of the bound",
        ex.Verdict(
            ((share >= low) & (share <= high)).all(),
            ex.position(share, low, high) if low < high else ex.NoLimit.EVERY_CASE,
        ),
        f"{share.min():.3f} to {share.max():.3f} at {len(rows)} accuracies",
        f"{low:.3f} to {high:.3f}" if low < high else f"{low:g}",
        SOURCES[rule],
    )


def within_bounds(table: pd.DataFrame) -> ex.Claims:
    """No stream exceeds its bound, and every point of the figure has at least one update."""
    for rule, source in SOURCES.items():
        rows = table[table.rule == rule]
        share = rows.largest / np.maximum(np.floor(rows.bound), 1)
        worst = rows.loc[share.idxmax()]
        yield ex.Claim(
            f"{rule}: updates stay within the bound",
            ex.Verdict(
                (rows.largest <= np.floor(rows.bound)).all() and (rows.largest > 0).all(),
                share.max(),
            ),
            f"at most {share.max():.3f} times the bound (updates at alpha = {worst.alpha:g}: "
            f"{worst.largest:.0f})",
            f"at most 1 times (bound at alpha = {worst.alpha:g}: {math.floor(worst.bound)})",
            source,
        )


LOOKS = Rule.looks()
#: Marker and label of the points of extremal streams. For the median rule, these streams use a net
#: of their own, so their bound has its own label, `NET`.
STAR, MOST = ex.Look("black", "*"), "extremal"
NET = r"$\log_2|\mathcal{N}|$," "\n2 elements"
BOUNDS = {
    Rule.DENSE: r"$4\ln M/\alpha^2$",
    Rule.SPARSE: r"$4(\ln s+1)/\alpha^2$",
    Rule.PERCEPTRON: r"$M/\alpha^2$",
    Rule.MEDIAN: r"$\log_2|\mathcal{N}|$",
}


def plot(table: pd.DataFrame) -> ex.Figure:
    figure, panels = ex.panels(
        (7.2, 5.6), LOOKS, r"accuracy $\alpha$", "updates", rows=2, sharex=True
    )
    ticks = np.unique(table[table.stream == Stream.ADVERSARY].alpha)[::2]
    for axes, (rule, look) in zip(panels, LOOKS.items(), strict=True):
        mine = table[table.rule == rule]
        rows = mine[mine.stream == Stream.ADVERSARY].groupby("alpha")
        alpha: ex.FloatArray = np.array(list(rows.groups), dtype=float)
        if rule is Rule.MEDIAN:
            ex.draw_theory(axes, alpha, np.floor(rows.bound.first()), look.colour, BOUNDS[rule])
        extremal = mine[mine.stream == Stream.EXTREMAL].sort_values("alpha")
        ex.draw_points(axes, extremal.alpha, extremal.largest, STAR, MOST, line="none")
        bound = extremal if rule is Rule.MEDIAN else mine.sort_values("alpha")
        label = NET if rule is Rule.MEDIAN else BOUNDS[rule]
        colour = STAR.colour if rule is Rule.MEDIAN else look.colour
        ex.draw_theory(axes, bound.alpha, np.floor(bound.bound), colour, label)
        mean, most = rows.updates.mean(), rows.largest.max()
        ex.draw_points(axes, alpha, most, look, "adversary", band=(mean, most))
        ex.log_axes(axes)
        ex.label_ticks(axes, ticks)
        ex.label_curves(axes)
    return ex.headline(
        figure,
        "However queries are chosen, the number of updates stays below the bound",
        rf"Largest of all streams (bands: to the mean), and streams made for the rule. $M={SIZE}$,"
        rf" median $M={SMALL}$.",
    )


def grid(
    alphas: tuple[float, ...], smallest_net: float, streams: int, halvings: tuple[int, ...]
) -> tuple[Config, ...]:
    """All rules at all accuracies, the median rule where its net is small enough."""
    pairs = [(rule, alpha) for rule in Rule for alpha in alphas if rule is not Rule.MEDIAN]
    medians = [(Rule.MEDIAN, alpha) for alpha in alphas if alpha >= smallest_net]
    # Data sets have s = 2^h - 2 records, and the last gap is 1 / s. This gap is large enough for an
    # update, because the accuracy is a little smaller.
    halved = [(Rule.MEDIAN, 0.999 / (2**h - 2)) for h in halvings]
    return (
        *(Config(rule, Stream.ADVERSARY, alpha, streams) for rule, alpha in (*pairs, *medians)),
        *(Config(rule, Stream.EXTREMAL, alpha, 1) for rule, alpha in (*pairs, *halved)),
    )


QUICK = ex.Sweep(grid((0.14, 0.2, 0.4), smallest_net=0.4, streams=2, halvings=(2, 3, 4)))
FULL = ex.Sweep(
    grid(
        (0.05, 0.07, 0.1, 0.14, 0.2, 0.28, 0.4), smallest_net=0.2, streams=5, halvings=(2, 3, 4, 5)
    ),
    trials=2,
)
