"""Private answers as data frames and tables, with the size of the noise and intervals."""

from __future__ import annotations

import html
import itertools
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from geomdp._typing import FloatArray
from geomdp.mechanisms import AdditiveMechanism, Mechanism, Prediction, Release
from geomdp.mechanisms.additive_noise.base import additive_within
from geomdp.noise import half_widths
from geomdp.noise.tails import simultaneous_half_widths
from geomdp.privacy import Adjacency, Guarantee
from geomdp.tabulation.consistency import Form, whole_counts
from geomdp.tabulation.tasks import Table, Task

if TYPE_CHECKING:
    import pandas as pd

#: Columns that `Tabulation.to_frame` adds; attributes must have other names.
RESERVED = ("table", "answer", "count", "noise_std", "low", "high")
#: One more column, if the claim was withdrawn: the privacy statement, which says why.
CLAIM = "privacy"
#: What the sign before the second number of an answer means in `repr`.
NOISE_SIGN = "; ± standard deviation of the noise before post-processing"
#: Number of answers that `repr` shows, and number of rows that a notebook shows.
SHOWN, ROWS_IN_NOTEBOOK = 6, 20


@dataclass(frozen=True, eq=False, repr=False)
class Tabulation:
    """Private tables: a release with the names of the queries and the size of the noise.

    Parameters
    ----------
    released : Release
        Private answers, means over records.
    task : Task
        The queries, with labels.
    mechanism : Mechanism
        The mechanism that released the answers.
    form : Form
        Properties of the answers before rounding, for instance that no cell is negative.
    integers : bool
        Whether each answer is rounded to a whole count divided by n.

    Examples
    --------
    >>> import pandas as pd
    >>> import geomdp as gd
    >>> schema = gd.data.Schema.from_dict({"sex": ["female", "male"], "smokes": bool})
    >>> sexes, smokes = ["female", "male"] * 200, [True] * 100 + [False] * 300
    >>> frame = pd.DataFrame({"sex": sexes, "smokes": smokes})

    A seed makes this a simulation, which has no guarantee:

    >>> laplace = gd.mechanisms.Laplace
    >>> result = gd.release(frame, schema, "marginals:1", epsilon=1.0, mechanism=laplace, rng=0)
    >>> result.statement
    'consistent: no cell is negative, each table adds up, tables agree'
    >>> result.to_frame()[["table", "answer", "noise_std", "low", "high"]].round(3)
        table  answer  noise_std    low   high
    0     sex   0.505      0.014  0.473  0.533
    1     sex   0.495      0.014  0.464  0.524
    2  smokes   0.755      0.014  0.695  0.755
    3  smokes   0.245      0.014  0.186  0.246
    """

    released: Release
    task: Task
    mechanism: Mechanism
    form: Form = Form.OWN
    integers: bool = False

    @cached_property
    def answers(self) -> FloatArray:
        """Private mean answers (m,) in the order of the queries; weights are divided out."""
        means = self.released.answers / self._weights
        if not self.integers:
            return means
        return whole_counts(means, self.mechanism.n, self.task, self.form) / self.mechanism.n

    @property
    def _weights(self) -> FloatArray | float:
        """The factors of the released answers: the weights of the task, or 1."""
        return 1.0 if self.task.weights is None else self.task.weights

    @property
    def statement(self) -> str:
        """Properties of the answers, in words."""
        if not self.integers:
            return self.form.value
        if self.form not in (Form.CONSISTENT, Form.EACH_TABLE):
            return f"whole counts, each rounded by itself; before rounding: {self.form.value}"
        said = f"whole counts: no cell is negative, each table adds up to {self.mechanism.n}"
        if self.task.tables_share_columns:
            said += "; tables may differ where they share columns"
        return said

    @property
    def guarantee(self) -> Guarantee:
        """The privacy guarantee of the release."""
        return self.released.guarantee

    @property
    def predicted_rmse(self) -> Prediction:
        """Root mean squared error over all queries, predicted before the data were seen.

        After post-processing it is an upper bound for every data set, 1.06 to 2.9 times the error
        on those that were tried. The error of a table is multiplied by its weight. Rounding to
        whole counts is not included.
        """
        return self.released.predicted_rmse

    @cached_property
    def noise_std(self) -> FloatArray:
        """Standard deviation (m,) of the noise of each mean answer, before post-processing.

        It does not depend on the data. Post-processing usually lowers the total error over the
        queries, but can raise the error of a single query.
        """
        deviations = np.sqrt(self._additive.noise.variances()) / self._additive.n
        return np.asarray(deviations / self._weights)

    def interval(
        self, confidence: float = 0.95, *, simultaneous: bool = False
    ) -> tuple[FloatArray, FloatArray]:
        """Confidence intervals for the true means: the lower ends (m,) and the upper ends (m,).

        Each interval contains its true mean with probability at least `confidence`, and with
        `simultaneous`, all intervals together do. If the noise comes from a Markov chain, the chain
        is assumed to have mixed. Under add/remove, a true mean is the sum of the answers divided by
        the declared n. If the mechanism rounds answers, the statements hold for up to n records.
        ``ValueError`` for a mechanism without additive noise.

        The intervals are centred at the noisy answers (X-INT), whose distribution is public, not at
        the reported answers. Intervals for cells of tables are cut off at 0 and, under replace-one,
        at 1.

        Parameters
        ----------
        confidence : float
            Above 0 and below 1, and in the range of `half_widths` (``ValueError``).
        simultaneous : bool
            Whether `confidence` is for all intervals together, not for each alone.
        """
        widths = simultaneous_half_widths if simultaneous else half_widths
        additive = self._additive
        reach = widths(additive.noise, confidence) / additive.n + additive.answer_rounding
        reach = reach / self._weights
        noisy = np.asarray(self.released.noisy) / self._weights
        # Under add/remove, a share can exceed 1 if n is too small.
        most_one = self.task.tables and self.guarantee.adjacency is Adjacency.REPLACE_ONE
        low, high = 0.0 if self.task.tables else -np.inf, 1.0 if most_one else np.inf
        return np.clip(noisy - reach, low, high), np.clip(noisy + reach, low, high)

    @property
    def has_intervals(self) -> bool:
        """Whether the mechanism adds noise of a public distribution to the answers."""
        return additive_within(self.mechanism) is not None

    @property
    def _additive(self) -> AdditiveMechanism:
        """The additive mechanism that made the noise; ``ValueError`` if there is none."""
        additive = additive_within(self.mechanism)
        if additive is None:
            raise ValueError(f"{self.mechanism!r} adds no noise of a known law to the answers")
        return additive

    def to_frame(self, confidence: float = 0.95, *, simultaneous: bool = False) -> pd.DataFrame:
        """A tidy data frame with one row for each answer, and intervals as in `interval`.

        Tables have a first column ``table``, and for each attribute a column with the label of its
        level, missing if it is not in the table. For other queries, the first column is ``query``.
        The next are ``answer`` (a mean) and ``count`` (the answer times n; whole with `integers`).
        If `has_intervals`, the last are ``noise_std`` and the interval from ``low`` to ``high``. If
        the claim was withdrawn, one more column ``privacy`` says so in each row.
        """
        import pandas as pd

        return pd.DataFrame(self.columns(confidence, simultaneous=simultaneous))

    def columns(
        self, confidence: float = 0.95, *, simultaneous: bool = False
    ) -> dict[str, list[str | None] | npt.NDArray[Any]]:
        """The columns of `to_frame` by name, with the same parameters."""
        counts = self.answers * self.mechanism.n
        if self.integers:
            counts = np.rint(counts).astype(np.int64)
        numbers: dict[str, npt.NDArray[Any]] = {"answer": self.answers, "count": counts}
        if self.has_intervals:
            low, high = self.interval(confidence, simultaneous=simultaneous)
            numbers |= {"noise_std": self.noise_std, "low": low, "high": high}
        if self.guarantee.withdrawn:
            numbers[CLAIM] = np.full(len(counts), str(self.guarantee), dtype=object)
        return {**self._names(), **numbers}

    def _names(self) -> dict[str, list[str | None]]:
        """Names of the queries, as columns of the frame."""
        if not self.task.tables:
            return {"query": list(self.task.labels)}
        names: dict[str, list[str | None]] = {name: [] for name in ("table", *self.task.columns)}
        for table in self.task.tables:
            names["table"] += [" x ".join(table.columns)] * table.n_cells
            for cell in itertools.product(*table.levels):
                levels = dict(zip(table.columns, cell, strict=True))
                for column in self.task.columns:
                    names[column].append(levels.get(column))
        return names

    @cached_property
    def tables(self) -> Mapping[tuple[str, ...], pd.DataFrame | pd.Series[float]]:
        """Private shares by table, such as ``tables[("region", "smoker")]``.

        A table of one attribute is a Series. A table of several is a DataFrame whose columns are
        the levels of the last attribute, as in `pandas.crosstab`. The key has the names of the
        attributes in the order of the schema; `KeyError` for others.
        """
        return Tables(self)

    def __repr__(self) -> str:
        shown = [
            f"  {label}: {answer:.4g}"
            for label, answer in zip(self.task.labels[:SHOWN], self.answers, strict=False)
        ]
        if self.has_intervals:
            errors = self.noise_std[:SHOWN]
            shown = [f"{line} ± {error:.2g}" for line, error in zip(shown, errors, strict=True)]
        more = len(self.task.labels) - len(shown)
        rest = [f"  ... and {more} more"] if more > 0 else []
        heading = f"{self.task.description}: {self.guarantee}"
        said = f"({self.statement}{NOISE_SIGN if self.has_intervals else ''})"
        return "\n".join([heading, said, *shown, *rest])

    def _repr_html_(self) -> str:
        heading = html.escape(f"{self.task.description}: {self.guarantee}")
        return f"<p>{heading}</p>{self.to_frame().head(ROWS_IN_NOTEBOOK).to_html()}"


