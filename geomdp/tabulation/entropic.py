"""Entropic least squares: tables of one distribution, fitted to noisy tables (X-MAXENT).

For noisy cells y = A p* + Z / n of the tables A p* of a distribution p* on all combinations of
levels, with noise Z of a public law and E ||Z / n||^2 = m s^2, the fit is A p for

    p = argmin over distributions p of  ||A p - y||^2 / 2 + kappa s^2 KL(p || u).

The prior u is uniform, or a tree of columns that the noisy tables suggest. As kappa goes to 0, the
fit goes to the point of the polytope of all tables that is nearest to y; as kappa grows, it goes to
A u. Fits of several kappa and both priors are averaged; Stein's estimates of their errors decide
the weights.
"""

from __future__ import annotations

import contextlib
import functools
import itertools
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
from scipy.linalg import solve_triangular
from scipy.sparse.linalg import LinearOperator

from geomdp._numerics.linalg import conjugate_gradients, spread
from geomdp._numerics.randomness import PUBLIC_SEED
from geomdp._typing import FloatArray
from geomdp.data.schema import Table
from geomdp.mechanisms import AdditiveMechanism, Prediction, PredictionKind
from geomdp.mechanisms.projected import noise_limit_source, upper_limit
from geomdp.tabulation.possible import Possible, PossibleNoise, codes_of

# The tables of a distribution, and the adjoint map

#: Numbers of a block of the joint table. A block of 256 KiB stays in the cache while it is used.
BLOCK = 1 << 15
#: Largest number of cells of tables whose covariance matrix (128 MB) is computed.
MAX_COVARIANCE = 1 << 12
#: Number of entries up to which it is always computed, in a few milliseconds.
LEAST_MATRIX = 1 << 18
#: A 2-way table, its weight and place, and the mean squared noise of its departure from a product.
Pair = tuple[Table, float, slice, float]


class JointTables:
    """The map A from distributions p on a product of columns to the weighted cells of tables (m,).

    Columns are joined if a table contains both; p is a product over the sets of joined columns.
    With `possible`, p is on possible combinations of levels, and A gives the possible cells.
    """

    def __init__(
        self, tables: Sequence[Table], weights: Sequence[float], possible: Possible | None = None
    ) -> None:
        sizes = [table.n_cells for table in tables]
        self.tables, self.table_weights = tables, weights
        #: Which cells of the tables (m,) are possible.
        self.live = np.ones(sum(sizes), dtype=np.bool_) if possible is None else possible.live
        #: The squared length of the tables of one combination of levels.
        self.squared_reach = sum(weight**2 for weight in weights)
        self.weights = np.repeat(weights, sizes)[self.live]
        before = np.concatenate([[0], np.cumsum(self.live)])
        self._starts = before[np.cumsum(sizes) - sizes]
        self._model = None if possible is None else possible.model
        #: The map from the cells of the tables of p to those asked, with their weights.
        self.matrix = sp.csr_array(sp.diags_array(self.weights))
        if self._model is not None:
            self.matrix, tables = self._model.matrix, self._model.tables
        self.adjoint = sp.csr_array(self.matrix.T)
        self.n_cells, inner = map(int, self.matrix.shape)
        is_small = max(self.n_cells, inner) <= MAX_COVARIANCE
        self._has_matrices = is_small and inner**2 <= max(cost_of(tables), LEAST_MATRIX)
        places = np.split(np.arange(inner), np.cumsum([table.n_cells for table in tables])[:-1])
        self._parts = [
            (np.concatenate([places[i] for i in chosen]), _Joined([tables[i] for i in chosen]))
            for chosen in _joined(tables)
        ]

    def fitted(self, scores: FloatArray) -> tuple[FloatArray, float]:
        """A p (m,) for p proportional to e^(A^T scores), and the logarithm of the divisor of p."""
        scores = self.adjoint @ scores
        cells, logarithm = np.empty(len(scores)), 0.0
        for place, part in self._parts:
            cells[place], own = part.fitted(scores[place])
            logarithm += own
        return self.matrix @ cells, logarithm

    def farthest(self, scores: FloatArray) -> float:
        """An upper bound on KL(q || p) for all distributions q, with p as in `fitted`."""
        least = np.minimum.reduceat(scores * self.weights, self._starts).sum()
        return self.fitted(scores)[1] - float(least)

    def sample(
        self, scores: FloatArray, count: int, rng: np.random.Generator
    ) -> dict[str, npt.NDArray[np.intp]]:
        """Levels (count,) of each column, for combinations drawn from p as in `fitted`: count p
        times, rounded up or down at random, which keeps tables closer to A p than independent
        draws. The order of the records is random, and sets of joined columns are independent.
        """
        found: dict[str, npt.NDArray[np.intp]] = {}
        scores = self.adjoint @ scores
        for place, part in self._parts:
            positions = (np.arange(count) + rng.random()) / count
            found |= part.combinations(scores[place], rng.permutation(positions))
        return found if self._model is None else codes_of(self._model.columns, found)

    def covariance(self, scores: FloatArray) -> FloatArray | LinearOperator:
        """The matrix A Cov_p A^T (m, m) for p as in `fitted`.

        If products with it cost more than a pass, it is an operator, right up to about 1e-6: the
        change of the cells by a small change of the scores.
        """
        if self._has_matrices:
            inner = self.adjoint @ scores
            found = np.zeros((len(inner), len(inner)))
            for place, part in self._parts:
                found[np.ix_(place, place)] = part.covariance(inner[place])
            return np.asarray(self.matrix @ found @ self.adjoint)
        cells = self.fitted(scores)[0]

        def moved(v: FloatArray) -> FloatArray:
            length = 1e-7 / max(float(np.abs(self.adjoint @ v).max()), 1e-300)
            return (self.fitted(scores + length * v)[0] - cells) / length

        return LinearOperator((len(cells), len(cells)), moved, dtype=np.float64)


