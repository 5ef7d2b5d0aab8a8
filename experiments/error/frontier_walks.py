"""Hit-and-run in bodies of tables that have no known exact sampler, to estimate errors of noise."""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

import geomdp as gd
from geomdp.geometry.sampling import HitAndRun, run_chains
from geomdp.workloads import MarginalTables, Workload, explicit_answers

FloatArray = npt.NDArray[np.float64]

#: Directions have standard deviation v^(1/2 + LEAN) along an axis of variance v. The chains
#: therefore move most along the axes that contribute most to the error. For 3-way tables and the
#: body K - K, LEAN = 0.5 multiplied the effective number of draws by 2.7.
LEAN = 0.5
#: Eigenvalues below this share of the largest eigenvalue count as rounding errors of 0.
FLAT = 1e-9
#: Share of a chord that is used, so that rounding puts no point of a chain outside the body.
INSIDE = 1 - 1e-9


@dataclass(frozen=True)
class Framed:
    """A body with centroid 0, in coordinates in which chains draw isotropic directions."""

    body: gd.bodies.Body  # A full-dimensional body in R^r with the method `chord`
    weights: FloatArray  # Weights (r,): answers at z have squared error sum_j weights_j z_j^2

    def squares(self, points: FloatArray) -> FloatArray:
        """Squared length of the answers at each point; the last axis of `points` has length r."""
        return np.asarray(points**2 @ self.weights)


def polytope(workload: Workload) -> Framed:
    """conv{Q(x)}, moved so that the mean of all Q(x) is 0.

    For tables this mean is the centroid, by symmetry.
    """
    answers = explicit_answers(workload)
    answers -= answers.mean(axis=0)
    variances, axes = np.linalg.eigh(answers.T @ answers / len(answers))
    kept = variances > FLAT * variances[-1]
    variances = variances[kept]
    scales = variances ** (0.5 + LEAN)
    return Framed(gd.bodies.VPolytope(answers @ axes[:, kept] / scales), scales**2)


def difference(framed: Framed) -> Framed:
    """K - K in the coordinates of K."""
    return Framed(gd.bodies.Difference(framed.body), framed.weights)


class CutTables(gd.bodies.Body):
    """The body `TableMoments`, cut by all cell and triangle inequalities, with a `chord` method.

    Coordinates are those of `TableMoments` divided by `scales`.

    Parameters
    ----------
    levels : tuple of int
        Numbers of levels of the columns.
    """

    def __init__(self, levels: tuple[int, ...]) -> None:
        inner = gd.bodies.TableMoments(levels)
        self.columns = np.repeat(np.arange(len(levels)), levels)
        self.centre = inner.tables(np.zeros((1, inner.dimension)))[0]
        moves = inner.tables(np.eye(inner.dimension)) - self.centre
        pairs = self.columns[:, None] < self.columns
        # Different coordinates move the answers in orthogonal directions, so the squared error has
        # no cross terms.
        lengths = (moves[:, pairs] ** 2).sum(axis=1)
        deviations = np.sqrt(inner.entry_variances())
        self.scales = deviations * (lengths * deviations**2) ** LEAN
        self.moves = moves * self.scales[:, None, None]
        self.weights = lengths * self.scales**2

    @property
    def dimension(self) -> int:
        """Number r of coordinates."""
        return len(self.moves)

    @cached_property
    def _spectral(self) -> FloatArray:
        """Change of the moment matrix along each coordinate, in a frame where the centre is I."""
        values, vectors = np.linalg.eigh(self.centre)
        kept = values > FLAT * values[-1]
        frame = vectors[:, kept] / np.sqrt(values[kept])
        return np.asarray(frame.T @ self.moves @ frame)

    @cached_property
    def _rows(self) -> tuple[FloatArray, FloatArray]:
        """Slopes, and values at the centre, of the linear functions that must stay >= 0."""
        both = np.concatenate([self.centre[None], self.moves])
        constant = np.eye(len(both))[0]
        found = [both[:, a, b] for a, b in zip(*self._pairs, strict=True)]
        for a, b, c in itertools.combinations(self._events, 3):
            if len({self.columns[a], self.columns[b], self.columns[c]}) == 3:
                p, q, r = both[:, a, a], both[:, b, b], both[:, c, c]
                s, t, u = both[:, a, b], both[:, a, c], both[:, b, c]
                found.append(constant - p - q - r + s + t + u)
                found += [p - s - t + u, q - s - u + t, r - t - u + s]
        rows = np.array(found)
        return np.ascontiguousarray(rows[:, 1:]), rows[:, 0]

    @property
    def _pairs(self) -> tuple[npt.NDArray[np.intp], ...]:
        """Row and column numbers of the matrix entries that are cells of two-way tables."""
        return np.nonzero(self.columns[:, None] < self.columns)

    @property
    def _events(self) -> list[int]:
        """Levels that triangle inequalities use: of a column with two levels, only the first."""
        firsts = np.flatnonzero(np.diff(self.columns, prepend=-1))
        counts = np.bincount(self.columns)[self.columns]
        return [a for a in range(len(counts)) if counts[a] > 2 or a in firsts]

    def chord(self, points: FloatArray, directions: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Ends of chords, at which the matrix becomes singular or one of `_rows` becomes 0."""
        slopes, offsets = self._rows
        room, ways = points @ slopes.T + offsets, directions @ slopes.T
        # At the end t of the chord, a row or an eigenvalue becomes 0. 1 / t is the largest rate at
        # which one of them falls, relative to its present value.
        with np.errstate(divide="ignore"):
            rates = ways / room
        flat = self._spectral.reshape(self.dimension, -1)
        shape = (len(points), *self._spectral.shape[1:])
        matrices = np.eye(shape[1]) + (points @ flat).reshape(shape)
        inverse = np.linalg.inv(np.linalg.cholesky(matrices))
        turned = inverse @ (directions @ flat).reshape(shape) @ np.swapaxes(inverse, 1, 2)
        values = np.linalg.eigvalsh(turned)
        high = 1 / np.maximum(-rates.min(axis=1), -values[:, 0])
        low = -1 / np.maximum(rates.max(axis=1), values[:, -1])
        return low * INSIDE, high * INSIDE

    def radius(self) -> float:
        """A bound on the radius: the radius of the uncut body divided by the least scale."""
        levels = tuple(np.bincount(self.columns).tolist())
        return gd.bodies.TableMoments(levels).radius() / float(self.scales.min())


def cut_tables(workload: MarginalTables) -> Framed:
    """The body `CutTables` of 2-way tables; it contains the workload's sensitivity polytope."""
    body = CutTables(workload.levels)
    return Framed(body, body.weights)


def squares_of_chains(
    framed: Framed, chains: int, steps: int, rng: np.random.Generator
) -> FloatArray:
    """Squared lengths (chains, draws) of answers, after a quarter of the steps as burn-in.

    Each chain starts on the ray from 0 in a random normal direction. Along an axis of variance v,
    the variance of the direction is v (without `LEAN`). The distance of the start from 0 has the
    distribution that uniform points of the body have on this ray.
    """
    r = framed.body.dimension
    ways = rng.standard_normal((chains, r)) / np.sqrt(framed.weights) ** (LEAN / (0.5 + LEAN))
    _, ends = framed.body.chord(np.zeros_like(ways), ways)
    start = ways * (ends * rng.random(chains) ** (1 / r))[:, None]
    burn_in = steps // 4
    walked = run_chains(
        HitAndRun(), framed.body, start, rng, draws=steps - burn_in, burn_in=burn_in
    )
    return framed.squares(walked.draws)
