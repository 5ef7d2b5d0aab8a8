"""Marginal tables: errors of exact mechanisms and of heuristic noise, beside lower bounds.

The mechanisms add noise that does not depend on the records, at n = 5000 and 1-DP under
replace-one. The workloads are three lines (kinds of tables) of the script `accuracy_table`. The
peer is the matrix mechanism with Laplace noise. Exact samplers are known for cone noise (`Cone`,
`TightCone`) and for K-norm noise on levels (`Hierarchical`). Let K be the convex hull of the tables
of single records. No practical exact sampler is known for uniform points of K or of K - K. Two
kinds of noise would need such a sampler: K-norm noise of K - K, and the difference of two points of
K times one random radius (`PairedNoise`). Hit-and-run chains estimate the errors of these two
kinds. The chains are heuristic, and nothing is released with them. For columns of more than two
levels, K has too many vertices for chains. The moment body, cut by all cell and triangle
inequalities, contains K. It then takes the place of K, and K - K is left out.

Claims (formula sheet X-LKJ, X-CONE, JL-L14, JL-KN): on every line some exact mechanism is predicted
to err less than the peer. The least heuristic error is, up to chance, no larger than the least
error of the exact mechanisms. No error is below the lower bounds from orthogonal lines, one for all
mechanisms and one for noise that does not depend on the records. On 3-way tables even the heuristic
noise errs more than the goal, so an exact sampler for these bodies would not reach the goal. On
2-way tables of binary columns K-norm noise of K - K would reach the goal. The goals ask for a
mechanism with an exact sampler that errs at most 0.5 times as much as the peer on 2-way tables of
binary columns, and at most 0.7 times as much on the other lines. All goals are still open.

Intervals of heuristic errors are Student t intervals from the means of independent chains, so they
do not assume that the steps of one chain are independent. Split R-hat and effective sample size are
computed from the squared error. They can refute convergence but not prove it.

Run time on one core: quick 6 s, full 2 minutes.
"""

import enum
import itertools
import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt
import pandas as pd

import experiments.engine.tools as ex
import geomdp as gd
from experiments.shared.accuracy_lines import PRIVACY, Method, excluded_error, for_records
from experiments.shared.workloads import Line, line_workload
from geomdp.bounds import RMS, additive_noise_error
from geomdp.geometry.sampling import HitAndRun, bulk_ess, run_chains, split_r_hat
from geomdp.workloads import MarginalTables, Workload, explicit_answers

#: Directions have standard deviation v^(1/2 + LEAN) along an axis of variance v. The chains
#: therefore move most along the axes that contribute most to the error. For 3-way tables and the
#: body K - K, LEAN = 0.5 multiplied the effective number of draws by 2.7.
LEAN = 0.5
#: Eigenvalues below this share of the largest eigenvalue count as rounding errors of 0.
FLAT = 1e-9
#: Share of a chord that is used, so that rounding puts no point of a chain outside the body.
INSIDE = 1 - 1e-9


@dataclass(frozen=True)
class Framed:
    """A body with centroid 0, in coordinates in which chains draw isotropic directions."""

    body: gd.bodies.Body  # A full-dimensional body in R^r with the method `chord`
    weights: ex.FloatArray  # Weights (r,): answers at z have squared error sum_j weights_j z_j^2

    def squares(self, points: ex.FloatArray) -> ex.FloatArray:
        """Squared length of the answers at each point; the last axis of `points` has length r."""
        return np.asarray(points**2 @ self.weights)


def polytope(workload: Workload) -> Framed:
    """conv{Q(x)}, moved so that the mean of all Q(x) is 0."""
    answers = explicit_answers(workload)
    answers -= answers.mean(axis=0)
    variances, axes = np.linalg.eigh(answers.T @ answers / len(answers))
    kept = variances > FLAT * variances[-1]
    variances = variances[kept]
    scales = variances ** (0.5 + LEAN)
    return Framed(gd.bodies.VPolytope(answers @ axes[:, kept] / scales), scales**2)


