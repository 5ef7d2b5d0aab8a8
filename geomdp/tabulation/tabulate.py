"""Private tables from labelled records in one call."""

from __future__ import annotations

import html
import itertools
import logging
import os
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import numpy.typing as npt

from geomdp._typing import BoolArray, FloatArray, RandomState
from geomdp._validation import positive, probability, whole
from geomdp.advice import Plan, advise
from geomdp.data import Schema, count_records, source_of
from geomdp.data.frames import Source
from geomdp.data.schema import places_of
from geomdp.mechanisms import AdditiveMechanism, Mechanism, Prediction, Release
from geomdp.mechanisms.additive_noise.base import additive_within
from geomdp.noise import half_widths
from geomdp.noise.tails import simultaneous_half_widths
from geomdp.privacy import Adjacency, Exact, Guarantee, Ledger, Privacy, PureDP, member_privacy
from geomdp.tabulation import ways
from geomdp.tabulation.consistency import ADDING_UP, Consistency, Form, whole_counts
from geomdp.tabulation.entropic import Chosen
from geomdp.tabulation.possible import PossibleNoise
from geomdp.tabulation.tasks import Asked, Task, task_of
from geomdp.workloads import Workload

if TYPE_CHECKING:
    import dask.dataframe as dd
    import pandas as pd
    import polars as pl
    import pyarrow as pa
    from distributed import Client

    Frame: TypeAlias = pd.DataFrame | pl.DataFrame | pa.Table | dd.DataFrame


#: Logs the name of each step when it starts.
LOG = logging.getLogger(__name__)


