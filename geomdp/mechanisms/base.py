"""Base classes of offline mechanisms, what one record can change, and errors on public data."""

from __future__ import annotations

import abc
import copy
import math
from collections.abc import Callable, Iterable
from typing import Self

import numpy as np

from geomdp._numerics.linalg import RANK_TOLERANCE, AffineHull
from geomdp._typing import FloatArray, RandomState
from geomdp._validation import require_type, whole
from geomdp.data.tallies import CountedRecords, totals_of
from geomdp.mechanisms.release import (
    Prediction,
    PredictionKind,
    Release,
    release_once,
    short_claim,
    source_and_record,
)
from geomdp.privacy import Adjacency, Guarantee, Ledger, PureDP
from geomdp.privacy.definitions import checked_adjacency
from geomdp.privacy.guarantees import SamplerStatus
from geomdp.workloads import MarginalTables, Workload
from geomdp.workloads.base import Totals
from geomdp.workloads.universes import Records

#: Limits on the largest l1 norm of an answer vector. Within these limits, fourth powers of noise
#: scales stay in the range of float64 for every epsilon that mechanisms accept.
LEAST_ANSWER, LARGEST_ANSWER = 1e-60, 1e60


def checked_workload(workload: object) -> Workload:
    if not isinstance(workload, Workload):
        raise ValueError(f"workload must be a Workload, got {type(workload).__name__}")
    return workload


def checked_size(workload: Workload) -> Workload:
    """Return `workload`; ``ValueError`` if its l1 radius is neither 0 nor from 1e-60 to 1e60."""
    with np.errstate(over="ignore"):
        radius = workload.l1_radius()
    if radius != 0 and not LEAST_ANSWER <= radius <= LARGEST_ANSWER:
        raise ValueError(
            f"workload must have answers with a largest l1 norm from {LEAST_ANSWER:g} to "
            f"{LARGEST_ANSWER:g}, got {radius:g}: choose another unit"
        )
    return workload


def pure_only(privacy: object, mechanism: str) -> PureDP:
    if not isinstance(privacy, PureDP):
        raise ValueError(f"privacy must be PureDP for {mechanism}, got {privacy!r}")
    return privacy


def l1_sensitivity(workload: Workload, adjacency: Adjacency) -> float:
    """Upper bound on the l1 change of the sum of answer vectors between neighbours (GEN-1).

    ``ValueError`` if it is not finite, or if it is 0: the sums of neighbours then need no noise.
    """
    replace_one = _checked(workload, adjacency)
    return _not_constant(workload.l1_diameter() if replace_one else workload.l1_radius())


def l2_sensitivity(workload: Workload, adjacency: Adjacency) -> float:
    """Upper bound on the l2 change of the sum of answer vectors, as `l1_sensitivity`."""
    replace_one = _checked(workload, adjacency)
    return _not_constant(workload.l2_diameter() if replace_one else workload.l2_radius())


def whole_square(sensitivity: float) -> int:
    """Upper bound on the squared l2 sensitivity of whole-number answers, which is a whole number.

    `sensitivity` is its root in float64, with a relative error far below 1e-9.
    """
    return math.floor(sensitivity**2 * (1 + 1e-9))


def _checked(workload: object, adjacency: object) -> bool:
    """Check both arguments, and return whether the neighbour relation is replace-one."""
    checked_workload(workload)
    return checked_adjacency(adjacency) is Adjacency.REPLACE_ONE


def _not_constant(sensitivity: float) -> float:
    if not (math.isfinite(sensitivity) and sensitivity > 0):
        raise ValueError(
            f"workload must have a sensitivity that is finite and above 0, got {sensitivity!r}; "
            "a workload that is constant (under add-remove: that is 0) needs no mechanism"
        )
    return sensitivity


def answer_hull(workload: Workload, adjacency: Adjacency) -> AffineHull:
    """The public subspace, of dimension r >= 1, that contains the mean answers of every data set.

    Under replace-one it is the affine hull of the answers, under add/remove the linear span of this
    hull (JL-DEF). The basis (m, r) is orthonormal. ``ValueError`` for dimension 0.
    """
    hull = checked_workload(workload).affine_hull()
    if checked_adjacency(adjacency) is Adjacency.ADD_REMOVE:
        hull = _linear_span(hull)
    if hull.dimension == 0:
        raise ValueError("workload must have answers that vary over its universe, got a constant")
    return hull


def _linear_span(hull: AffineHull) -> AffineHull:
    """Linear span of an affine subspace, as an affine subspace through 0."""
    normal = hull.offset - hull.basis @ (hull.basis.T @ hull.offset)
    # Repeat, because the first pass leaves a rounding error along the basis.
    normal = normal - hull.basis @ (hull.basis.T @ normal)
    length = float(np.linalg.norm(normal))
    origin = np.zeros_like(hull.offset)
    if length <= RANK_TOLERANCE * float(np.linalg.norm(hull.offset)):
        return AffineHull(origin, hull.basis)
    return AffineHull(origin, np.column_stack([hull.basis, normal / length]))


