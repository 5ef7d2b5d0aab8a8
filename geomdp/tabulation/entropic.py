"""Entropic least squares: tables of one distribution, fitted to noisy tables (X-MAXENT).

For noisy cells y = A p* + Z / n of the tables A p* of a distribution p* on all combinations of
levels, with noise Z of a public law and E ||Z / n||^2 = m s^2, the fit is A p for

    p = argmin over distributions p of  ||A p - y||^2 / 2 + kappa s^2 KL(p || u).

The prior u is uniform, or the product of noisy 1-way tables. As kappa goes to 0, the fit goes to
the point of the polytope of all tables that is nearest to y; as kappa grows, it goes to A u.
"""

from __future__ import annotations

import enum
import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from geomdp._numerics.linalg import conjugate_gradients
from geomdp._numerics.randomness import PUBLIC_SEED
from geomdp._typing import FloatArray
from geomdp.mechanisms import AdditiveMechanism, Prediction, PredictionKind
from geomdp.mechanisms.projected import noise_limit_source, squared_noise_limit
from geomdp.tabulation.tasks import Table

# The tables of a distribution, and the adjoint map

#: Numbers of a block of the joint table. A block of 256 KiB stays in the cache while it is used.
BLOCK = 1 << 15


class JointTables:
    """The map A from distributions p on a product of columns to the cells of tables (m,).

    The cells of a table are multiplied by its weight. Columns are joined if a table contains both;
    p is a product over the sets of joined columns.
    """

    def __init__(self, tables: Sequence[Table], weights: Sequence[float]) -> None:
        ends = list(itertools.accumulate(table.n_cells for table in tables))
        places = [slice(end - t.n_cells, end) for end, t in zip(ends, tables, strict=True)]
        self.n_cells, self.margins = ends[-1], Margins(tables, weights)
        #: The squared length of the tables of one combination of levels.
        self.squared_reach = sum(weight**2 for weight in weights)
        self.weights = np.repeat(weights, [table.n_cells for table in tables])
        self._parts = []
        for chosen in _joined(tables):
            place = np.concatenate([np.arange(self.n_cells)[places[i]] for i in chosen])
            self._parts.append((place, _Joined([tables[i] for i in chosen])))

    def fitted(self, scores: FloatArray) -> tuple[FloatArray, float]:
        """A p (m,) for p proportional to e^(A^T scores), and the logarithm of the divisor of p."""
        cells, logarithm, scores = np.empty(self.n_cells), 0.0, scores * self.weights
        for place, part in self._parts:
            cells[place], own = part.fitted(scores[place])
            logarithm += own
        cells *= self.weights
        return cells, logarithm

    def sample(
        self, scores: FloatArray, count: int, rng: np.random.Generator
    ) -> dict[str, npt.NDArray[np.intp]]:
        """Levels (count,) of each column, for combinations drawn from p as in `fitted`.

        A combination of joined columns is drawn count p times, rounded up or down at random:
        sorted positions are one record apart, which keeps tables closer to A p than independent
        draws. The order of the records is random, and sets of joined columns are independent.
        """
        found: dict[str, npt.NDArray[np.intp]] = {}
        scores = scores * self.weights
        for place, part in self._parts:
            positions = (np.arange(count) + rng.random()) / count
            found |= part.combinations(scores[place], rng.permutation(positions))
        return found

    def covariance(self, scores: FloatArray) -> CellCovariance:
        """The map v -> A Cov_p A^T v, where A^T v is a function of a random combination from p."""
        return CellCovariance(self, scores * self.weights)


class CellCovariance:
    """See `JointTables.covariance`; it holds p, one array for each set of joined columns."""

    def __init__(self, joint: JointTables, scores: FloatArray) -> None:
        self._weights = joint.weights
        self._parts = []
        for place, part in joint._parts:
            cells, logarithm = part.fitted(scores[place])
            p = np.empty(part.shape)
            for block, values in part.blocks(scores[place]):
                np.exp(values - logarithm, out=p[block])
            self._parts.append((place, part, p, cells))

    def __call__(self, v: FloatArray) -> FloatArray:
        v = v * self._weights
        product = np.empty_like(v)
        for place, part, p, cells in self._parts:
            weighted = part.weighted(p, v[place])
            product[place] = weighted - cells * float(cells @ v[place])
        product *= self._weights
        return product


