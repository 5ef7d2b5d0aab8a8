"""How much a random map shortens distances of vertices, beside the distortion that JL states."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cache

import numpy as np
import numpy.typing as npt
import pandas as pd

import geomdp as gd
from experiments.engine import margins
from experiments.engine.cells import Row
from experiments.engine.checks import stays_below_prediction
from experiments.engine.claims import Claim
from experiments.shared.records import Queries, workload

#: The largest loss of a distance between vertices, as a mean over maps, must be at least this share
#: of the stated distortion. The bound is a sum of two suprema over the body, and pairs of vertices
#: attain about half of each. The share was set after a first look (0.48 to 0.73 for single maps).
LEAST = 0.4


@cache
def vertices(queries: Queries) -> npt.NDArray[np.float64]:
    """Answers (N, k) of data sets that hold one element only."""
    Q = workload(queries)
    return np.vstack([Q.answers(each[None]) for each in Q.universe.elements(0, Q.universe.size)])


def distances(points: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Euclidean distances (N, N) of all pairs of points (N, k)."""
    squares = (points**2).sum(axis=1)
    return np.asarray(np.sqrt(np.maximum(squares[:, None] + squares - 2 * points @ points.T, 0.0)))


def distortion_columns(queries: Queries, M: gd.mechanisms.Mechanism) -> Row:
    """Largest loss of a distance by the map, and the stated bound on its mean; empty if not JL.

    The distortion delta(A) of a map A is a maximum over all pairs of points of the polytope, so the
    loss is at most delta(A).
    """
    if not isinstance(M, gd.mechanisms.JL):
        return {}
    V = vertices(queries)
    lost = float((distances(V) - distances(V @ M.matrix.T)).max())
    return {
        "distortion": lost,
        "stated_distortion": M.mean_distortion,
        "diameter": M.workload.l2_diameter() / math.sqrt(M.workload.n_queries),
    }


def stays_below_where_it_says_more(table: pd.DataFrame, keys: Sequence[str]) -> Claim:
    """Claim that errors with a map stay below their bound, where the diameter is larger."""
    return stays_below_prediction(
        "JL stays below its bound, where this is less than the diameter",
        "JL-L13",
        table[table.predicted < (1 - 1e-9) * table.diameter],
        keys,
    )


def maps_distort(table: pd.DataFrame) -> Claim:
    """Two-sided: at a point, the mean loss over maps is `LEAST` to 1 of the bound on delta(A)."""
    points = table.groupby(["queries", "data", "n"])[["distortion", "stated_distortion"]].mean()
    # A stated distortion of 0 has an infinite share.
    with np.errstate(divide="ignore"):
        shares = points.distortion.to_numpy() / points.stated_distortion.to_numpy()
    return Claim(
        "JL maps shorten distances between vertices by two fifths of what is stated or more",
        bool((shares >= LEAST).all() and (shares <= 1).all()),
        f"{len(table)} maps, means at {len(points)} points {shares.min():.3f} to "
        f"{shares.max():.3f} of the stated distortion",
        f"{LEAST:g} to 1",
        "JL-T9, JL-L13",
        used=margins.position(shares, LEAST, 1.0),
    )
