"""A design: private measurements, their shares of the budget, and the error of the answers."""

from __future__ import annotations

import abc
import itertools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Protocol, runtime_checkable

import numpy as np
import scipy.sparse as sp

from geomdp._numerics.randomness import PUBLIC_SEED
from geomdp._typing import FloatArray, IntArray
from geomdp._validation import positive
from geomdp.bodies import SimplexDifference
from geomdp.data.tallies import Counts
from geomdp.geometry.sampling.samplers import ExactSampler
from geomdp.noise import KNormNoise, LaplaceNoise, Noise
from geomdp.noise.knorm import Columns, Map, MappedNoise, Part, sum_of_images
from geomdp.privacy import Adjacency
from geomdp.privacy.definitions import checked_adjacency
from geomdp.workloads import Workload

#: Largest accepted length of a row of W - sum of R_i C_i (see `Design._rebuilt`), for rounding. The
#: unit is the length of the same row of W, plus the standard deviation of the noise on the answer
#: at epsilon = 1. A longer row could reveal records in the difference of answers with equal noise.
ROUNDING = 1e-13
#: Upper bound on the share by which rounding of the noise scales can increase the privacy loss.
OVERSPENT = Fraction(1, 2**40)
#: Number of random Gaussian vectors from whose products with a row its length is estimated. All 32
#: products are below a tenth of the length with probability below 1e-35.
WEIGHTS = 32
#: Real entries of a strategy are rounded to multiples of 2^-24, within the tolerance of the search
#: for them. Sums over 2^29 records stay exact in float64.
ENTRY_UNIT = 2**24

#: A function from counts of valid records to the exact float64 sums C h (p,) of a `Measurement`.
ExactSums = Callable[[Counts], FloatArray]


@dataclass(frozen=True, eq=False)
class Measurement:
    """One private measurement C h of the histogram h, and its contribution R C h to the answers."""

    #: The columns of C (p, b) for b elements, multiples of 1 / `unit`. For noise on the counts of
    #: cells they add up to exactly 1.
    rows: Columns
    #: R (m, p).
    matrix: Map
    #: The noise on C h for a given epsilon.
    noise: Callable[[float], Noise]
    #: Largest changes of C h between neighbours, in the norm of the noise, for one or more cases.
    changes: FloatArray | None = None
    unit: int = 1
    sums: ExactSums | None = None
    #: The columns of the table that is measured, if it is one.
    table: tuple[int, ...] | None = None


def exact_loss(measured: Sequence[Measurement], noises: Sequence[Noise]) -> Fraction | None:
    """The privacy loss: the largest sum of change times rate over all cases; None if not known."""
    cases: list[Fraction] = [Fraction(0)]
    for part, noise in zip(measured, noises, strict=True):
        if part.changes is None:
            return None
        if isinstance(noise, LaplaceNoise):
            rate = 1 / Fraction(noise.scale)
        elif isinstance(noise, KNormNoise):
            rate = Fraction(noise.epsilon)
        else:
            return None
        own = [Fraction(change) * rate for change in part.changes.tolist()]
        count = max(len(own), len(cases))
        cases = [cases[i % len(cases)] + own[i % len(own)] for i in range(count)]
    return max(cases)