class _Joined:
    """Tables of joined columns, whose joint table is an array (left, right) of two groups of them.

    A table is a product of indicators of its left and of its right columns. So A and A^T are
    matrix products. The joint table is gone through in blocks of rows and is not stored.
    """

    def __init__(self, tables: Sequence[Table]) -> None:
        left, right = self.left, self.right = _halves(tables)
        self.shape = (math.prod(left.values()), math.prod(right.values()))
        # Tables with columns in both groups need matrix products, one for each left part. Tables of
        # left columns need the sums of the rows of the joint table only.
        self._crossed, self._left_only, positions = [], [], []
        inner, indicators_of = dict[tuple[str, ...], slice](), dict[tuple[str, ...], FloatArray]()
        indicators, height, start = [np.zeros((0, self.shape[0]))], 0, 0
        for table in tables:
            own = tuple(name for name in table.columns if name in left)
            other = tuple(name for name in table.columns if name in right)
            place = slice(start, start := start + table.n_cells)
            cells = np.arange(place.start, place.stop).reshape([*map(len, table.levels)])
            order = [table.columns.index(name) for name in own + other]
            positions.append(cells.transpose(order).ravel())
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
        self._positions = np.concatenate(positions)
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
        return self._cells(inner, rows) / total, top + math.log(total)

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
        sizes = {**self.left, **self.right}
        return dict(zip(sizes, np.unravel_index(cells, [*sizes.values()]), strict=True))

    def weighted(self, p: FloatArray, v: FloatArray) -> FloatArray:
        """A (p * A^T v), for the joint table p."""
        inner = np.zeros((len(self._indicators), self.shape[1]))
        rows = np.zeros(self.shape[0])
        for block, values in self.blocks(v):
            values *= p[block]
            inner += self._indicators[:, block] @ values
            rows[block] = values.sum(axis=1)
        return self._cells(inner, rows)

    def _cells(self, inner: FloatArray, rows: FloatArray) -> FloatArray:
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
        names, members = set(table.columns), [i]
        apart = []
        for group in groups:
            if names & group[0]:
                names, members = names | group[0], group[1] + members
            else:
                apart.append(group)
        groups = [*apart, (names, members)]
    return [members for _, members in groups]


def _indicator(names: tuple[str, ...], columns: dict[str, int]) -> FloatArray:
    """For each cell of the table of `names`, whether a combination of `columns` is in it."""
    codes = np.zeros(math.prod(columns.values()), dtype=np.intp)
    grid = np.indices(tuple(columns.values()), dtype=np.intp).reshape(len(columns), -1)
    for name in names:
        codes = codes * columns[name] + grid[list(columns).index(name)]
    found = np.zeros((math.prod(columns[name] for name in names), len(codes)))
    found[codes, np.arange(len(codes))] = 1.0
    return found


class Margins:
    """The 1-way tables in weighted noisy tables (m,), in one vector, column after column."""

    def __init__(self, tables: Sequence[Table], weights: Sequence[float]) -> None:
        sizes = _sizes(tables)
        self._sizes = np.array([*sizes.values()])
        ends = dict(zip(sizes, itertools.accumulate(sizes.values()), strict=True))
        # The variance of a margin is proportional to the number of cells in a sum.
        precise = dict.fromkeys(sizes, 0.0)
        for table in tables:
            for name in table.columns:
                precise[name] += sizes[name] / table.n_cells
        means, places, first, met = [], [], 0, set[str]()
        for table, weight in zip(tables, weights, strict=True):
            cells = np.arange(first, first := first + table.n_cells)
            codes = np.indices([sizes[name] for name in table.columns])
            for name, code in zip(table.columns, codes, strict=True):
                rows = ends[name] - sizes[name] + code.ravel()
                share = sizes[name] / table.n_cells / precise[name] / weight
                means.append((rows, cells, np.full(len(cells), share)))
                if name not in met:
                    places.append((cells, rows, np.full(len(cells), 1 / weight)))
                    met.add(name)
        levels = int(self._sizes.sum())
        self._means = _sparse(means, (levels, first))
        self._places = _sparse(places, (first, levels))

    def deviations(self, draws: FloatArray) -> FloatArray:
        """Root mean square of the noise of the levels of each column, from draws (b, m)."""
        starts = np.cumsum(self._sizes) - self._sizes
        squares = np.mean((self._means @ draws.T) ** 2, axis=1)
        return np.repeat(np.sqrt(np.add.reduceat(squares, starts) / self._sizes), self._sizes)

    def logarithms(self, noisy: FloatArray, floors: FloatArray) -> FloatArray:
        """Logarithms of the levels, moved towards even ones as far as their noise `floors` says (by
        the rule of James and Stein), and at least as large as the noise; columns add up to 1.
        """
        apart = self._means @ noisy - np.exp(self.even)
        square, noise = float(apart @ apart), float(floors @ floors)
        signal = 1 - noise / square if square > noise else 0.0
        levels = np.maximum(np.exp(self.even) + signal * apart, floors)
        sums = np.add.reduceat(levels, np.cumsum(self._sizes) - self._sizes)
        return np.asarray(np.log(levels / np.repeat(sums, self._sizes)))

    def scores(self, logarithms: FloatArray) -> FloatArray:
        """Scores (m,) of the product of the 1-way tables with these logarithms."""
        return np.asarray(self._places @ logarithms)

    def divergence(self, logarithms: FloatArray) -> float:
        """The largest divergence KL(p || u) of a distribution p from the product u."""
        starts = np.cumsum(self._sizes) - self._sizes
        return -float(np.minimum.reduceat(logarithms, starts).sum())

    @property
    def even(self) -> FloatArray:
        """Logarithms of levels that are all equally frequent."""
        return np.asarray(-np.log(np.repeat(self._sizes, self._sizes)))