class _Joined:
    """Tables of joined columns, whose joint table is an array (left, right) of two groups of them.

    A table is a product of indicators of its left and of its right columns, so A and A^T are
    matrix products, in blocks of rows of the joint table, which is not stored.
    """

    def __init__(self, tables: Sequence[Table]) -> None:
        left, right = _halves(tables)
        self.shape = (math.prod(left.values()), math.prod(right.values()))
        #: The columns, and those of each table with its cells.
        self._sizes, self._cells = {**left, **right}, []
        # Tables of left columns need the sums of the rows of the joint table only.
        self._crossed, self._left_only = [], []
        inner, indicators_of = dict[tuple[str, ...], slice](), dict[tuple[str, ...], FloatArray]()
        indicators, height, start = [np.zeros((0, self.shape[0]))], 0, 0
        for table in tables:
            own = tuple(name for name in left if name in table.columns)
            other = tuple(name for name in right if name in table.columns)
            place = slice(start, start := start + table.n_cells)
            cells = np.arange(place.start, place.stop).reshape([*map(len, table.levels)])
            order = [table.columns.index(name) for name in own + other]
            self._cells.append((own + other, cells.transpose(order)))
            if not other:
                self._left_only.append((place, _indicator(own, left)))
                continue
            if own not in inner:
                indicators.append(_indicator(own, left))
                inner[own] = slice(height, height := height + len(indicators[-1]))
            if other not in indicators_of:
                indicators_of[other] = _indicator(other, right)
            self._crossed.append((place, inner[own], indicators_of[other]))
        self._indicators = np.vstack(indicators)
        self._positions = np.concatenate([cells.ravel() for _, cells in self._cells])
        self._rows = max(1, BLOCK // self.shape[1])

    def blocks(self, scores: FloatArray) -> Iterator[tuple[slice, FloatArray]]:
        """A^T scores, in blocks of rows of the joint table."""
        scores = scores[self._positions]
        rows = np.zeros(self.shape[0])
        for place, indicator in self._left_only:
            rows += scores[place] @ indicator
        inner = np.zeros((len(self._indicators) + 1, self.shape[1]))
        inner[-1] = 1.0
        for place, own, other in self._crossed:
            inner[own] += scores[place].reshape(-1, len(other)) @ other
        outer = np.vstack([self._indicators, rows]).T
        for start in range(0, self.shape[0], self._rows):
            block = slice(start, start + self._rows)
            yield block, outer[block] @ inner

    def fitted(self, scores: FloatArray) -> tuple[FloatArray, float]:
        """As `JointTables.fitted`, without weights."""
        inner = np.zeros((len(self._indicators), self.shape[1]))
        rows, top = np.zeros(self.shape[0]), -math.inf
        for block, values in self.blocks(scores):
            highest = float(values.max())
            if highest > top:  # the sums so far were divided by a smaller power of e
                shrink = math.exp(top - highest)
                inner *= shrink
                rows *= shrink
                top = highest
            values -= top
            np.exp(values, out=values)
            inner += self._indicators[:, block] @ values
            rows[block] = values.sum(axis=1)
        total = float(rows.sum())
        return self._sums(inner, rows) / total, top + math.log(total)

    def combinations(
        self, scores: FloatArray, positions: FloatArray
    ) -> dict[str, npt.NDArray[np.intp]]:
        """Levels (k,) of each column for the joint cells at `positions` (k,) in [0, 1): the first
        cell covers the positions from 0 to its probability, the next follows.
        """
        logarithm, start = self.fitted(scores)[1], 0.0
        order = np.argsort(positions)
        ordered, cells = positions[order], np.empty(len(positions), dtype=np.intp)
        for block, values in self.blocks(scores):
            ends = start + np.cumsum(np.exp(values - logarithm).ravel())
            own = slice(*np.searchsorted(ordered, [start, ends[-1]]))
            inside = np.searchsorted(ends, ordered[own], side="right")
            cells[order[own]] = block.start * self.shape[1] + inside
            start = float(ends[-1])
        # The probabilities of all cells add up to 1 up to rounding.
        cells[order[np.searchsorted(ordered, start) :]] = math.prod(self.shape) - 1
        levels = np.unravel_index(cells, [*self._sizes.values()])
        return dict(zip(self._sizes, levels, strict=True))

    def covariance(self, scores: FloatArray) -> FloatArray:
        """As `JointTables.covariance`, without weights.

        The entries of A diag(p) A^T for two tables are the cells of the table of their columns.
        """
        cells, logarithm = self.fitted(scores)
        p = np.empty(self.shape)
        for block, values in self.blocks(scores):
            np.exp(values - logarithm, out=p[block])
        found = np.zeros((len(self._positions), len(self._positions)))
        widest = max(map(len, self._pairs))

        def summed(names: tuple[str, ...], cells: FloatArray, first: int) -> None:
            for rows, columns in self._pairs.get(names, ()):
                found[rows, columns] = found[columns, rows] = cells
            # The columns before `first` are kept; no pair of tables has more than `widest` columns.
            for i in range(first, min(len(names), widest + 1)):
                summed(names[:i] + names[i + 1 :], cells.sum(axis=i), i)

        summed(tuple(self._sizes), p.reshape([*self._sizes.values()]), 0)
        found -= np.outer(cells, cells)
        return found

    @functools.cached_property
    def _pairs(self) -> dict[tuple[str, ...], list[tuple[npt.NDArray[np.intp], ...]]]:
        """For each set of columns of two tables, the cells of both by the levels of the columns."""
        found: dict[tuple[str, ...], list[tuple[npt.NDArray[np.intp], ...]]] = {}
        for pair in itertools.combinations_with_replacement(self._cells, 2):
            both = tuple(name for name in self._sizes if any(name in own for own, _ in pair))
            shapes = [[self._sizes[name] if name in own else 1 for name in both] for own, _ in pair]
            cells = [each.reshape(shape) for (_, each), shape in zip(pair, shapes, strict=True)]
            found.setdefault(both, []).append((cells[0], cells[1]))
        return found

    def _sums(self, inner: FloatArray, rows: FloatArray) -> FloatArray:
        """The cells of all tables from products of the joint table with left indicators."""
        found = np.empty(len(self._positions))
        for place, indicator in self._left_only:
            found[place] = indicator @ rows
        for place, own, other in self._crossed:
            found[place] = (inner[own] @ other.T).ravel()
        cells = np.empty_like(found)
        cells[self._positions] = found
        return cells


def cost_of(tables: Sequence[Table]) -> float:
    """Time of one pass over the joint tables of joined columns, as a number of multiplications."""
    cost = 0.0
    for group in _joined(tables):
        chosen = [tables[i] for i in group]
        left, right = _halves(chosen)
        n_left, n_right = math.prod(left.values()), math.prod(right.values())
        rows = {tuple(c for c in t.columns if c in left) for t in chosen if {*t.columns} & {*right}}
        height = sum(math.prod(left[name] for name in names) for names in rows)
        # An exponential takes about as long as 20 multiplications and additions of a product.
        cost += n_left * n_right * (2 * height + 20)
        cost += sum(table.n_cells for table in chosen) * max(n_left, n_right)
    return cost


def _halves(tables: Sequence[Table]) -> tuple[dict[str, int], dict[str, int]]:
    """The columns of tables with their numbers of levels, in two groups with similar products."""
    sizes = _sizes(tables)
    goal, product, left = math.sqrt(math.prod(sizes.values())), 1, dict[str, int]()
    for name in sorted(sizes, key=sizes.__getitem__, reverse=True):
        if product * sizes[name] <= goal or not left:
            left[name], product = sizes[name], product * sizes[name]
    return left, {name: size for name, size in sizes.items() if name not in left}


def _sizes(tables: Sequence[Table]) -> dict[str, int]:
    """The columns of tables with their numbers of levels."""
    return {c: len(own) for t in tables for c, own in zip(t.columns, t.levels, strict=True)}


def _joined(tables: Sequence[Table]) -> list[list[int]]:
    """The indices of tables, in groups that share no columns."""
    groups: list[tuple[set[str], list[int]]] = []
    for i, table in enumerate(tables):
        met = [group for group in groups if group[0] & {*table.columns}]
        groups = [group for group in groups if not group[0] & {*table.columns}]
        names = {*table.columns}.union(*(names for names, _ in met))
        groups.append((names, [*itertools.chain(*(own for _, own in reversed(met))), i]))
    return [members for _, members in groups]


def _indicator(names: tuple[str, ...], columns: dict[str, int]) -> FloatArray:
    """For each cell of the table of `names`, whether a combination of `columns` is in it."""
    factors = (np.eye(n) if name in names else np.ones((1, n)) for name, n in columns.items())
    return functools.reduce(np.kron, factors)  # type: ignore[arg-type]  # it is overloaded


class Tree:
    """The prior that noisy tables suggest, from `draws` (b, m) of their noise.

    The 1-way tables of this distribution are those of the noisy tables, moved towards even levels.
    Columns are independent, except for pairs of them on a tree. From the 2-way tables that depart
    from a product by more than twice their noise, those of the most information are taken that form
    no cycle. Cells that are not possible are 0. Source: Chow and Liu 1968.
    """

    def __init__(self, joint: JointTables, draws: FloatArray) -> None:
        self._live, sizes = joint.live, _sizes(joint.tables)
        draws = spread(draws, self._live)
        self._sizes = np.array([*sizes.values()])
        self._starts = np.cumsum(self._sizes) - self._sizes
        ends = zip(sizes, self._starts, np.cumsum(self._sizes), strict=True)
        #: The places of the levels of each column.
        self._own = {name: slice(start, end) for name, start, end in ends}
        # The variance of a margin is proportional to the number of cells in a sum.
        precise = dict.fromkeys(sizes, 0.0)
        for table in joint.tables:
            for name in table.columns:
                precise[name] += sizes[name] / table.n_cells
        rows, cells, shares, first = [], [], [], 0
        self._pairs: list[Pair] = []
        for table, weight in zip(joint.tables, joint.table_weights, strict=True):
            place, shape = slice(first, first := first + table.n_cells), [*map(len, table.levels)]
            for name, code in zip(table.columns, np.indices(shape), strict=True):
                rows.append(self._own[name].start + code.ravel())
                cells.append(np.arange(place.start, place.stop))
                share = sizes[name] / table.n_cells / precise[name] / weight
                shares.append(np.full(table.n_cells, share))
            if len(shape) == 2:
                apart = [_departure(draw[place].reshape(shape) / weight) for draw in draws]
                noise = float(np.mean(np.sum(np.square(apart), axis=(1, 2))))
                self._pairs.append((table, weight, place, noise))
        entries = (np.concatenate(shares), (np.concatenate(rows), np.concatenate(cells)))
        #: The map from cells to 1-way tables. Its adjoint maps logarithms of levels to the scores
        #: of their product.
        self._means = sp.csr_array(entries, shape=(int(self._sizes.sum()), first))
        squares = np.add.reduceat(np.mean((self._means @ draws.T) ** 2, axis=1), self._starts)
        #: Root mean square of the noise of the levels of each column.
        self._floors = np.repeat(np.sqrt(squares / self._sizes), self._sizes)
        #: Whether the draws show the noise of all columns and pairs.
        self.shows_noise = bool((self._floors > 0).all() and all(p[-1] > 0 for p in self._pairs))

    def scores(self, noisy: FloatArray) -> FloatArray:
        """Scores of the prior, as in `JointTables.fitted`, for noisy possible cells."""
        noisy = spread(noisy, self._live)
        levels = self._levels(noisy)
        scores = np.asarray(self._means.T @ np.log(levels))
        found = [(*self._ratios(pair, noisy, levels), *pair) for pair in self._pairs]
        groups = {name: {name} for name in self._own}
        for information, ratios, table, weight, place, _ in sorted(found, key=lambda x: -x[0]):
            one, two = (groups[name] for name in table.columns)
            if information > 0 and one is not two:
                scores[place] += ratios / weight
                groups |= dict.fromkeys(one | two, one | two)
        return scores[self._live]

    def _ratios(
        self, pair: Pair, noisy: FloatArray, levels: FloatArray
    ) -> tuple[float, FloatArray]:
        """The information of a 2-way table, and the logarithms of its cells over those of the
        product of 1-way tables; 0 if the departure from the product is hardly above the noise.
        """
        table, weight, place, noise = pair
        product = np.outer(*(levels[self._own[name]] for name in table.columns))
        apart = _departure(noisy[place].reshape(product.shape) / weight - product)
        square = float(np.sum(apart**2))
        # Stein's estimate needs a continuous function of y, so the departure is 0 at the limit.
        signal = 1 - 2 * noise / square if square > 2 * noise else 0.0
        least = np.minimum(product, math.sqrt(noise / product.size))
        cells = np.maximum(product + signal * apart, least)
        ratios = np.log(cells / product)
        return float(np.sum(cells * ratios)), ratios.ravel()

    def _levels(self, noisy: FloatArray) -> FloatArray:
        """The 1-way tables, moved towards even levels as far as their noise says (by the rule of
        James and Stein), and at least as large as the noise; columns add up to 1.
        """
        even = 1 / np.repeat(self._sizes, self._sizes)
        apart = self._means @ noisy - even
        square, noise = float(apart @ apart), float(self._floors @ self._floors)
        signal = 1 - noise / square if square > noise else 0.0
        levels = np.maximum(even + signal * apart, self._floors)
        return np.asarray(levels / np.repeat(np.add.reduceat(levels, self._starts), self._sizes))


def _departure(cells: FloatArray) -> FloatArray:
    """A table without the part that its row and column sums determine."""
    return np.asarray(cells - cells.mean(axis=0) - cells.mean(axis=1)[:, None] + cells.mean())


# The fit, by its dual

#: Largest number of evaluations in the search for one kappa, and of conjugate gradient steps.
MOST = 400


@dataclass(frozen=True)
class Model:
    """A p (m,) for p proportional to e^(A^T (multipliers / tau + offset)), and the duality gap."""

    answers: FloatArray
    multipliers: FloatArray
    gap: float


def fit(
    joint: JointTables,
    noisy: FloatArray,
    tau: float,
    offset: FloatArray,
    start: FloatArray,
    tolerance: float,
    covariance: FloatArray | LinearOperator | None = None,
) -> Model:
    """The fit for tau = kappa s^2 and the prior e^(A^T offset) / Z, up to a gap of `tolerance`.

    Here p(l) is proportional to e^(A^T (l / tau + offset)), divided by Z(l), for the multipliers
    l (m,) that minimise ||l||^2 / 2 - <l, y> + tau log Z(l). The duality gap at l is
    ||y - l - A p(l)||^2 / 2; A p(l) is at most the root of twice the gap away from the fit.

    With the matrix C = A Cov_p A^T at the start, multipliers are in coordinates in which the
    Hessian matrix I + C / tau is the identity there. Then a few evaluations suffice.
    """
    from scipy.optimize import minimize  # slow import

    best, root = Model(noisy, start, math.inf), np.zeros((0, 0))
    if isinstance(covariance, np.ndarray):
        with contextlib.suppress(np.linalg.LinAlgError):  # C / tau is too large for float64
            root = np.asarray(np.linalg.cholesky(np.eye(len(noisy)) + covariance / tau), np.float64)

    def turned(v: FloatArray, *, back: bool) -> FloatArray:
        found = solve_triangular(root.T if back else root, v, lower=not back) if root.size else v
        return np.asarray(found, np.float64)

    def dual(place: FloatArray) -> tuple[float, FloatArray]:
        nonlocal best
        multipliers = start + turned(place, back=True)
        answers, logarithm = joint.fitted(multipliers / tau + offset)
        apart = multipliers + answers - noisy
        gap = float(apart @ apart) / 2
        if gap < best.gap:
            best = Model(answers, multipliers, gap)
        value = float(multipliers @ (multipliers / 2 - noisy)) + tau * logarithm
        return value, turned(apart, back=False)

    def stop(_: FloatArray) -> None:
        if best.gap <= tolerance:
            raise StopIteration

    # Only the gap ends the search early. Twenty pairs of vectors approximate the Hessian matrix.
    minimize(  # type: ignore[call-overload]  # the stubs do not know this callback
        dual,
        np.zeros_like(start),
        jac=True,
        method="L-BFGS-B",
        callback=stop,
        options={"maxfun": MOST, "maxiter": MOST, "maxcor": 20, "gtol": 0.0, "ftol": 0.0},
    )
    return best


# Stein's estimates, and the mean of fits


@dataclass(frozen=True)
class Mixture:
    """A mixture of distributions p proportional to e^(A^T scores), with `weights` (k,)."""

    joint: JointTables
    weights: FloatArray
    scores: Sequence[FloatArray]

    def sample(self, count: int, rng: np.random.Generator) -> dict[str, npt.NDArray[np.intp]]:
        """As `JointTables.sample`; each distribution has its share, rounded up or down."""
        ends = np.cumsum(self.weights) / np.sum(self.weights)
        places = np.searchsorted(ends, (np.arange(count) + rng.random()) / count, side="right")
        numbers = np.bincount(np.minimum(places, len(ends) - 1), minlength=len(ends)).tolist()
        parts = zip(self.scores, numbers, strict=True)
        drawn = [self.joint.sample(scores, number, rng) for scores, number in parts if number]
        order = rng.permutation(count)
        return {name: np.concatenate([part[name] for part in drawn])[order] for name in drawn[0]}

    def counts(self, tables: Sequence[Table], count: int) -> FloatArray:
        """Cells (m,) of `tables` of `count` records drawn with a public seed: whole numbers."""
        drawn = self.sample(count, np.random.default_rng(PUBLIC_SEED))
        found = []
        for table in tables:
            codes = [drawn[name] for name in table.columns]
            cells = np.ravel_multi_index(codes, [*map(len, table.levels)])
            found.append(np.bincount(cells, minlength=table.n_cells))
        return np.concatenate(found).astype(np.float64)


@dataclass(frozen=True)
class Chosen:
    """The fitted cells (m,), their distribution, and Stein's estimate of (E ||answers - truth||^2 /
    m)^(1/2), unbiased for Gaussian noise and weights that were fixed before, a guide otherwise.
    """

    answers: FloatArray
    estimated_rmse: float
    distribution: Mixture


@dataclass(frozen=True)
class Trial:
    """A fit A p (m,), the scores of p, E <Z, D Z> / E ||Z||^2 for the derivative D by y, Stein's
    estimate `risk` of ||answers - truth||^2 (infinite for a failed search), and a further weight.
    """

    answers: FloatArray
    scores: FloatArray
    freedom: float
    risk: float
    allowed: bool
    odds: float = 1.0


#: The values of kappa that are tried: the largest gives the prior; small ones are tried for one.
LARGE, SMALL = (1e6, 3000.0, 1000.0, 300.0, 100.0), (30.0, 10.0, 3.0)
#: A fit has the weight e^(-risk / (16 s^2)). From 8 on, the mean of linear fits is proved to err
#: little more than the best one, for Gaussian noise (Dalalyan and Salmon 2012). The squared length
#: of the noise of a norm, and with it each estimate, has about twice the variance.
TEMPERATURE = 16.0
#: The weight of uniform tables over that of another fit of the same risk: four fifths in all, as
#: where noise hides all else, estimates differ by more than the error of uniform tables. Others
#: lose at most 16 s^2 log 75 by it (Leung and Barron 2006).
UNIFORM_ODDS = 60.0
#: No smaller kappa is tried if a weight is e^-2.5 times the largest one for a larger kappa.
LARGEST_RISE = 2.5
#: A fit is allowed if its pull, 2 kappa s^2 K - ||A p - y||^2, is at most this share of m s^2, for
#: the largest divergence K of a distribution from the prior; see `Fits`.
LARGEST_PULL = 1.8
#: The duality gap at which the search for one kappa ends, as a share of m s^2. By the root of twice
#: the gap, the cells are off by at most 4.5% of s, in root mean square.
GAP = 1e-3
#: Public draws of the noise for Stein's estimate: this number of cells in all, between 2 and 8.
DRAWN_CELLS = 2048
#: Relative margin of the bound on the error.
ROUNDED = 1e-5
#: The change of y, as a share of a draw of the noise, that gives the derivative of the prior.
SHARE = 0.05
#: Conjugate gradients for Stein's estimate end at a residual of this share of the draw, which adds
#: at most its square to an estimated squared error.
RESIDUAL = 0.1
#: Scores (m,) of a prior for noisy cells (m,).
Prior = Callable[[FloatArray], FloatArray]


class Fits:
    """Fits of tables to the noisy answers of a mechanism; it is built from public objects alone.

    A fit is allowed if (1) it is no farther from y than the noise, ||A p - y||^2 <= m s^2, or (2)
    its pull is small, 2 kappa s^2 K - ||A p - y||^2 <= 1.8 m s^2 for the largest divergence K of a
    distribution from the prior, or (3) no tables are farther from it than (2 m)^(1/2) s. The root
    mean squared error of each mean of allowed fits, with any weights that depend on y, is then at
    most twice that of the noise, on every data set:

    Let e = ||A p - A p*|| and z = ||Z / n||. Each of (1), (2), (3) gives e^2 <= 2 m s^2 + 2 z^2.
    For (1), e <= s m^(1/2) + z. For (2), the gap g <= 1e-3 m s^2 of the fit, by optimality, gives
    e^2 <= z^2 + 2 kappa s^2 K - ||A p - y||^2 + 2 (2 g)^(1/2) e, where the last term is at most
    0.045 (m s^2 + e^2). By convexity, the mean has e^2 <= 2 m s^2 + 2 z^2 as well, and
    E z^2 <= m s^2. A projection has e <= z.
    """

    def __init__(
        self, joint: JointTables, mechanism: AdditiveMechanism, noise: PossibleNoise | None = None
    ) -> None:
        self._joint, self.mechanism = joint, mechanism
        predicted = mechanism.predicted_rmse if noise is None else noise.predicted
        #: s^2, the mean variance of a cell, and m s^2.
        self._variance = upper_limit(predicted) ** 2
        self._square = self._variance * joint.n_cells
        count = min(max(DRAWN_CELLS // joint.n_cells, 2), 8)
        law = mechanism.noise if noise is None else noise.law
        self._draws = law.sample(np.random.default_rng(PUBLIC_SEED), count) / mechanism.n
        tree = Tree(joint, self._draws)
        #: The priors: uniform, and a tree.
        self._priors: tuple[Prior, Prior] = (np.zeros_like, tree.scores)
        #: Whether the draws show the noise of all columns: else there is no estimate of the error.
        self.shows_noise = tree.shows_noise

    def best(self, noisy: FloatArray) -> Chosen | None:
        """The mean of the allowed fits, weighted by their estimates; None if none is found."""
        trials = self.trials(noisy)
        if not trials:
            return None
        risks = np.array([trial.risk for trial in trials])
        weights = np.exp((risks.min() - risks) / (TEMPERATURE * self._variance))
        weights *= [trial.odds for trial in trials]
        weights /= weights.sum()
        answers = weights @ np.array([trial.answers for trial in trials])
        freedom = float(weights @ [trial.freedom for trial in trials])
        rmse = math.sqrt(max(self._risk(noisy, answers, freedom), 0.0) / len(noisy))
        mixture = Mixture(self._joint, weights, [trial.scores for trial in trials])
        return Chosen(answers, rmse, mixture)

    def trials(self, noisy: FloatArray) -> list[Trial]:
        """The allowed fits, from large to small kappa; none if a search fails as estimates fall."""
        paths = [self._path(noisy, prior) for prior in self._priors]
        tried = [list(itertools.islice(path, len(LARGE))) for path in paths]
        best = min(range(len(paths)), key=lambda i: tried[i][-1].risk)
        tried[best] += paths[best]
        if _is_lost(tried[best]):
            return []
        return [trial for own in tried if not _is_lost(own) for trial in own if trial.allowed]

    @property
    def predicted_rmse(self) -> Prediction:
        """The bound on the error of all means of allowed fits, and of a projection."""
        # The share covers rounding to the grid, and the slack of bodies that were rounded.
        value = 2 * (1 + ROUNDED) * math.sqrt(self._variance)
        source = "twice the noise, which bounds the distance from the noisy answers (X-MAXENT)"
        source += noise_limit_source(self.mechanism)
        return Prediction(value, PredictionKind.UPPER_BOUND, source)

    def _path(self, noisy: FloatArray, prior: Prior) -> Iterator[Trial]:
        """Fits to one prior, until a search fails or the estimate has risen."""
        offset = prior(noisy)
        moves = [(prior(noisy + SHARE * draw) - offset) / SHARE for draw in self._draws]
        farthest, goal = self._joint.farthest(offset), GAP * self._square
        # Each search starts from the last distribution, the first from the prior.
        move, least = np.zeros_like(noisy), math.inf
        covariance = self._joint.covariance(offset)
        for kappa in (*LARGE, *SMALL):
            tau = kappa * self._variance
            model = fit(self._joint, noisy, tau, offset, tau * move, goal, covariance)
            move = model.multipliers / tau
            scores = move + offset
            if model.gap > goal:
                yield Trial(model.answers, scores, math.nan, math.inf, allowed=False)
                return
            covariance = self._joint.covariance(scores)
            freedom = self._freedom(covariance, tau, moves)
            risk = self._risk(noisy, model.answers, freedom)
            allowed = self._allows(noisy, model.answers, 2 * tau * farthest)
            odds = UNIFORM_ODDS if prior is self._priors[0] and kappa == LARGE[0] else 1.0
            yield Trial(model.answers, scores, freedom, risk, allowed, odds)
            least = min(risk, least)
            if risk - least > LARGEST_RISE * TEMPERATURE * self._variance:
                return

    def _risk(self, noisy: FloatArray, answers: FloatArray, freedom: float) -> float:
        return float(np.sum((noisy - answers) ** 2)) + self._square * (2 * freedom - 1)

    def _allows(self, noisy: FloatArray, answers: FloatArray, divergence: float) -> bool:
        """Whether the bound holds for a fit, for `divergence` = 2 kappa s^2 K; see `Fits`."""
        apart = float(np.sum((noisy - answers) ** 2))
        reach = self._joint.squared_reach + float(answers @ answers)
        return min(apart, (divergence - apart) / LARGEST_PULL, reach / 2) <= self._square

    def _freedom(
        self, covariance: FloatArray | LinearOperator, tau: float, moves: Sequence[FloatArray]
    ) -> float:
        """E <Z, D Z> / E ||Z||^2 for the derivative D of the fitted cells by the noisy ones.

        For C = A Cov_p A^T / tau and the scores g(y) of the prior, D = (I + C)^-1 C (I + tau g').
        """
        total = 0.0

        def product(v: FloatArray) -> FloatArray:
            return v + covariance @ v / tau

        for draw, move in zip(self._draws, moves, strict=True):
            image = covariance @ draw / tau
            goal = RESIDUAL * math.sqrt(min(float(draw @ draw), float(image @ image)))
            smooth = conjugate_gradients(product, image, goal, MOST)
            total += float(smooth @ (draw + tau * move))
            # (I + C)^-1 Z is about Z - (I + C)^-1 C Z, so the error is quadratic in the residual.
            total += float((draw - smooth) @ (image - product(smooth)))
        return total / float(np.sum(self._draws**2))


def _is_lost(path: Sequence[Trial]) -> bool:
    """Whether the search failed while the estimates still fell."""
    risks = [trial.risk for trial in path]
    return math.isinf(risks[-1]) and risks[-2:][0] == min(risks)
