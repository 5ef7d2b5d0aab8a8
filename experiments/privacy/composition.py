"""Composition of pure steps: what the theorems promise, and what is exactly true.

Papers: Dwork and Roth 2014, Theorem 3.20 and Corollary 3.21; Blum and Roth 2011, Theorem 2.10; Bun
and Steinke 2016; Kairouz, Oh and Viswanath 2015. Formula sheet GEN-2, GEN-2a, GEN-2b, BR-T2.10.

Claim: T pure steps of epsilon_0 never lose more privacy than T randomised responses. The total loss
of these is (2 B - T) epsilon_0 with B binomial, which gives the exact total epsilon for each delta.
The sum of the epsilons, advanced composition and zCDP never give a smaller total. The sum grows as
T, the others about as sqrt(T) while sqrt(T) epsilon_0 is small. Blum and Roth's shortcut allows
steps of epsilon / sqrt(8 T ln(1/delta)). Within a budget of (1, 1e-6) such a step is between half
and all of the epsilon_0 that advanced composition allows. The shortcut follows from advanced
composition for epsilon <= 1 and delta <= 1/2. At epsilon = 1 it follows up to delta = 0.709 for one
step and up to e^(-1/4) for many steps. It does not follow for every delta below 1, although it is
printed for all. Exact composition shows no violation up to delta = 0.99; the figure `corrections`
shows one from 0.997 on.

All numbers are exact except the simulated losses of steps. Run time on one core: quick 2 s, full
30 s.
"""

import enum
import math
from dataclasses import dataclass

import numpy as np
import pandas as pd
import scipy.optimize

import experiments.engine.tools as ex
import geomdp as gd
from experiments.shared import composition_rules as rules
from experiments.shared.composition_rules import DELTA, STEP, Rule, exact_epsilon, shortcut_limit
from geomdp.mechanisms.printed import printed_shortcut_step
from geomdp.noise import LaplaceNoise

#: Exact delta of randomised responses at the epsilon for which simulated losses are evaluated.
MEASURED = 0.01
#: Values of delta at which the shortcut is compared with exact composition, for epsilon = 1.
SLACKS = (1e-6, 1e-3, 0.05, 0.2, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.99)
#: Largest delta at which the shortcut follows from advanced composition for one step at
#: epsilon = 1, to three decimals (GEN-2b).
ONE_STEP = 0.709
#: Largest relative difference that `tends_to_gaussian` allows between the epsilon of many shortcut
#: steps and the epsilon of Gaussian noise.
NEAR_LIMIT = 0.03


class Quantity(enum.StrEnum):
    """The quantity that a row holds."""

    TOTAL = "total epsilon"
    ALLOWED = "epsilon of a step"
    LIMIT = "largest delta"
    NEEDED = "exact epsilon of the shortcut"
    SIMULATED = "delta"


class Step(enum.StrEnum):
    """Simulated steps."""

    RESPONSE = "randomised response"
    LAPLACE = "Laplace"


@dataclass(frozen=True)
class Config:
    """One number of steps."""

    steps: int  # T
    draws: int  # Simulated compositions of T steps of each kind


def compute(config: Config, rng: np.random.Generator) -> list[ex.Row]:
    """Rows for one number of steps T."""
    T = config.steps
    last = shortcut_limit(T)
    rows: list[ex.Row] = [
        *[{"quantity": Quantity.TOTAL, "rule": r, "value": v} for r, v in rules.totals(T).items()],
        *[
            {"quantity": Quantity.ALLOWED, "rule": r, "value": v}
            for r, v in rules.allowed(T).items()
        ],
        {"quantity": Quantity.LIMIT, "rule": Rule.SHORTCUT, "value": last},
    ]
    for delta in SLACKS:
        needed = exact_epsilon(printed_shortcut_step(1.0, delta, T), T, delta)
        rows.append(
            {"quantity": Quantity.NEEDED, "rule": Rule.EXACT, "value": needed, "delta": delta}
        )
    return [*rows, *simulated(config, rng)]


