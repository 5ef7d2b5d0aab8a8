r"""Published statements that fail, side by side with the corrected ones that hold.

Sources: Roth's lecture, Theorem 5 (DISC-13); Dwork-Roth 2014, Theorems 3.28 (DISC-11), 4.14
(DISC-21) and 5.8 (DISC-20); Wang et al. 2013, Theorem 3.1 (DISC-15, DISC-17); Blum-Roth 2011,
Theorem 2.10 (DISC-5) and Corollary 4.7 (DISC-4). Formula sheet, section 10, and IC-T5, SV-NUM,
BR-MED, SM-A1, SM-T3.1, BR-T2.10, BR-OIC, BR-L4.6.

Each panel shows measured values divided by the values that a statement promises. All instances meet
the assumptions of the statement. The statement fails where this share is above 1. Claims: the
printed statements fail exactly where the corrections say. The corrected statements hold on all
instances, and the largest of their shares is as predicted.

(a) A private distinguisher always chooses a query that is nearly as far below the best as the
theorem permits. The early stop of the iterative construction then errs by up to 5/4 of the printed
alpha. (b) For fewer than 3900 queries, the noise of ten released values exceeds the printed
accuracy with probability above beta. (c) Updates of the median rule can delete a whole net of mesh
alpha. That takes one update more than the bound allows; the corrected mesh is alpha / 2. (d) With
the printed noise scale, the privacy loss under replace-one rises to 1.217 epsilon as the number t
of frequencies grows. (e) The error for smooth queries stops falling at large epsilon. The printed
and the corrected rate have the same constant, the least for which the corrected rate holds at
epsilon up to 1. (f) The composition shortcut is printed for all delta below 1. For delta above
0.997 the exact epsilon of its steps is larger than promised. The corrected shortcut is for delta of
at most 1/2. No point is drawn where the exact epsilon is 0.

In the last two panels the printed conclusions may be true, but the proofs do not give them. (g) The
proof for online multiplicative weights needs all values to be within alpha0 of the truth with
probability 1 - beta. With the printed factor 32 in place of 36, the probability is below 1 - beta
if beta is tiny. (h) With natural logarithms, the bound of Corollary 4.7 is smaller than the bound
of Lemma 4.6 for every r, by a factor of at least 1.165. With logarithms of base 2 it is no longer
smaller.

The errors in (a) and (e) are simulated, and (d) searches a grid of records. All other numbers that
are drawn are exact; for (b) a simulation checks them. Run time on one core: quick 3 s, full 1
minute.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
import pandas as pd
import scipy.stats

import experiments.engine.tools as ex
from experiments.privacy import corrected
from experiments.privacy.corrected import Measured, Statement, Version

MEASURES: Mapping[Statement, Callable[[Version, float, int, np.random.Generator], Measured]] = {
    Statement.ITERATIVE: corrected.stopped,
    Statement.NUMERIC: corrected.released,
    Statement.MEDIAN: corrected.forced,
    Statement.SMOOTH_NOISE: corrected.loss,
    Statement.SMOOTH_ERROR: corrected.error,
    Statement.COMPOSITION: corrected.composed,
    Statement.ONLINE: corrected.updated,
    Statement.FLAT: corrected.flat,
}


@dataclass(frozen=True)
class Config:
    """One instance of one statement."""

    statement: Statement  # The statement
    version: Version  # Printed or corrected
    x: float  # The place on the horizontal axis of its panel
    runs: int  # Simulated runs, where there are any


def compute(config: Config, rng: np.random.Generator) -> ex.Row:
    """The measured value, the promised value, and the frequency of a simulation if there is one."""
    found = MEASURES[config.statement](config.version, config.x, config.runs, rng)
    return {"measured": found.measured, "promised": found.promised, "drawn": found.drawn}


@dataclass(frozen=True)
class Correction:
    """Where a printed statement fails, and how tight the corrected statement is."""

    id: str  # Ids of the formula sheet
    first: float  # The printed statement fails for x at or above this ...
    last: float  # ... and at or below this, and nowhere else
    where: str  # The range from `first` to `last` in words
    #: Range that must contain the largest share (measured / promised) of the corrected statement.
    tightest: tuple[float, float]
    why: str  # The range `tightest` in words, or its derivation


#: A share of 1, up to rounding.
FULL_SHARE = 1 + 1e-9
CORRECTIONS = {
    # A run stops when the error on the chosen query seems below 3 alpha / 4. The largest error can
    # be higher, up to alpha.
    Statement.ITERATIVE: Correction(
        "DISC-13, IC-T5",
        1.001,
        np.inf,
        "an error above alpha at the start",
        (0.75, FULL_SHARE),
        "3/4 to 1",
    ),
    # One value errs by more than alpha with probability beta / (4 c k), and c = k = 10 values are
    # released.
    Statement.NUMERIC: Correction(
        "DISC-11, SV-NUM", 1, 3900, "k < 3900", (0.0249, 0.0251), "1/(4k) at k = 10"
    ),
    Statement.MEDIAN: Correction("DISC-20, BR-MED", 1, np.inf, "all alpha", (1, FULL_SHARE), "1"),
    # The worst pair of records is sought on a grid, which may miss it slightly.
    Statement.SMOOTH_NOISE: Correction(
        "DISC-15, SM-A1", 3, np.inf, "t >= 3", (0.999, FULL_SHARE), "1"
    ),
    # The constant is fitted at epsilon up to 1 and judged at larger epsilon, where noise is
    # smaller.
    Statement.SMOOTH_ERROR: Correction(
        "DISC-17, SM-T3.1", 3, np.inf, "epsilon >= 3", (0.5, FULL_SHARE), "1/2 to 1"
    ),
    # The shortcut follows from advanced composition, which overstates the exact epsilon.
    Statement.COMPOSITION: Correction(
        "DISC-5, BR-T2.10", 320, np.inf, "delta >= 0.9969", (0.37, 0.38), "0.376 at delta = 1e-6"
    ),
    # One value errs by more than alpha0 with probability beta / (8 c k), and c = k = 3 values are
    # released.
    Statement.ONLINE: Correction(
        "DISC-21, BR-OIC", 0, 1e-11, "beta <= 1e-11", (0.0416, 0.0418), "1/(8k) at k = 3"
    ),
    # For the best real r the share would be e^(1/2) (ln 2 / 2)^(1/2). The best even r gives more.
    Statement.FLAT: Correction(
        "DISC-4, BR-L4.6",
        1,
        np.inf,
        "all k T / beta",
        (0.9706, 0.975),
        "0.9706 for real r, slightly more for even r",
    ),
}
#: The constant of the rate for smooth queries is fitted at epsilon up to this value.
CALIBRATED = 1.0


def with_shares(table: pd.DataFrame) -> pd.DataFrame:
    """The table with the shares: what is measured divided by what is promised."""
    share = table.measured / table.promised
    smooth = table.statement == Statement.SMOOTH_ERROR
    calibrated = smooth & (table.version == Version.CORRECTED) & (table.x <= CALIBRATED)
    return table.assign(share=share.where(~smooth, share / share[calibrated].max()))


def claims(table: pd.DataFrame) -> ex.Claims:
    shares = with_shares(table)
    found = []
    for statement, correction in CORRECTIONS.items():
        mine = shares[shares.statement == statement]
        found += [
            fails(statement, correction, mine[mine.version == Version.PRINTED]),
            holds(statement, correction, mine[mine.version == Version.CORRECTED]),
        ]
    yield from found
    yield simulated(shares[shares.drawn.notna()])


def fails(statement: Statement, correction: Correction, rows: pd.DataFrame) -> ex.Claim:
    """The printed statement fails where the correction says, and only there."""
    failing = rows.share > FULL_SHARE
    expected = rows.x.between(correction.first, correction.last)
    return ex.Claim(
        f"{statement}: what is measured exceeds the printed bound exactly for {correction.where}",
        ex.each_case(failing.any() and (failing == expected).all()),
        f"exceeds it in {failing.sum()} of {len(rows)} instances, by a factor of up to "
        f"{rows.share.max():.3g}",
        f"exceeds it in {expected.sum()}",
        correction.id,
    )


def holds(statement: Statement, correction: Correction, rows: pd.DataFrame) -> ex.Claim:
    """The corrected statement holds everywhere, and its largest measured share is as predicted."""
    judged = rows if statement is not Statement.SMOOTH_ERROR else rows[rows.x > CALIBRATED]
    most = float(judged.share.max())
    low, high = correction.tightest
    return ex.Claim(
        f"{statement}: what is measured never exceeds the corrected bound, and attains at least "
        f"{low:.3g} of it",
        ex.Verdict(low <= most <= high, most / high),
        f"within it in {(rows.share <= FULL_SHARE).sum()} of {len(rows)} instances, up to "
        f"{most:.4g} of it",
        f"within it in all; largest share {correction.why}",
        correction.id,
    )


def simulated(rows: pd.DataFrame) -> ex.Claim:
    """Probabilities computed from the scales of noise agree with the mechanisms' draws."""
    failures = (rows.drawn * rows.runs).round().astype(int)
    levels = [
        scipy.stats.binomtest(int(count), int(row.runs), row.measured).pvalue
        for count, row in zip(failures, rows.itertuples(), strict=True)
    ]
    return ex.Claim(
        "released values of NumericSparse err by more than alpha as often as computed",
        ex.not_rare(levels, ex.LEVEL / len(levels)),
        f"{failures.sum()} failures in {rows.runs.sum():.0f} runs, least p-value {min(levels):.2g}",
        f"{(rows.measured * rows.runs).sum():.0f} expected",
        "DISC-11, SV-NUM",
    )