class CutTables(gd.bodies.Body):
    """The body `TableMoments`, cut by all cell and triangle inequalities, with a `chord` method.

    Coordinates are those of `TableMoments` divided by `scales`.
    """

    def __init__(self, levels: tuple[int, ...]) -> None:
        inner = gd.bodies.TableMoments(levels)
        self.columns = np.repeat(np.arange(len(levels)), levels)
        self.centre = inner.tables(np.zeros((1, inner.dimension)))[0]
        moves = inner.tables(np.eye(inner.dimension)) - self.centre
        pairs = self.columns[:, None] < self.columns
        # Different coordinates move the answers in orthogonal directions, so the squared error has
        # no cross terms.
        lengths = (moves[:, pairs] ** 2).sum(axis=1)
        deviations = np.sqrt(inner.entry_variances())
        self.scales = deviations * (lengths * deviations**2) ** LEAN
        self.moves = moves * self.scales[:, None, None]
        self.weights = lengths * self.scales**2

    @property
    def dimension(self) -> int:
        """Number r of coordinates."""
        return len(self.moves)

    @cached_property
    def _spectral(self) -> ex.FloatArray:
        """Change of the moment matrix along each coordinate, in a frame where the centre is I."""
        values, vectors = np.linalg.eigh(self.centre)
        kept = values > FLAT * values[-1]
        frame = vectors[:, kept] / np.sqrt(values[kept])
        return np.asarray(frame.T @ self.moves @ frame)

    @cached_property
    def _rows(self) -> tuple[ex.FloatArray, ex.FloatArray]:
        """Slopes, and values at the centre, of the linear functions that must stay >= 0."""
        both = np.concatenate([self.centre[None], self.moves])
        constant = np.eye(len(both))[0]
        found = [both[:, a, b] for a, b in zip(*self._pairs, strict=True)]
        for a, b, c in itertools.combinations(self._events, 3):
            if len({self.columns[a], self.columns[b], self.columns[c]}) == 3:
                p, q, r = both[:, a, a], both[:, b, b], both[:, c, c]
                s, t, u = both[:, a, b], both[:, a, c], both[:, b, c]
                found.append(constant - p - q - r + s + t + u)
                found += [p - s - t + u, q - s - u + t, r - t - u + s]
        rows = np.array(found)
        return np.ascontiguousarray(rows[:, 1:]), rows[:, 0]

    @property
    def _pairs(self) -> tuple[npt.NDArray[np.intp], ...]:
        """Row and column numbers of the matrix entries that are cells of two-way tables."""
        return np.nonzero(self.columns[:, None] < self.columns)

    @property
    def _events(self) -> list[int]:
        """Levels that triangle inequalities use: of a column with two levels, only the first."""
        firsts = np.flatnonzero(np.diff(self.columns, prepend=-1))
        counts = np.bincount(self.columns)[self.columns]
        return [a for a in range(len(counts)) if counts[a] > 2 or a in firsts]

    def chord(
        self, points: ex.FloatArray, directions: ex.FloatArray
    ) -> tuple[ex.FloatArray, ex.FloatArray]:
        """Ends of chords, at which the matrix becomes singular or one of `_rows` becomes 0."""
        slopes, offsets = self._rows
        room, ways = points @ slopes.T + offsets, directions @ slopes.T
        # At the end t of the chord, a row or an eigenvalue becomes 0. 1 / t is the largest rate at
        # which one of them falls, relative to its present value.
        with np.errstate(divide="ignore"):
            rates = ways / room
        flat = self._spectral.reshape(self.dimension, -1)
        shape = (len(points), *self._spectral.shape[1:])
        matrices = np.eye(shape[1]) + (points @ flat).reshape(shape)
        inverse = np.linalg.inv(np.linalg.cholesky(matrices))
        turned = inverse @ (directions @ flat).reshape(shape) @ np.swapaxes(inverse, 1, 2)
        values = np.linalg.eigvalsh(turned)
        high = 1 / np.maximum(-rates.min(axis=1), -values[:, 0])
        low = -1 / np.maximum(rates.max(axis=1), values[:, -1])
        return low * INSIDE, high * INSIDE

    def radius(self) -> float:
        """A bound on the radius: the radius of the uncut body divided by the least scale."""
        levels = tuple(np.bincount(self.columns).tolist())
        return gd.bodies.TableMoments(levels).radius() / float(self.scales.min())


