"""How many records the best private mechanism needs: lower and upper bounds for many workloads.

Papers: Nikolov 2022 (arXiv 2208.07410), Lemmas 6 and 7 for lower bounds, Lemmas 13 to 16 and
Theorems 21 to 23 for upper bounds; Hardt and Talwar 2010; formula sheet JL-DEF, JL-L6, JL-L7,
X-CONE, X-LKJ.

Claim: for every workload, epsilon and alpha the lower bound is below the upper bound. Every lower
bound above 0 passes a checker that reads the file of the bound and shares no code with the search.
Every upper bound belongs to a constant answer, or to a mechanism with an exact sampler and a proved
error; for some mechanisms the proof assumes that an upper confidence limit from public draws holds.
Neither bound grows as epsilon or alpha grows. In mean l2 error, if the lower bound excludes ten
records or more, the upper bound is at most 64 times 1 + the lower bound. The factor leaves room for
the constants that the arguments for lower bounds lose.

Goals, which may stay open, are about these workloads and 60 small random ones, with epsilon from
0.02 to 10. For epsilon up to 1, the ratio of the two bounds is to be at most 4 in the median and at
most 12 in every row. For epsilon above 1 and up to 10, the ratio is to be at most 20. Brackets are
also wanted for guarantees other than pure privacy; the rows for 0.5-zCDP and (1, 1e-6)-DP bound the
root mean square error. Three arguments for lower bounds from the literature are in no bracket.
Goals measure what each could add:

* Factorisation norms. Lower bounds from answers on orthogonal lines grow with the sum of the
  squared lengths of these lines. This sum is at most the square of the factorisation norm of the
  workload. The goal is that the lines that are best for many records reach 0.9 of this square.
* Volume packings at a fixed number of records. The goal is that none can raise a lower bound by a
  factor above 1.5. Upper bounds on volumes limit what they could prove.
* Row products of marginals. The goal is that none can raise a lower bound. Lines with the same
  pairs of records prove at least as much.

`factorisation_norms` has the proofs.

Privacy is under replace-one. The error is the mean l2 error per query,
E ||M(X) - Q(X)||_2 / sqrt(k). The last panel also has the root mean square error and the largest
error over the queries. Run time on one core: quick 6 s, full 4 min.
"""

import itertools
import math
from collections.abc import Mapping

import numpy as np
import pandas as pd

import experiments.engine.tools as ex
import geomdp as gd
from experiments.lower_bounds import bracket_problems
from experiments.lower_bounds.bracket_problems import QUERIES, Error, Guarantee, Size, grid, weaker
from experiments.lower_bounds.certified_bounds import confirmed_records, packing_in_words
from experiments.lower_bounds.factorisation_norms import norm_columns, volume_columns
from experiments.shared.workloads import Kind, workload

#: Goal for the sum of the squared lengths of orthogonal lines, as a share of the squared
#: factorisation norm. The lines are those that the search finds for a tiny error, which takes many
#: records.
SHARE = 0.9
#: A volume packing matters if it could raise a lower bound by more than this factor.
RAISED = 1.5


def goals_on_arguments(table: pd.DataFrame) -> ex.Goals:
    """One goal for each argument that has rows in the table."""
    for column, goal in (("norm", _norms), ("volume", _volumes), ("row_products", _row_products)):
        rows = table[table[column].notna()] if column in table else table.iloc[:0]
        if len(rows):
            yield goal(rows)


def _norms(rows: pd.DataFrame) -> ex.Goal:
    """Goal for the share of the squared factorisation norm that orthogonal lines reach."""
    shares, own = rows.all_lines / rows.norm, rows.own_lines / rows.norm
    few = own[own > 0]
    worst = rows.loc[shares.idxmin()]
    beside = f"{len(rows)} rows, median {shares.median():.3g} with lines for many records"
    if len(few):
        beside += f"; lines of the lower bounds themselves reach {few.min():.3g} to {few.max():.3g}"
    if len(few) < len(rows):
        beside += f"; {len(rows) - len(few)} of the lower bounds are not from lines"
    name = "least share of the squared factorisation norm that orthogonal lines reach"
    reason = (
        "the search for lines takes at most as many pairs as there are dimensions; for a "
        f"histogram, only weights on all pairs are optimal. Least: {worst.workload}. For many "
        "records, more pairs would raise a lower bound by a factor of at most "
        f"{1 / math.sqrt(shares.min()):.3g}"
    )
    return ex.Goal(name, float(shares.min()), SHARE, ex.Aim.AT_LEAST, reason, beside)


