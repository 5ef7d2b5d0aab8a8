"""Half-lengths of confidence intervals from concentration inequalities, for any sample size n."""

from __future__ import annotations

import math


def gaussian_deviation(lipschitz: float, samples: int, level: float) -> float:
    """Deviation t of the mean of f(g_1), ..., f(g_n): Pr[|mean - E f| >= t] <= `level`.

    Let f be Lipschitz with constant L = `lipschitz`, and let g_1, ..., g_n be independent standard
    Gaussian vectors, n = `samples`. The mean of f(g_1), ..., f(g_n) is a function of all g_i
    together, with Lipschitz constant L / sqrt(n). Therefore
    Pr[|mean - E f| >= t] <= 2 exp(-n t^2 / (2 L^2)) (Tsirelson, Ibragimov and Sudakov 1976).
    """
    return lipschitz * math.sqrt(2 * math.log(2 / level) / samples)


def hoeffding_deviation(span: float, samples: int, level: float) -> float:
    """Deviation t of a mean of n bounded variables: Pr[|mean - E mean| >= t] <= `level`.

    The n = `samples` variables are independent, each in an interval of length `span`. Then
    Pr[|mean - E mean| >= t] <= 2 exp(-2 n t^2 / span^2) (Hoeffding 1963).
    """
    return span * math.sqrt(math.log(2 / level) / (2 * samples))