class Tables(Mapping[tuple[str, ...], "pd.DataFrame | pd.Series[float]"]):
    """The tables of a tabulation by the names of their columns."""

    def __init__(self, tabulation: Tabulation) -> None:
        self._answers = tabulation.answers
        starts = itertools.accumulate(
            (table.n_cells for table in tabulation.task.tables), initial=0
        )
        self._places: dict[tuple[str, ...], tuple[int, Table]] = {
            table.columns: (start, table)
            for start, table in zip(starts, tabulation.task.tables, strict=False)
        }

    def __getitem__(self, columns: tuple[str, ...]) -> pd.DataFrame | pd.Series[float]:
        import pandas as pd

        if columns not in self._places:
            known = ", ".join(map(str, itertools.islice(self._places, 10)))
            raise KeyError(f"no table {columns!r}; the tables are {known}, ...")
        start, table = self._places[columns]
        index = pd.MultiIndex.from_product(table.levels, names=table.columns)
        cells = pd.Series(self._answers[start : start + table.n_cells], index=index, name="answer")
        if len(table.columns) == 1:
            return cells.droplevel([]).set_axis(pd.Index(table.levels[0], name=table.columns[0]))
        return cells.unstack(sort=False)

    def __iter__(self) -> Iterator[tuple[str, ...]]:
        return iter(self._places)

    def __len__(self) -> int:
        return len(self._places)
