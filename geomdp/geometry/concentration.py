"""Half-lengths of confidence intervals from concentration inequalities, for any sample size n."""

from __future__ import annotations

import math


def gaussian_deviation(lipschitz: float, samples: int, level: float) -> float:
    """Deviation t of a mean of n `samples`: Pr[|mean of f(g_i) - E f| >= t] <= `level`.

    For independent standard Gaussian vectors g_i and f of Lipschitz constant L = `lipschitz`, this
    is at most 2 exp(-n t^2 / (2 L^2)) (Tsirelson, Ibragimov and Sudakov 1976).
    """
    return lipschitz * math.sqrt(2 * math.log(2 / level) / samples)


def hoeffding_deviation(span: float, samples: int, level: float) -> float:
    """Deviation t of a mean of n independent variables: Pr[|mean - E mean| >= t] <= `level`.

    For variables in intervals of length `span` it is at most 2 exp(-2 n t^2 / span^2) (Hoeffding
    1963).
    """
    return span * math.sqrt(math.log(2 / level) / (2 * samples))
