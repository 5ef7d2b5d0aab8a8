"""Private covariance of real columns, in the units of the columns."""

from __future__ import annotations

import html
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from geomdp._typing import RandomState
from geomdp.data import Schema, encode, read_chunks
from geomdp.mechanisms import Covariance, Prediction
from geomdp.mechanisms.second_moments.covariance import refuse_private_count
from geomdp.privacy import Adjacency, Exact, Guarantee, Ledger, Privacy
from geomdp.tabulation.columns import chosen_columns
from geomdp.workloads import SecondMoment

if TYPE_CHECKING:
    import pandas as pd
    import polars as pl


@dataclass(frozen=True, eq=False, repr=False)
class CovarianceTable:
    """A private covariance matrix with the names of its columns.

    Parameters
    ----------
    frame : DataFrame
        The covariance matrix in the units of the columns: d rows and d columns, symmetric and
        positive semidefinite.
    guarantee : Guarantee
        The privacy guarantee of the release. With a seed it states that there is none.
    predicted_rmse : Prediction
        Bound on the root mean squared error of the covariance matrix of the mapped columns, which
        lie in [-1, 1] / sqrt(d), see `covariance`. The mean is over the entries of the upper
        triangle, with entries off the diagonal multiplied by sqrt(2).

    Examples
    --------
    >>> import pandas as pd
    >>> import geomdp as gd
    >>> frame = pd.DataFrame({"a": [0.0, 20.0, 40.0], "b": [1.0, 0.5, 0.0]})
    >>> columns = [gd.data.RealColumn("a", (0, 100)), gd.data.RealColumn("b", (0, 1))]
    >>> schema = gd.data.Schema(columns)

    A seed makes this a simulation, which has no guarantee:

    >>> result = gd.tabulation.covariance(frame, schema, privacy=gd.PureDP(1.0), rng=0)
    >>> result.frame.shape, result.frame.columns.tolist()
    ((2, 2), ['a', 'b'])
    >>> str(result.guarantee).split(";")[0]
    'seeded: no privacy claim'
    """

    frame: pd.DataFrame
    guarantee: Guarantee
    predicted_rmse: Prediction

    def __repr__(self) -> str:
        return f"covariance of {len(self.frame)} columns: {self.guarantee}\n{self.frame}"

    def _repr_html_(self) -> str:
        heading = f"covariance of {len(self.frame)} columns: {self.guarantee}"
        return f"<p>{html.escape(heading)}</p>{self.frame.to_html()}"


def covariance(
    records: pd.DataFrame | pl.DataFrame | str | os.PathLike[str],
    schema: Schema,
    *,
    privacy: Privacy,
    n: int | None = None,
    adjacency: Adjacency = Adjacency.REPLACE_ONE,
    columns: Sequence[str] | None = None,
    ledger: Ledger | None = None,
    rng: RandomState = None,
) -> CovarianceTable:
    """Private covariance matrix of real columns with public bounds.

    The d columns with bounds [low, high] are mapped to [-1, 1] and divided by sqrt(d), so that
    records lie in the unit ball of R^d. The covariance matrix of the mapped columns is released,
    and scaled back to the units of the columns.

    Parameters
    ----------
    records, schema : DataFrame of pandas or polars, or path; Schema
        One record per row, and the columns with their bounds; see `release`.
    privacy : PureDP, ZCDP or ApproxDP
        The guarantee to give.
    n : int, optional
        The number of records, which is public; by default, records are counted.
    adjacency : Adjacency
        Neighbour relation. Add/remove is refused: a covariance needs the number of records, which
        is private there.
    columns : sequence of str, optional
        Names of real columns; by default all real columns of the schema.
    ledger, rng : Ledger, random state
        As for `release`.

    Raises
    ------
    ValueError
        Under add/remove. If a column is unknown or not real, a value is missing or is outside the
        bounds of a column that does not clip, or a parameter is wrong. If a value is wrong, the
        message names row and column. The error is raised before the ledger pays.
    BudgetExhausted
        As for `release`.

    Notes
    -----
    `geomdp.mechanisms.Covariance` gives the guarantee. Scaling back is post-processing, because the
    bounds are public.

    Examples
    --------
    >>> import numpy as np
    >>> import pandas as pd
    >>> import geomdp as gd
    >>> x = np.random.default_rng(0).uniform(0, 100, 20_000)
    >>> frame = pd.DataFrame({"a": x, "b": 100 - x})
    >>> bounds = (0, 100)
    >>> schema = gd.data.Schema([gd.data.RealColumn("a", bounds), gd.data.RealColumn("b", bounds)])

    A seed makes this a simulation, which has no guarantee:

    >>> result = gd.tabulation.covariance(frame, schema, privacy=gd.PureDP(2.0), rng=0)
    >>> result.frame.round(-1)
           a      b
    a  830.0 -830.0
    b -830.0  830.0
    """
    import pandas as pd

    names = tuple(chosen_columns(schema, columns, real=True))
    chosen = schema.select(names)
    refuse_private_count(adjacency)
    if ledger is not None:
        claim = Guarantee(privacy, adjacency, Exact())
        claim = claim.without_claim(chosen.caveat)
        ledger.require(claim if rng is None else claim.as_seeded(), "Covariance")
    workload = SecondMoment(len(names))
    if isinstance(records, str | os.PathLike):
        chunks = list(
            encode(
                read_chunks(Path(records), names, csv=chosen.csv),
                chosen.confirm(),
                workload.universe,
            )
        )
    else:
        chunks = list(encode(records, chosen.confirm(), workload.universe))
    if n is None:
        n = sum(map(len, chunks))
        if n == 0:
            raise ValueError("records must hold at least 1 record, got 0")
    mechanism = Covariance(workload, n=n, privacy=privacy, adjacency=adjacency)
    released = mechanism.release(chunks, rng=rng, ledger=ledger)
    half = np.array([(high - low) / 2 for low, high in (c.bounds for c in chosen.real_columns)])
    # A coordinate of a mapped record is (value - middle of the bounds) / (half * sqrt(d)). The
    # covariance does not depend on the middle.
    scales = half * np.sqrt(len(names))
    matrix = workload.matrix(released.answers) * np.outer(scales, scales)
    frame = pd.DataFrame(matrix, index=list(names), columns=list(names))
    guarantee = released.guarantee.without_claim(chosen.caveat)
    return CovarianceTable(frame, guarantee, released.predicted_rmse)