@dataclass(frozen=True, eq=False)
class Design:
    """Linear measurements of the records with independent noise, and the answers from them."""

    name: str
    #: E ||noise||_2^2 at epsilon = 1.
    energy: float
    #: Answers (b, m) of some elements, for which `Measurement.rows` has the columns.
    answers: FloatArray
    adjacency: Adjacency
    measure: Callable[[], Sequence[Measurement]]

    def __post_init__(self) -> None:
        checked_adjacency(self.adjacency)

    @cached_property
    def measurements(self) -> Sequence[Measurement]:
        return self.measure()

    def noise(self, epsilon: float) -> MappedNoise:
        """Noise on the sums of answers, whose scales, rounded to floats, spend at most epsilon."""
        self.check_answers()
        return self._noise(positive(epsilon, "epsilon"))

    def _noise(self, epsilon: float) -> MappedNoise:
        measured, affordable = self.measurements, epsilon
        noises = [part.noise(affordable) for part in measured]
        # Where needed, the scales are computed for an epsilon lower by a few parts in 2^50.
        while (loss := exact_loss(measured, noises)) is not None and loss > Fraction(epsilon):
            if loss > (1 + OVERSPENT) * Fraction(epsilon):
                raise ArithmeticError(
                    f"the measurements cost epsilon {float(loss)!r} and must cost at most "
                    f"{epsilon!r}"
                )
            affordable *= 1 - 2.0**-50
            noises = [part.noise(affordable) for part in measured]
        return MappedNoise([Part(z, p.matrix) for z, p in zip(noises, measured, strict=True)])

    def check_answers(self) -> None:
        """``ValueError`` if the measurements do not determine all answers: W = sum of R_i C_i."""
        _ = self._rebuilt

    @cached_property
    def _rebuilt(self) -> bool:
        """True, or the error of `check_answers` is raised. A check that passes runs only once."""
        # (W - sum of R_i C_i) h is released without noise. Under replace-one the matrix may have
        # equal entries in each row, because the number of records is public.
        weights = np.random.default_rng(PUBLIC_SEED).standard_normal((len(self.answers), WEIGHTS))
        if self.adjacency is Adjacency.REPLACE_ONE:
            weights -= weights.mean(axis=0)
        rebuilt = sum_of_images(
            (part.matrix for part in self.measurements),
            (part.rows @ weights for part in self.measurements),
        )
        missing = self.answers.T @ weights - rebuilt
        deviations = np.sqrt(self._noise(1.0).variances())
        allowed = ROUNDING * (deviations + np.linalg.norm(self.answers, axis=0))
        # With `>` instead of `not <=`, NaN would pass.
        if not (np.abs(missing).max(axis=1) <= allowed).all():
            raise ValueError("strategy must determine all answers of the workload")
        return True


@runtime_checkable
class Strategy(Protocol):
    """A family of designs, and a search for the best one of the family for a workload."""

    def design(self, workload: Workload, adjacency: Adjacency) -> Design:
        """The best design for `workload`; ``ValueError`` if the family has none."""
        ...


# Noise on measurements, and on the counts of cells of a partition of the universe.


def laplace_on(count: int, scale: float) -> Callable[[float], Noise]:
    """Independent Laplace noise of scale `scale` / epsilon on `count` sums, for each epsilon."""
    return lambda epsilon: LaplaceNoise(count, scale / epsilon)


class CellNoise(abc.ABC):
    """The noise on the counts of the cells of a partition of the universe."""

    @abc.abstractmethod
    def changes(self, adjacency: Adjacency) -> FloatArray:
        """Largest change (1,) of the counts between neighbours, in the norm of the noise."""

    @abc.abstractmethod
    def variance(self, cells: int, adjacency: Adjacency) -> float:
        """Variance at epsilon = 1 along a unit vector, of sum 0 under replace-one."""

    @abc.abstractmethod
    def noise(self, cells: int, epsilon: float, adjacency: Adjacency) -> Noise:
        """The noise that makes the counts (cells,) epsilon-DP."""

    def spending(self, share: float, cells: int, adjacency: Adjacency) -> Callable[[float], Noise]:
        """The noise on the counts (cells,) that spends the share `share` of each epsilon."""
        return lambda epsilon: self.noise(cells, epsilon * share, adjacency)


@dataclass(frozen=True)
class LaplaceCells(CellNoise):
    """Independent noise Lap(D / epsilon) on every cell, D = 2 (replace-one) or 1 (add/remove)."""

    def changes(self, adjacency: Adjacency) -> FloatArray:
        return np.array([_l1_change(adjacency)])

    def variance(self, cells: int, adjacency: Adjacency) -> float:
        del cells
        return 2 * _l1_change(adjacency) ** 2

    def noise(self, cells: int, epsilon: float, adjacency: Adjacency) -> LaplaceNoise:
        return LaplaceNoise(cells, _l1_change(adjacency) / positive(epsilon, "epsilon"))


@dataclass(frozen=True)
class SimplexCells(CellNoise):
    """K-norm noise of the hull of changes of the counts (X-SIM): under replace-one the difference
    body of a simplex, under add/remove the l1 ball, as for `LaplaceCells`.
    """

    def changes(self, adjacency: Adjacency) -> FloatArray:
        del adjacency  # the counts change by a point of the simplex, or a difference of two
        return np.array([1.0])

    def variance(self, cells: int, adjacency: Adjacency) -> float:
        if checked_adjacency(adjacency) is Adjacency.ADD_REMOVE:
            return LaplaceCells().variance(cells, adjacency)
        # (r + 1)(r + 2) E ||U||^2 / r for a uniform point U of the body; see `SimplexDifference`.
        return 4 * (2 * cells - 1) / (cells + 1)

    def noise(self, cells: int, epsilon: float, adjacency: Adjacency) -> Noise:
        if checked_adjacency(adjacency) is Adjacency.ADD_REMOVE:
            return LaplaceCells().noise(cells, epsilon, adjacency)
        body = SimplexDifference.at_units(cells)
        return KNormNoise(body, epsilon, ExactSampler(body))