def simulated(config: Config, rng: np.random.Generator) -> ex.Rows:
    """delta of simulated losses, at the epsilon where randomised responses have delta MEASURED."""
    T = config.steps
    epsilon = exact_epsilon(STEP, T, MEASURED)
    laplace = LaplaceNoise(1, 1 / STEP)
    losses = {Step.RESPONSE: np.zeros(config.draws), Step.LAPLACE: np.zeros(config.draws)}
    for _ in range(T):
        truths = rng.random(config.draws) < 1 / (1 + math.exp(-STEP))
        losses[Step.RESPONSE] += np.where(truths, STEP, -STEP)
        points = laplace.sample(rng, config.draws)
        losses[Step.LAPLACE] += laplace.log_density_ratio(points, np.ones_like(points))
    for kind, loss in losses.items():
        gains = -np.expm1(np.minimum(epsilon - loss, 0.0))
        stderr = float(gains.std(ddof=1)) / math.sqrt(config.draws)
        yield {"quantity": Quantity.SIMULATED, "rule": kind, "value": float(gains.mean()),
             "stderr": stderr}  # fmt: skip


def claims(table: pd.DataFrame) -> ex.Claims:
    total, step = (
        table[table.quantity == name].pivot_table(index="steps", columns="rule", values="value")
        for name in (Quantity.TOTAL, Quantity.ALLOWED)
    )
    promised = total.drop(columns=Rule.EXACT)
    least = promised.div(total[Rule.EXACT], axis=0)
    given = step.drop(columns=Rule.EXACT).div(step[Rule.EXACT], axis=0)
    many = total.index >= 2 * math.log(1 / DELTA)
    share = step[Rule.SHORTCUT] / step[Rule.ADVANCED]
    yield ex.Claim(
        "no rule states a total epsilon below the exact one, and none allows steps that are "
        "too large",
        ex.at_most([1 / least.min(axis=None), given.max(axis=None)], 1 + 1e-9),
        f"{least.size} totals, at least {least.min(axis=None):.4f} times the exact one; "
        f"{given.size} steps, at most {given.max(axis=None):.4f} times the exact one",
        "at least 1; at most 1",
        "GEN-2a",
    )
    yield ex.Claim(
        "for (1, 1e-6)-DP, advanced composition allows larger steps than the sum for more than "
        "2 ln(1/delta) steps",
        ex.each_case(((step[Rule.ADVANCED] > step[Rule.BASIC]) == many).all()),
        "for T = " + ", ".join(str(t) for t in step.index[step[Rule.ADVANCED] > step[Rule.BASIC]]),
        f"for each T above {2 * math.log(1 / DELTA):.1f} and no other",
        "GEN-2a",
    )
    yield ex.Claim(
        "the shortcut allows steps of 1/2 to 1 times the size that advanced composition allows",
        ex.between(share, 0.5, 1) & ex.in_order((share < 1).all()),
        f"{share.min():.4f} to {share.max():.4f} times that size",
        "0.5 to 1",
        "GEN-2b, BR-T2.10",
    )
    yield limits(table)
    found = table[table.quantity == Quantity.NEEDED]
    yield ex.Claim(
        "the printed shortcut holds for pure steps up to delta = 0.99, also where it is not proved",
        ex.at_most(found.value, 1),
        f"{len(found)} pairs of T and delta up to {found.delta.max():g}, exact epsilon at most "
        f"{found.value.max():.4f}",
        "at most 1",
        "BR-T2.10",
    )
    yield tends_to_gaussian(table)
    yield from agreement(table[table.quantity == Quantity.SIMULATED])


def limits(table: pd.DataFrame) -> ex.Claim:
    """The largest delta at which the shortcut follows from advanced composition."""
    found = table[table.quantity == Quantity.LIMIT].groupby("steps").value.first()
    limit = math.exp(-0.25)
    first, last = found[1], found.iloc[-1]
    name = "advanced composition proves the shortcut up to a delta that rises with T to e^(-1/4)"
    verdict = ex.Verdict(
        bool(abs(first - ONE_STEP) <= 0.0005 and 0.99 * limit < last < limit)
        and found.is_monotonic_increasing,
        ex.offset(first, ONE_STEP, 0.0005),
    )
    measured = f"{first:.4f} at T = 1, rising to {last:.4f} at T = {found.index[-1]}"
    theory = f"at epsilon = 1, {ONE_STEP} at T = 1, rising to {limit:.4f}"
    return ex.Claim(name, verdict, measured, theory, "GEN-2b")


def gaussian_epsilon(delta: float) -> float:
    """The epsilon, at this delta, of the Gaussian noise that many shortcut steps tend to.

    For epsilon = 1 the shortcut takes T steps of epsilon_0 = mu / sqrt(T), where mu = 1 / sqrt(8
    ln(1/delta)). For large T the distribution of their total loss tends to the distribution for
    Gaussian noise of standard deviation 1 / mu on an answer of sensitivity 1. The result is 0 if
    this noise is (0, delta)-DP.
    """
    scale = math.sqrt(8 * math.log(1 / delta))

    def excess(epsilon: float) -> float:
        return gd.privacy.gaussian_delta(1.0, scale, epsilon) - delta

    return float(scipy.optimize.brentq(excess, 1e-12, 1.0)) if excess(1e-12) > 0 else 0.0