def release(
    records: Frame | str | os.PathLike[str] | Source,
    schema: Schema,
    workload: str | Sequence[Asked],
    *,
    epsilon: float | None = None,
    privacy: Privacy | None = None,
    n: int | None = None,
    adjacency: Adjacency = Adjacency.REPLACE_ONE,
    columns: Sequence[str] | None = None,
    weights: Sequence[float] | None = None,
    person: str | None = None,
    max_rows_per_person: int | None = None,
    mechanism: Callable[..., Mechanism] | None = None,
    unbiased: bool = False,
    projected: bool = False,
    integers: bool = False,
    synthetic: bool = False,
    ledger: Ledger | None = None,
    client: Client | None = None,
    rng: RandomState = None,
) -> Tabulation:
    """Private answers about a table of records, with labels, errors and intervals.

    Parameters
    ----------
    records : DataFrame of pandas, polars or Dask, Arrow table, path, or Source
        One record per row, with the labels that `schema` declares, as for `source_of`. For the
        result of an SQL query, give a `gd.data.Query`.
    schema : Schema
        Public declaration of the columns. If some were read from the records, the release has no
        privacy claim, and says why; see `Schema.confirm`.
    workload : str, or sequence of str and of sequences of str
        The queries, specified as on the command line: ``"marginals:2"``, ``"prefixes:age"``; the
        command `geomdp workloads` lists all kinds. A list combines tables specified so or by the
        names of their columns: ``["marginals:1", ("region", "age")]``. A table asks a column by its
        mean, prefixes or ranges in brackets: ``("region", "age[mean]")``.
    epsilon : float, optional
        The epsilon of pure differential privacy. An epsilon or rho above 10 gives a ``UserWarning``
        that says what the number means.
    privacy : PureDP, ZCDP or ApproxDP, optional
        The guarantee, instead of `epsilon`.
    n : int, optional
        The public number by which sums are divided; required under add/remove. Under replace-one,
        the number of records is public and counted, and a given `n` must be equal to it.
    adjacency : Adjacency
        Neighbour relation.
    columns, weights : sequence of str, sequence of float, optional
        As for `task_of`.
    person, max_rows_per_person : str and int, optional
        As for `gd.data.count_records`. The guarantee then protects persons with any number of rows,
        not single rows. Needs add/remove, because numbers of rows are private; shares and intervals
        are those of the counted rows, divided by `n`.
    mechanism : callable, optional
        The class of a mechanism, or a function with the same arguments ``(workload, n=, privacy=,
        adjacency=)``, such as the `Plan` that `budget_for` finds. By default `advise` chooses among
        the mechanisms with exact samplers.
    unbiased : bool
        Whether to return the noisy answers. By default they are made consistent, as
        `Tabulation.statement` says.
    projected : bool
        Whether to return the nearest attainable answers, which err at most as much as the noise,
        not fitted tables (see the notes).
    integers : bool
        Whether counts are whole numbers. Fitted tables become those of n synthetic records; other
        tables are rounded, and those that add up still do afterwards.
    synthetic : bool
        Whether `Tabulation.synthetic` will be called. ``ValueError`` then, before anything is paid,
        if tables cannot be fitted.
    ledger : Ledger, optional
        The privacy budget. It is asked whether it can pay before any record is read, and pays after
        all records are found valid and before the release.
    client : distributed.Client, optional
        A Dask cluster that counts the records of files or partitions, with the same result.
    rng : Generator, int or None
        None uses the entropy of the operating system. A seed makes the release reproducible, and
        the release then has no guarantee.

    Raises
    ------
    ValueError
        Before the ledger pays: if the workload or the records do not fit the schema (the message
        names rows and columns), a parameter is wrong, or a column of a table has the name of a
        column of the result, such as ``count``.
    BudgetExhausted
        If the ledger cannot pay. No record has then been read, unless the budget was spent
        elsewhere during the call, or the mechanism costs more than `privacy`.

    Notes
    -----
    The release has the guarantee of the mechanism, whose choice depends only on the schema, the
    workload, n, `privacy` and `adjacency`. Consistent answers follow from the noisy ones alone.

    Tables under replace-one are by default those of one distribution p of all columns: for noisy
    tables y with noise of mean square s^2 a cell, and the tables A p of p, p minimises
    ||A p - y||^2 / 2 + kappa s^2 KL(p || u). The prior u is uniform, or a tree of columns that the
    noisy tables suggest (Chow and Liu 1968). Fits of several kappa and both priors are averaged
    with weights by Stein's estimates of their errors. Such a mean is biased, but errs much less
    than a projection if noise is large, and its root mean squared error is at most twice that of
    the noise on every data set. Tables are projected under add/remove, if noise is below 2% of the
    mean cell, if joined columns have more than some four million cells, or if no fit is found.

    Examples
    --------
    >>> import pandas as pd
    >>> import geomdp as gd
    >>> schema = gd.data.Schema.from_dict({"sex": ["female", "male"], "smokes": bool})
    >>> sexes, smokes = ["female", "male"] * 200, [True] * 100 + [False] * 300
    >>> frame = pd.DataFrame({"sex": sexes, "smokes": smokes})
    >>> private = gd.release(frame, schema, "marginals:2", epsilon=1.0)
    >>> str(private.guarantee).split(";")[0]
    '1-DP, replace-one'
    """
    asked = [workload] if isinstance(workload, str) else list(workload)
    task = task_of(schema, asked, columns=columns, weights=weights)
    reserved = {*RESERVED, CLAIM} if task.caveat else set(RESERVED)
    for way, names in ((ways.MEAN, ways.MEANS), (ways.PREFIXES, ways.QUANTILES)):
        reserved |= set(names) if way in task.ways.values() else set()
    clash = sorted(reserved & set(task.columns)) if task.shown else []
    if clash:
        raise ValueError(f"columns {clash} must be renamed: the result has columns of these names")
    if integers and ways.MEAN in task.ways.values():
        raise ValueError("integers must be False for a column asked by [mean]")
    for said in filter(None, (task.disordered, task.undeclared)):
        warnings.warn(said, UserWarning, stacklevel=2)
    if adjacency is Adjacency.ADD_REMOVE and n is None:
        raise ValueError(
            "n must be declared under add/remove, because the number of records is private"
        )
    if isinstance(mechanism, Mechanism):
        raise ValueError(
            "mechanism must be a class or a plan, such as budget_for(...).plan or plan_of(advice), "
            f"got the mechanism {mechanism!r}"
        )
    if isinstance(mechanism, Plan) and mechanism.max_rows_per_person != max_rows_per_person:
        said = f"{mechanism.max_rows_per_person}, got {max_rows_per_person}"
        raise ValueError(f"max_rows_per_person must be that of the plan, {said}")
    if unbiased and projected:
        raise ValueError("give either unbiased or projected: projected answers are biased")
    if (epsilon is None) == (privacy is None):
        raise ValueError(f"give either epsilon or privacy, got {epsilon!r} and {privacy!r}")
    asked_for = privacy if epsilon is None else PureDP(epsilon)
    assert asked_for is not None  # one of both is given
    rows = max_rows_per_person
    claim = Guarantee(asked_for, adjacency, Exact(), max_rows_per_person=rows, person=person)
    require_budget(ledger, claim, task.caveat, rng, "release")
    wanted = member_privacy(asked_for, rows or 1)
    LOG.info("reading records")
    counted = count_records(
        source_of(records),
        schema.select(task.columns).confirm(),
        task.workload,
        client=client,
        person=person,
        max_rows_per_person=rows,
    )
    chosen_n = number_of_records(n, adjacency, counted.count)
    LOG.info("preparing the mechanism")
    choose = _advised if mechanism is None else mechanism
    chosen = choose(task.workload, n=chosen_n, privacy=wanted, adjacency=adjacency)
    if unbiased:
        chosen, last = _additive(chosen), None
    else:
        last = Consistency(task, chosen, adjacency, projected=projected)
        chosen = last.mechanism
    if synthetic and (last is None or not last.fits):
        why = "the answers are unbiased" if last is None else last.unfitted
        raise ValueError(
            f"synthetic records need tables that are fitted to one distribution, but {why}"
        )
    LOG.info("releasing")
    released = chosen.release(counted, rng=rng, ledger=ledger)
    released = replace(released, guarantee=released.guarantee.without_claim(task.caveat))
    if last is None:
        if task.possible is not None:
            released = task.possible.spread_release(task.possible.released(released, chosen))
        return Tabulation(released, task, chosen, Form.NOISY, integers)
    LOG.info("making answers consistent")
    moved, form, fit = last.applied(released)
    return Tabulation(moved, task, chosen, form, integers, fit)