def _volumes(rows: pd.DataFrame) -> ex.Goal:
    """Goal for how many lower bounds volume packings might raise by a factor above `RAISED`."""
    factors = volume_gains(rows)
    largest = rows.error == Error.WORST
    mean, worst = factors[~largest], factors[largest]
    above = mean[mean > RAISED].groupby(rows.workload).max().sort_values(ascending=False)
    named = ", ".join(f"{workload} {factor:.3g}" for workload, factor in above.items())
    none = rows.lower[mean.index] == 0
    beside = (
        f"{len(mean)} rows in mean l2 or root mean square error; {(mean > 1).sum()} could rise at "
        f"all, by a factor of at most {max(mean[~none], default=1.0):.3g}"
    )
    if none.any():
        beside += f", or from 0 to at most {mean[none].max() - 1:.0f} records"
    if len(worst):
        beside += (
            f"; in worst-case error, where the ceiling is cruder, {(worst > RAISED).sum()} of "
            f"{len(worst)} rows by more than {RAISED:g}, at most {worst.max():.3g}"
        )
    name = f"lower bounds that volume packings might raise by a factor above {RAISED:g}"
    reason = (
        "the ceilings on what volumes could prove do not exclude a gain. They use upper bounds in "
        f"place of volumes and treat records as divisible. Largest factors: {named}"
    )
    return ex.Goal(name, int((mean > RAISED).sum()), 0, ex.Aim.AT_MOST, reason, beside)


def _row_products(rows: pd.DataFrame) -> ex.Goal:
    """Goal for the number of lower bounds that row products of marginals could raise."""
    excluded = np.ceil(rows.row_products) - 1
    named = ", ".join(map(str, rows.workload[excluded > rows.lower].unique()))
    name = "lower bounds that row products of marginals could raise"
    reason = f"row products might exclude more records than the lower bounds of {named}"
    beside = (
        f"{len(rows)} rows; row products exclude at most "
        f"{(excluded / rows.lower.clip(lower=1)).max():.3g} times the records of the lower bound"
    )
    return ex.Goal(name, int((excluded > rows.lower).sum()), 0, ex.Aim.AT_MOST, reason, beside)


def volume_gains(rows: pd.DataFrame) -> pd.Series:
    """Largest factor by which a volume packing could raise 1 + the lower bound, for each row."""
    excluded = np.minimum(np.ceil(rows.volume) - 1, rows.upper - 1)
    factors: pd.Series = ((excluded + 1) / (rows.lower + 1)).clip(lower=1)
    return factors


#: Goals for the ratio of the two bounds. `MEDIAN` is the goal for the median ratio. `LARGEST` has a
#: goal for the largest ratio in each range of epsilon; the keys are the upper ends of the ranges.
MEDIAN = 4.0
LARGEST = {1.0: 12.0, 10.0: 20.0}
#: Number of guarantees for which brackets are wanted: pure, zero-concentrated and approximate.
GUARANTEES = 3


def ratio(table: pd.DataFrame) -> pd.Series:
    """The largest number of records in the bracket divided by the smallest."""
    return table.upper / (table.lower + 1)


def goals(table: pd.DataFrame) -> ex.Goals:
    """How narrow brackets are to be, and what arguments that no bracket uses could add at most.

    The standard and the random workloads count together.
    """
    crossed = table[table.lower >= table.upper]
    kinds = table.guarantee.unique()
    pure = table[table.guarantee == Guarantee.PURE]
    yield _median(pure)
    yield from (_largest(pure, above, up_to) for above, up_to in _ranges(pure))
    yield from (_of_guarantee(table, kind) for kind in kinds if kind != Guarantee.PURE)
    yield ex.Goal(
        "brackets whose lower and upper bound cross",
        len(crossed),
        0,
        ex.Aim.AT_MOST,
        "; ".join(map(_words, crossed.itertuples())) or "none crosses",
        f"{len(table)} brackets, {(table.draw > 0).sum()} of them of random workloads",
    )
    name = "guarantees (pure, zero-concentrated, approximate) that have brackets"
    reason = f"the table has rows for {', '.join(kinds)} differential privacy only"
    yield ex.Goal(name, len(kinds), GUARANTEES, ex.Aim.AT_LEAST, reason)
    yield from goals_on_arguments(table)