def squares_of_chains(
    framed: Framed, chains: int, steps: int, rng: np.random.Generator
) -> ex.FloatArray:
    """Squared lengths (chains, draws) of answers, after a quarter of the steps as burn-in.

    Each chain starts on the ray from 0 in a random normal direction. Along an axis of variance v,
    the variance of the direction is v (without `LEAN`). The distance of the start from 0 has the
    distribution that uniform points of the body have on this ray.
    """
    r = framed.body.dimension
    ways = rng.standard_normal((chains, r)) / np.sqrt(framed.weights) ** (LEAN / (0.5 + LEAN))
    _, ends = framed.body.chord(np.zeros_like(ways), ways)
    start = ways * (ends * rng.random(chains) ** (1 / r))[:, None]
    burn_in = steps // 4
    walked = run_chains(
        HitAndRun(), framed.body, start, rng, draws=steps - burn_in, burn_in=burn_in
    )
    return framed.squares(walked.draws)


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


def excluded(config: Config) -> ex.Row:
    """The square of a lower bound on the error of all mechanisms, or of all additive noise."""
    if config.source is Source.ALL:
        error = excluded_error(config.line, RECORDS)
    else:
        Q, epsilon = line_workload(config.line), PRIVACY.epsilon
        error = additive_noise_error(Q, RECORDS, epsilon=epsilon, metric=RMS())
    return {**ex.MeanSquare(error**2, 0.0, PUBLIC_DRAWS).columns(), "known": "bound"}


def predicted(line: Line, method: Method) -> ex.Row:
    """The prediction of a mechanism, exact or from public draws."""
    M = for_records(line, method, RECORDS)
    error = M.predicted_rmse
    square = ex.MeanSquare(error.value**2, 2 * error.value * error.stderr, PUBLIC_DRAWS)
    return {**square.columns(), "known": str(M.guarantee.sampler)}


def walked(config: Config, rng: np.random.Generator) -> ex.Row:
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
        **ex.MeanSquare.of(squares.mean(axis=1)).columns(),
        "known": "heuristic",
        "split_r_hat": float(split_r_hat(squares[..., None])[0]),
        "bulk_ess": float(bulk_ess(squares[..., None])[0]),
    }


def body_of(config: Config) -> Framed:
    """The body in which the chains of a source walk."""
    Q = line_workload(config.line)
    if config.source is Source.CUT:
        assert isinstance(Q, MarginalTables)
        body = CutTables(Q.levels)
        return Framed(body, body.weights)
    framed = polytope(Q)
    if config.source is Source.PAIRED:
        return framed
    return Framed(gd.bodies.Difference(framed.body), framed.weights)


#: Goals for the error of a mechanism with an exact sampler, divided by the error of the peer (the
#: matrix mechanism).
GOALS = {Line.BINARY: 0.5, Line.CATEGORICAL: 0.7, Line.THREE_WAY: 0.7}


def ratios(table: pd.DataFrame) -> dict[tuple[str, str], ex.MeanSquare]:
    """Mean squares divided by the exact mean square of the peer, by line and source."""
    means = ex.pooled_by(table, ["line", "source"])
    return {
        (line, *rest): mean.over(means[line, Source.MATRIX].root)
        for (line, *rest), mean in means.items()
    }


def least(
    found: dict[tuple[str, str], ex.MeanSquare], sources: tuple[Source, ...]
) -> dict[str, ex.MeanSquare]:
    """The least error among `sources` on each line."""
    lines = dict.fromkeys(line for line, _ in found)
    return {line: found[line, best_source(found, line, sources)] for line in lines}


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


def goals(table: pd.DataFrame) -> list[ex.Goal]:
    """One goal per line: our least error by an exact sampler. Its reason has the chains' error."""
    found, wanted = ratios(table), []
    for line in dict.fromkeys(table.line):
        ours = best_source(found, line, OURS)
        chains = best_source(found, line, HEURISTIC)
        error, chained = found[line, ours].root, found[line, chains].root
        name = f"{line}: error of exact samplers divided by that of the peer"
        reason = (
            f"{CAUSES[chains]}; chains estimate that noise from such points would err "
            f"{chained:.3f} times as much as the peer"
        )
        proved = f"no mechanism errs less than {found[line, Source.ALL].root:.3f} times as much"
        beside = f"{ours}; {proved} as the peer"
        wanted.append(ex.Goal(name, error, GOALS[Line(line)], ex.Aim.AT_MOST, reason, beside))
    return wanted