def _sparse(
    parts: list[tuple[npt.NDArray[np.intp], npt.NDArray[np.intp], FloatArray]],
    shape: tuple[int, int],
) -> sp.csr_array:
    """A sparse matrix from parts with rows, columns and values."""
    rows, columns, values = map(np.concatenate, zip(*parts, strict=True))
    return sp.csr_array((values, (rows, columns)), shape=shape)


# The fit, by its dual


#: Largest number of evaluations in the search for one kappa, and of conjugate gradient steps.
MOST = 400


@dataclass(frozen=True)
class Model:
    """The tables A p (m,) of p proportional to e^(A^T (multipliers / tau + offset)), for which the
    duality gap of the fit is `gap`.
    """

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
) -> Model:
    """The fit for tau = kappa s^2 and the prior e^(A^T offset) / Z, up to a gap of `tolerance`.

    Here p(l) is proportional to e^(A^T (l / tau + offset)), divided by Z(l), for the multipliers
    l (m,) that minimise ||l||^2 / 2 - <l, y> + tau log Z(l). The duality gap at l is
    ||y - l - A p(l)||^2 / 2; A p(l) is at most the root of twice the gap away from the fit.
    """
    from scipy.optimize import minimize  # slow import

    best = Model(noisy, start, math.inf)

    def dual(multipliers: FloatArray) -> tuple[float, FloatArray]:
        nonlocal best
        answers, logarithm = joint.fitted(multipliers / tau + offset)
        apart = multipliers + answers - noisy
        gap = float(apart @ apart) / 2
        if gap < best.gap:
            best = Model(answers, multipliers.copy(), gap)
        linear = float(multipliers @ (multipliers / 2 - noisy))
        return linear + tau * logarithm, apart

    def stop(_: FloatArray) -> None:
        if best.gap <= tolerance:
            raise StopIteration

    # Only the gap ends the search early. Twenty pairs of vectors approximate the Hessian matrix.
    minimize(  # type: ignore[call-overload]  # the stubs do not know this callback
        dual,
        start,
        jac=True,
        method="L-BFGS-B",
        callback=stop,
        options={"maxfun": MOST, "maxiter": MOST, "maxcor": 20, "gtol": 0.0, "ftol": 0.0},
    )
    return best


# Stein's choice of kappa and of the prior


class Prior(enum.StrEnum):
    """The distribution to which a fit is drawn. The value of a member states it in words."""

    UNIFORM = "the uniform distribution"
    PRODUCT = "the product of noisy 1-way tables"


@dataclass(frozen=True)
class Distribution:
    """The distribution p proportional to e^(A^T scores) on all combinations of levels."""

    joint: JointTables
    scores: FloatArray

    def sample(self, count: int, rng: np.random.Generator) -> dict[str, npt.NDArray[np.intp]]:
        return self.joint.sample(self.scores, count, rng)

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
    """The fitted cells (m,), what was chosen, and an estimate of the error.

    `estimated_rmse` estimates (E ||answers - truth||^2 / m)^(1/2) from the release alone, by Stein.
    It is unbiased for Gaussian noise and a kappa that was fixed before, and a guide otherwise.
    """

    answers: FloatArray
    kappa: float
    prior: Prior
    estimated_rmse: float
    distribution: Distribution


