"""Iterative construction: largest error over all parities against n, with two sets of constants.

Source: Roth's lecture on iterative construction, Algorithm 1, Theorems 4 to 8 (after Gupta, Roth
and Ullman 2011); Dwork-Roth 2014, section 5.2; formula sheet IC-DIST, IC-ALG, IC-T4, IC-T5, BR-MW,
DISC-13.

Claim: with probability 1 - beta or more, the hypothesis errs by at most alpha on each of the 2^d
parities, for the alpha of the corrected Theorem 5. The gap of a query is the error of the
hypothesis on this query. The distinguisher is the private step that chooses a query with a large
gap. The constants as printed give a smaller alpha, but with them the proved error is 3 alpha / 2,
not alpha: a run can end at a query with a gap near alpha, while another query has a larger gap that
the distinguisher missed. Up to logarithms, alpha falls as n^(-1/3) under pure DP and as n^(-1/2)
under approximate DP. The update rule limits the rounds of a run to a number B. A round has two
private steps, and 2 B steps together stay within the budget.

Each step is epsilon_0-DP. Answers have Laplace noise of scale 1 / (epsilon_0 n). If the gaps of
queries fall in steps of 2 ln 2 / (epsilon_0 n) (the ladder), the distinguisher takes each query
twice as often as the next. Let F(epsilon_0) = 2 ln(|C| / gamma) / (epsilon_0 n) for |C| queries.
The proof allows the distinguisher, with probability gamma, a gap that is F(epsilon_0) or more below
the largest gap. If all gaps but the largest are F(epsilon_0) below it (the cliff), and gamma is
1/2, about a third of the choices miss the largest gap. The union bound of the proof allows one
half. A run ends when the noisy gap is below 3 alpha / 4, and one update changes an error by at most
alpha / 4. So runs that start with an error above 3 alpha / 4 end with an error between alpha / 2
and 3 alpha / 4, up to the noise and the loss of the distinguisher.

Data sets are given by the shares of the elements, so that n may be as large as the theorem needs.
Run time on one core: quick 4 s, full 1 minute.
"""

import enum
import math
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd
import scipy.stats

import experiments.engine.tools as ex
import geomdp as gd
from experiments.shared.known_shares import KnownShares, falling_shares
from geomdp.mechanisms.interactive.iterative import CORRECTED
from geomdp.mechanisms.printed import PRINTED_STOPPING
from geomdp.noise.scalar import GeneratorNoise

BITS, BETA = 5, 0.05
PRIVACY: dict[str, gd.PureDP | gd.ApproxDP] = {
    "pure": gd.PureDP(1.0),
    "approximate": gd.ApproxDP(1.0, 1e-6),
}


class Constants(ex.Curve):
    """Constants of Theorem 5 of Roth's lecture on iterative construction, as in the legend."""

    CORRECTED = "corrected constants", "C0", "o"
    PRINTED = "printed constants", "C3", "D", ex.HOLLOW


DESIGNS = {Constants.CORRECTED: CORRECTED, Constants.PRINTED: PRINTED_STOPPING}


class Data(enum.StrEnum):
    """How the true answers are chosen."""

    SHARES = "shares"  # The share of records at an element is proportional to 1 / rank
    LADDER = "ladder"  # Gaps to the uniform hypothesis fall by a fixed step from parity to parity
    CLIFF = "cliff"  # All gaps but the largest are smaller than it by `AllParities.loss`


@dataclass(frozen=True)
class Config:
    data: Data  # True answers
    privacy: str  # Key of `PRIVACY`
    constants: Constants  # Constants of the stopping rule
    n: int  # Number of records
    runs: int  # Independent runs in one cell


#: Largest gap of the ladder and of the cliff, well below 1/2, so that answers stay within [0, 1].
TOP = 0.4


class Given(gd.mechanisms.AllParities):
    """Parities whose true answers are `answers`."""

    def __init__(self, answers: Iterable[float]) -> None:
        super().__init__(BITS)
        self.answers = np.array([*answers])

    def truths(self, records: Any, n: int) -> ex.FloatArray:
        """The true answers; `records` and `n` are not read."""
        del records, n
        return self.answers


def ladder(step: float) -> Given:
    """Parity j = 1, 2, ... has the gap TOP - (j - 1) `step` to a uniform hypothesis, parity 0 none.

    A uniform hypothesis answers 1 for parity 0, which is 1 on every record, and 1/2 for the others.
    """
    return Given([1.0, *(0.5 + TOP - step * np.arange((1 << BITS) - 1))])