#: Largest length of a workload's `repr` in the `repr` of a mechanism. A longer `repr` is replaced
#: by the name of the workload's class.
LONGEST = 60


#: A function that maps exact sums to private means (m,), with noise that is drawn already.
Privatiser = Callable[[FloatArray], FloatArray]


def once(privatiser: Privatiser) -> Privatiser:
    """Let `privatiser` run once, as the same noise on two sums would reveal their difference."""
    unused = [privatiser]

    def first_call(sums: FloatArray) -> FloatArray:
        if not unused:
            raise RuntimeError("noise is used once: draw new noise for another release")
        return unused.pop()(sums)

    return first_call


class Mechanism(abc.ABC):
    """A private mechanism for one workload, one number n of records and one privacy guarantee.

    A release has three steps that another mechanism can call, too: `totals` (exact sums of the
    answers), `draw` (draw noise) and `process` (compute answers from noisy means).

    Notes
    -----
    Each concrete mechanism states its own privacy claim in `guarantee`. It holds for all
    neighbouring X, X' and measurable S. Under epsilon-DP, Pr[M(X) in S] <= e^epsilon
    Pr[M(X') in S]. Under (epsilon, delta)-DP, delta is added on the right. Under rho-zCDP, the
    Renyi divergence of order a > 1 of M(X) from M(X') is at most rho a.

    Examples
    --------
    >>> import numpy as np
    >>> import geomdp as gd
    >>> workload = gd.workloads.Histogram(3)
    >>> mechanism = gd.mechanisms.Laplace(workload, n=100, privacy=gd.PureDP(1.0))
    >>> print(mechanism.predicted_rmse)
    rmse 0.02828
    >>> print(mechanism.with_n(1000).predicted_rmse)
    rmse 0.002828
    >>> records = np.array([0] * 50 + [1] * 30 + [2] * 20)
    >>> mechanism.release(records).guarantee
    Guarantee(1-DP, replace-one, exact sampler)

    A ledger can pay for the release:

    >>> ledger = gd.Ledger(gd.PureDP(1.5))
    >>> release = mechanism.release(records, ledger=ledger)
    >>> ledger.left()
    {'epsilon': 0.5}
    """

    workload: Workload
    n: int
    adjacency: Adjacency
    guarantee: Guarantee

    def __repr__(self) -> str:
        said = f"{_in_words(self.workload)}; {self.workload.n_queries} queries; n={self.n}"
        return f"{type(self).__name__}({said}; {self._claim()})"

    def _claim(self) -> str:
        return short_claim(self.guarantee)

    @property
    @abc.abstractmethod
    def predicted_rmse(self) -> Prediction:
        """Root mean squared error per query, predicted from public arguments alone."""

    @property
    def sampler(self) -> SamplerStatus:
        """Status of the sampler of the noise, as in `guarantee`, but without a set-up."""
        return self.guarantee.sampler

    @property
    def grid(self) -> int | None:
        """Unseeded releases round noise correctly to 2^-grid; None if the noise is in float64."""
        return None

    @abc.abstractmethod
    def with_workload(self, workload: Workload) -> Self:
        """A mechanism of the same family, with the same n and guarantee, for another `workload`."""

    def with_n(self, n: int) -> Self:
        """The same mechanism for `n` records, with the same noise and geometry."""
        n = whole(n, "n")
        # Set up before copying. The copy then has the results, too.
        self.set_up()
        twin = copy.copy(self)
        twin.n = n
        return twin

    @abc.abstractmethod
    def set_up(self) -> None:
        """Do all work that depends on public arguments alone; a second call does nothing."""

    def totals(self, records: Records | Iterable[Records] | CountedRecords) -> Totals:
        """Number of records and exact sums; ``ValueError`` for records outside the universe."""
        return totals_of(self.workload, records)

    def measured(self, records: Records | Iterable[Records] | CountedRecords) -> Totals:
        """The sums to which correctly rounded noise is added; by default those of `totals`.

        They are sums of measurements if only noise on the measurements is proved private.
        """
        return self.totals(records)

    @abc.abstractmethod
    def draw(self, rng: np.random.Generator | None) -> Privatiser:
        """Draw the noise, and return a function from exact sums to noisy means with this noise.

        No other step draws, and this one sees no records. The function can be called once. If `rng`
        is None and there is a `grid`, it takes the sums of `measured`, else those of `totals`.
        """

    def process(self, noisy: FloatArray) -> FloatArray:
        """The answers (m,), computed from the noisy means alone. By default, the noisy means."""
        return noisy

    def private(self, rng: np.random.Generator | None) -> Privatiser:
        """Draw the noise, and return the function from exact sums to answers with this noise."""
        noisy = self.draw(rng)
        return once(lambda sums: self.process(noisy(sums)))

    def privatise(self, sums: FloatArray, rng: np.random.Generator) -> FloatArray:
        """Private mean answers (m,) from the exact sums, with fresh noise."""
        return self.private(rng)(sums)

    def release(
        self,
        records: Records | Iterable[Records] | CountedRecords,
        rng: RandomState = None,
        *,
        ledger: Ledger | None = None,
    ) -> Release:
        """Private answers (m,) to the workload on `records`.

        Without a seed, an epsilon or rho above 10 gives a ``UserWarning`` before anything is paid.

        Parameters
        ----------
        records : array, DataFrame, or iterable of such chunks
            Records in the encoding of `workload.universe`; n of them under replace-one. Counts from
            `gd.data.count_records` are accepted, too.
        rng : Generator, int or None
            None draws from the operating system; with a `grid`, the noise is correctly rounded. A
            seed or generator gives a reproducible simulation with ``seeded: no privacy claim``.
        ledger : Ledger, optional
            The privacy budget. It is asked before the records are read, and pays after they are
            found valid and before noise is added.

        Raises
        ------
        ValueError
            For records outside the universe or, under replace-one, not n of them. Nothing is paid.
        BudgetExhausted
            If the ledger cannot pay. Nothing is released, and the records are not read, unless
            another release spends the budget at the same time.
        """
        generator, guarantee = source_and_record(rng, self.guarantee)
        rounded = rng is None and self.grid is not None

        def set_up() -> Prediction:
            self.set_up()
            return self.predicted_rmse

        def read() -> tuple[int, FloatArray]:
            totals = self.measured(records) if rounded else self.totals(records)
            return totals.count, totals.sums

        def draw(predicted: Prediction, sums: FloatArray) -> Release:
            noisy = self.draw(None if rounded else generator)(sums)
            return Release(self.process(noisy), guarantee, predicted, self.workload, noisy)

        return release_once(
            type(self).__name__, self.n, guarantee, ledger, set_up=set_up, read=read, draw=draw
        )


