"""Samplers of outputs, and scores, learned or of known laws, that tell two inputs apart."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple, Protocol, TypeAlias, TypeVar, runtime_checkable

import numpy as np
import numpy.typing as npt

from geomdp._typing import FloatArray, IntArray
from geomdp._validation import finite_array, positive, require_type, whole

#: Outputs of a mechanism, one for each trial: an array of shape (trials, ...).
Outputs: TypeAlias = npt.NDArray[Any]
#: Draws independent outputs of a mechanism on one fixed input.
Sampler: TypeAlias = Callable[[int, np.random.Generator], Outputs]
#: Maps outputs to an array (trials,) of numbers. Outputs that are likelier on the first of two
#: inputs get larger numbers.
Score: TypeAlias = Callable[[Outputs], FloatArray]

# Samplers of a mechanism's outputs, and the types of scores and learners

Data = TypeVar("Data")


@dataclass(frozen=True)
class Learner:
    """A way to learn a score from outputs of a mechanism on two inputs.

    Parameters
    ----------
    name : str
        The score in words, for the description of the event.
    learn : callable
        Maps two arrays of outputs, on the first and on the second input, to a score. The result is
        None if no score is found that tells the inputs apart.

    Examples
    --------
    >>> import numpy as np
    >>> import geomdp as gd
    >>> learner = gd.audit.Learner("minus the output", lambda first, second: np.negative)
    >>> samples = [lambda n, rng, x=x: rng.laplace(x, 0.5, n) for x in (0.0, 1.0)]
    >>> pair = gd.audit.Pair("0 and 1 records", *samples, learners=(learner,))
    >>> gd.audit.audit_pairs([pair], gd.PureDP(1.0), trials=20_000, rng=0).refuted
    True
    """

    name: str
    learn: Callable[[Outputs, Outputs], Score | None]

    def __repr__(self) -> str:
        return f"Learner({self.name!r})"


def repeat(mechanism: Callable[[Data, np.random.Generator], npt.ArrayLike], data: Data) -> Sampler:
    """The sampler that runs `mechanism(data, rng)` once per trial.

    Parameters
    ----------
    mechanism : callable
        Returns one output, of the same shape every time. For a `geomdp` mechanism M:
        ``lambda records, rng: M.release(records, rng).answers``. A mechanism whose outputs have
        different lengths must pad them with NaN: the length is part of the output.
    data : object
        The input on which the mechanism is run.

    Examples
    --------
    >>> import numpy as np
    >>> import geomdp as gd
    >>> mechanism = gd.mechanisms.Laplace(gd.workloads.Histogram(2), n=3, privacy=gd.PureDP(1.0))
    >>> sample = gd.audit.repeat(
    ...     lambda records, rng: mechanism.release(records, rng).answers, np.array([0, 0, 1])
    ... )
    >>> sample(100, np.random.default_rng(0)).shape
    (100, 2)
    """

    def sample(trials: int, rng: np.random.Generator) -> Outputs:
        outputs = [np.asarray(mechanism(data, rng)) for _ in range(trials)]
        for output in outputs:
            same_shape(output[None], outputs[0].shape, "in another run")
        return np.stack(outputs)

    return sample


def draw(sample: Sampler, trials: int, rng: np.random.Generator) -> Outputs:
    """`trials` outputs of a sampler; ``ValueError`` if it returns another number of outputs."""
    returned = sample(trials, rng)
    try:
        outputs = np.asarray(returned)
    except ValueError:  # NumPy's reason for ragged lists
        raise ValueError("outputs must have one shape, got several; pad them with NaN") from None
    if outputs.ndim == 0 or len(outputs) != trials:
        raise ValueError(f"a sampler must return {trials} outputs, got shape {outputs.shape}")
    if outputs.size == 0:
        raise ValueError(f"outputs must hold at least 1 number, got shape {outputs.shape[1:]}")
    return outputs


def same_shape(outputs: Outputs, expected: tuple[int, ...], where: str) -> Outputs:
    """The outputs; ``ValueError`` if one output has another shape than `expected`."""
    if outputs.shape[1:] != expected:
        raise ValueError(
            f"outputs must have one shape, got {expected} and then {outputs.shape[1:]} {where}; "
            "a shape that depends on the records is part of the output: pad outputs with NaN"
        )
    return outputs


def scores_of(score: Score, outputs: Outputs) -> FloatArray:
    """The scores (trials,) of outputs; ``ValueError`` for another shape or NaN."""
    scores = np.asarray(score(outputs), dtype=np.float64)
    if scores.shape != (len(outputs),):
        raise ValueError(f"a score must have shape ({len(outputs)},), got {scores.shape}")
    if np.isnan(scores).any():
        raise ValueError(f"scores must not be NaN, got {np.isnan(scores).sum()} of {len(scores)}")
    return scores


# Scores computed from the outputs

#: In each coordinate, deviations and differences of means below this share of the largest output
#: count as rounding errors: 8 times that of a sum of 2^20 terms. Otherwise, correct mechanisms with
#: noise only in a subspace would be refuted by rounding errors outside it.
ROUNDING = 2.0**-30
#: As a coordinate may be a difference of larger numbers, errors up to this share of the largest
#: output of all coordinates count, too.
CANCELLED = 2.0**-50
#: Whole numbers have no rounding errors up to this size. In whole coordinates, numbers below
#: `RESOLVED` times the range are not told from errors of the decomposition here.
WHOLE, RESOLVED = 2.0**53, 2.0**-40


def _frame(outputs_a: Outputs, outputs_b: Outputs) -> Callable[[Outputs], FloatArray]:
    """A map to coordinates (trials, m) with rounding errors up to 1; some may not be finite."""
    a, b = _rows(outputs_a), _rows(outputs_b)
    if a.dtype.kind == "f" or b.dtype.kind == "f":
        a, b = a.astype(np.float64), b.astype(np.float64)
    errors = grain(a, b)
    # Whole numbers, which are exact also beyond 2^53, are compared with one of the outputs.
    base = np.where(errors > 0, 0, np.nan_to_num(a[0], posinf=0, neginf=0)).astype(a.dtype)
    ranges = np.maximum(*(_largest(_less(each, base)) for each in (a, b)))
    units = np.where(errors > 0, errors, RESOLVED * ranges)
    units = np.where(units > 0, units, 1.0)
    return lambda outputs: np.asarray(_less(_rows(outputs), base) / units)


def grain(*samples: Outputs) -> FloatArray:
    """The largest difference (m,) that may be a rounding error: 0 for whole numbers up to 2^53."""
    rows = [_rows(sample) for sample in samples]
    if all(each.dtype.kind != "f" for each in rows):
        return np.zeros(rows[0].shape[1])
    largest = np.max([_largest(each.astype(np.float64)) for each in rows], axis=0)
    whole = np.all([((each == np.rint(each)) | ~np.isfinite(each)).all(axis=0) for each in rows], 0)
    errors = np.maximum(ROUNDING * largest, CANCELLED * largest.max(initial=0.0))
    return np.where(whole & (largest <= WHOLE), 0.0, np.maximum(errors, np.finfo(float).tiny))


def taken_for_rounding(outputs_a: Outputs, outputs_b: Outputs) -> float:
    """The largest range of a coordinate whose variation is all below its rounding errors; or 0."""
    try:
        rows = np.concatenate([_rows(outputs_a), _rows(outputs_b)]).astype(np.float64)
    except ValueError:  # outputs that only a given score can read
        return 0.0
    rows = rows[:, np.isfinite(rows).all(axis=0)]
    errors = grain(rows)
    scaled = rows / np.where(errors > 0, errors, 1.0)
    centred = scaled - scaled[0]
    hidden = (errors > 0) & (centred.std(axis=0) <= 1)
    return float((np.ptp(centred[:, hidden], axis=0) * errors[hidden]).max(initial=0.0))


def _largest(matrix: FloatArray) -> FloatArray:
    """The largest finite modulus (m,) in each column of a matrix; 0 if there is none."""
    return np.asarray(np.abs(np.where(np.isfinite(matrix), matrix, 0.0)).max(axis=0, initial=0.0))


def _less(rows: Outputs, base: Outputs) -> FloatArray:
    """The difference, without rounding if both are integers closer than 2^53."""
    with np.errstate(invalid="ignore", over="ignore"):
        return np.asarray((rows - base).astype(np.float64))


class _Spread(NamedTuple):
    """Means on two inputs and directions `axes` (r, m) in which outputs vary, in the coordinates of
    `frame`, in which lengths up to 1 may be rounding errors and entries that are not finite become
    `fill` (m,).
    """

    frame: Callable[[Outputs], FloatArray]
    fill: FloatArray
    gap: FloatArray
    middle: FloatArray
    axes: FloatArray
    variances: FloatArray

    def along(self, weights: FloatArray) -> Score:
        return lambda outputs: np.asarray(_filled(self.frame(outputs), self.fill) @ weights)


def _filled(rows: FloatArray, fill: FloatArray) -> FloatArray:
    return np.asarray(np.where(np.isfinite(rows), rows, fill))


def _spread(outputs_a: Outputs, outputs_b: Outputs) -> _Spread:
    frame = _frame(outputs_a, outputs_b)
    both = [frame(outputs) for outputs in (outputs_a, outputs_b)]
    known = sum(np.isfinite(rows).sum(axis=0) for rows in both)
    fill = sum(_filled(rows, np.zeros(1)).sum(axis=0) for rows in both) / np.maximum(known, 1)
    a, b = (_filled(rows, fill) for rows in both)
    means = a.mean(axis=0), b.mean(axis=0)
    samples = zip((a, b), means, strict=True)
    residuals = [(each - mean) / np.sqrt(max(len(each) - 1, 1)) for each, mean in samples]
    # In their squares, eigenvalues, rounding would hide deviations below 1e-8 of the largest.
    triangle = np.linalg.qr(np.concatenate(residuals), mode="r")
    _, deviations, axes = np.linalg.svd(triangle, full_matrices=False)
    varying, gap, middle = deviations > 1, means[0] - means[1], (means[0] + means[1]) / 2
    return _Spread(frame, fill, gap, middle, axes[varying], deviations[varying] ** 2)


def fisher_score(outputs_a: Outputs, outputs_b: Outputs) -> Score:
    """The linear score <w, y> with w = S^+ (mean_a - mean_b), for the sum S (m, m) of both sample
    covariances: half the log-density ratio of Gaussian noise.
    """
    found = _spread(outputs_a, outputs_b)
    return found.along(((found.axes @ found.gap) / found.variances) @ found.axes)


def null_space_score(outputs_a: Outputs, outputs_b: Outputs) -> Score | None:
    """1 for outputs nearer to the first mean and -1 for others, along a direction in which the
    means differ but no output varies, so that outputs reveal the input; None if there is none.
    """
    found = _spread(outputs_a, outputs_b)
    still = found.gap
    # The first subtraction leaves a rounding error along the axes; the second removes it.
    for _ in range(2):
        still = still - (still @ found.axes.T) @ found.axes
    length = float(np.linalg.norm(still))
    # Residuals of N outputs about two means span at most N - 2 directions, however large the noise.
    if length <= 1 or len(outputs_a) + len(outputs_b) - 2 <= len(still):
        return None
    direction = still / length
    boundary, project = float(found.middle @ direction), found.along(direction)
    return lambda outputs: np.where(project(outputs) > boundary, 1.0, -1.0)


def outcome_score(outputs_a: Outputs, outputs_b: Outputs) -> Score | None:
    """ln((count_a + 1/2) / (count_b + 1/2)) for each outcome seen at least twice, up to rounding
    errors, and 0 for others; None if no outcome was seen twice.
    """
    units = grain(outputs_a, outputs_b)
    keys = np.concatenate([_keys(outputs_a, units), _keys(outputs_b, units)])
    outcomes, places = np.unique(keys, return_inverse=True)
    counts = np.bincount(places, minlength=len(outcomes))
    if counts.max() < 2:
        return None
    counts_a = np.bincount(places[: len(outputs_a)], minlength=len(outcomes))
    ratios = np.log((counts_a + 0.5) / (counts - counts_a + 0.5))
    known, ratios = outcomes[counts >= 2], ratios[counts >= 2]

    def score(outputs: Outputs) -> FloatArray:
        asked = _keys(outputs, units)
        nearest = np.minimum(np.searchsorted(known, asked), len(known) - 1)
        return np.where(known[nearest] == asked, ratios[nearest], 0.0)

    return score


def nonfinite_score(outputs_a: Outputs, outputs_b: Outputs) -> Score | None:
    """Log-ratio of the frequencies of each pattern of finite, NaN and infinite entries."""
    first, second = _patterns(outputs_a), _patterns(outputs_b)
    if not (first.any() or second.any()):
        return None
    score = outcome_score(first, second)
    return None if score is None else lambda outputs: score(_patterns(outputs))


def _patterns(outputs: Outputs) -> IntArray:
    """0 for a finite entry, 1 for NaN, 2 and 3 for infinity and its negative."""
    rows = _rows(outputs)
    kinds = [np.isnan(rows), np.isposinf(rows), np.isneginf(rows)]
    return np.asarray(sum(i * kind for i, kind in enumerate(kinds, start=1)), dtype=np.int64)


def snapped(outputs: Outputs, units: FloatArray) -> FloatArray:
    """Outputs (trials, m) rounded to multiples of `units`, in these units; whole outputs stay."""
    with np.errstate(over="ignore"):
        return np.asarray(np.rint(_rows(outputs) / np.where(units > 0, units, 1.0))) + 0.0


def _keys(outputs: Outputs, units: FloatArray) -> npt.NDArray[np.uint64]:
    """A hash for each outcome. Different outcomes hardly ever have the same hash."""
    import pandas as pd  # slow import

    rows = _rows(outputs)
    if rows.dtype.kind == "f":
        rows = snapped(rows, units)  # -0 is 0
        rows[np.isnan(rows)] = np.nan  # gives every NaN the same bit pattern
    return np.asarray(pd.util.hash_pandas_object(pd.DataFrame(rows), index=False), dtype=np.uint64)


def _rows(outputs: Outputs) -> Outputs:
    """The outputs (trials, m) as float64, or integers modulo 2^64; ``ValueError`` for others."""
    if not isinstance(outputs, np.ndarray) or outputs.ndim == 0:
        raise ValueError(f"outputs must be an array (trials, ...), got {type(outputs).__name__}")
    if outputs.dtype.kind not in "biuf":
        raise ValueError(f"outputs must be numeric unless a score is given, got {outputs.dtype}")
    kind = np.float64 if outputs.dtype.kind == "f" else np.int64
    return outputs.reshape(len(outputs), -1).astype(kind, copy=False)


NULL_SPACE = Learner(
    "indicator of being nearer to the first mean, in directions without variation", null_space_score
)
OUTCOMES = Learner("log frequency ratio of the outcome", outcome_score)
LINEAR = Learner("linear score", fisher_score)
NON_FINITE = Learner("log frequency ratio of NaN and infinite entries", nonfinite_score)
#: The learners that an audit uses by default. They need numeric outputs.
DEFAULT_LEARNERS = (NULL_SPACE, NON_FINITE, OUTCOMES, LINEAR)


# Scores learned by a classifier, for outputs of unknown density. Needs the extra ``audit``

#: Largest number of outputs per input that the classifier learns from, and fewest in a leaf of a
#: tree, whose log-odds are then known to about 2 / sqrt(200) = 0.14.
MOST_LEARNED, LEAF = 50_000, 200


def classifier_score(outputs_a: Outputs, outputs_b: Outputs) -> Score | None:
    """Log-odds that an output comes from the first input, by gradient-boosted trees of scikit-learn
    on rounded outputs; None for too few outputs or no finite entry.
    """
    from sklearn.ensemble import HistGradientBoostingClassifier

    a, b = outputs_a[:MOST_LEARNED], outputs_b[:MOST_LEARNED]
    if len(a) + len(b) < 4 * LEAF:
        return None
    units = grain(a, b)
    # scikit-learn does not accept a column without any finite number.
    usable = np.isfinite(np.concatenate([snapped(each, units) for each in (a, b)])).any(axis=0)
    if not usable.any():
        return None

    def points(outputs: Outputs) -> FloatArray:
        rows = snapped(outputs, units)[:, usable]
        return np.where(np.isfinite(rows), rows, np.nan)

    classifier = HistGradientBoostingClassifier(
        max_iter=40, min_samples_leaf=LEAF, early_stopping=False, random_state=0
    )
    classifier.fit(np.concatenate([points(a), points(b)]), np.repeat([1, 0], [len(a), len(b)]))

    def score(outputs: Outputs) -> FloatArray:
        return np.asarray(classifier.decision_function(points(outputs)), dtype=np.float64)

    return score


CLASSIFIER = Learner("log-odds of a classifier", classifier_score)


# Exact laws of the transcripts of short runs of sparse vector

#: Entries of a transcript: a query was found below the threshold, found above it, or not asked.
BELOW, ABOVE, UNASKED = 0, 1, -1
#: Largest number of queries of a stream, with each of which the number of transcripts can double.
MOST_QUERIES = 12
#: The probability of a transcript is an integral over the threshold noise t, up to this many scales
#: beyond the kinks of the integrand: at most 2^12 e^-45 = 1.2e-16 of it is left out. Each interval
#: of at most 4 c, for the smaller noise scale c, has this many Gauss-Legendre nodes: a sum of
#: exponentials e^(a t), |a| c <= 13, then has a relative error of about 1e-16.
REACH, NODES = 45.0, 32


@runtime_checkable
class NoiseScales(Protocol):
    """The noise of a sparse vector mechanism, for queries of sensitivity 1."""

    @property
    def threshold(self) -> float:
        """Laplace scale of the noise on the threshold."""

    @property
    def query(self) -> float:
        """Laplace scale of the fresh noise on each query."""

    @property
    def redraw(self) -> bool:
        """Whether the threshold noise is drawn anew after each query found above the threshold."""


@dataclass(frozen=True, eq=False)
class SparseVectorLaw:
    """The exact law of the transcript of a sparse vector run.

    Query i has the true answer x_i. It is found above the threshold T if x_i + Lap(query scale) >=
    T + Lap(threshold scale). For each of the k queries, the transcript states one outcome: found
    above, found below, or not asked. ``ValueError`` if a parameter is out of range.

    Parameters
    ----------
    truths : (k,) array
        The differences x_i - T, at most 12 of them.
    scales : NoiseScales
        The noise.
    cutoff : int
        The run halts once this many queries were found above the threshold.

    Examples
    --------
    The answers to two queries are 1 below and 1 above the threshold. In a transcript, 0 means found
    below, 1 means found above, and -1 means not asked:

    >>> import geomdp as gd
    >>> scales = gd.AboveThreshold(threshold=0.0, privacy=gd.PureDP(1.0)).scales
    >>> law = gd.audit.SparseVectorLaw([-1.0, 1.0], scales, cutoff=1)
    >>> law.transcripts
    array([[ 0,  0],
           [ 0,  1],
           [ 1, -1]])
    >>> law.probabilities.round(3)
    array([0.282, 0.3  , 0.418])
    """

    truths: FloatArray = field(repr=False)
    scales: NoiseScales
    cutoff: int

    def __post_init__(self) -> None:
        object.__setattr__(self, "truths", finite_array(self.truths, "truths", ndim=1))
        whole(len(self.truths), "number of queries", maximum=MOST_QUERIES)
        whole(self.cutoff, "cutoff")
        require_type(self.scales, NoiseScales, "scales")
        positive(self.scales.threshold, "threshold scale")
        positive(self.scales.query, "query scale")

    @cached_property
    def transcripts(self) -> IntArray:
        """Every possible transcript (p, k), with entries `BELOW`, `ABOVE` and `UNASKED`."""
        return np.array(list(_transcripts(len(self.truths), self.cutoff)), dtype=np.int64)

    @cached_property
    def probabilities(self) -> FloatArray:
        """Probability (p,) of each transcript, with a relative error near machine precision."""
        weights, below, above = self._conditional()
        found = np.empty(len(self.transcripts))
        for row, transcript in enumerate(self.transcripts):
            total, segment = 1.0, weights
            for i, entry in enumerate(transcript):
                if entry == UNASKED:
                    break
                segment = segment * (above[i] if entry == ABOVE else below[i])
                if entry == ABOVE and self.scales.redraw:
                    total, segment = total * float(segment.sum()), weights
            found[row] = total * float(segment.sum())
        return found

    def _conditional(self) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Weights (nodes,) of the integral over the noise; outcome probabilities (k, nodes)."""
        first, second = self.scales.threshold, self.scales.query
        kinks = np.concatenate([[0.0], self.truths])
        reach = REACH * first
        ends = np.unique([kinks.min() - reach, *kinks, kinks.max() + reach])
        step = 4 * min(first, second)
        cuts = np.concatenate(
            [
                np.linspace(low, high, math.ceil((high - low) / step), endpoint=False)
                for low, high in itertools.pairwise(ends)
            ]
            + [ends[-1:]]
        )
        nodes, weights = np.polynomial.legendre.leggauss(NODES)
        middles, halves = (cuts[1:] + cuts[:-1]) / 2, (cuts[1:] - cuts[:-1]) / 2
        t = (middles[:, None] + halves[:, None] * nodes).ravel()
        density = np.exp(-np.abs(t) / first) / (2 * first)
        weights = (halves[:, None] * weights).ravel() * density
        away = (t - self.truths[:, None]) / second
        tail = np.exp(-np.abs(away)) / 2
        below = np.where(away < 0, tail, 1 - tail)
        above = np.where(away < 0, 1 - tail, tail)
        return weights, below, above