def _of_guarantee(table: pd.DataFrame, kind: str) -> ex.Goal:
    """The widest bracket under a guarantee that is not pure."""
    mine = table[table.guarantee == kind]
    wide = ratio(mine)
    name = f"largest ratio of upper bound to 1 + lower bound under {kind} privacy"
    reason = (
        f"lower bounds come from data sets on lines only; widest: {_words(mine.loc[wide.idxmax()])}"
    )
    beside = f"{len(mine)} brackets, median {wide.median():.3g}"
    return ex.Goal(name, float(wide.max()), LARGEST[1.0], ex.Aim.AT_MOST, reason, beside)


def _ranges(table: pd.DataFrame) -> list[tuple[float, float]]:
    """Intervals of epsilon that have a goal and rows in the table."""
    pairs = itertools.pairwise([0.0, *LARGEST])
    return [(low, high) for low, high in pairs if table.epsilon.between(low, high, "right").any()]


def _median(table: pd.DataFrame) -> ex.Goal:
    mine = table[table.epsilon <= min(LARGEST)]
    wide = ratio(mine)
    above = int((wide > MEDIAN).sum())
    name = f"median ratio of upper bound to 1 + lower bound, epsilon at most {min(LARGEST):g}"
    reason = f"{above} of {len(mine)} brackets are wider than {MEDIAN:g}"
    return ex.Goal(name, float(wide.median()), MEDIAN, ex.Aim.AT_MOST, reason, _medians(mine))


def _medians(table: pd.DataFrame) -> str:
    """The median ratios of the standard and of the random workloads, in words."""
    wide = ratio(table)
    parts = {"standard": table.draw == 0, "random": table.draw > 0}
    return "; ".join(
        f"{name} workloads: {wide[mine].median():.3g}" for name, mine in parts.items() if mine.any()
    )


def _largest(table: pd.DataFrame, above: float, up_to: float) -> ex.Goal:
    mine = table[table.epsilon.between(above, up_to, "right")]
    wide = ratio(mine)
    worst = mine.loc[wide.idxmax()]
    wider = int((wide > LARGEST[up_to]).sum())
    return ex.Goal(
        f"largest ratio of upper bound to 1 + lower bound, epsilon above {above:g} and at most "
        f"{up_to:g}",
        float(wide.max()),
        LARGEST[up_to],
        ex.Aim.AT_MOST,
        f"{wider} of {len(mine)} brackets are wider than {LARGEST[up_to]:g}: "
        + _why(mine[wide > LARGEST[up_to]]),
        f"widest: {_words(worst)}",
    )


def _why(wide: pd.DataFrame) -> str:
    """Why brackets are wide: the number of brackets for each of three reasons."""
    nothing, largest = wide.lower == 0, (wide.lower > 0) & (wide.error == Error.WORST)
    reasons = {
        "exclude no record: our mechanisms add noise as large as the change by one record, but "
        "some mechanism might nearly always answer exactly": nothing,
        "are in worst-case error, where the lower bound grows with the logarithm of the number of "
        "queries, or is the bound for the root mean square": largest,
        "have a lower bound from few data sets": ~(nothing | largest),
    }
    return "; ".join(f"{rows.sum()} {why}" for why, rows in reasons.items() if rows.any())


def _words(row: object) -> str:
    names = ("workload", "error", "epsilon", "alpha", "lower", "upper")
    workload, error, epsilon, alpha, lower, upper = (getattr(row, name) for name in names)
    return f"{workload}, {error} error {alpha:g}, epsilon {epsilon:g}: {lower:g} to {upper:g}"


#: The claim is that the upper bound divided by 1 + the lower bound is at most `WIDEST`, if the
#: lower bound is at least `FROM`.
WIDEST, FROM = 64, 10