def _l1_change(adjacency: Adjacency) -> float:
    """Largest l1 change of the counts of a partition between neighbours."""
    return 2.0 if checked_adjacency(adjacency) is Adjacency.REPLACE_ONE else 1.0


#: Number of random starting points besides the even split, and their public seed. There are many
#: local minima; 30 points gave a squared error larger by 0.2% on one of 15 workloads.
STARTS, START_SEED = 60, 0
#: Number and length of the gradient steps with which half of the descents begin, to find other
#: minima.
STEPS, STEP_LENGTH = 12, 2.0
#: Number of rounds (`SplitError._round`) after which descents are compared, and number of descents
#: that are continued.
FIRST_ROUNDS, KEPT_DESCENTS = 4, 6
#: Descents end after the first round that lowers the least error by less than this relative amount,
#: or after `MAX_ROUNDS` rounds; few take more than 40.
LEAST_GAIN, MAX_ROUNDS = 1e-12, 300
#: The first rounds are computed for blocks of starting points: about this number of points times
#: nonzero entries of the matrix g of `best_split`.
BLOCK_PRODUCTS = 1 << 22
#: Smallest precision in a descent. The square of this number does not underflow in float64.
LEAST_PRECISION = 1e-100
#: Shares below this part of the largest share are set to 0, or raised to it where they are needed.
LEAST_SHARE = 1e-6


@dataclass(frozen=True)
class Split:
    """Shares (s,) of the budget with sum 1, and the `value` that `best_split` minimises."""

    shares: FloatArray
    value: float


def best_split(costs: FloatArray, overlap: sp.csr_array) -> Split:
    """Shares t >= 0 with sum 1 that minimise sum_u c_u / (sum_i g_iu t_i^2).

    Measurement i with the share t_i determines quantity u with precision g_iu t_i^2, `overlap` (s,
    q); c_u, in `costs` (q,), is the weight of its variance in the error. The problem is not convex,
    and is solved by descents from many points. Every quantity with a cost above 0, however small,
    is measured: else the measurements would not determine the answers that depend on it.
    """
    error = SplitError.of(costs, overlap)
    count = overlap.shape[0]
    random = np.exp(np.random.default_rng(START_SEED).normal(size=(STARTS, count)))
    return error.finished(error.lowest(np.vstack([np.ones(count), random]).T))