def cliff(drop: float) -> Given:
    """Parity 1 has the gap TOP to a uniform hypothesis; all other gaps are smaller by `drop`."""
    gap = TOP - drop
    return Given([1 - gap, 0.5 + TOP, *np.full((1 << BITS) - 2, 0.5 + gap)])


def construction(
    config: Config, distinguisher: gd.mechanisms.AllParities
) -> gd.IterativeConstruction[Any]:
    """The mechanism of one point."""
    return gd.IterativeConstruction(
        gd.mechanisms.MultiplicativeWeights(1 << BITS),
        distinguisher,
        n=config.n,
        privacy=PRIVACY[config.privacy],
        beta=BETA,
        design=DESIGNS[config.constants],
    )


def spent(built: gd.IterativeConstruction[Any]) -> float:
    """Epsilon of 2 private steps for each update allowed, by basic or advanced composition."""
    step, count = gd.PureDP(built.step_epsilon), 2 * built.updates_allowed
    match built.privacy:
        case gd.ApproxDP(delta=delta):
            return gd.privacy.advanced_composition(step, count, delta).epsilon
        case _:
            return count * step.epsilon


def first_choices(
    built: gd.IterativeConstruction[Any], runs: int, rng: np.random.Generator
) -> ex.Row:
    """How often the first query of a run has the largest gap, and the exact chance of that."""
    top, hits = built.distinguisher.query(1), 0
    for child in rng.spawn(runs):
        first, _ = built.release(range(built.n), rng=child).exchanges[0]
        hits += bool((first.values == top.values).all())
    # From parity 2 on, each parity is half as likely as the parity before. Parity 0 is hardly ever
    # chosen.
    return {"hits": hits, "chance": 1 / (2 - 2.0 ** (2 - built.distinguisher.size))}


#: gamma, the probability with which the proof lets the distinguisher choose a query whose gap is
#: more than F(epsilon) below the largest gap. `worse_choices` defines F(epsilon).
WORSE = 0.5


def worse_choices(
    built: gd.IterativeConstruction[Any], runs: int, rng: np.random.Generator
) -> ex.Row:
    """How often the choice from a `cliff` misses the largest gap, and the exact chance of that.

    Let |C| be the number of parities. If F(epsilon) = 2 ln(|C| / gamma) / (n epsilon) is right,
    each of the |C| - 1 other parities is gamma / |C| times as likely as the parity with the largest
    gap.
    """
    epsilon, n = built.step_epsilon, built.n
    given = cliff(built.distinguisher.loss(epsilon, WORSE, n))
    start = built.rule.start(built.alpha / 2)
    noise = GeneratorNoise(rng)
    chosen = [
        given.choose(given.answers, start, epsilon=epsilon, n=n, noise=noise) for _ in range(runs)
    ]
    others = (given.size - 1) * WORSE / given.size
    return {"worse": sum(index != 1 for index in chosen), "chance": others / (1 + others)}


def errors_and_noise(
    built: gd.IterativeConstruction[Any], runs: int, rng: np.random.Generator
) -> ex.Row:
    """Mean square of the largest error, and the sum of |noise| in units of the noise's scale."""
    truths = built.distinguisher.truths(None, built.n)
    unit = 1 / (built.step_epsilon * built.n)
    numbers = {
        built.distinguisher.query(i).values.tobytes(): i for i in range(built.distinguisher.size)
    }
    errors, steps, noise = [], [], []
    for child in rng.spawn(runs):
        release = built.release(range(built.n), rng=child)
        estimates = built.distinguisher.estimates(release.hypothesis)
        errors.append(float(np.abs(estimates - truths).max()))
        steps.append(len(release.exchanges))
        noise += [
            abs(answer.value - truths[numbers[query.values.tobytes()]]) / unit
            for query, answer in release.exchanges
        ]
    start = built.distinguisher.estimates(built.rule.start(built.alpha / 2))
    return {
        **ex.MeanSquare.of(np.square(errors)).columns(),
        "within": sum(error <= built.accuracy for error in errors),
        "alpha": built.alpha,
        "guaranteed": built.accuracy,
        "steps": max(steps),
        "answers": len(noise),
        "noise": sum(noise),
        "updates_allowed": built.updates_allowed,
        "spent": spent(built),
        "untouched": float(np.abs(start - truths).max()),
    }


def compute(config: Config, rng: np.random.Generator) -> ex.Row:
    """Errors and the promised accuracy, or counts of choices on the ladder or on the cliff."""
    built = construction(config, KnownShares(falling_shares(1 << BITS)))
    match config.data:
        case Data.LADDER:
            halving = 2 * math.log(2) / (built.step_epsilon * config.n)
            return first_choices(construction(config, ladder(halving)), config.runs, rng)
        case Data.CLIFF:
            return worse_choices(built, config.runs, rng)
        case Data.SHARES:
            return errors_and_noise(built, config.runs, rng)


