"""A figure of the error against the number of records, for any workload."""

from __future__ import annotations

import io
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from geomdp._typing import RandomState
from geomdp.advice.error_curve import error_table
from geomdp.plotting.error_panels import draw_table
from geomdp.plotting.looks import library_style
from geomdp.privacy import Adjacency, Privacy
from geomdp.workloads import Records, Workload

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure


@dataclass(frozen=True, repr=False)
class ErrorCurve:
    """A figure of the error against n, with the numbers that it shows.

    Parameters
    ----------
    table : DataFrame
        A table with the columns of `geomdp.advice.error_table`.
    figure : Figure
        The figure, drawn from `table` alone.

    Examples
    --------
    >>> import geomdp as gd
    >>> W = gd.workloads.Histogram(3)
    >>> curve = gd.plotting.error_curve(W, ns=[100, 1000], privacy=gd.ZCDP(0.5), exact_only=True)
    >>> sorted(curve.table["quantity"].unique())
    ['excluded', 'predicted']
    >>> curve.table["n"].max().item()
    1000
    """

    table: pd.DataFrame
    figure: Figure

    def __repr__(self) -> str:
        numbers = self.table["n"]
        curves = self.table["curve"].nunique()
        return f"ErrorCurve({curves} curves, n from {numbers.min()} to {numbers.max()})"

    def _repr_html_(self) -> str:
        return self.encoded()[".svg"].decode()

    def encoded(self) -> dict[str, bytes]:
        """The contents of three files, under the keys ".png", ".svg" and ".csv"."""
        contents = {}
        metadata: dict[str, dict[str, str | None]] = {
            "png": {"Software": None},
            "svg": {"Date": None},
        }
        with library_style():
            for kind, without in metadata.items():
                buffer = io.BytesIO()
                self.figure.savefig(buffer, format=kind, dpi=200, metadata=without)
                contents[f".{kind}"] = buffer.getvalue()
        contents[".csv"] = self.table.to_csv(index=False).encode()
        return contents


def error_curve(
    workload: Workload,
    *,
    ns: Sequence[int],
    privacy: Privacy,
    exact_only: bool = False,
    adjacency: Adjacency = Adjacency.REPLACE_ONE,
    records: Records | None = None,
    rng: RandomState = 0,
    title: str = "",
) -> ErrorCurve:
    """Draw the error against the number n of records for every mechanism that applies.

    Curves are predictions, made without records. Dashed curves belong to mechanisms with a
    heuristic sampler, which have no guarantee. The shaded errors are proved to be out of reach:
    every mechanism with the guarantee `privacy` has, on some data set of n records, at least the
    error at the upper edge. If no error is proved to be out of reach, the legend says so. If
    `records` are given, markers with bars show the errors measured on them.

    Parameters
    ----------
    workload : Workload
        The workload of m queries.
    ns : sequence of int
        At least two numbers of records, in increasing order.
    privacy : PureDP, ApproxDP or ZCDP
        Guarantee of every mechanism with an exact sampler; a target for other mechanisms.
    exact_only, adjacency : bool, Adjacency
        As for `geomdp.advise`.
    records : array or DataFrame, optional
        Public or synthetic records in the encoding of ``workload.universe``. If given, errors are
        also measured on these records, see Notes.
    rng : Generator, int or None
        Randomness of the measurements.
    title : str
        Title of the figure; by default the number of queries. The guarantee and the adjacency are
        appended.

    See Also
    --------
    geomdp.advice.error_table : The numbers alone, with the same errors.

    Notes
    -----
    Without `records`, the result depends on public arguments only. The errors measured on `records`
    are not private, even for private mechanisms: no noise is added, and no ledger is charged.
    Publish them only if the records are public.

    Examples
    --------
    >>> import geomdp as gd
    >>> W = gd.workloads.Histogram(3)
    >>> curve = gd.plotting.error_curve(W, ns=[100, 1000], privacy=gd.ZCDP(0.5), exact_only=True)
    >>> curve.figure.axes[-1].get_xlabel()
    'number of records $n$'
    >>> gaussian = curve.table[curve.table["curve"] == "Gaussian"]
    >>> gaussian[["n", "rmse"]].round(4).to_numpy().tolist()
    [[100.0, 0.0115], [1000.0, 0.0012]]
    """
    table = error_table(
        workload,
        ns=ns,
        privacy=privacy,
        exact_only=exact_only,
        adjacency=adjacency,
        records=records,
        rng=rng,
    )
    title = title or f"{workload.n_queries} queries"
    return ErrorCurve(table, draw_table(table, f"{title}, {privacy}, {adjacency.value}"))
