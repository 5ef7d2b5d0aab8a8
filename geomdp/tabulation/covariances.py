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
        Covariances (d, d) in the units of the columns; symmetric and positive semidefinite.
    guarantee : Guarantee
        The privacy record.
    predicted_rmse : Prediction
        Bound on the error per entry before scaling back: of columns mapped to [-1, 1] / sqrt(d).
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

    A column with bounds [low, high] is mapped to [-1, 1] and divided by sqrt(d), so that records
    lie in the unit ball; the covariance released there is scaled back.

    Parameters
    ----------
    records : DataFrame of pandas or polars, or path
        One record a row; or a CSV or Parquet file of them.
    schema : Schema
        Declares the columns and their bounds.
    privacy : PureDP, ZCDP or ApproxDP
        Guarantee wanted.
    n : int, optional
        Under add/remove the declared public normaliser, which is then required. Under replace-one
        the number of records is public and counted.
    adjacency : Adjacency
        Neighbour relation.
    columns : sequence of str, optional
        Real columns; by default all of them.
    ledger : Ledger, optional
        The privacy budget. It is asked before any record is read, and pays after all records are
        found valid and before noise is added.
    rng : Generator, int or None
        None draws from the operating system's entropy; a seed takes the guarantee away.

    Returns
    -------
    CovarianceTable
        The matrix in the units of the columns.

    Raises
    ------
    ValueError
        Before the ledger pays: a column that is unknown or not real, a value outside its bounds
        (naming row and column), or a wrong parameter.
    BudgetExhausted
        If the ledger cannot pay; no record is read then.

    Notes
    -----
    Privacy: that of `geomdp.mechanisms.Covariance`; scaling back is post-processing by public
    bounds.
    """
    import pandas as pd

    names = tuple(chosen_columns(schema, columns, real=True))
    chosen = schema.select(names)
    if n is None and adjacency is Adjacency.ADD_REMOVE:
        raise ValueError("n must be declared under add/remove: the true number is private")
    if ledger is not None:
        claim = Guarantee(privacy, adjacency, Exact())
        ledger.require(claim if rng is None else claim.as_seeded(), "Covariance")
    workload = SecondMoment(len(names))
    if isinstance(records, str | os.PathLike):
        chunks = list(encode(read_chunks(Path(records), names), chosen, workload.universe))
    else:
        chunks = list(encode(records, chosen, workload.universe))
    counted = sum(map(len, chunks))
    if counted == 0:
        raise ValueError("records must hold at least 1 record, got 0")
    mechanism = Covariance(
        workload, n=counted if n is None else n, privacy=privacy, adjacency=adjacency
    )
    released = mechanism.release(chunks, rng=rng, ledger=ledger)
    half = np.array([(high - low) / 2 for low, high in (c.bounds for c in chosen.real_columns)])
    # A column is x = half * sqrt(d) * (coordinate) + middle.
    scales = half * np.sqrt(len(names))
    matrix = workload.matrix(released.answers) * np.outer(scales, scales)
    frame = pd.DataFrame(matrix, index=list(names), columns=list(names))
    return CovarianceTable(frame, released.guarantee, released.predicted_rmse)
