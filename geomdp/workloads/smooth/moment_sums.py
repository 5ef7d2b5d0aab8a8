"""Sums of Chebyshev moments over records, block by block, with a bound on rounding errors."""

from __future__ import annotations

import abc
from collections.abc import Iterable, Iterator

import numpy as np

from geomdp._typing import FloatArray

#: Unit roundoff of float64.
ROUNDOFF = 2.0**-53


class MomentTransform(abc.ABC):
    """A way to sum Q_r(x) = prod_i cos(r_i arccos x_i) over records x, for all r in {0..t-1}^d.

    The transform sums a fixed function Q' that differs from Q by at most `errors`. Floating-point
    summation adds an error of at most `rounding(n)` to the mean over n records. Both bounds are
    public and apply to all records. If `proved` is False, `errors` was tested but not proved.

    Examples
    --------
    >>> import numpy as np
    >>> import geomdp as gd
    >>> transform = gd.workloads.smooth.moment_transform(2, 2, tolerance=1e-6)
    >>> count, sums = transform.sums([np.array([[0.5, 1.0], [0.5, 0.0]])])
    >>> count
    2
    >>> np.round(sums, 4)
    array([[2. , 1. ],
           [1. , 0.5]])
    """

    #: Number of records in one block.
    rows: int
    #: Whether `errors` is proved for all points. If not, it was only tested at public points.
    proved = True

    def __init__(self, d: int, size: int) -> None:
        self.d, self.size = d, size
        #: Number of blocks of records summed into one table before the table is added to the total.
        #: A large table takes more blocks, so that most of the time goes into adding records, not
        #: tables.
        self.blocks = max(1, round(self._empty().size / (4 * self.rows)))

    @property
    @abc.abstractmethod
    def errors(self) -> FloatArray:
        """Array (t,) * d. Entry r bounds |Q'_r(x) - Q_r(x)| for all x; see `proved`."""

    @property
    def amplification(self) -> float:
        """Bound on the sum of the moduli of the terms that add up to one moment of one record."""
        return 1.0

    @abc.abstractmethod
    def _empty(self) -> FloatArray:
        """A table of zeros, in the shape that `_add` fills."""

    @abc.abstractmethod
    def _add(self, table: FloatArray, points: FloatArray) -> None:
        """Add the records `points` (b, d) to a table, in place."""

    def _moments(self, table: FloatArray) -> FloatArray:
        return table

    def rounding(self, n: int) -> float:
        """Bound on the rounding of the sums over n records, divided by n.

        For u = 2^-53, the mean of N terms of modulus at most 1 has an error of at most N u. Tables
        are added with compensation (Kahan 1965), for 2 u and a multiple of n u^2.
        """
        steps = min(n, self.rows * self.blocks) + sum(self._empty().shape) + 4
        return (1 + n * ROUNDOFF) * steps * ROUNDOFF * self.amplification

    def sums(self, chunks: Iterable[FloatArray]) -> tuple[int, FloatArray]:
        """Number of records and sums of moments, (t,) * d; `chunks` (b, d) are not checked.

        The result is the same, to the last bit, for all ways of cutting the records into chunks.
        """
        count, held, table = 0, 0, self._empty()
        # For three variables, adding a table is as slow as adding many blocks of records. So the
        # first table becomes the total. If there is only one table, no addition is needed.
        total: FloatArray | None = None
        lost = np.zeros(0)
        for block in equal_blocks(chunks, self.rows, self.d):
            if held == self.blocks:
                if total is None:
                    total, table, lost = table, self._empty(), self._empty()
                else:
                    _add_compensated(total, table, lost)
                    table[...] = 0
                held = 0
            self._add(table, block)
            count, held = count + len(block), held + 1
        if total is None:
            total = table
        else:
            _add_compensated(total, table, lost)
        return count, self._moments(total)


def _add_compensated(total: FloatArray, table: FloatArray, lost: FloatArray) -> None:
    """Kahan's addition in place; `lost` holds the rounding error so far."""
    table -= lost
    new = total + table
    np.subtract(new, total, out=lost)
    lost -= table
    total[...] = new


def equal_blocks(chunks: Iterable[FloatArray], rows: int, d: int) -> Iterator[FloatArray]:
    """Cut records into blocks of `rows`; a block is valid only until the next one is taken."""
    rest = np.empty((0, d))
    for chunk in chunks:
        points = chunk
        if len(rest):
            missing = rows - len(rest)
            rest, points = np.concatenate([rest, points[:missing]]), points[missing:]
            if len(rest) < rows:
                continue
            yield rest
        whole_blocks = len(points) // rows * rows
        for start in range(0, whole_blocks, rows):
            yield points[start : start + rows]
        rest = points[whole_blocks:].copy()
    if len(rest):
        yield rest