@dataclass(frozen=True)
class Panel:
    """How one statement is drawn."""

    title: str  # The statement, and below it the measured quantity
    label: str  # Label of the horizontal axis: the parameter that varies
    limits: tuple[float, float]  # Limits of the vertical axis, logarithmic if the first is above 0
    ticks: tuple[float, ...] | None = None  # Labelled values of x; None labels the decades


PANELS = {
    Statement.ITERATIVE: Panel(
        "(a) iterative construction, Thm 5\nlargest error",
        r"error at the start $/\,\alpha$",
        (0, 1.5),
        (0.5, 1, 2, 4),
    ),
    Statement.NUMERIC: Panel(
        "(b) NumericSparse, Thm 3.28\nprobability of a large error", "queries $k$", (1e-8, 1e2)
    ),
    Statement.MEDIAN: Panel(
        "(c) median rule, Thm 5.8\nupdates forced", r"$1/\alpha$", (0, 2.5), (4, 16, 64, 256)
    ),
    Statement.SMOOTH_NOISE: Panel(
        "(d) smooth queries, Thm 3.1 (1)\nprivacy loss",
        "frequencies $t$",
        (0, 1.5),
        (2, 4, 8, 16, 32, 64, 128),
    ),
    Statement.SMOOTH_ERROR: Panel(
        "(e) smooth queries, Thm 3.1 (2)\nworst error", r"$\varepsilon$", (0.1, 1e4)
    ),
    Statement.COMPOSITION: Panel(
        "(f) composition, Thm 2.10\n" r"exact $\varepsilon$", r"$\delta/(1-\delta)$", (0.1, 1e3)
    ),
    Statement.ONLINE: Panel(
        "(g) online weights, step of Thm 4.14\nprobability of a large error",
        r"$\beta$",
        (1e-2, 1e2),
    ),
    Statement.FLAT: Panel(
        "(h) flat queries, step of Cor 4.7\nbound by Lemma 4.6", r"$kT/(2\beta)$", (0, 1.5)
    ),
}
LOOKS = Version.looks()