def _in_words(workload: Workload) -> str:
    if isinstance(workload, MarginalTables):
        return f"MarginalTables of {len(workload.levels)} columns, k={workload.k}"
    text = repr(workload)
    return text if len(text) <= LONGEST else type(workload).__name__


# Predicted error on a public data set, by simulation.


class FixedDataset:
    """One public data set for all simulated releases. Never use data that are to be protected."""

    def __init__(self, records: Records) -> None:
        self._records = records
        self._known: tuple[Workload, int, FloatArray] | None = None

    def sums(self, workload: Workload, n: int) -> FloatArray:
        """Sum of the answer vectors (m,); ``ValueError`` if the number of records is not `n`."""
        if self._known is None or self._known[0] is not workload:
            totals = workload.totals(self._records)
            self._known = (workload, totals.count, totals.sums)
        _, count, sums = self._known
        if count != n:
            raise ValueError(f"records of the prior must number n = {n}, got {count}")
        return sums

    def inputs(self, mechanism: Mechanism) -> FloatArray:
        """The sums to which `mechanism` adds noise.

        A mechanism with its own `totals`, such as `Coarse`, reads the records again. For all others
        `sums` keeps the sums.
        """
        if type(mechanism).totals is Mechanism.totals:
            return self.sums(mechanism.workload, mechanism.n)
        return mechanism.totals(self._records).sums


def predict_on_prior(
    mechanism: Mechanism, prior: FixedDataset, trials: int, rng: RandomState = None
) -> Prediction:
    """Root mean squared error per query of `mechanism` on a public data set.

    The prediction is (E ||M(X) - Q(X)||_2^2 / m)^(1/2), with X the data set of `prior`, Q(X) its m
    true answers and M(X) the answers of the mechanism. The expectation over the noise is estimated
    by the mean over independent releases. Never use records that are to be protected: the
    prediction would be a release without privacy.
    """
    require_type(mechanism, Mechanism, "mechanism")
    require_type(prior, FixedDataset, "prior")
    trials = whole(trials, "trials", minimum=2)
    generator = np.random.default_rng(rng)
    squares = np.empty(trials)
    truth = prior.sums(mechanism.workload, mechanism.n) / mechanism.n
    inputs = prior.inputs(mechanism)
    for trial in range(trials):
        error = mechanism.privatise(inputs, generator) - truth
        squares[trial] = error @ error / mechanism.workload.n_queries
    value = math.sqrt(squares.mean())
    # By the derivative of the square root: d sqrt(x) = dx / (2 sqrt(x)).
    stderr = float(squares.std(ddof=1)) / math.sqrt(trials) / (2 * value) if value > 0 else 0.0
    source = f"simulated, {trials} trials on {type(prior).__name__}"
    return Prediction(value, PredictionKind.PRIOR, source, stderr)