POINT = ["privacy", "constants", "n"]
#: A run ends when the noisy gap is below this share of alpha.
LEVEL_OF_TEST = 3 / 4
#: Up to logarithms, alpha is proportional to n raised to these powers.
POWERS = {"pure": -1 / 3, "approximate": -1 / 2}


#: Ratio of the corrected alpha to the printed alpha, up to logarithms. The distinguisher may lose
#: alpha / 8 with corrected constants, alpha / 2 with printed ones. This factor of 4 multiplies
#: alpha^3 under pure DP, and alpha^2 under approximate DP.
FACTORS = {"pure": 4 ** (1 / 3), "approximate": 2.0}


def claims(table: pd.DataFrame) -> ex.Claims:
    runs = table[table.data == Data.SHARES]
    yield from promises(runs)
    yield ends_at_the_level(runs)
    count, total = int(runs.answers.sum()), float(runs.noise.sum())
    law = scipy.stats.gamma(count)
    chance = 2 * min(law.cdf(total), law.sf(total))
    name = "the measured answers have Laplace noise of scale 1 / (epsilon_0 n)"
    words = (
        f"{count} answers, mean modulus {total / count:.3f} times the scale, p-value {chance:.2g} "
        "(Gamma)"
    )
    yield ex.Claim(name, ex.not_rare(chance, ex.LEVEL), words, "1", "IC-T4, GEN-3")
    yield as_often(
        "if gaps fall in equal steps, the largest is chosen as often as by the exponential "
        "mechanism",
        table[table.data == Data.LADDER],
        "the largest gap in {:.0f} of {} first choices",
        "at epsilon_0",
        "IC-DIST, GEN-3",
    )
    yield as_often(
        "if all other gaps are F(epsilon_0) below the largest gap, another gap is chosen with the "
        "exact probability",
        table[table.data == Data.CLIFF],
        "in {:.0f} of {} choices",
        f"at most gamma = {WORSE}",
        "IC-DIST",
    )


def ends_at_the_level(table: pd.DataFrame) -> ex.Claim:
    """The largest error at the end of runs that start with an error above 3 alpha / 4."""
    started = table[table.untouched > LEVEL_OF_TEST * table.alpha]
    shares = np.sqrt(started.mean_square) / started.alpha
    low, high = LEVEL_OF_TEST - 1 / 4, LEVEL_OF_TEST + 1 / 8
    return ex.Claim(
        "runs end with a largest error near 3 alpha / 4, or below it by up to one update",
        ex.between(shares, low, high),
        f"root mean squares {shares.min():.3f} to {shares.max():.3f} times alpha in {len(shares)} "
        "cells",
        f"{low:g} to {high:g}: an update changes the error by at most alpha / 4, noise is below "
        "alpha / 8",
        "IC-ALG",
    )


def as_often(name: str, table: pd.DataFrame, words: str, theory: str, id: str) -> ex.Claim:
    """A two-sided test that choices are made with their exact probability."""
    hits, runs = table[["hits", "worse"]].sum().max(), table.runs.sum()
    chance = float(table.chance.iloc[0])
    value = scipy.stats.binomtest(int(hits), int(runs), chance).pvalue
    measured = f"{words.format(hits, runs)}, p-value {value:.2g} (binomial)"
    theory = f"with probability {chance:.3f}, {theory}"
    return ex.Claim(name, ex.not_rare(value, ex.LEVEL), measured, theory, id)


