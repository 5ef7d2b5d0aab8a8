"""Number of updates against accuracy for the four update rules, on streams made to force updates.

Paper: Blum-Roth 2011, "Fast private data release algorithms for sparse queries", Theorem 3.5;
Dwork-Roth 2014, Theorems 4.10, 5.8 and 5.11; formula sheet BR-SMW, BR-MW, BR-FK, BR-MED.

Claim: however queries are chosen, a rule run at accuracy alpha is updated at most B(alpha) times
by queries on which its hypothesis is off by alpha or more, with answers within alpha of the truth.
The adversary here sees data and hypothesis, looks for the query with the largest gap among random
ones and those adapted to the hypothesis, and gives the worst answer that is allowed.

Run time on one core: quick 1 s, full 1 minute.
"""

from __future__ import annotations

import enum
import math
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
from matplotlib.figure import Figure

from experiments.engine.cells import Row, Sweep
from experiments.engine.claims import Claim
from experiments.engine.drawing import Look, draw_points, draw_theory, log_axes, shared_legend
from geomdp.mechanisms.interactive.updates import (
    Median,
    MultiplicativeWeights,
    Perceptron,
    SparseMultiplicativeWeights,
    net,
    net_size,
)
from geomdp.workloads import DenseQuery, SparseQuery

#: Universe of the dense rules.
SIZE = 32
#: Sparsity of the sparse rule's queries, and elements that carry data.
SPARSITY, ATOMS = 4, 32
#: Universe of the median rule, whose candidates are enumerated.
SMALL = 4
#: Candidate queries the adversary compares each time, and failures after which it gives up.
CANDIDATES, PATIENCE = 8, 30


class Rule(enum.StrEnum):
    """Update rules."""

    DENSE = "multiplicative weights"
    SPARSE = "sparse multiplicative weights"
    PERCEPTRON = "perceptron"
    MEDIAN = "median"


@dataclass(frozen=True)
class Config:
    """One point of the figure."""

    rule: Rule  # Update rule
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
            return Median(net(SMALL, net_size(2**SMALL, alpha / 2)))


class DenseStream:
    """Queries on a finite universe, given by their values on all elements.

    Parameters
    ----------
    size : int
        Universe size.
    rng : Generator
        Draws data far from uniform, and queries.
    """

    def __init__(self, size: int, rng: np.random.Generator) -> None:
        self.data = rng.dirichlet(np.full(size, 0.1))
        self._rng = rng
        self._last = np.zeros(size)

    def candidates(self, hypothesis: Any) -> list[DenseQuery]:
        """Random 0/1 queries and, where the hypothesis shows itself, threshold queries on it."""
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
    """Sparse queries on an open universe.

    Parameters
    ----------
    rng : Generator
        Draws data on a few atoms, and queries on atoms and on elements without data.
    """

    def __init__(self, rng: np.random.Generator) -> None:
        weights = np.sort(rng.dirichlet(np.full(ATOMS, 0.1)))[::-1]
        self.data = {f"atom {i}": float(weight) for i, weight in enumerate(weights)}
        self._rng = rng
        self._fresh = 0

    def candidates(self, hypothesis: Any) -> list[SparseQuery]:
        """Elements on which data and hypothesis differ most, either way, and random ones."""
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


def count_updates(config: Config, rng: np.random.Generator) -> int:
    """Updates that the adversary forces on one data set."""
    hypothesis = build(config.rule, config.alpha).start(config.alpha)
    sizes = {Rule.MEDIAN: SMALL}
    stream: Any = (
        SparseStream(rng)
        if config.rule is Rule.SPARSE
        else DenseStream(sizes.get(config.rule, SIZE), rng)
    )
    updates, idle = 0, 0
    while idle < PATIENCE:
        queries = stream.candidates(hypothesis)
        gaps = np.array([stream.truth(q) - hypothesis.evaluate(q) for q in queries])
        # Of all gaps that count as an update, the smallest makes the rule learn least.
        allowed = np.flatnonzero(np.abs(gaps) >= config.alpha)
        if len(allowed) == 0:
            idle += 1
            continue
        idle = 0
        chosen = allowed[np.argmin(np.abs(gaps[allowed]))]
        answer = stream.truth(queries[chosen]) - math.copysign(0.999 * config.alpha, gaps[chosen])
        hypothesis.update(queries[chosen], answer)
        updates += 1
    return updates