def compute(config: bracket_problems.Config, rng: np.random.Generator) -> ex.Row:
    """Both bounds and how they are proved, and the limits of arguments that no bracket uses."""
    del rng  # the seed below is fixed, so all rows search the same elements and can be compared
    if config.draw:
        Q = bracket_problems.random_workload(config.draw)
    else:
        kind = Kind(config.queries)
        Q = workload(kind, *bracket_problems.SIZES[config.size][kind])
    metric = bracket_problems.METRICS[config.error]
    privacy = config.guarantee.privacy(config.epsilon)
    found = gd.sample_complexity_bracket(
        Q, alpha=config.alpha, metric=metric, privacy=privacy, rng=0
    )
    if config.guarantee is Guarantee.PURE:
        limits = volume_columns(Q, epsilon=config.epsilon, alpha=config.alpha, metric=metric)
    else:
        limits = norm_columns(Q, privacy, config.alpha, found.lower)
    winner = found.upper.certificate
    known = winner if isinstance(winner, gd.mechanisms.Mechanism) else None
    return {
        "workload": repr(Q),
        "n_queries": Q.n_queries,
        "dimension": Q.affine_hull().dimension,
        "lower": int(found.lower.records),
        "upper": int(found.upper.records),
        "checked": checked(found.lower),
        "sets": packing_in_words(found.lower),
        "mechanism": found.upper.statement.partition(" has ")[0],
        "sampler": "exact" if known is None else str(known.guarantee.sampler),
        "prediction": "exact" if known is None else str(known.predicted_rmse.kind),
        "assumptions": "; ".join((*found.lower.assumptions, *found.upper.assumptions)),
        **limits,
    }


def checked(bound: gd.bounds.Bound) -> int:
    """Records excluded according to the independent checker; -1 without a certificate."""
    if not isinstance(bound.certificate, gd.bounds.Certificate):
        return -1
    return confirmed_records(bound.certificate)


def claims(table: pd.DataFrame) -> ex.Claims:
    along = [("alpha", ["queries", "epsilon", "error"]), ("epsilon", ["queries", "alpha", "error"])]
    standard = table[(table.draw == 0) & (table.guarantee == Guarantee.PURE)]
    least = ratio(table).min()
    name = "the lower bound is below the upper bound everywhere"
    measured = f"upper / (lower + 1) at least {least:.3g} in {len(table)} rows"
    yield ex.Claim(name, ex.below(table.lower, table.upper), measured, "at least 1", "JL-DEF")
    proved = table[table.checked >= 0]
    without = table[table.checked < 0]
    statement = "every lower bound passes the independent checker"
    verdict = ex.each_case((proved.checked == proved.lower).all() and (without.lower == 0).all())
    found = f"{len(proved)} certificates; {len(without)} rows without one, which exclude no record"
    expected = "the checker and the certificate agree in every row"
    yield ex.Claim(statement, verdict, found, expected, "JL-L6, JL-L7")
    yield mechanisms_are_proved(table)
    yield from (falls(standard, by, keys) for by, keys in along if standard[by].nunique() > 1)
    mine = standard[(standard.error == Error.MEAN_L2) & (standard.lower >= FROM)]
    wide = ratio(mine)
    name = f"in mean l2 error, the upper bound is at most {WIDEST} times 1 + the lower bound"
    measured = f"ratios {wide.min():.2f} to {wide.max():.2f}, median {wide.median():.2f}"
    theory = f"at most {WIDEST} where {FROM} records or more are excluded"
    yield ex.Claim(name, ex.at_most(wide.max(), WIDEST), measured, theory, "JL-L7, JL-T2")


def mechanisms_are_proved(table: pd.DataFrame) -> ex.Claim:
    """Every mechanism has an exact sampler. Its error is exact or a proved upper bound."""
    exact = (table.sampler == "exact").all()
    proved = set(table.prediction) <= {"exact", "upper_bound"}
    name = "every upper bound is from a mechanism with an exact sampler and a proved error"
    verdict = ex.same_names(exact and proved)
    measured = f"samplers {sorted(set(table.sampler))}, predictions {sorted(set(table.prediction))}"
    return ex.Claim(name, verdict, measured, "exact; exact or upper_bound", "JL-L13, JL-L14, SAM-4")


def falls(table: pd.DataFrame, by: str, keys: list[str]) -> ex.Claim:
    """Neither bound grows as the parameter `by` grows."""
    steps = [
        group.sort_values(by)[["lower", "upper"]].diff().dropna()
        for _, group in table.groupby(keys)
    ]
    largest = pd.concat(steps).max()
    name = f"neither the lower nor the upper bound rises as {by} grows"
    measured = (
        f"largest changes {largest.lower:.0f} of a lower and {largest.upper:.0f} of an upper bound"
    )
    return ex.Claim(name, ex.in_order((largest <= 0).all()), measured, "at most 0", "JL-DEF")