def require_budget(
    ledger: Ledger | None, claim: Guarantee, caveat: str, rng: RandomState, label: str
) -> None:
    """Ask the ledger, if there is one, whether it can pay; errors as in `Ledger.require`."""
    if ledger is not None:
        claim = claim.without_claim(caveat)
        ledger.require(claim if rng is None else claim.as_seeded(), label)


def _advised(workload: Workload, *, n: int, privacy: Privacy, adjacency: Adjacency) -> Mechanism:
    """The mechanism with the least predicted error among those with exact samplers."""
    return advise(workload, n=n, privacy=privacy, exact_only=True, adjacency=adjacency).best


def _additive(mechanism: Mechanism) -> AdditiveMechanism:
    """`mechanism` or the additive mechanism inside it; ``ValueError`` if there is none."""
    additive = additive_within(mechanism)
    if additive is None:
        raise ValueError(
            "unbiased answers and intervals need a mechanism that adds noise of a known law to the "
            f"answers, not {mechanism!r}"
        )
    return additive


def number_of_records(declared: int | None, adjacency: Adjacency, counted: int) -> int:
    """The declared n under add/remove; the public number of records under replace-one."""
    if adjacency is Adjacency.ADD_REMOVE and declared is not None:
        return whole(declared, "n")
    if counted == 0:
        raise ValueError("records must hold at least 1 record, got 0")
    if declared not in (None, counted):
        raise ValueError(f"n must be the number of records, {counted}, got {declared}")
    return counted


# A release with the names of its queries

#: Columns that `Tabulation.to_frame` adds; attributes must have other names.
RESERVED = ("table", "answer", "count", "unbiased", "noise_std", "low", "high", "flag")
#: One more column, if the claim was withdrawn: the privacy statement, which says why.
CLAIM = "privacy"
#: Largest half-width of the 95% interval of an answer without a flag, as a share of the answer: a
#: coefficient of variation of 33%, above which Statistics Canada does not publish an estimate. For
#: shares, the NCHS has the same limit (Parker and others 2017).
WIDE = 0.65
#: What the sign before the second number of an answer means in `repr`.
NOISE_SIGN = "; ± standard deviation of the noise before post-processing"
#: Number of answers that `repr` shows, and number of rows that a notebook shows.
SHOWN, ROWS_IN_NOTEBOOK = 6, 20