def promises(table: pd.DataFrame) -> ex.Claims:
    """Errors, steps and budgets of the runs, and how the promised alpha depends on n."""
    points = table.groupby(POINT, as_index=False).agg(
        within=("within", "sum"), releases=("releases", "sum"), alpha=("alpha", "first")
    )
    tails = scipy.stats.binom.cdf(points.within, points.releases, 1 - BETA)
    slopes = {
        (str(privacy), constants): float(np.polyfit(np.log(rows.n), np.log(rows.alpha), 1)[0])
        for (privacy, constants), rows in points.groupby(["privacy", "constants"])
    }
    wide = points.pivot(index=["privacy", "n"], columns="constants", values="alpha")
    ratio = wide[Constants.CORRECTED] / wide[Constants.PRINTED]
    factors = ratio / ratio.index.get_level_values("privacy").map(FACTORS)
    yield ex.Claim(
        f"all {1 << BITS} parities are answered within alpha; with printed constants, within "
        "3 alpha / 2",
        ex.not_rare(tails, ex.LEVEL / len(points)),
        f"{points.within.sum():.0f} of {points.releases.sum():.0f} runs, {len(points)} points",
        f"probability at least {1 - BETA} at each",
        "IC-T5",
    )
    yield ex.Claim(
        "no run makes more than floor(B(alpha / 2)) updates, and some make several",
        ex.at_most(table.steps, table.updates_allowed) & ex.in_order(table.steps.max() > 1),
        f"at most {(table.steps / table.updates_allowed).max():.3f} times the number allowed; "
        f"at most {table.steps.max():.0f} updates",
        "at most 1 times; more than one update in some run",
        "IC-ALG",
    )
    name = "the two private steps of all rounds together keep within the budget"
    measured = f"epsilon at most {table.spent.max():.6f}"
    yield ex.Claim(name, ex.at_most(table.spent, 1 + 1e-12), measured, "at most 1", "IC-T4")
    yield ex.Claim(
        "up to logarithms, the promised alpha falls as n^(-1/3) under pure DP and as n^(-1/2) "
        "under approximate DP",
        # The logarithm of the number of steps makes alpha fall a little slower.
        ex.between([slope - POWERS[privacy] for (privacy, _), slope in slopes.items()], 0, 0.06),
        ", ".join(f"{privacy} {slope:.3f}" for (privacy, _), slope in slopes.items()),
        "from -1/3 to -0.273; from -1/2 to -0.44",
        "IC-T5",
    )
    yield ex.Claim(
        "the printed constants promise an alpha that is smaller by a factor 4^(1/3) under "
        "pure DP and 2 under approximate DP",
        ex.between(factors, 0.95, 1.0),
        f"smaller by factors {ratio.min():.2f} to {ratio.max():.2f}",
        "these factors, or up to 5% less because of logarithms",
        "IC-T5, DISC-13",
    )


LOOKS = Constants.looks()
PROMISED = {Constants.CORRECTED: r"$\alpha$, corrected", Constants.PRINTED: r"$3\alpha/2$, printed"}
PRINTED_ALPHA = r"$\alpha$, printed"
NO_UPDATE = "uniform start"


def plot(table: pd.DataFrame) -> ex.Figure:
    titles = ["1-DP", r"$(1,10^{-6})$-DP"]
    ylabel = f"largest error of {1 << BITS} parities"
    figure, panels = ex.panels((7.2, 3.8), titles, "number of records $n$", ylabel, sharey=True)
    table = table[table.data == Data.SHARES]
    for axes, privacy in zip(panels, PRIVACY, strict=True):
        for constants, look in LOOKS.items():
            rows = table[(table.privacy == privacy) & (table.constants == constants)]
            promised = rows.groupby("n")[["alpha", "guaranteed", "untouched"]].first()
            n = promised.index
            if constants is Constants.PRINTED:
                ex.draw_theory(axes, n, promised.alpha, look.colour, PRINTED_ALPHA, (1, 1.5))
            else:
                dashes = (4, 1.5, 1, 1.5)
                ex.draw_theory(axes, n, promised.untouched, "0.5", NO_UPDATE, dashes)
            ex.draw_theory(axes, n, promised.guaranteed, look.colour, PROMISED[constants])
            ex.draw_measured(axes, ex.pooled_along(rows, "n"), look, constants)
        ex.log_axes(axes)
    ex.label_curves(panels[1])
    return ex.headline(
        figure,
        r"The printed constants look better, but do not prove their $\mathbf{\alpha}$",
        r"They aim at a smaller $\alpha$ for the same budget, but a run may end while a query is"
        "\n"
        r"off by $3\alpha/2$: the search for the worst query can miss it.",
    )


def grid(exponents: dict[str, tuple[float, ...]], runs: int, choices: int) -> tuple[Config, ...]:
    """Both guarantees with both sets of constants; ladder and cliff at the least n."""
    ladders = [
        Config(
            Data.LADDER, privacy, Constants.CORRECTED, round(10 ** exponents[privacy][0]), choices
        )
        for privacy in PRIVACY
    ]
    cliffs = [replace(ladder, data=Data.CLIFF, runs=40 * choices) for ladder in ladders]
    return (
        *(
            Config(Data.SHARES, privacy, constants, round(10**exponent), runs)
            for privacy in PRIVACY
            for constants in Constants
            for exponent in exponents[privacy]
        ),
        *ladders,
        *cliffs,
    )


QUICK = ex.Sweep(grid({"pure": (7, 8, 9), "approximate": (6, 7, 7.5)}, runs=5, choices=25))
FULL = ex.Sweep(
    grid(
        {"pure": (7, 7.5, 8, 8.5, 9, 9.5, 10), "approximate": (6, 6.5, 7, 7.5, 8)},
        runs=20,
        choices=200,
    ),
    trials=2,
)
