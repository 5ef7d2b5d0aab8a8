"""Half-lengths of confidence intervals by concentration inequalities, which hold at every n."""

from __future__ import annotations

import math


def gaussian_deviation(lipschitz: float, samples: int, level: float) -> float:
    """Deviation t exceeded with probability at most `level` by a mean of n Lipschitz functions.

    The mean is that of f(g_1), ..., f(g_n), where f is Lipschitz with constant L and the g_i are
    independent standard Gaussian vectors. As a function of all g_i together, it is Lipschitz with
    constant L / sqrt(n), so
    Pr[|mean - E f| >= t] <= 2 exp(-n t^2 / (2 L^2)) (Tsirelson, Ibragimov and Sudakov 1976).
    """
    return lipschitz * math.sqrt(2 * math.log(2 / level) / samples)


def hoeffding_deviation(span: float, samples: int, level: float) -> float:
    """Deviation t exceeded with probability at most `level` by a mean of n bounded variables.

    For independent variables in an interval of length `span`,
    Pr[|mean - E| >= t] <= 2 exp(-2 n t^2 / span^2) (Hoeffding 1963).
    """
    return span * math.sqrt(math.log(2 / level) / (2 * samples))