@dataclass(frozen=True, eq=False)
class SplitError:
    """The error that `best_split` minimises; arrays (s, b) hold the shares of b splits."""

    costs: FloatArray
    overlap: sp.csr_array
    transposed: sp.csr_array

    @classmethod
    def of(cls, costs: FloatArray, overlap: sp.csr_array) -> SplitError:
        """The error of the quantities with costs above 0."""
        needed = np.flatnonzero(costs)
        kept = sp.csr_array(overlap.tocsc()[:, needed])
        return cls(costs[needed], kept, kept.T.tocsr())

    def lowest(self, starts: FloatArray) -> FloatArray:
        """The best shares (s,) that descents from the points (s, b) reach; a share of 0 stays 0."""
        pieces = math.ceil(self.overlap.nnz * starts.shape[1] / BLOCK_PRODUCTS)
        blocks = np.array_split(starts, min(pieces, starts.shape[1]), axis=1)
        begun = np.hstack([self._where_used(block, SplitError._begun) for block in blocks])
        return self._where_used(self._best(begun), SplitError._ended)[:, 0]

    def _where_used(
        self, shares: FloatArray, search: Callable[[SplitError, FloatArray], FloatArray]
    ) -> FloatArray:
        """Run `search` from `shares` (s, b) without measurements of share 0 in all splits."""
        used = np.flatnonzero(shares.any(axis=1))
        found = search(
            SplitError(self.costs, self.overlap[used], self.transposed[:, used]), shares[used]
        )
        whole = np.zeros((len(shares), found.shape[1]))
        whole[used] = found
        return whole

    def _begun(self, starts: FloatArray) -> FloatArray:
        """The best splits after the first rounds of two descents from each point of `starts`."""
        shares = starts / starts.sum(axis=0)
        shares = np.hstack([shares, self._after_steps(shares)])
        for _ in range(FIRST_ROUNDS):
            shares, _ = self._round(shares)
        return self._best(shares)

    def _ended(self, shares: FloatArray) -> FloatArray:
        """The best split (s, 1) at the end of the descents that start at `shares` (s, b)."""
        least = np.inf
        for _ in range(MAX_ROUNDS):
            shares, errors = self._round(shares)
            if errors.min() > least * (1 - LEAST_GAIN):
                break
            least = errors.min()
        return self._best(shares)[:, :1]

    def _best(self, shares: FloatArray) -> FloatArray:
        """The `KEPT_DESCENTS` splits of least error, in columns."""
        return shares[:, np.argsort(self.with_gains(shares)[0], kind="stable")[:KEPT_DESCENTS]]

    def finished(self, shares: FloatArray) -> Split:
        """Turn the `shares` (s,) of a search into shares with sum 1 that measure every quantity."""
        kept = _without_tiny(shares / shares.max(), self.transposed)
        return Split(kept, float((self.costs / (self.transposed @ kept**2)).sum()))

    def with_gains(self, shares: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Errors E (b,) of splits t (s, b), over the largest cost, and -dE / d(t_i^2), (s, b)."""
        precision = np.maximum(self.transposed @ shares**2, LEAST_PRECISION)
        parts = (self.costs / self.costs.max())[:, None] / precision
        return parts.sum(axis=0), np.asarray(self.overlap @ (parts / precision))

    def _round(self, shares: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Splits (s, b) with errors at most those of `shares`, and the errors (b,) of `shares`."""
        errors, gains = self.with_gains(shares)
        # By convexity of 1 / x, the error at shares t' is at most sum_i k_i / t_i'^2 for the
        # k_i = t_i^4 gains_i, with equality at t. It is least for t' along k^(1/3) (JL-SPLIT).
        shares = shares * np.cbrt(shares * gains)
        return shares / shares.sum(axis=0), errors

    def _after_steps(self, shares: FloatArray) -> FloatArray:
        """Splits (s, b) after steps of fixed length against the gradient in log t."""
        for _ in range(STEPS):
            errors, gains = self.with_gains(shares)
            slopes = shares * (1 - shares * gains / errors)
            lengths = np.linalg.norm(slopes, axis=0)
            steps = slopes * (STEP_LENGTH / np.where(lengths > 0, lengths, 1.0))
            shares = shares * np.exp(-steps)
            shares = shares / shares.sum(axis=0)
        return shares


def _without_tiny(shares: FloatArray, overlap: sp.csr_array) -> FloatArray:
    """Set tiny `shares` (s,) of largest entry 1 to 0 where no quantity needs them; make the sum 1.

    If a quantity would lose more than half of its precision, its best measurement gets a share of
    at least `LEAST_SHARE`. `overlap` (q, s) is transposed.
    """
    useful = np.asarray(overlap.sum(axis=0)) > 0
    kept = np.where(useful & (shares >= LEAST_SHARE), shares, 0.0)
    before, after = overlap @ shares**2, overlap @ kept**2
    for u in np.flatnonzero((after == 0) | (after < before / 2)):
        row = slice(overlap.indptr[u], overlap.indptr[u + 1])
        known = np.maximum(shares[overlap.indices[row]], LEAST_PRECISION)
        precision = overlap.data[row] * known**2
        best = overlap.indices[row][np.argmax(precision)]
        kept[best] = max(kept[best], LEAST_SHARE)
    return np.asarray(kept / kept.sum())


# Choice of the families (lists of measurements) to combine.

#: An added family gets the share `FIRST_SHARE` of the budget at the start of the descent over all
#: shares. The search ends if it lowers the error by less than `LEAST_FAMILY_GAIN` (relative), or
#: after `MAX_COMBINED` added families.
FIRST_SHARE, LEAST_FAMILY_GAIN, MAX_COMBINED = 0.25, 1e-3, 6


def combined_split(
    costs: FloatArray,
    overlap: sp.csr_array,
    families: Sequence[IntArray],
    known: Sequence[FloatArray],
) -> Split:
    """Shares for the measurements of a few `families`; one family is chosen after the other.

    It serves where a descent over all measurements ends far from the optimum. The error is at most
    that of every split in `known` (s,), and of equal shares for any family that measures all.
    """
    error = SplitError.of(costs, overlap)
    even = np.zeros((overlap.shape[0], len(families)))
    for place, family in enumerate(families):
        even[family, place] = 1 / len(family)
    measured = error.transposed @ (even > 0).astype(np.float64)
    alone = even[:, (measured > 0).all(axis=0)]
    starts = [*known, error.lowest(alone)] if alone.size else known
    ends = np.column_stack([_extended(error, even, start) for start in starts])
    return error.finished(ends[:, error.with_gains(ends)[0].argmin()])


def _extended(error: SplitError, families: FloatArray, shares: FloatArray) -> FloatArray:
    """The split `shares` (s,), after some columns of `families` (s, f) were added one by one."""
    for _ in range(MAX_COMBINED if families.size else 0):
        starts = (1 - FIRST_SHARE) * shares[:, None] + FIRST_SHARE * families
        added = error.lowest(starts)
        before, after = error.with_gains(np.column_stack([shares, added]))[0]
        if after < before:
            shares = added
        if after > before * (1 - LEAST_FAMILY_GAIN):
            break
    return shares


# Covering designs: blocks of columns such that every set of t columns lies in some block.

#: Largest number of blocks of a design, each measured as a table.
MAX_BLOCKS = 400
#: Largest number of groups into which the columns are divided, besides one group for each column.
MAX_GROUPS = 12
#: A search runs only if (number of sets of t groups) x (number of groups) is at most this.
MAX_COVERED = 300_000
#: The weight of an uncovered set of groups in `_greedy_cover` is `LOOK_AHEAD`^k, where k is the
#: number of groups of the set that are not in the block yet.
LOOK_AHEAD = 0.25
#: Largest number of designs that `covering_designs` returns.
KEPT = 16

#: Numbers of the columns of a table, in increasing order.
ColumnSet = tuple[int, ...]
#: The sets of columns of one covering design.
Blocks = tuple[ColumnSet, ...]


def covering_designs(levels: Sequence[int], strength: int, max_cells: int) -> list[Blocks]:
    """Designs that cover all sets of `strength` columns by blocks of at most `max_cells` cells.

    Groups of columns are covered greedily (Gordon-Kuperberg-Patashnik 1995). Designs are ordered by
    number of blocks times root of the cells of the largest block, to which the error is about
    proportional.
    """
    found: dict[Blocks, float] = {}
    counts = {*range(strength + 1, min(len(levels), MAX_GROUPS) + 1), len(levels)}
    for count in sorted(counts):
        if math.comb(count, strength) * count > MAX_COVERED:
            continue
        groups = _groups(levels, count)
        bits = np.array([sum(math.log2(levels[i]) for i in group) for group in groups])
        largest = np.sort(bits)[::-1][:strength].sum()
        for limit in range(math.ceil(largest), math.floor(math.log2(max_cells)) + 1):
            cover = _greedy_cover(bits, strength, limit + 1e-9)
            if cover is None:
                continue
            blocks = tuple(
                sorted({tuple(sorted(itertools.chain(*(groups[g] for g in b)))) for b in cover})
            )
            cells = max(math.prod(levels[i] for i in block) for block in blocks)
            found[blocks] = len(blocks) * math.sqrt(cells)
            if len(blocks) == 1:
                break
    return sorted(found, key=lambda blocks: found[blocks])[:KEPT]


def _groups(levels: Sequence[int], count: int) -> list[ColumnSet]:
    """Divide the columns into `count` groups with nearly equal numbers of cells."""
    groups: list[list[int]] = [[] for _ in range(count)]
    bits = [0.0] * count
    for column in sorted(range(len(levels)), key=lambda i: -levels[i]):
        least = min(range(count), key=lambda g: (bits[g], g))
        groups[least].append(column)
        bits[least] += math.log2(levels[column])
    return [tuple(group) for group in groups]


def _greedy_cover(bits: FloatArray, strength: int, limit: float) -> list[IntArray] | None:
    """Blocks of points that cover every set of `strength` points; None above `MAX_BLOCKS` blocks.

    A point is a group of columns. The `bits` of the points of a block add up to at most `limit`.
    """
    sets = np.array(list(itertools.combinations(range(len(bits)), strength)))
    member = np.zeros((len(sets), len(bits)))
    np.put_along_axis(member, sets, 1, axis=1)
    rng = np.random.default_rng(PUBLIC_SEED)
    blocks: list[IntArray] = []
    while len(member):
        if len(blocks) == MAX_BLOCKS:
            return None
        block = member[rng.integers(len(member))] > 0
        weights = LOOK_AHEAD ** (strength - member @ block.astype(np.float64))
        while (room := limit - bits[block].sum()) > 0:
            free = ~block & (bits <= room)
            if not free.any():
                break
            gains = np.where(free, (weights @ member) / bits, -1.0)
            point = int(np.argmax(gains))
            block[point] = True
            weights *= np.where(member[:, point] > 0, 1 / LOOK_AHEAD, 1.0)
        blocks.append(np.flatnonzero(block))
        member = member[member @ block.astype(np.float64) < strength]
    return blocks