BY_ALPHA = {0.1: ex.Look("C0", "o"), 0.03: ex.Look("C2", "s"), 0.01: ex.Look("C4", "D")}
BY_ERROR = {
    Error.MEAN_L2: ex.Look("C5", "o"),
    Error.RMS: ex.Look(ex.GREY, "s"),
    Error.WORST: ex.Look("C6", "D"),
}
NAMES = {Error.MEAN_L2: r"mean $\ell_2$", Error.RMS: "root mean square", Error.WORST: "worst case"}
LEFT = "left: every mechanism needs more"
RIGHT = "right: a known one suffices"
#: Vertical distance between the bars of one workload.
STEP = 0.22


def plot(table: pd.DataFrame) -> ex.Figure:
    table = table[(table.draw == 0) & (table.guarantee == Guarantee.PURE)]
    worst = table[table.error == Error.WORST]
    epsilon, alpha = worst.epsilon.iloc[0], worst.alpha.iloc[0]
    table = table[table.epsilon == epsilon]
    titles = [r"mean $\ell_2$ error", rf"$\alpha={alpha:g}$"]
    xlabel = "number of records $n$ needed"
    figure, panels = ex.panels((7.2, 5.4), titles, xlabel, sharey=True)
    draw(panels[0], table[table.error == Error.MEAN_L2], "alpha", BY_ALPHA)
    draw(panels[1], table[table.alpha == alpha], "error", BY_ERROR)
    panels[0].set_yticks(range(len(QUERIES)), [str(kind) for kind in QUERIES])
    panels[0].set_ylim(len(QUERIES) - 0.5, -0.5)
    for axes in panels:
        for place in range(0, len(QUERIES), 2):
            axes.axhspan(place - 0.5, place + 0.5, color="0.96", lw=0, zorder=0)
        axes.grid(axis="y", visible=False)
        ex.log_axes(axes, "x")
    panels[0].plot([], [], ls="none", marker="|", ms=9, mew=1.6, color="black", label=LEFT)
    panels[0].plot([], [], ls="none", marker="o", color="black", label=RIGHT)
    columns = {
        "ends of a bar": [LEFT, RIGHT],
        r"(a) error $\alpha$": [alpha_label(value) for value in BY_ALPHA],
        "(b) kind of error": [*NAMES.values()],
    }
    ex.shared_legend(figure, columns)
    return ex.headline(
        figure,
        "For every workload, the number of records needed is known within a factor of 64",
        rf"Pure DP, $\varepsilon={epsilon:g}$. Bars: from a proved lower to a proved upper bound.",
    )


def alpha_label(alpha: float) -> str:
    """A value of alpha in the legend."""
    return rf"$\alpha={alpha:g}$"


def draw(
    axes: ex.Axes,
    table: pd.DataFrame,
    by: str,
    looks: Mapping[float, ex.Look] | Mapping[Error, ex.Look],
) -> None:
    """Bars of one panel: from the least number of records not excluded to a sufficient number."""
    places = {str(queries): i for i, queries in enumerate(QUERIES)}
    for shift, (value, look) in enumerate(looks.items()):
        mine = table[table[by] == value]
        if mine.empty:
            continue
        y = mine.queries.map(places) + (shift - (len(looks) - 1) / 2) * STEP
        low = mine.lower + 1
        axes.hlines(y, low, mine.upper, color=look.colour, linewidth=3.2, alpha=0.45)
        axes.plot(low, y, linestyle="none", marker="|", color=look.colour, markersize=8)
        label = alpha_label(value) if isinstance(value, float) else NAMES[value]
        ex.draw_points(axes, mine.upper, y, look, label, line="none")


FEW = (Kind.HISTOGRAM, Kind.MARGINALS_2, Kind.MOMENTS)
QUICK = ex.Sweep(
    (
        *grid(Size.SMALL, FEW, [Kind.HISTOGRAM], (1.0,), (0.1, 0.05)),
        *weaker(Size.SMALL, [Kind.HISTOGRAM], 1.0, 0.05),
        *bracket_problems.drawn((6,)),
    )
)
FULL = ex.Sweep(
    (
        *grid(Size.STANDARD, QUERIES, QUERIES, (0.1, 1.0), (0.1, 0.03, 0.01)),
        *weaker(Size.STANDARD, QUERIES, 1.0, 0.03),
        *bracket_problems.drawn(range(1, bracket_problems.COUNT + 1)),
    )
)