def best_source(
    found: dict[tuple[str, str], ex.MeanSquare], line: str, sources: tuple[Source, ...]
) -> Source:
    """The source with the least error on a line."""
    return min(
        (source for source in sources if (line, source) in found),
        key=lambda source: found[line, source].value,
    )


#: Chains with a split R-hat of this or more are not compared with a goal.
MIXED = 1.3


def compute(config: Config, rng: np.random.Generator) -> ex.Row:
    """Mean squared error per query, or a squared lower bound, and how the number is known."""
    if config.source in EXACT:
        return predicted(config.line, EXACT[config.source])
    if config.source in HEURISTIC:
        return walked(config, rng)
    return excluded(config)


def claims(table: pd.DataFrame) -> ex.Claims:
    found = ratios(table)
    ours, frontier = least(found, OURS), least(found, HEURISTIC)
    bounds = {(line, source): mean for (line, source), mean in found.items() if source in EXCLUDED}
    lowest = least(found, (*EXACT, *HEURISTIC))
    yield ex.is_below(
        "on every line, an exact mechanism is predicted to err less than the peer",
        "X-LKJ, X-CONE, X-SIM",
        {(line,): mean for line, mean in ours.items()},
        {(line,): found[line, Source.MATRIX] for line in ours},
    )
    yield frontier_is_not_above(frontier, ours)
    name = "on every line, both lower bounds are below the least error"
    yield ex.is_below(
        name, "JL-L6", bounds, {(line, source): lowest[line] for line, source in bounds}
    )
    yield from against_goals(table)


def frontier_is_not_above(
    frontier: dict[str, ex.MeanSquare], ours: dict[str, ex.MeanSquare]
) -> ex.Claim:
    """The claim that heuristic noise errs at most as much as our best exact one, at `LEVEL`."""
    passed = True
    for line, mean in frontier.items():
        reach = ex.quantile(ex.LEVEL / len(frontier), mean.count)
        reach *= math.hypot(mean.stderr, ours[line].stderr)
        passed &= mean.value - ours[line].value <= reach
    shares = {line: mean.root / ours[line].root for line, mean in frontier.items()}
    name = "the least heuristic error does not exceed our least exact error beyond chance"
    verdict = ex.Verdict(passed, max(shares.values()))
    measured = "; ".join(f"{line}: {share:.3f}" for line, share in shares.items())
    return ex.Claim(name, verdict, measured, "at most 1", "JL-L14, JL-KN")


def against_goals(table: pd.DataFrame) -> ex.Claims:
    """Compare 95% intervals of heuristic errors with the goals of two lines."""
    found = ratios(table)
    mixed = table[table.split_r_hat < MIXED]
    for line, beyond in ((Line.BINARY, False), (Line.THREE_WAY, True)):
        sources = mixed[mixed.line == line].source
        ends = {each: found[line, each].root_interval(ex.BAND_LEVEL) for each in sources}
        if not ends:
            continue
        missed = [low > GOALS[line] for low, _ in ends.values()]
        reached = [high <= GOALS[line] for _, high in ends.values()]
        yield ex.Claim(
            f"{line}: heuristic noise {'errs more than' if beyond else 'reaches'} the goal",
            ex.Verdict(
                all(missed) if beyond else any(reached),
                ex.share(
                    max(GOALS[line] / low for low, _ in ends.values())
                    if beyond
                    else min(high / GOALS[line] for _, high in ends.values()),
                    1,
                ),
            ),
            "; ".join(f"{each}: [{low:.3f}, {high:.3f}]" for each, (low, high) in ends.items()),
            f"{'all intervals above' if beyond else 'an interval not above'} {GOALS[line]:g}",
            "JL-L14, JL-KN",
        )