def draw_panel(axes: ex.Axes, rows: pd.DataFrame, panel: Panel) -> None:
    """Draw one statement from the columns x, share and version. Shares of 0 are not drawn."""
    axes.axhspan(1, panel.limits[1], color="0.92", lw=0, zorder=0)
    axes.axhline(1, color="black", linestyle=(0, (4, 2)), linewidth=1.1)
    for version, look in LOOKS.items():
        mine = rows[rows.version == version].sort_values("x")
        ex.draw_points(axes, mine.x, mine.share.where(mine.share > 0), look, version)
    axes.set_xscale("log")
    if panel.limits[0] > 0:
        axes.set_yscale("log")
    if panel.ticks is not None:
        ex.label_ticks(axes, panel.ticks)
    axes.set_ylim(*panel.limits)
    axes.set_title(panel.title, fontsize=9)
    axes.set_xlabel(panel.label)


def plot(table: pd.DataFrame) -> ex.Figure:
    figure = ex.Figure(figsize=(7.2, 9.2))
    panels = figure.subplots(4, 2)
    shares = with_shares(table)
    for axes, (statement, panel) in zip(panels.flat, PANELS.items(), strict=True):
        draw_panel(axes, shares[shares.statement == statement], panel)
    for axes in panels[:, 0]:
        axes.set_ylabel("measured / promised")
    for version, height in ((Version.PRINTED, 1.36), (Version.CORRECTED, 0.66)):
        place = (1.35, height)
        ex.note(panels[0, 0], place, version, LOOKS[version].colour, (0, 0), "left")
    result = "Eight printed statements or steps fail; corrected, they hold"
    settings = "What is measured over what the statement promises. In the grey area it is wrong."
    return ex.headline(figure, result, settings)


#: Values of x at which each statement is tried.
PLACES: Mapping[Statement, tuple[float, ...]] = {
    Statement.ITERATIVE: (0.5, 0.7, 0.9, 1.05, 1.1, 1.2, 1.4, 1.7, 2.0, 3.0, 4.0),
    Statement.NUMERIC: (10, 30, 100, 300, 1000, 3000, 10_000, 30_000, 100_000),
    Statement.MEDIAN: (4, 8, 16, 32, 64, 128, 256, 512),
    Statement.SMOOTH_NOISE: (2, 3, 4, 5, 6, 8, 11, 16, 23, 32, 64, 128),
    Statement.SMOOTH_ERROR: (0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 100.0, 300.0, 1000.0),
    Statement.COMPOSITION: (
        *(1e-6, 1e-5, 1e-4, 1e-3, 1e-2, 0.1, 0.5),
        *(200, 300, 400, 600, 1e3, 3e3, 1e4),
    ),
    Statement.ONLINE: tuple(10.0**-power for power in (1, 2, 4, 6, 8, 10, 12, 14, 16, 20)),
    Statement.FLAT: tuple(10.0**power for power in (5, 6, 7, 8, 9, 10, 11, 12)),
}


def grid(every: int, runs: int) -> tuple[Config, ...]:
    """Both versions of all statements at each `every`-th place."""
    return tuple(
        Config(statement, version, x, runs)
        for statement, places in PLACES.items()
        for version in Version
        for x in places[::every]
        # The corrected shortcut is for delta of at most 1/2, which is x of at most 1.
        if statement is not Statement.COMPOSITION or version is Version.PRINTED or x < 1
    )


QUICK = ex.Sweep(grid(every=2, runs=20))
FULL = ex.Sweep(grid(every=1, runs=400))
