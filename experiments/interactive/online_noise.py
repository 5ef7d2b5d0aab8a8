"""The noise of values that an online construction releases: its law, and how it falls with n."""

from __future__ import annotations

import math

import pandas as pd
import scipy.stats

from experiments.engine import margins
from experiments.engine.checks import slopes_lie_within
from experiments.engine.claims import Claim
from experiments.engine.statistics import LEVEL, MeanSquare, log_log_slope
from experiments.interactive.online_gaps import solved_accuracy, sparse_updates, value_scale


def has_its_noise(table: pd.DataFrame) -> Claim:
    """Moduli of Laplace noise are exponential, so their sum has a Gamma law."""
    count, total = int(table["values"].sum()), float(table.noise.sum())
    law = scipy.stats.gamma(count)
    chance = 2 * min(law.cdf(total), law.sf(total)) if count else 0.0
    return Claim(
        "released values have Laplace noise of scale 9 sqrt(8 c ln(2/delta)) / (epsilon n)",
        bool(chance > LEVEL),
        f"{count} values, mean modulus {total / max(count, 1):.3f} times the scale, "
        f"p-value {chance:.2g} (Gamma)",
        "1",
        "BR-OIC, SV-NUM",
        used=margins.rarity(chance, LEVEL),
    )


#: Least and largest power of n with which the measured noise may fall. The theorem says -1/2 up to
#: logarithms; -1/3 and -1 are excluded.
POWERS = (-0.6, -0.4)


def falls(table: pd.DataFrame) -> Claim:
    """At the least sparsity, the mean modulus of the noise falls with n at the expected power."""
    m = int(table.sparsity.min())
    sums = table[table.sparsity == m].groupby("n")[["noise", "values"]].sum()
    scales = [value_scale(n, sparse_updates(m, solved_accuracy(n, sparsity=m))) for n in sums.index]
    means = sums.noise / sums["values"] * scales
    # Moduli are exponential, so a mean of v of them has the relative standard error v^(-1/2).
    squares = [
        MeanSquare(mean**2, 2 * mean**2 / math.sqrt(count), int(count))
        for mean, count in zip(means, sums["values"], strict=True)
    ]
    slope = log_log_slope([*sums.index], squares, LEVEL)
    return slopes_lie_within(
        "up to logarithms, the noise of released values falls as n^(-1/2)",
        "BR-T3.8",
        {(f"m = {m}",): slope},
        *POWERS,
    )