PEER, EXACTLY = "matrix mechanism, exact", "geomdp, exact sampler"
CHAINS = "no exact sampler: chains, 95% intervals"
GOAL = "goal set before"
LOOKS = {
    PEER: ex.Look(ex.GREY, "s"),
    EXACTLY: ex.Look("C0", "o"),
    CHAINS: ex.Look("C4", "D", filled=False),
}
#: Names on the y axis. `Source.CUT` shares the row of `Source.PAIRED`.
ROWS = {
    Source.MATRIX: "matrix mechanism,\nLaplace noise",
    Source.HIERARCHICAL: "K-norm noise on levels\n(Hierarchical)",
    Source.CONE: "cone noise over the\nelliptope (Cone)",
    Source.TIGHT_CONE: "cone noise, body cut\n(TightCone)",
    Source.PAIRED: "pairs of points of $K$\n(chains only)",
    Source.KNORM: "K-norm noise of $K-K$\n(chains only)",
}


def plot(table: pd.DataFrame) -> ex.Figure:
    lines = list(dict.fromkeys(table.line))
    titles = [line.replace(", ", ",\n", 1) for line in lines]
    figure, panels = ex.panels((7.2, 4.9), titles, ["RMSE over matrix"] * len(lines), sharey=True)
    for axes, line in zip(panels, lines, strict=True):
        draw(axes, table[table.line == line])
    panels[0].set_yticks(range(len(ROWS)), list(ROWS.values()))
    panels[0].set_ylim(len(ROWS) - 0.4, -0.5)
    ex.shared_legend(figure, {"errors": [*LOOKS], "limits": [GOAL, *EXCLUDED]})
    result = "2-way tables: exact samplers reach most of the possible gain; 3-way: none"
    return ex.headline(figure, result, "1-DP, $n=5000$. Error over that of the matrix mechanism.")


def draw(axes: ex.Axes, table: pd.DataFrame) -> None:
    """Draw one line of tables: markers with intervals, the goal, and the lower bounds."""
    found, line = ratios(table), table.line.iloc[0]
    for source in (*EXACT, *HEURISTIC):
        if (line, source) not in found:
            continue
        ratio = found[line, source]
        height = list(ROWS).index(Source.PAIRED if source is Source.CUT else source)
        label = PEER if source is Source.MATRIX else CHAINS if source in HEURISTIC else EXACTLY
        look = LOOKS[label]
        ex.draw_intervals(axes, ratio.root, ratio.root_interval(ex.BAND_LEVEL), height, look, label)
        left = ratio.root > 0.9
        side, align = ((-9, 0), "right") if left else ((9, 0), "left")
        ex.note(axes, (ratio.root, height), f"{ratio.root:.2f}", look.colour, side, align)
    axes.axvline(GOALS[Line(line)], color="black", lw=1.6, zorder=0.5, label=GOAL)
    axes.axvspan(0, found[line, Source.ALL].root, color=ex.IMPOSSIBLE, lw=0, label=Source.ALL)
    additive = found[line, Source.ADDITIVE].root
    axes.axvline(additive, color=ex.GREY, ls=(0, (4, 2)), label=Source.ADDITIVE)
    axes.set_xlim(0, 1.1)
    axes.set_xticks([0, 0.5, 1], ["0", "0.5", "1"])


def grid(lines: dict[Line, dict[Source, tuple[int, int]]]) -> tuple[Config, ...]:
    """Exact mechanisms, walks and bounds on each line; `lines` gives chains and steps of walks."""
    configs = []
    for line, walks in lines.items():
        cones = () if line is Line.THREE_WAY else (Source.CONE, Source.TIGHT_CONE)
        configs += [Config(line, each) for each in (Source.MATRIX, Source.HIERARCHICAL, *cones)]
        configs += [Config(line, each, *size) for each, size in walks.items()]
        configs += [Config(line, each) for each in EXCLUDED]
    return tuple(configs)


QUICK = ex.Sweep(
    grid({Line.CATEGORICAL: {Source.CUT: (16, 30)}, Line.THREE_WAY: {Source.KNORM: (16, 14)}})
)
FULL = ex.Sweep(
    grid(
        {
            Line.BINARY: {Source.PAIRED: (8, 1600), Source.KNORM: (8, 960)},
            Line.CATEGORICAL: {Source.CUT: (16, 5000)},
            Line.THREE_WAY: {Source.PAIRED: (8, 1680), Source.KNORM: (8, 2880)},
        }
    )
)
