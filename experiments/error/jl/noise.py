"""The noise that the JL mechanism adds to its measurements, before its least-squares step."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd

import geomdp as gd
from experiments.engine import margins
from experiments.engine.cells import Row
from experiments.engine.claims import Claim
from experiments.engine.statistics import LEVEL, MeanSquare, quantile

#: Draws of the noise in one cell.
DRAWS = 100


def noise_columns(M: gd.mechanisms.Mechanism, rng: np.random.Generator) -> Row:
    """Mean square of measurement noise divided by its stated value; empty if `M` is not JL.

    The sums are set to S = 0. Then A S = 0 for every map A, and a measurement is noise alone.
    """
    if not isinstance(M, gd.mechanisms.JL):
        return {}
    zero = np.zeros(M.workload.n_queries)
    stated = M.inner.predicted_rmse.value**2
    squares = [np.mean(M.draw(rng)(zero) ** 2) / stated for _ in range(DRAWS)]
    measured = MeanSquare.of(squares)
    return {"noise": measured.value, "noise_stderr": measured.stderr}


def measurements_have_their_noise(table: pd.DataFrame) -> Claim:
    """Two-sided: the noise has the mean square of the ball mechanism for the mapped workload."""
    off = ((table.noise - 1) / table.noise_stderr).abs()
    reach = quantile(LEVEL / (2 * len(table)), DRAWS)
    return Claim(
        "the JL mechanism adds the noise of the ball mechanism to the mapped answers",
        bool((off <= reach).all()),
        f"{len(table)} maps, mean squares {table.noise.min():.3f} to {table.noise.max():.3f} of "
        f"the stated ones, off by at most {off.max():.1f} standard errors",
        f"1 within {reach:.1f} standard errors",
        "JL-A1, JL-L15",
        used=margins.share(off, reach),
    )


#: Number of queries, dimension and l2 diameter of all 2-way tables of ten binary columns.
MARGINALS = (180, 55, math.sqrt(90))