@dataclass(frozen=True)
class Trial:
    """A fit with an estimate of its squared error ||answers - truth||^2."""

    prior: Prior
    kappa: float
    model: Model
    risk: float


#: The values of kappa that are tried.
KAPPAS = (1000.0, 300.0, 100.0, 30.0, 10.0, 3.0)
#: A fit is allowed if kappa times the largest divergence from the prior is at most this number
#: times m; see `Fits`.
LARGEST_PULL = 1.4
#: The duality gaps at which the search for one kappa ends, as shares of m s^2: while values of
#: kappa are compared, and for the chosen one. By the root of twice the gap, the cells are off by at
#: most 4.5% and 1.4% of s, in root mean square.
ROUGH, FINE = 1e-3, 1e-4
#: Public draws of the noise for Stein's estimate: this number of cells in all, between 2 and 8.
DRAWN_CELLS = 2048
#: Relative margin of the bound on the error.
ROUNDED = 1e-5
#: The change of y, as a share of a draw of the noise, that gives the derivative of the prior.
SHARE = 0.05
#: Conjugate gradients for Stein's estimate end at a residual of this share of the draw. It adds at
#: most the square of it, 1% of the noise, to an estimated squared error.
RESIDUAL = 0.1


class Fits:
    """Fits of tables to the noisy answers of a mechanism; it is built from public objects alone.

    A fit is allowed if (1) it is no farther from y than the noise, ||A p - y||^2 <= m s^2, or (2)
    kappa is at most 1.4 m / K for the largest divergence K of a distribution from the prior, or (3)
    the noise is so large that no tables are farther from the fit than (2 m)^(1/2) s. The root mean
    squared error of allowed fits is then at most twice that of the noise, on every data set:

    Let e = ||A p - A p*|| and z = ||Z / n||. By (1), e <= s m^(1/2) + z. For the gap g of the fit,
    e^2 <= z^2 + 2 kappa s^2 K - ||A p - y||^2 + 2 (2 g)^(1/2) e. So without (1), both (2) and (3)
    give e^2 <= 1.01 z^2 + 2 m s^2, as g <= 1e-4 m s^2. With a^2 the probability of (1) and
    x^2 m s^2 the part of E z^2 in this case, E e^2 / (m s^2) is at most
    (a + x)^2 + 1.01 (1 - x^2) + 2 (1 - a^2), which is at most 4. A projection has e <= z.
    """

    def __init__(self, joint: JointTables, mechanism: AdditiveMechanism) -> None:
        self._joint, self.mechanism = joint, mechanism
        self._square = squared_noise_limit(mechanism)
        rng = np.random.default_rng(PUBLIC_SEED)
        count = min(max(DRAWN_CELLS // joint.n_cells, 2), 8)
        self._draws = mechanism.noise.sample(rng, count) / mechanism.n
        #: Noise of 1-way tables: its root mean square over the levels of each column.
        self._floors = joint.margins.deviations(self._draws)
        #: Whether the draws show the noise of all columns. Rare noise on whole numbers may be 0 in
        #: all of them; then there is no estimate of the error.
        self.shows_noise = bool((self._floors > 0).all())

    def best(self, noisy: FloatArray) -> Chosen | None:
        """The allowed fit with the least estimated error; None if no search for one converges.

        The prior is chosen for the largest kappa. Then kappa falls until the estimate rises.
        """
        last = min((self._first(noisy, prior) for prior in Prior), key=lambda trial: trial.risk)
        best = None
        for kappa in KAPPAS:
            if kappa < last.kappa:
                last = self._tried(noisy, last.prior, kappa, last.model.multipliers)
            if math.isinf(last.risk) or (best is not None and last.risk >= best.risk):
                break
            if self._allows(noisy, last) and (best is None or self._is_better(last, best)):
                best = last
        if best is None:
            return None
        model = self._fitted(noisy, best.prior, best.kappa, best.model.multipliers, FINE)
        if model.gap > FINE * self._square or not self._allows(noisy, replace(best, model=model)):
            return None
        rmse = math.sqrt(max(best.risk, 0.0) / len(noisy))
        tau = best.kappa * self._square / len(noisy)
        scores = model.multipliers / tau + self._offset(noisy, best.prior)
        found = Distribution(self._joint, scores)
        return Chosen(model.answers, best.kappa, best.prior, rmse, found)

    @property
    def predicted_rmse(self) -> Prediction:
        """The bound on the error of all allowed fits, and of a projection."""
        # The share covers rounding to the grid, and the slack of bodies that were rounded.
        value = 2 * (1 + ROUNDED) * math.sqrt(self._square / self._joint.n_cells)
        source = "twice the noise, which bounds the distance from the noisy answers (X-MAXENT)"
        source += noise_limit_source(self.mechanism)
        return Prediction(value, PredictionKind.UPPER_BOUND, source)

    def _logarithms(self, noisy: FloatArray, prior: Prior) -> FloatArray:
        margins = self._joint.margins
        uniform = prior is Prior.UNIFORM
        return margins.even if uniform else margins.logarithms(noisy, self._floors)

    def _offset(self, noisy: FloatArray, prior: Prior) -> FloatArray:
        """Scores (m,) of the prior."""
        return self._joint.margins.scores(self._logarithms(noisy, prior))

    def _first(self, noisy: FloatArray, prior: Prior) -> Trial:
        """The trial of the largest kappa. It starts from multipliers of the length of the noise."""
        apart = noisy - self._joint.fitted(self._offset(noisy, prior))[0]
        shrink = math.sqrt(self._square / max(float(apart @ apart), self._square))
        return self._tried(noisy, prior, KAPPAS[0], shrink * apart)

    def _fitted(
        self, noisy: FloatArray, prior: Prior, kappa: float, start: FloatArray, share: float
    ) -> Model:
        tau, offset = kappa * self._square / len(noisy), self._offset(noisy, prior)
        return fit(self._joint, noisy, tau, offset, start, share * self._square)

    def _tried(self, noisy: FloatArray, prior: Prior, kappa: float, start: FloatArray) -> Trial:
        """A fit with Stein's estimate; the estimate is infinite if the search does not converge."""
        model = self._fitted(noisy, prior, kappa, start, ROUGH)
        if model.gap > ROUGH * self._square:
            return Trial(prior, kappa, model, math.inf)
        apart = float(np.sum((noisy - model.answers) ** 2))
        freedom = self._freedom(noisy, prior, kappa, model)
        risk = apart + self._square * (2 * freedom - 1)
        return Trial(prior, kappa, model, risk)

    def _is_better(self, one: Trial, other: Trial) -> bool:
        """Whether an estimate is lower by more than half a standard deviation of the difference,
        which is about 2 s ||A p - A q|| for the two fits.
        """
        apart = float(np.sum((one.model.answers - other.model.answers) ** 2))
        return other.risk - one.risk > math.sqrt(apart * self._square / self._joint.n_cells)

    def _allows(self, noisy: FloatArray, trial: Trial) -> bool:
        """Whether the bound on the error holds for a fit; see `Fits`."""
        answers = trial.model.answers
        if float(np.sum((noisy - answers) ** 2)) <= self._square:
            return True
        if self._joint.squared_reach + float(answers @ answers) <= 2 * self._square:
            return True
        farthest = self._joint.margins.divergence(self._logarithms(noisy, trial.prior))
        return trial.kappa * farthest <= LARGEST_PULL * len(noisy)

    def _freedom(self, noisy: FloatArray, prior: Prior, kappa: float, model: Model) -> float:
        """E <Z, D Z> / E ||Z||^2 for the derivative D of the fitted cells by the noisy ones.

        For C = A Cov_p A^T / tau and the scores g(y) of the prior, D = (I + C)^-1 C (I + tau g').
        """
        tau, offset = kappa * self._square / len(noisy), self._offset(noisy, prior)
        covariance = self._joint.covariance(model.multipliers / tau + offset)
        total = 0.0

        def product(v: FloatArray) -> FloatArray:
            return v + covariance(v) / tau

        for draw in self._draws:
            # (I + C)^-1 C Z = Z - (I + C)^-1 Z, and this matrix is symmetric.
            goal = RESIDUAL * math.sqrt(float(draw @ draw))
            smooth = draw - conjugate_gradients(product, draw, goal, MOST)
            moved = self._offset(noisy + SHARE * draw, prior) - offset
            total += float(smooth @ (draw + tau / SHARE * moved))
        return total / float(np.sum(self._draws**2))
