"""The offline mechanism: built with its claim, predicts its error, then releases once per call."""

from __future__ import annotations

import abc
import copy
from collections.abc import Callable, Iterable
from typing import Self

import numpy as np

from geomdp._typing import FloatArray, RandomState
from geomdp._validation import whole
from geomdp.data.counting.tallies import CountedRecords, totals_of
from geomdp.mechanisms.protocol import release_once, source_and_record
from geomdp.mechanisms.results import Prediction, Release, short_claim
from geomdp.privacy import Guarantee, Ledger
from geomdp.workloads import MarginalTables, Workload
from geomdp.workloads.base import Totals
from geomdp.workloads.universe.universes import Records

#: Longest description of a workload in the text of a mechanism.
LONGEST = 60


#: From exact sums (m,) to private means (m,), with noise that is drawn already.
Privatiser = Callable[[FloatArray], FloatArray]


def once(privatiser: Privatiser) -> Privatiser:
    """`privatiser`, which raises ``RuntimeError`` when it is called again.

    The same noise on two sums would give their exact difference away.
    """
    unused = [privatiser]

    def first_call(sums: FloatArray) -> FloatArray:
        if not unused:
            raise RuntimeError("noise is used once: draw again")
        return unused.pop()(sums)

    return first_call


class FunctionOfSums(abc.ABC):
    """Private means computed from exact sums, in three steps that another mechanism can wrap.

    Post-processing calls these steps of the mechanism inside it; `release` is the same three steps
    with a ledger, a count of the records and a privacy record around them.
    """

    @abc.abstractmethod
    def set_up(self) -> None:
        """Compute everything public that the later steps need, so that it cannot fail later.

        It reads no records, may take long, and does nothing the second time.
        """

    @abc.abstractmethod
    def totals(self, records: Records | Iterable[Records] | CountedRecords) -> Totals:
        """Check the records and return their number and the exact sums they add up to.

        The records are read once; nothing is drawn. ``ValueError`` for records outside the
        universe.
        """

    def measured(self, records: Records | Iterable[Records] | CountedRecords) -> Totals:
        """As `totals`, of the sums that correctly rounded noise is added to.

        By default the same. A mechanism that computes its answers from other measurements adds
        them up here: rounding their noise is post-processing, rounding that of answers is not.
        """
        return self.totals(records)

    @abc.abstractmethod
    def draw(self, rng: np.random.Generator | None) -> Privatiser:
        """Draw the noise; return the function that makes noisy means of exact sums with it.

        What it returns is private, not yet processed.

        The only step that draws, and it sees no records. The function may be called once. None
        takes the noise from the operating system: where `grid` is not None it is correctly rounded,
        and the sums are those of `measured`.
        """

    def process(self, noisy: FloatArray) -> FloatArray:
        """The answers (m,), from the noisy means alone; by default the noisy means themselves."""
        return noisy

    def private(self, rng: np.random.Generator | None) -> Privatiser:
        """Draw the noise; return the function from exact sums to answers: `draw`, `process`."""
        noisy = self.draw(rng)
        return once(lambda sums: self.process(noisy(sums)))

    def privatise(self, sums: FloatArray, rng: np.random.Generator) -> FloatArray:
        """Private mean answers (m,) from the exact sums, with fresh noise."""
        return self.private(rng)(sums)


class Mechanism(FunctionOfSums):
    """A private mechanism for one workload, n and privacy guarantee.

    The constructor of each concrete mechanism is the only place where its privacy claim is made.
    """

    workload: Workload
    n: int
    guarantee: Guarantee

    def __repr__(self) -> str:
        said = f"{_in_words(self.workload)}; {self.workload.n_queries} queries; n={self.n}"
        return f"{type(self).__name__}({said}; {self._claim()})"

    def _claim(self) -> str:
        """The guarantee in a few words; must not start a long set-up."""
        return short_claim(self.guarantee)

    @property
    @abc.abstractmethod
    def predicted_rmse(self) -> Prediction:
        """Error per query predicted from the workload, n and privacy parameters alone."""

    @property
    def grid(self) -> int | None:
        """The k for which unseeded releases round their noise correctly to multiples of 2^-k.

        None if they draw it in float64.
        """
        return None

    @abc.abstractmethod
    def with_workload(self, workload: Workload) -> Self:
        """The same family of mechanism, n and guarantee for another `workload`."""

    def with_n(self, n: int) -> Self:
        """The same mechanism for `n` records; noise and geometry are shared."""
        n = whole(n, "n")
        # Set up before copying, so that the copy has the results too.
        self.set_up()
        twin = copy.copy(self)
        twin.n = n
        return twin

    def totals(self, records: Records | Iterable[Records] | CountedRecords) -> Totals:
        """Number of records and the sums of their answer vectors."""
        return totals_of(self.workload, records)

    def release(
        self,
        records: Records | Iterable[Records] | CountedRecords,
        rng: RandomState = None,
        *,
        ledger: Ledger | None = None,
    ) -> Release:
        """Private answers (m,) to the workload on `records`.

        Parameters
        ----------
        records : array, DataFrame, or iterable of chunks of one
            In the encoding of `workload.universe`; under replace-one exactly n of them. Or records
            that `gd.data.count_records` has counted.
        rng : Generator, int or None
            None draws from the operating system's entropy; noise with a `grid` is then correctly
            rounded, and drawn before the records are read. Anything else makes the release
            reproducible, and its record then says ``seeded: no privacy claim``.
        ledger : Ledger, optional
            Asked before the records are read; pays once they are found valid, before any noise
            meets them.

        Raises
        ------
        ValueError
            Before any payment: records outside the universe, or, under replace-one, not n of them.
        BudgetExhausted
            If the ledger cannot pay; the records are not read.
        """
        generator, guarantee = source_and_record(rng, self.guarantee)

        def set_up() -> Prediction:
            self.set_up()
            return self.predicted_rmse

        def read() -> tuple[int, tuple[FloatArray, Privatiser | None]]:
            # Drawn before the records are read, rounded noise cannot depend on them, and neither
            # can the time that it takes. A later failure throws it away.
            if rng is None and self.grid is not None:
                rounded, totals = self.draw(None), self.measured(records)
                return totals.count, (totals.sums, rounded)
            totals = self.totals(records)
            return totals.count, (totals.sums, None)

        def draw(predicted: Prediction, statistic: tuple[FloatArray, Privatiser | None]) -> Release:
            sums, rounded = statistic
            noisy = (self.draw(generator) if rounded is None else rounded)(sums)
            return Release(self.process(noisy), guarantee, predicted, self.workload, noisy)

        return release_once(
            type(self).__name__, self.n, guarantee, ledger, set_up=set_up, read=read, draw=draw
        )


def _in_words(workload: Workload) -> str:
    """A workload in a few words."""
    if isinstance(workload, MarginalTables):
        return f"MarginalTables of {len(workload.levels)} columns, k={workload.k}"
    text = repr(workload)
    return text if len(text) <= LONGEST else type(workload).__name__
