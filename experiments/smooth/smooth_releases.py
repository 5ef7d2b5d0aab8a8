"""Three kinds of summary for smooth queries, and their worst errors over a family of queries."""

import enum
import math
from dataclasses import dataclass
from functools import cache

import numpy as np
import pandas as pd

import experiments.engine.tools as ex
import geomdp as gd
from experiments.shared import smooth_problems
from geomdp.workloads.smooth import Jackson, Truncation, approximate_many
from geomdp.workloads.smooth.evaluation import Coefficients

#: At most this many answers are given in all releases: the full preset of `smooth_error_vs_n` gives
#: 4.8 million. One answer exceeds its stated error with probability at most LEVEL / ANSWERS.
ANSWERS = 10**7
#: A sum of independent Laplace variables has a log-concave density, so its absolute value exceeds u
#: standard deviations with probability at most exp(1 - u). For u = SPREAD this probability is
#: LEVEL / ANSWERS.
SPREAD = 1 + math.log(ANSWERS / ex.LEVEL)


class Method(enum.StrEnum):
    """Noise and filter, in the order of the legend."""

    PAPER = "uniform noise, Jackson (paper)"
    TRUNCATED = "uniform noise, truncated"
    WEIGHTED = "weighted noise, truncated"


class Panel(enum.StrEnum):
    """The quantity on the horizontal axis of a panel."""

    RECORDS = "records"
    EPSILON = "epsilon"


@dataclass(frozen=True)
class Config:
    d: int  # Number of variables
    smoothness: int  # Number K of bounded derivatives
    method: Method  # Noise and filter
    n: int  # Number of records
    queries: int  # Size of the family
    draws: int  # Releases in one cell, each of records at new places
    epsilon: float  # Epsilon of pure DP
    panel: Panel  # Where the point is shown


# Exponents of n in the results on queries of d variables with bounded derivatives up to order K.


def accuracy(d: int, smoothness: int) -> float:
    """The error falls as n^(-K / (2 d + K)), by Theorem 3.1 of Wang et al. 2013 (SM-T3.1)."""
    return smoothness / (2 * d + smoothness)


def accuracy_of_weighted(d: int, smoothness: int) -> float:
    """The error with weighted noise may fall as n^(-min(1, K / (1.5 d))), up to logarithms.

    This is a hypothesis (SM-X1).
    """
    return min(1.0, smoothness / (1.5 * d))


def summary_time(d: int, smoothness: int) -> float:
    """The time for a summary grows as n^((3 d + K) / (2 d + K)) (SM-TAB)."""
    return (3 * d + smoothness) / (2 * d + smoothness)


def answer_time(d: int, smoothness: int) -> float:
    """The time for an answer grows as n^((d + 2 + 2 d / K) / (2 d + K)), up to logarithms.

    Source: SM-TAB.
    """
    return (d + 2 + 2 * d / smoothness) / (2 * d + smoothness)


@cache
def mechanism(config: Config) -> gd.SmoothSummary:
    """The summary with the noise and the degree that the method of a configuration prescribes."""
    noise = None if config.method is Method.WEIGHTED else gd.mechanisms.UniformLaplace()
    theorem = None if config.method is Method.WEIGHTED else gd.mechanisms.TheoremDegree()
    return gd.SmoothSummary(
        config.d,
        n=config.n,
        smoothness=config.smoothness,
        privacy=gd.PureDP(config.epsilon),
        degree=theorem,
        noise=noise,
    )


@cache
def coefficients(config: Config) -> tuple[Coefficients, ...]:
    """Coefficients of the family under the filter of a configuration."""
    M = mechanism(config)
    chosen = Jackson(config.smoothness) if config.method is Method.PAPER else Truncation()
    family = smooth_problems.kernel_family(config.d, config.smoothness, config.queries)
    return approximate_many(family, M.degree, config.d, chosen)


def worst_errors(config: Config, rng: np.random.Generator) -> ex.Row:
    """Mean square of the family's worst error, and largest ratio of error to stated bound."""
    M, combine = mechanism(config), coefficients(config)
    family = smooth_problems.kernel_family(config.d, config.smoothness, config.queries)
    matrix = smooth_problems.stacked(combine)
    stated = np.array([each.error_bound + SPREAD * each.noise_std(M.noise_std) for each in combine])
    places = smooth_problems.random_places(config.d, config.draws, rng)
    truths = smooth_problems.true_answers(family, places, config.n)
    errors = np.empty(truths.shape)
    for row, here, truth in zip(errors, places, truths, strict=True):
        moments = M.release(smooth_problems.records_at(here, config.n), rng=rng).moments
        row[:] = np.abs(matrix @ moments.ravel() - truth)
    return {
        **ex.MeanSquare.of(errors.max(axis=1) ** 2).columns(),
        "chosen_degree": M.degree,
        "largest_share": float((errors / stated).max()),
    }


def degrees(table: pd.DataFrame, d: int) -> ex.Claim:
    """Degrees per variable are the whole numbers nearest to n^(1/(2 d + K)), and at least 2."""
    powers = table.n ** (1 / (2 * d + table.smoothness))
    wrong = int((table.degree != np.maximum(powers.round(), 2)).sum())
    name = "the degree t is n^(1/(2d+K)) rounded to the nearest whole number, and at least 2"
    measured = (
        f"{wrong} of {len(table)} differ; t from {table.degree.min():.0f} to "
        f"{table.degree.max():.0f}"
    )
    return ex.Claim(name, ex.each_case(wrong == 0), measured, "none differs", "SM-T3.1, SM-TAB")