def compute(config: Config, rng: np.random.Generator) -> list[Row]:
    """Mean and largest number of updates over the streams of one trial, beside the bound."""
    counts = [count_updates(config, child) for child in rng.spawn(config.streams)]
    bound = build(config.rule, config.alpha).bound(config.alpha)
    return [{"updates": np.mean(counts), "largest": max(counts), "bound": bound}]


def claims(table: pd.DataFrame) -> list[Claim]:
    """No stream exceeds its bound, and every rule is really updated."""
    found = []
    sources = {
        Rule.DENSE: "BR-MW",
        Rule.SPARSE: "BR-SMW",
        Rule.PERCEPTRON: "BR-FK",
        Rule.MEDIAN: "BR-MED",
    }
    for rule, source in sources.items():
        rows = table[table.rule == rule]
        share = rows.largest / np.floor(rows.bound)
        worst = rows.loc[share.idxmax()]
        found.append(
            Claim(
                f"{rule}: updates stay within the bound",
                bool((rows.largest <= np.floor(rows.bound)).all() and (rows.largest > 0).all()),
                f"at most {share.max():.3f} of it (alpha = {worst.alpha:g}: {worst.largest:.0f})",
                f"at most 1 (alpha = {worst.alpha:g}: {math.floor(worst.bound)})",
                source,
            )
        )
    return found


LOOKS = {
    Rule.DENSE: Look("C0", "o"),
    Rule.SPARSE: Look("C3", "D"),
    Rule.PERCEPTRON: Look("C2", "v", filled=False),
    Rule.MEDIAN: Look("C1", "s"),
}
BOUNDS = {
    Rule.DENSE: rf"$4\ln M/\alpha^2$, $M={SIZE}$",
    Rule.SPARSE: rf"$4(\ln s+1)/\alpha^2$, $m={SPARSITY}$",
    Rule.PERCEPTRON: rf"$M/\alpha^2$, $M={SIZE}$",
    Rule.MEDIAN: rf"$\log_2|\mathcal{{N}}|$, $M={SMALL}$",
}


def plot(table: pd.DataFrame) -> Figure:
    """Largest number of updates against accuracy for each rule, below its bound."""
    figure = Figure(figsize=(7.2, 5.6))
    panels = figure.subplots(2, 2, sharex=True).ravel()
    ticks = np.unique(table.alpha)[::2]
    for axes, (rule, look), letter in zip(panels, LOOKS.items(), "abcd", strict=True):
        rows = table[table.rule == rule].groupby("alpha")
        alpha: npt.NDArray[np.float64] = np.array(list(rows.groups), dtype=float)
        draw_theory(axes, alpha, np.floor(rows.bound.first()), look.colour, BOUNDS[rule])
        mean, most = rows.updates.mean(), rows.largest.max()
        draw_points(axes, alpha, most, look, rule, band=(mean, most))
        log_axes(axes)
        axes.set_xticks(ticks, [f"{x:g}" for x in ticks])
        axes.set_title(f"({letter}) {rule}")
    for axes in panels[2:]:
        axes.set_xlabel(r"accuracy $\alpha$")
    for axes in panels[::2]:
        axes.set_ylabel("updates")
    shared_legend(
        figure,
        panels,
        {"largest of all streams (band: to the mean)": [*LOOKS], "bound": [*BOUNDS.values()]},
    )
    return figure


def grid(alphas: tuple[float, ...], smallest_net: float, streams: int) -> tuple[Config, ...]:
    """All rules at all accuracies, the median rule from the one where its net is small enough."""
    return tuple(
        Config(rule, alpha, streams)
        for rule in Rule
        for alpha in alphas
        if rule is not Rule.MEDIAN or alpha >= smallest_net
    )


QUICK = Sweep(grid((0.14, 0.2, 0.4), smallest_net=0.4, streams=2), trials=1, seed=0)
FULL = Sweep(
    grid((0.05, 0.07, 0.1, 0.14, 0.2, 0.28, 0.4), smallest_net=0.2, streams=5), trials=2, seed=0
)
