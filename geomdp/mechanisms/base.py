"""The offline mechanism: built with its claim, predicts its error, then releases once per call."""

from __future__ import annotations

import abc
import enum
import json
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Self

import numpy as np

from geomdp._typing import FloatArray, RandomState
from geomdp.mechanisms.protocol import release_once, source_and_record
from geomdp.privacy import Guarantee, Ledger
from geomdp.workloads import Workload
from geomdp.workloads.base import Totals
from geomdp.workloads.universe.universes import Records


class PredictionKind(enum.StrEnum):
    """What a predicted error is."""

    #: An equality for every data set (its value may be estimated: then `stderr` is above 0).
    EXACT = "exact"
    #: A bound that holds for every data set.
    UPPER_BOUND = "upper_bound"
    #: A simulation on a stated public prior over data sets.
    PRIOR = "prior"


@dataclass(frozen=True)
class Prediction:
    """Root mean squared error per query, (E ||M(X) - Q(X)||_2^2 / m)^(1/2), before any data.

    Parameters
    ----------
    value : float
        The predicted error, in the units of the answers (means).
    kind : PredictionKind
        Equality, worst-case bound, or simulated on a prior.
    source : str
        Formula-sheet id and what in it was estimated, if anything.
    stderr : float
        Standard error of `value` from that estimation; 0 if none.
    """

    value: float
    kind: PredictionKind
    source: str
    stderr: float = 0.0

    def __float__(self) -> float:
        return self.value

    def to_dict(self) -> dict[str, object]:
        """Plain values, ready for JSON."""
        return {
            "value": self.value,
            "kind": self.kind.value,
            "source": self.source,
            "stderr": self.stderr,
        }


@dataclass(frozen=True)
class Release:
    """Private answers with the claim that goes with them.

    Parameters
    ----------
    answers : (m,) array
        Private mean answers, in the order of the workload's queries.
    guarantee : Guarantee
        The privacy record of this release.
    predicted_rmse : Prediction
        The error predicted before the data were seen.
    """

    answers: FloatArray
    guarantee: Guarantee
    predicted_rmse: Prediction

    def to_json(self) -> str:
        """Answers, privacy record and prediction as one JSON object."""
        record = {
            "answers": self.answers.tolist(),
            "guarantee": self.guarantee.to_dict(),
            "predicted_rmse": self.predicted_rmse.to_dict(),
        }
        return json.dumps(record, indent=2)


class Mechanism(abc.ABC):
    """A private mechanism for one workload, n and privacy guarantee.

    The constructor of each concrete mechanism is the only place where its privacy claim is made.
    `release` reads the records once, checks them, and only then draws noise.
    """

    workload: Workload
    n: int
    guarantee: Guarantee

    @property
    @abc.abstractmethod
    def predicted_rmse(self) -> Prediction:
        """Error per query predicted from the workload, n and privacy parameters alone."""

    @abc.abstractmethod
    def with_n(self, n: int) -> Self:
        """The same mechanism for `n` records, without redoing any geometry."""

    @abc.abstractmethod
    def with_workload(self, workload: Workload) -> Self:
        """The same family of mechanism, n and guarantee for another `workload`."""

    @abc.abstractmethod
    def set_up(self) -> None:
        """Make whatever a draw needs beyond the prediction, so that none of it can fail later."""

    def totals(self, records: Records | Iterable[Records]) -> Totals:
        """Number of records and the exact sums that `privatise` takes, in one pass."""
        return self.workload.totals(records)

    @abc.abstractmethod
    def privatise(self, sums: FloatArray, rng: np.random.Generator) -> FloatArray:
        """Private mean answers (m,) from the exact sums (m,) of the answer vectors."""

    def release(
        self,
        records: Records | Iterable[Records],
        rng: RandomState = None,
        *,
        ledger: Ledger | None = None,
    ) -> Release:
        """Private answers (m,) to the workload on `records`.

        Parameters
        ----------
        records : array, DataFrame, or iterable of chunks of one
            In the encoding of `workload.universe`; under replace-one exactly n of them.
        rng : Generator, int or None
            None draws from the operating system's entropy. Anything else makes the release
            reproducible, and its record then says ``seeded: no privacy claim``.
        ledger : Ledger, optional
            Asked before the records are read; pays once they are found valid, before any draw.

        Raises
        ------
        ValueError
            Before any draw: records outside the universe, or, under replace-one, not n of them.
        BudgetExhausted
            If the ledger cannot pay; the records are not read.
        """
        generator, guarantee = source_and_record(rng, self.guarantee)

        def set_up() -> Prediction:
            self.set_up()
            return self.predicted_rmse

        def read() -> tuple[int, FloatArray]:
            totals = self.totals(records)
            return totals.count, totals.sums

        def draw(predicted: Prediction, sums: FloatArray) -> Release:
            return Release(self.privatise(sums, generator), guarantee, predicted)

        return release_once(
            type(self).__name__, self.n, guarantee, ledger, set_up=set_up, read=read, draw=draw
        )