@dataclass(frozen=True, eq=False, repr=False)
class Tabulation:
    """Private tables: a release with the names of the queries and the size of the noise.

    Parameters
    ----------
    released, task, mechanism : Release, Task, Mechanism
        Private answers, means over records; the queries, with labels; what released the answers.
    form, integers : Form, bool
        Properties of the answers before rounding, for instance that no cell is negative; whether
        each answer is rounded to a whole count divided by n.
    fit : Chosen, optional
        For fitted tables, the distribution that they are tables of, and an estimate of the error.

    Examples
    --------
    A seed makes this a simulation, which has no guarantee:

    >>> import geomdp as gd
    >>> sample = gd.data.fair_affairs()
    >>> found = gd.release(sample.frame, sample.schema, "marginals:1", epsilon=1.0, rng=0)
    >>> found.to_frame()[["table", "answer", "low", "high"]].round(3).head(2)
               table  answer    low   high
    0  rate_marriage   0.015  0.010  0.021
    1  rate_marriage   0.055  0.049  0.060
    """

    released: Release
    task: Task
    mechanism: Mechanism
    form: Form = Form.OWN
    integers: bool = False
    fit: Chosen | None = None

    @property
    def estimated_rmse(self) -> float | None:
        """Stein's estimate of the root mean squared error of fitted tables, or None.

        It is computed from the release alone, is no bound, and errs most for few cells.
        """
        return None if self.fit is None else self.fit.estimated_rmse

    def synthetic(self, count: int | None = None, rng: RandomState = None) -> pd.DataFrame:
        """Synthetic records from the distribution of which the fitted tables are tables.

        They are drawn from the release alone, at no cost: each combination of levels `count` times
        its probability, rounded up or down at random. What the release did not ask about, such as
        tables of more columns, is only as good as the fit. Columns in no table are missing.

        Parameters
        ----------
        count : int, optional
            Number of records, at least 1; by default the n of the release.
        rng : Generator or int, optional
            Source of randomness, which privacy does not depend on; by default a new one.

        Returns
        -------
        DataFrame
            One row per record, with the labels of the levels. ``ValueError`` if the tables were not
            fitted; `statement` says whether they are.

        Examples
        --------
        >>> import geomdp as gd
        >>> sample = gd.data.fair_affairs()
        >>> schema = sample.schema.select(["religious", "children", "age"])
        >>> found = gd.release(sample.frame, schema, "marginals:2", epsilon=1.0)
        >>> found.synthetic().shape
        (6366, 3)
        """
        import pandas as pd

        if self.fit is None:
            raise ValueError(f"synthetic records need fitted tables, got {self.statement!r}")
        number = self.mechanism.n if count is None else whole(count, "count")
        drawn = self.fit.distribution.sample(number, np.random.default_rng(rng))
        levels = {
            name: own
            for table in self.task.tables
            for name, own in zip(table.columns, table.levels, strict=True)
        }
        names = [name for name in self.task.columns if name in drawn]
        return pd.DataFrame({name: np.array(levels[name])[drawn[name]] for name in names})

    @cached_property
    def answers(self) -> FloatArray:
        """Private mean answers (m,) in the order of the queries; weights are divided out."""
        means = self.released.answers / self._weights
        if not self.integers:
            return means
        if self.fit is not None:
            counts = self.fit.distribution.counts(self.task.tables, self.mechanism.n)
            return counts / self.mechanism.n
        return whole_counts(means, self.mechanism.n, self.task, self.form) / self.mechanism.n

    @property
    def _weights(self) -> FloatArray | float:
        """The factors of the released answers: the weights of the task, or 1."""
        return 1.0 if self.task.weights is None else self.task.weights

    @property
    def statement(self) -> str:
        """Properties of the answers, in words."""
        n, said = self.mechanism.n, self.form.value
        if self.integers and self.fit is not None:
            said = (
                f"whole counts of {n} synthetic records, close to the entropic fit to noisy "
                "answers: no cell is negative, each table adds up, tables agree"
            )
        elif self.integers and self.form in ADDING_UP:
            said = f"whole counts: no cell is negative, each table adds up to {n}"
            if self.task.tables_share_columns:
                said += "; tables may differ where they share columns"
        elif self.integers:
            said = f"whole counts, each rounded by itself; before rounding: {said}"
        return f"{said}; impossible cells are 0" if self.task.possible is not None else said

    @property
    def guarantee(self) -> Guarantee:
        """The privacy guarantee of the release."""
        return self.released.guarantee

    @property
    def predicted_rmse(self) -> Prediction:
        """Root mean squared error over all queries, predicted before the data were seen.

        For projected answers it is an upper bound for every data set; for fitted tables, it is
        twice the error of the noise. The error of a table is multiplied by its weight. Rounding to
        whole counts is not included.
        """
        return self.released.predicted_rmse

    @cached_property
    def unbiased(self) -> FloatArray:
        """The noisy mean answers (m,) before post-processing, at which intervals are centred."""
        return np.asarray(self.released.noisy) / self._weights

    @cached_property
    def noise_std(self) -> FloatArray:
        """Standard deviation (m,) of the noise of each mean answer, before post-processing.

        Post-processing usually lowers the total error, but can raise that of a single query.
        """
        additive, own = _additive(self.mechanism), self._possible_noise
        if own is None:
            deviations = np.sqrt(additive.noise.variances()) / additive.n
        else:
            deviations = own.deviations
        return np.asarray(self.task.spread(deviations) / self._weights)

    @property
    def _possible_noise(self) -> PossibleNoise | None:
        possible = self.task.possible
        return None if possible is None else possible.noise(_additive(self.mechanism))

    def interval(
        self, confidence: float = 0.95, *, simultaneous: bool = False
    ) -> tuple[FloatArray, FloatArray]:
        """Confidence intervals for the true means: the lower ends (m,) and the upper ends (m,).

        Each interval contains its true mean with probability at least `confidence`, and with
        `simultaneous`, all intervals together do. A Markov chain for the noise is assumed to have
        mixed. Under add/remove, a true mean is the sum of the answers divided by the declared n. If
        the mechanism rounds answers, the statements hold for up to n records. ``ValueError`` for a
        mechanism without additive noise.

        The intervals are centred at the noisy answers (X-INT), whose distribution is public.
        Intervals for shares are cut off at 0 and, under replace-one, at 1.

        Parameters
        ----------
        confidence : float
            Above 0 and below 1, and in the range of `half_widths` (``ValueError``).
        simultaneous : bool
            Whether `confidence` is for all intervals together, not for each alone.
        """
        noisy, reach = self.unbiased, self._reach(confidence, simultaneous)
        # Under add/remove, a share can exceed 1 if n is too small.
        shares = bool(self.task.tables) or self.task.workload.counts_records
        most_one = shares and self.guarantee.adjacency is Adjacency.REPLACE_ONE
        low, high = 0.0 if shares else -np.inf, 1.0 if most_one else np.inf
        return np.clip(noisy - reach, low, high), np.clip(noisy + reach, low, high)

    def _reach(self, confidence: float, simultaneous: bool = False) -> FloatArray:
        """Half-widths (m,) of intervals, before they are cut off."""
        widths = simultaneous_half_widths if simultaneous else half_widths
        additive, own = _additive(self.mechanism), self._possible_noise
        law, rounding = additive.noise, additive.answer_rounding
        if own is not None:
            law, rounding = own.law, own.rounding
        reach = widths(law, confidence) / additive.n + rounding
        return np.asarray(self.task.spread(reach) / self._weights)

    def flagged(self, above: float = WIDE) -> BoolArray:
        """Which answers (m,) are more uncertain than they are worth, because of the noise alone.

        The half-width of such an answer's 95% interval, not cut off, is more than `above` times its
        modulus. By default, its coefficient of variation is above a third, and official statistics
        would not publish it. Scaled totals, which can be 0 for any mean, are not flagged. The flags
        follow from the release, at no cost.
        ``ValueError`` if `above` is not above 0, or for a mechanism without additive noise.
        """
        limit = positive(above, "flag_above") * np.abs(self.answers)
        if ways.MEAN in self.task.ways.values():
            limit[[ways.TOTAL in label for label in self.task.labels]] = np.inf
        return np.asarray(self._reach(0.95) > limit)

    @property
    def has_intervals(self) -> bool:
        """Whether the mechanism adds noise of a public distribution to the answers."""
        return additive_within(self.mechanism) is not None

    def to_frame(
        self, confidence: float = 0.95, *, simultaneous: bool = False, flag_above: float = WIDE
    ) -> pd.DataFrame:
        """A tidy data frame with one row for each answer, and intervals as in `interval`.

        Tables have a first column ``table``, and for each attribute a column with the label of its
        level (or of a query, such as ``<=30``), missing if it is not in the table. For other
        queries, the first column is ``query``. The next are ``answer`` (a mean) and ``count`` (the
        answer times n; whole with `integers`). If `has_intervals`, the last are ``unbiased``,
        ``noise_std``, the interval from ``low`` to ``high``, and ``flag``, which is "wide" where an
        answer is `flagged` for `flag_above` and else empty. If the claim was withdrawn, one more
        column ``privacy`` says so in each row.
        """
        import pandas as pd

        columns = self.columns(confidence, simultaneous=simultaneous, flag_above=flag_above)
        return pd.DataFrame(columns)

    def columns(
        self, confidence: float = 0.95, *, simultaneous: bool = False, flag_above: float = WIDE
    ) -> dict[str, list[str | None] | npt.NDArray[Any]]:
        """The columns of `to_frame` by name, with the same parameters."""
        counts = self.answers * self.mechanism.n
        if self.integers:
            counts = np.rint(counts).astype(np.int64)
        numbers: dict[str, npt.NDArray[Any]] = {"answer": self.answers, "count": counts}
        if self.has_intervals:
            low, high = self.interval(confidence, simultaneous=simultaneous)
            numbers |= {"unbiased": self.unbiased, "noise_std": self.noise_std}
            flags = np.where(self.flagged(flag_above), "wide", "").astype(object)
            numbers |= {"low": low, "high": high, "flag": flags}
        if self.guarantee.withdrawn:
            numbers[CLAIM] = np.full(len(counts), str(self.guarantee), dtype=object)
        return {**self.names, **numbers}

    @cached_property
    def names(self) -> dict[str, list[str | None]]:
        """Names of the queries, as columns of the frame."""
        if not self.task.shown:
            return {"query": list(self.task.labels)}
        names: dict[str, list[str | None]] = {name: [] for name in ("table", *self.task.columns)}
        for table in self.task.shown:
            names["table"] += [" x ".join(table.columns)] * table.n_cells
            for cell in itertools.product(*table.levels):
                levels = dict(zip(table.columns, cell, strict=True))
                for column in self.task.columns:
                    names[column].append(levels.get(column))
        return names

    @cached_property
    def tables(self) -> Mapping[tuple[str, ...], pd.DataFrame | pd.Series[float]]:
        """Private shares by table, such as ``tables[("region", "smoker")]``.

        A table of one attribute is a Series; one of several is a DataFrame whose columns are the
        levels of the last, as in `pandas.crosstab`. The key has the names of the attributes in the
        order of the schema; `KeyError` for others.
        """
        return Tables(self)

    def means(self, confidence: float = 0.95, *, simultaneous: bool = False) -> pd.DataFrame:
        """Count, total and mean by group of each column asked by ``[mean]``, in its own units.

        With at least the probability `confidence`, the noisy count and the noisy total of a group
        are both in their intervals (each is missed with half of the rest). The intervals of count,
        total and mean follow from these two, so all three hold together, for any records.

        Parameters
        ----------
        confidence, simultaneous : float, bool
            As for `interval`, for the three intervals of a row or, with `simultaneous`, of all.

        Returns
        -------
        DataFrame
            A row for each group, a cell of the other columns of a table: its labels, the name of
            the ``column``, and the ``count`` of records with a number, the ``total`` and the
            ``mean``, each with an interval; ``low`` and ``high`` are for the mean. The mean is NaN
            where the interval of the count reaches 0. Values count as the middle of their bin, and
            intervals are wider by half of the widest bin. ``ValueError`` without such a column.

        Examples
        --------
        >>> import geomdp as gd
        >>> sample = gd.data.fair_affairs()
        >>> workload = "tables:religious*children[mean]"
        >>> found = gd.release(sample.frame, sample.schema, workload, epsilon=1.0, rng=0)
        >>> found.means()[["religious", "column", "mean", "low", "high"]].round(1)
          religious    column  mean  low  high
        0         1  children   1.0  1.0   1.1
        1         2  children   1.3  1.3   1.3
        2         3  children   1.5  1.5   1.5
        3         4  children   1.8  1.8   1.9
        """
        # The intervals of all three numbers follow from two, so each may miss half as often.
        each = confidence if simultaneous else (1 + probability(confidence, "confidence")) / 2
        low, high = self.interval(each, simultaneous=simultaneous)
        low, high, sums = (self.mechanism.n * means for means in (low, high, self.answers))
        return ways.means_of(self._asked_by(ways.MEAN), low, high, sums)

    def quantiles(self, probabilities: Sequence[float], confidence: float = 0.95) -> pd.DataFrame:
        """Quantiles by group of each column asked by ``[prefixes]``.

        A quantile q is the first level up to which there are at least q times the records of the
        group that have a level in the order.

        Parameters
        ----------
        probabilities, confidence : sequence of float, float
            The q, above 0 and below 1; the probability with which all intervals, which follow from
            those of the prefixes, contain the true quantiles together.

        Returns
        -------
        DataFrame
            A row for each group and ``quantile``, as for `means`: the ``level``, from the nearest
            prefixes that increase, and the least and the largest value, ``low`` and ``high``. They
            are missing where the group may be empty. ``ValueError`` without such a column.

        Examples
        --------
        >>> import geomdp as gd
        >>> sample = gd.data.fair_affairs()
        >>> found = gd.release(sample.frame, sample.schema, "prefixes:age", epsilon=1.0, rng=0)
        >>> found.quantiles([0.25, 0.5])
          column  quantile     level low high
        0    age      0.25  [20, 25)  20   25
        1    age      0.50  [25, 30)  25   30
        """
        low, high = self.interval(confidence, simultaneous=True)
        asked = self._asked_by(ways.PREFIXES)
        return ways.quantiles_of(asked, probabilities, low, high, self.answers)

    def _asked_by(self, way: ways.Way) -> Iterator[ways.Groups]:
        """The groups of each column asked by `way`; ``ValueError`` if there is none."""
        task = self.task
        if task.schema is None or way not in task.ways.values():
            raise ValueError(f"a column must be asked by [{way.name}], got {task.description}")
        return ways.asked_by(way, task.ways, task.schema.labels, self.names)

    def __repr__(self) -> str:
        pairs = zip(self.task.labels[:SHOWN], self.answers, strict=False)
        shown = [f"  {label}: {answer:.4g}" for label, answer in pairs]
        if self.has_intervals:
            errors = self.noise_std[:SHOWN]
            shown = [f"{line} ± {error:.2g}" for line, error in zip(shown, errors, strict=True)]
        more = len(self.task.labels) - len(shown)
        rest = [f"  ... and {more} more"] if more > 0 else []
        heading = f"{self.task.description}: {self.guarantee}"
        said = f"({self.statement}{NOISE_SIGN if self.has_intervals else ''})"
        if self.estimated_rmse is not None:
            said += f"\n(rmse estimated from this release: {self.estimated_rmse:.2g})"
        return "\n".join([heading, said, *shown, *rest])

    def _repr_html_(self) -> str:
        heading = html.escape(f"{self.task.description}: {self.guarantee}")
        return f"<p>{heading}</p>{self.to_frame().head(ROWS_IN_NOTEBOOK).to_html()}"


class Tables(Mapping[tuple[str, ...], "pd.DataFrame | pd.Series[float]"]):
    """The tables of a tabulation by the names of their columns."""

    def __init__(self, tabulation: Tabulation) -> None:
        self._answers, shown = tabulation.answers, tabulation.task.shown
        placed = zip(places_of(shown), shown, strict=True)
        self._places = {table.columns: (place, table) for place, table in placed}

    def __getitem__(self, columns: tuple[str, ...]) -> pd.DataFrame | pd.Series[float]:
        import pandas as pd

        if columns not in self._places:
            known = ", ".join(map(str, itertools.islice(self._places, 10)))
            raise KeyError(f"no table {columns!r}; the tables are {known}, ...")
        place, table = self._places[columns]
        index = pd.MultiIndex.from_product(table.levels, names=table.columns)
        cells = pd.Series(self._answers[place], index=index, name="answer")
        if len(table.columns) == 1:
            return cells.droplevel([]).set_axis(pd.Index(table.levels[0], name=table.columns[0]))
        return cells.unstack(sort=False)

    def __iter__(self) -> Iterator[tuple[str, ...]]:
        return iter(self._places)

    def __len__(self) -> int:
        return len(self._places)
