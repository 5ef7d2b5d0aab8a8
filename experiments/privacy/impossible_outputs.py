"""Noisy answers, computed from one data set, that its neighbour can never give."""

from __future__ import annotations

import math

import numpy as np

import geomdp as gd
from experiments.engine.cells import Row
from geomdp.noise import LaplaceNoise

#: `Generator.laplace` computes noise from uniform numbers in [0, 1) that are multiples of 2^-53.
GRID = 2.0**-53
#: Number of records of a correctly rounded release. It is a power of two, so that dividing by it
#: is exact in float64 and the means lie on a grid.
RELEASED = 64
#: Number of mechanisms among which the releases of a cell are divided.
KINDS = 3


def float_outputs(scale: float, draws: int, rng: np.random.Generator) -> Row:
    """Count noisy versions of the answer 0 that noise added to the answer 1 cannot give.

    `hits` is this count. `unexplained` counts the versions that noise on the answer 0 cannot give.
    """
    released = 0.0 + LaplaceNoise(1, scale).sample(rng, draws)[:, 0]
    explained = {a: [possible(y, a, scale) for y in released.tolist()] for a in (0.0, 1.0)}
    return {"hits": explained[1.0].count(False), "unexplained": explained[0.0].count(False)}


def rounded_outputs(epsilon: float, releases: int) -> Row:
    """Count unseeded releases that the neighbour, or the data set itself, cannot give.

    The noise can be any multiple of the grid's unit. Therefore a data set can give its exact sums
    plus any multiples of the unit.
    """
    privacy, off = gd.PureDP(epsilon), np.zeros(2, dtype=int)
    records = np.zeros((RELEASED, 3), dtype=int)
    neighbour = records.copy()
    neighbour[0] = 1
    for mechanism in (
        gd.mechanisms.Laplace(gd.workloads.Marginals(3, 2), n=RELEASED, privacy=privacy),
        gd.mechanisms.Cone(gd.workloads.Marginals(3, 2), n=RELEASED, privacy=privacy),
        gd.mechanisms.KNorm(gd.workloads.Parities(3, 1), n=RELEASED, privacy=privacy),
    ):
        mechanism.set_up()
        assert mechanism.grid is not None
        sums = [mechanism.workload.totals(each).sums for each in (neighbour, records)]
        count = releases // KINDS
        answers = np.array([mechanism.release(records).answers for _ in range(count)])
        for i, reached in enumerate(sums):
            steps = (answers * RELEASED - reached) * 2.0**mechanism.grid
            off[i] += int((steps != np.rint(steps)).any(axis=1).sum())
    return {"hits": int(off[0]), "unexplained": int(off[1])}


def possible(output: float, answer: float, scale: float) -> bool:
    """Whether some draw of `Generator.laplace` added to `answer` gives `output` in float64.

    A uniform number v gives the noise b ln(2 v) if v < 1/2, and -b ln(2 - 2 v) otherwise, where b
    is `scale`.
    """
    noise = output - answer
    middle = math.exp(-abs(noise) / scale)
    # Try all uniform numbers whose noise can round to the output. To each side, allow amply for the
    # rounding of the output, of the logarithm and of its product with the scale.
    width = middle / scale * (math.ulp(output) + 2 * math.ulp(noise) + 2 * math.ulp(scale))
    reach = math.ceil(width / GRID) + 4
    centre = round((1 - middle / 2 if noise > 0 else middle / 2) / GRID)
    for k in range(max(centre - reach, 1), min(centre + reach + 1, round(1 / GRID))):
        v = k * GRID
        found = -scale * math.log(2 - v - v) if v >= 0.5 else scale * math.log(v + v)
        if answer + found == output:
            return True
    return False