def tends_to_gaussian(table: pd.DataFrame) -> ex.Claim:
    """The exact epsilon of many shortcut steps is close to the epsilon of Gaussian noise."""
    found = table[(table.quantity == Quantity.NEEDED) & (table.steps == table.steps.max())]
    limits = found.delta.map(gaussian_epsilon)
    some = limits > 0
    off = float((found.value[some] / limits[some] - 1).abs().max())
    return ex.Claim(
        "the exact epsilon of many shortcut steps is nearly that of Gaussian noise",
        ex.at_most(off, NEAR_LIMIT) & ex.each_case((found.value[~some] == 0).all()),
        f"at T = {found.steps.max()} off by {off:.2%} at most; the largest epsilon is "
        f"{found.value.max():.3f}, at delta = {found.delta.min():g}, where 1 is promised",
        f"within {NEAR_LIMIT:.0%}",
        "GEN-2b, BR-T2.10",
    )


def agreement(found: pd.DataFrame) -> ex.Claims:
    """Simulated randomised responses have the exact delta; Laplace steps have no larger delta."""
    reach = ex.quantile(ex.LEVEL / (2 * len(found)), int(found.draws.min()))
    response, laplace = (found[found.rule == kind] for kind in Step)
    off = ((response.value - MEASURED) / response.stderr).abs()
    name = "simulated randomised responses have the exact delta"
    measured = f"{len(off)} values of T, off by at most {off.max():.1f} standard errors"
    theory = f"{MEASURED:g} within {reach:.1f} standard errors"
    yield ex.Claim(name, ex.at_most(off, reach), measured, theory, "GEN-2")
    name = "the delta of composed Laplace steps is at most that of randomised responses"
    verdict = ex.at_most(laplace.value, MEASURED + reach * laplace.stderr)
    measured = f"delta {laplace.value.min():.5f} to {laplace.value.max():.5f}"
    theory = f"at most {MEASURED:g}, or {reach:.1f} standard errors above it"
    yield ex.Claim(name, verdict, measured, theory, "GEN-2, GEN-3")


LOOKS = {
    Rule.BASIC: ex.Look(ex.GREY, "s"),
    Rule.ADVANCED: ex.Look("C4", "^"),
    Rule.SHORTCUT: ex.Look("C5", "D", filled=False),
    Rule.ZCDP: ex.Look("C2", "v"),
    Rule.EXACT: ex.Look("C0", "o"),
}
NAMES = {Rule.SHORTCUT: "shortcut of\nBlum and Roth", Rule.ADVANCED: "advanced"}
ROOT = r"power $\pm 1/2$"


def plot(table: pd.DataFrame) -> ex.Figure:
    titles = [rf"steps of $\varepsilon_0={STEP:g}$", r"budget $\varepsilon=1$"]
    heights = [r"total $\varepsilon$ at $\delta=10^{-6}$", r"$\varepsilon_0$ of a step"]
    figure, panels = ex.panels((7.2, 3.7), titles, "number of steps $T$", heights)
    for axes, name in zip(panels, (Quantity.TOTAL, Quantity.ALLOWED), strict=True):
        for rule, look in LOOKS.items():
            mine = table[(table.quantity == name) & (table.rule == rule)].sort_values("steps")
            ex.draw_points(axes, mine.steps, mine.value, look, NAMES.get(rule, rule))
        exact = table[(table.quantity == name) & (table.rule == Rule.EXACT)].sort_values("steps")
        power = 0.5 if name is Quantity.TOTAL else -0.5
        root = exact.value.iloc[-1] * (exact.steps / exact.steps.iloc[-1]) ** power
        ex.draw_theory(axes, exact.steps, root, "black", ROOT, (1, 2))
        ex.log_axes(axes)
    ex.label_curves(panels[1])
    result = "Exact composition allows the largest steps, and zCDP loses little of them"
    settings = r"Pure steps of $\varepsilon_0$, added up at $\delta=10^{-6}$."
    return ex.headline(figure, result, settings)


QUICK = ex.Sweep(ex.product(Config, (1, 10, 100, 1000), 2000))
FULL = ex.Sweep(ex.product(Config, (1, 2, 3, 5, 10, 20, 30, 50, 100, 200, 300, 500, 1000), 100_000))
