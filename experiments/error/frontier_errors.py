"""Errors for `accuracy_frontier` (predictions, lower bounds, estimates by chains), and goals."""

from __future__ import annotations

import enum
from dataclasses import dataclass

import numpy as np
import pandas as pd

from experiments.engine.cells import Row
from experiments.engine.goals import Aim, Goal
from experiments.engine.statistics import MeanSquare, pooled_by
from experiments.error.frontier_walks import (
    Framed,
    cut_tables,
    difference,
    polytope,
    squares_of_chains,
)
from experiments.shared.accuracy_lines import PRIVACY, Method, excluded_error, for_records
from experiments.shared.workloads import Line, line_workload
from geomdp.bounds import RMS, additive_noise_error
from geomdp.geometry.sampling import bulk_ess, split_r_hat
from geomdp.workloads import MarginalTables

RECORDS = 5000
#: Number of public draws from which a prediction without a closed form is estimated.
PUBLIC_DRAWS = 1024


class Source(enum.StrEnum):
    """Sources of errors, in the order of the figure: mechanisms, heuristic noise, lower bounds."""

    MATRIX = "matrix"
    HIERARCHICAL = "K-norm on levels"
    CONE = "cone"
    TIGHT_CONE = "cone, cut"
    PAIRED = "pairs in the polytope"
    CUT = "pairs, all cuts"
    KNORM = "K-norm, difference body"
    ADDITIVE = "excluded for additive noise"
    ALL = "excluded for all mechanisms"


EXACT = {
    Source.MATRIX: Method.MATRIX,
    Source.HIERARCHICAL: Method.HIERARCHICAL,
    Source.CONE: Method.CONE,
    Source.TIGHT_CONE: Method.TIGHT_CONE,
}
OURS = (Source.HIERARCHICAL, Source.CONE, Source.TIGHT_CONE)
HEURISTIC = (Source.PAIRED, Source.CUT, Source.KNORM)
EXCLUDED = (Source.ADDITIVE, Source.ALL)


@dataclass(frozen=True)
class Config:
    """One source of an error, on one workload (a line of the accuracy tables)."""

    line: Line  # Workload
    source: Source  # Mechanism, heuristic noise or bound
    #: Number of independent chains, and number of steps of each chain. The first quarter of the
    #: steps is burn-in. Both numbers are 0 where no chain runs.
    chains: int = 0
    steps: int = 0


def excluded(config: Config) -> Row:
    """The square of a lower bound on the error of all mechanisms, or of all additive noise."""
    if config.source is Source.ALL:
        error = excluded_error(config.line, RECORDS)
    else:
        Q, epsilon = line_workload(config.line), PRIVACY.epsilon
        error = additive_noise_error(Q, RECORDS, epsilon=epsilon, metric=RMS())
    return {**MeanSquare(error**2, 0.0, PUBLIC_DRAWS).columns(), "known": "bound"}


def predicted(line: Line, method: Method) -> Row:
    """The prediction of a mechanism, exact or from public draws."""
    M = for_records(line, method, RECORDS)
    error = M.predicted_rmse
    square = MeanSquare(error.value**2, 2 * error.value * error.stderr, PUBLIC_DRAWS)
    return {**square.columns(), "known": str(M.guarantee.sampler)}


def walked(config: Config, rng: np.random.Generator) -> Row:
    """Estimate by Markov chains the error of noise that is made from uniform points of a body.

    Let K be a body of dimension r with centroid 0. The noise on sums of answers is Z = R U with U
    uniform in K - K and R ~ Gamma(r + 1, 1 / epsilon). For pairs (`PAIRED` and `CUT`) it is
    Z = R (U_1 - U_2) with independent U_i uniform in K and R ~ Gamma(2 r + 1, 1 / epsilon).
    """
    framed, Q = body_of(config), line_workload(config.line)
    r = framed.body.dimension
    pairs = config.source is not Source.KNORM
    radius = 2 * (2 * r + 1) * (2 * r + 2) if pairs else (r + 1) * (r + 2)
    scale = radius / (Q.n_queries * (RECORDS * PRIVACY.epsilon) ** 2)
    squares = scale * squares_of_chains(framed, config.chains, config.steps, rng)
    return {
        **MeanSquare.of(squares.mean(axis=1)).columns(),
        "known": "heuristic",
        "split_r_hat": float(split_r_hat(squares[..., None])[0]),
        "bulk_ess": float(bulk_ess(squares[..., None])[0]),
    }


def body_of(config: Config) -> Framed:
    """The body in which the chains of a source walk."""
    Q = line_workload(config.line)
    if config.source is Source.CUT:
        assert isinstance(Q, MarginalTables)
        return cut_tables(Q)
    return polytope(Q) if config.source is Source.PAIRED else difference(polytope(Q))


#: Goals for the error of a mechanism with an exact sampler, divided by the error of the peer (the
#: matrix mechanism).
GOALS = {Line.BINARY: 0.5, Line.CATEGORICAL: 0.7, Line.THREE_WAY: 0.7}


def ratios(table: pd.DataFrame) -> dict[tuple[str, str], MeanSquare]:
    """Mean squares divided by the exact mean square of the peer, by line and source."""
    means = pooled_by(table, ["line", "source"])
    found = {}
    for (line, source), mean in means.items():
        found[line, source] = mean.over(means[line, Source.MATRIX].root)
    return found


def least(
    found: dict[tuple[str, str], MeanSquare], sources: tuple[Source, ...]
) -> dict[str, MeanSquare]:
    """The least error among `sources` on each line."""
    best: dict[str, MeanSquare] = {}
    for (line, source), mean in found.items():
        if source in sources and (line not in best or mean.value < best[line].value):
            best[line] = mean
    return best


#: Why the heuristic noise with the least error cannot be drawn exactly.
CAUSES = {
    Source.PAIRED: "uniform points of the polytope of all tables have no exact sampler: its facets "
    "cannot be listed, and rejection from a body with a sampler keeps almost nothing in so many "
    "dimensions",
    Source.CUT: "uniform points of the moment body with all cuts have no exact sampler: rejection "
    "keeps almost none of the points of the moment body, and `TightCone`, whose cut keeps a "
    "hundredth of the volume of the moment body, gains only part of what all cuts would gain",
    Source.KNORM: "uniform points of K - K have no exact sampler: it has too many facets to list, "
    "and rejection from a body with a sampler keeps almost nothing in so many dimensions",
}


def goals_of(table: pd.DataFrame) -> list[Goal]:
    """One goal per line: our least error by an exact sampler. Its reason has the chains' error."""
    found, wanted = ratios(table), []
    for line in dict.fromkeys(table.line):
        ours = best_source(found, line, OURS)
        chains = best_source(found, line, HEURISTIC)
        wanted.append(
            Goal(
                f"{line}: error of exact samplers divided by that of the peer",
                found[line, ours].root,
                GOALS[Line(line)],
                Aim.AT_MOST,
                f"{CAUSES[chains]}; chains estimate that noise from such points would err "
                f"{found[line, chains].root:.3f} times as much as the peer",
                f"{ours}; no mechanism errs less than {found[line, Source.ALL].root:.3f} times as "
                "much as the peer",
            )
        )
    return wanted


def best_source(
    found: dict[tuple[str, str], MeanSquare], line: str, sources: tuple[Source, ...]
) -> Source:
    """The source with the least error on a line."""
    return min(
        (source for source in sources if (line, source) in found),
        key=lambda source: found[line, source].value,
    )
