"""Exact privacy loss of additive noise: how much of epsilon the worst neighbours really use.

Papers: Hardt and Talwar 2010, "On the geometry of differential privacy" (K-norm noise); Nikolov
2022 (arXiv 2208.07410), Lemmas 14 and 15; Balle and Wang 2018 (Gaussian). Formula sheet GEN-2,
GEN-3, JL-KN, JL-L14, JL-L15.

Claim: for answers that move by s and noise Z of density f, the privacy loss is
L = ln f(Z) - ln f(Z - s). Let s be a vertex of the sensitivity body. The loss of K-norm noise then
never exceeds epsilon, and its mean is at most epsilon tanh(epsilon / 2), the mean loss of
randomised response. The least delta for which the noise is (t, delta)-DP is
delta(t) = E (1 - e^(t - L))_+. This delta(t) falls to 0 at t = epsilon. For one query it falls as
1 - e^((t - epsilon) / 2). For 32 one-way marginals, Laplace and ball noise are far larger than
needed: their mean loss is about a thirtieth of epsilon tanh(epsilon / 2). K-norm noise of the cube
itself has the loss epsilon with probability 1/2, as Laplace noise has for one query. The loss of
Gaussian noise of rho = epsilon^2 / 2 can exceed epsilon.

Losses are exact numbers for each draw; delta and means are averages over independent draws. Run
time on one core: quick 3 s, full 30 s.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import pandas as pd

import experiments.engine.tools as ex
import geomdp as gd
from geomdp.geometry.sampling import ExactSampler
from geomdp.noise import GaussianNoise, KNormNoise, LaplaceNoise

EPSILON = 1.0
#: Number of queries, and dimension of the noise, for all families except `Family.ONE`.
DIMENSION = 32
#: Thresholds t at which delta and the tail are recorded.
THRESHOLDS = np.linspace(-EPSILON, 2 * EPSILON, 61)
#: Values of delta up to this number are taken for rounding errors.
ROUNDING = 1e-9


class Noise(Protocol):
    """Noise with a known density."""

    def sample(self, rng: np.random.Generator, size: int) -> ex.FloatArray: ...

    def log_density_ratio(self, points: ex.FloatArray, shifts: ex.FloatArray) -> ex.FloatArray: ...


class Family(ex.Curve):
    """Kinds of noise, in the order of the legend."""

    ONE = "one query, Laplace", "C1", "o", ex.HOLLOW
    LAPLACE = f"{DIMENSION} queries, Laplace", "C1", "s"
    CUBE = f"{DIMENSION} queries, cube noise", "C0", "v"
    BALL = f"{DIMENSION} queries, ball noise", "C5", "D"
    GAUSSIAN = "Gaussian", ex.GREY, "^", ex.HOLLOW


@dataclass(frozen=True)
class Config:
    family: Family  # Noise
    draws: int  # Independent draws in one cell


def noise_and_shift(family: Family) -> tuple[Noise, ex.FloatArray]:
    """The noise at budget epsilon, and a largest move of the answers.

    The records hold one bit for each query, so answers move by a vector of the cube [-1, 1]^m. The
    corners are the largest moves. Laplace noise is K-norm noise of an l1 ball that contains the
    cube, and ball noise is K-norm noise of an l2 ball that contains the cube.
    """
    m = 1 if family is Family.ONE else DIMENSION
    corner = np.ones(m)
    bodies: dict[Family, Callable[[], gd.bodies.Body]] = {
        Family.CUBE: lambda: gd.bodies.Box.centred(corner),
        Family.BALL: lambda: gd.bodies.Ball(m, math.sqrt(m)),
    }
    if family in bodies:
        body = bodies[family]()
        return KNormNoise(body, EPSILON, ExactSampler(body)), corner
    if family is Family.GAUSSIAN:
        scale = gd.privacy.gaussian_scale(math.sqrt(m), gd.ZCDP(EPSILON**2 / 2))
        return GaussianNoise(np.eye(m), scale), corner
    return LaplaceNoise(m, m / EPSILON), corner


def exact_delta(family: Family, t: float) -> float | None:
    """delta(t) in closed form for t > 0; None if there is no closed form."""
    if family is Family.ONE:
        return max(1 - math.exp((t - EPSILON) / 2), 0.0)
    if family is Family.GAUSSIAN:
        return gd.privacy.gaussian_delta(1.0, 1 / EPSILON, t)  # noise of rho = epsilon^2 / 2
    return None


def compute(config: Config, rng: np.random.Generator) -> ex.Rows:
    """delta(t) and Pr[L > t] over the thresholds, and means of L and e^-L."""
    noise, shift = noise_and_shift(config.family)
    points = noise.sample(rng, config.draws)
    losses = noise.log_density_ratio(points, np.broadcast_to(shift, points.shape))
    whole = {
        "largest": float(losses.max()),
        "mean": float(losses.mean()),
        "mean_stderr": stderr(losses),
        "unit": float(np.exp(-losses).mean()),
        "unit_stderr": stderr(np.exp(-losses)),
    }
    for t in THRESHOLDS:
        gains = np.maximum(1 - np.exp(t - losses), 0.0)
        known = exact_delta(config.family, float(t)) if t > 0 else None
        row = {"threshold": float(t), "beyond": float((losses > t + ROUNDING).mean())}
        row |= {"delta": float(gains.mean()), "delta_stderr": stderr(gains)}
        yield {**row, "exact_delta": known, **whole}


def stderr(values: ex.FloatArray) -> float:
    """Standard error of a mean of independent values."""
    return float(values.std(ddof=1)) / math.sqrt(len(values))


PURE = (Family.ONE, Family.LAPLACE, Family.CUBE, Family.BALL)


def claims(table: pd.DataFrame) -> ex.Claims:
    once = table.groupby("family").first()
    pure = once.loc[[*PURE]]
    tail = ex.quantile(ex.LEVEL / (2 * len(once)), int(once.draws.min()))
    off = ((once.unit - 1) / once.unit_stderr).abs().max()
    known = table[table.exact_delta > ROUNDING]
    closed = ((known.delta - known.exact_delta) / known.delta_stderr).abs()
    reach = ex.quantile(ex.LEVEL / (2 * len(known)), int(known.draws.min()))
    at_epsilon = table[table.family.isin(PURE) & (table.threshold >= EPSILON)]
    statement = "noise for pure DP never loses more than epsilon"
    verdict = ex.at_most(pure.largest, EPSILON * (1 + 1e-9))
    measured = f"largest of {int(pure.draws.sum()):,} losses {pure.largest.max():.12f}"
    yield ex.Claim(statement, verdict, measured, f"at most {EPSILON:g}", "JL-L14")
    statement = "the delta of noise for pure DP is 0 from t = epsilon on"
    measured = f"at most {at_epsilon.delta.max():.1e}"
    yield ex.Claim(statement, ex.at_most(at_epsilon.delta, ROUNDING), measured, "0", "GEN-2")
    statement = "the mean loss of noise for pure DP is at most that of randomised response"
    most = EPSILON * math.tanh(EPSILON / 2)
    verdict = ex.at_most(pure["mean"], most + tail * pure.mean_stderr + 1e-12)
    measured = ", ".join(f"{name}: {value:.4f}" for name, value in pure["mean"].items())
    theory = f"at most epsilon tanh(epsilon / 2) = {most:.4f}"
    yield ex.Claim(statement, verdict, measured, theory, "GEN-2")
    statement = "densities are normalised: the mean of e^-L is 1"
    measured = f"{len(once)} kinds of noise, off by at most {off:.1f} standard errors"
    theory = f"within {tail:.1f} standard errors"
    yield ex.Claim(statement, ex.at_most(off, tail), measured, theory, "JL-KN")
    claim = "the deltas of one Laplace query and of Gaussian noise agree with their closed forms"
    found = f"{len(known)} points, off by at most {closed.max():.1f} standard errors"
    expected = f"within {reach:.1f} standard errors"
    yield ex.Claim(claim, ex.at_most(closed, reach), found, expected, "GEN-3, Balle and Wang 2018")


LOOKS = Family.looks()
#: Width of a line, and the first of its marked points. Two pairs of curves coincide: the wider line
#: shows on both sides of the thinner one, and their marks take turns.
LINES = {
    Family.ONE: (4.0, 0),
    Family.LAPLACE: (4.0, 0),
    Family.CUBE: (1.4, 2),
    Family.BALL: (1.4, 2),
    Family.GAUSSIAN: (1.4, 0),
}
CLOSED = "closed form (one query, Gaussian)"
LIMIT = r"$\varepsilon$, the largest loss of pure DP"


def plot(table: pd.DataFrame) -> ex.Figure:
    names = ["losses", r"$\delta$"]
    heights = [r"chance of a larger loss, $\Pr[L > t]$", r"least $\delta(t)$ of $(t, \delta)$-DP"]
    figure, (tail, delta) = ex.panels((7.2, 4.5), names, "privacy loss $t$ (nats)", heights)
    for family, look in LOOKS.items():
        mine = table[table.family == family].sort_values("threshold")
        draw_tail(tail, mine, family, look)
        draw_delta(delta, mine[mine.threshold >= 0], family, look)
    ex.draw_theory(delta, [], [], "black", CLOSED)
    for axes in (tail, delta):
        axes.axvline(EPSILON, color="0.5", lw=1.0, ls=(0, (1, 2)), label=LIMIT)
    delta.set(yscale="log", ylim=(1e-4, None))
    ex.shared_legend(figure, {"noise": [*LOOKS], "theory": [CLOSED, LIMIT]})
    return ex.headline(
        figure,
        r"Pure-DP noise never loses more than $\mathbf{\varepsilon}$; most of it loses far less",
        r"$\varepsilon=1$. Two pairs of curves coincide: their marks take turns.",
    )


def draw_tail(axes: ex.Axes, table: pd.DataFrame, family: Family, look: ex.Look) -> None:
    """Draw Pr[L > t]. For pure DP it is 0 at t >= epsilon, after a jump if Pr[L = epsilon] > 0."""
    width, start = LINES[family]
    marked = table.iloc[start::5]
    ex.draw_points(axes, marked.threshold, marked.beyond, look, family, line="none")
    if family in PURE:
        table = table[table.threshold < EPSILON - ROUNDING]
        end = float(table.beyond.iloc[-1])
        axes.plot([EPSILON] * 2, [end, 0], color=look.colour, lw=width)
        axes.plot([table.threshold.iloc[-1], EPSILON], [end, end], color=look.colour, lw=width)
    axes.plot(table.threshold, table.beyond, color=look.colour, lw=width)


def draw_delta(axes: ex.Axes, table: pd.DataFrame, family: Family, look: ex.Look) -> None:
    """Draw measured delta as markers, over the closed form where there is one."""
    shown = table[table.delta > ROUNDING]
    width, start = LINES[family]
    marked = shown.iloc[start::4]
    ex.draw_points(axes, marked.threshold, marked.delta, look, "_", line="none")
    axes.plot(shown.threshold, shown.delta, color=look.colour, lw=width)
    end = EPSILON - ROUNDING if family in PURE else THRESHOLDS[-1]
    t = np.append(np.linspace(0, end, 400), end)[1:]
    known = [exact_delta(family, each) for each in t.tolist()]
    if None not in known:
        ex.draw_theory(axes, t, np.array(known, dtype=float), "black", "_", (3, 3))


QUICK = ex.Sweep(ex.product(Config, Family, 40_000))
FULL = ex.Sweep(ex.product(Config, Family, 1_000_000))