def _transcripts(queries: int, cutoff: int) -> Iterator[tuple[int, ...]]:
    if queries == 0 or cutoff == 0:
        yield (UNASKED,) * queries
        return
    for entry in (BELOW, ABOVE):
        for rest in _transcripts(queries - 1, cutoff - (entry == ABOVE)):
            yield (entry, *rest)


def law_learner(first: SparseVectorLaw, second: SparseVectorLaw) -> Learner:
    """A learner that needs no training: its score is the log-ratio of two laws of transcripts.

    It scores transcripts (trials, k), and gives 0 to those that are impossible under the laws.
    ``ValueError`` unless both are a `SparseVectorLaw` with the same possible transcripts.

    Examples
    --------
    >>> import numpy as np
    >>> import geomdp as gd
    >>> scales = gd.AboveThreshold(threshold=0.0, privacy=gd.PureDP(1.0)).scales
    >>> laws = [gd.audit.SparseVectorLaw([truth], scales, cutoff=1) for truth in (0.0, 1.0)]
    >>> learner = gd.audit.law_learner(*laws)
    >>> score = learner.learn(np.array([[0]]), np.array([[1]]))
    >>> score(np.array([[0], [1]])).round(3)
    array([ 0.179, -0.152])
    """
    require_type(first, SparseVectorLaw, "first")
    require_type(second, SparseVectorLaw, "second")
    if not np.array_equal(first.transcripts, second.transcripts):
        raise ValueError(
            "first and second must have the same number of queries and the same cutoff, got laws "
            f"of {len(first.transcripts)} and {len(second.transcripts)} transcripts"
        )
    ratios = np.zeros(3 ** len(first.truths))
    ratios[_codes(first.transcripts)] = np.log(first.probabilities / second.probabilities)
    words = "log ratio of the exact probabilities of the transcript"
    return Learner(words, lambda _a, _b: lambda outputs: ratios[_codes(outputs)])


def _codes(transcripts: Outputs) -> IntArray:
    return np.asarray((transcripts.astype(np.int64) + 1) @ 3 ** np.arange(transcripts.shape[1]))
