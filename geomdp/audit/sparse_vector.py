"""Exact laws of short sparse vector runs with Laplace noise, and the streams that lose most."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache, cached_property
from typing import Protocol

import numpy as np

from geomdp._typing import FloatArray, IntArray
from geomdp._validation import finite_array, positive, whole
from geomdp.audit.privacy_loss import PrivacyLoss
from geomdp.audit.samplers import Learner, Outputs, Score
from geomdp.privacy import Privacy

#: Entries of a transcript.
BELOW, ABOVE, UNASKED = 0, 1, -1
#: Longest stream: the number of transcripts doubles with every query.
MOST_QUERIES = 12
#: The integral over the threshold noise t ends so many scales beyond 0 and all true answers. From
#: there on every comparison has its final probability, up to factors e^-x, and what is left out is
#: at most e^-45 = 3e-20 of every transcript.
REACH = 45.0
#: Nodes of a Gauss-Legendre rule on intervals of at most four scales, on which the integrand is a
#: sum of products of exponentials e^(a t) with |a| times the scale at most `MOST_QUERIES`.
NODES = 32
#: Distances of a true answer from the threshold that the search tries, in scales of the noise on
#: queries. Losses approach their supremum as distances grow.
DISTANCES = np.array([-16.0, -8.0, -4.0, -2.0, -1.0, 0.0, 1.0, 2.0, 4.0, 8.0, 16.0])
#: Random starts of the search over streams.
ROUNDS = 3
#: Smaller gains than this are rounding.
GAIN = 1e-10


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
        """Whether the threshold noise is drawn anew after each query found above."""


@dataclass(frozen=True, eq=False)
class SparseVectorLaw:
    """The exact law of the comparisons of a sparse vector run.

    Query i is found above if x_i + Lap(query scale) >= T + Lap(threshold scale); the run halts
    after `cutoff` queries found above.

    Parameters
    ----------
    truths : (k,) array
        True answers x_i minus the threshold T, at most 12 of them.
    scales : NoiseScales
        The noise.
    cutoff : int
        Number of queries found above after which the run halts.
    """

    truths: FloatArray = field(repr=False)
    scales: NoiseScales
    cutoff: int

    def __post_init__(self) -> None:
        object.__setattr__(self, "truths", finite_array(self.truths, "truths", ndim=1))
        whole(len(self.truths), "number of queries", maximum=MOST_QUERIES)
        whole(self.cutoff, "cutoff")
        positive(self.scales.threshold, "threshold scale")
        positive(self.scales.query, "query scale")

    @cached_property
    def transcripts(self) -> IntArray:
        """Every possible transcript (p, k), of entries `BELOW`, `ABOVE` and `UNASKED`."""
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
        """Quadrature weights times the density of the threshold noise, and what it leads to.

        The arrays `below` and `above` (k, nodes) are probabilities of the two comparisons given
        the threshold noise at each node.
        """
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
        nodes, weights = _rule()
        middles, halves = (cuts[1:] + cuts[:-1]) / 2, (cuts[1:] - cuts[:-1]) / 2
        t = (middles[:, None] + halves[:, None] * nodes).ravel()
        density = np.exp(-np.abs(t) / first) / (2 * first)
        weights = (halves[:, None] * weights).ravel() * density
        away = (t - self.truths[:, None]) / second
        tail = np.exp(-np.abs(away)) / 2
        below = np.where(away < 0, tail, 1 - tail)
        above = np.where(away < 0, 1 - tail, tail)
        return weights, below, above


@cache
def _rule() -> tuple[FloatArray, FloatArray]:
    """Nodes and weights of the Gauss-Legendre rule on [-1, 1]."""
    return np.polynomial.legendre.leggauss(NODES)


def _transcripts(queries: int, cutoff: int) -> Iterator[tuple[int, ...]]:
    if queries == 0 or cutoff == 0:
        yield (UNASKED,) * queries
        return
    for entry in (BELOW, ABOVE):
        for rest in _transcripts(queries - 1, cutoff - (entry == ABOVE)):
            yield (entry, *rest)


def law_learner(first: SparseVectorLaw, second: SparseVectorLaw) -> Learner:
    """The learner whose score is known beforehand: the log-ratio of the laws of transcripts.

    Outputs are transcripts (trials, k) of entries `BELOW`, `ABOVE` and `UNASKED`. Transcripts that
    are impossible under the laws score 0.
    """
    ratios = np.zeros(3 ** len(first.truths))
    ratios[_codes(first.transcripts)] = np.log(first.probabilities / second.probabilities)
    score: Score = lambda outputs: ratios[_codes(outputs)]  # noqa: E731
    return Learner("log-ratio of the transcript's exact laws", lambda _a, _b: score)


def _codes(transcripts: Outputs) -> IntArray:
    return np.asarray((transcripts.astype(np.int64) + 1) @ 3 ** np.arange(transcripts.shape[1]))


@dataclass(frozen=True)
class WorstStream:
    """Two streams of true answers of neighbouring inputs, and what a run on them loses.

    Parameters
    ----------
    first, second : tuple of float
        True answers minus the threshold; they differ by at most 1 each.
    excess : float
        By how much the worse direction of the pair exceeds the claim, as `PrivacyLoss.excess`.
    epsilon : float
        The least epsilon for which the pair is epsilon-DP.
    refuted : bool
        Whether the claim is false, by more than rounding. This is a proof, not a test.
    """

    first: tuple[float, ...]
    second: tuple[float, ...]
    excess: float
    epsilon: float
    refuted: bool

    def above(self, other: WorstStream) -> bool:
        """Whether this exceeds the claim more; where that is equal, whether it loses more."""
        ahead = self.excess - other.excess
        return ahead > GAIN or (ahead > -GAIN and self.epsilon > other.epsilon + GAIN)


def worst_stream(
    scales: NoiseScales,
    claim: Privacy,
    *,
    cutoff: int,
    queries: int,
    monotone: bool = False,
    rng: np.random.Generator | int = 0,
) -> WorstStream:
    """Search for the stream of queries on which a sparse vector run exceeds a claim most.

    Coordinate ascent from random starts over the distance of each query from the threshold
    (`DISTANCES`) and the way it moves between the two neighbours. All laws are exact, so the loss
    of the stream found needs no level.

    Parameters
    ----------
    scales : NoiseScales
        The noise of the mechanism, for queries of sensitivity 1.
    claim : PureDP, ApproxDP or ZCDP
        The claim.
    cutoff : int
        Number of queries found above after which the mechanism halts.
    queries : int
        Length of the stream, at most 12; every step of the search takes time 2^queries.
    monotone : bool
        Whether all queries move in the same direction between neighbours.
    rng : Generator or int
        Source of the random starts.

    Returns
    -------
    WorstStream
        The streams and what they lose.
    """
    whole(queries, "queries", maximum=MOST_QUERIES)
    generator = np.random.default_rng(rng)
    moves = (1.0,) if monotone else (-1.0, 1.0)
    options = [(distance, move) for distance in DISTANCES * scales.query for move in moves]

    def stream(choice: Sequence[int]) -> WorstStream:
        first = np.array([options[i][0] for i in choice])
        second = first + [options[i][1] for i in choice]
        laws = [SparseVectorLaw(truths, scales, cutoff).probabilities for truths in (first, second)]
        losses = [PrivacyLoss.of_laws(*pair) for pair in (laws, laws[::-1])]
        return WorstStream(
            tuple(first.tolist()),
            tuple(second.tolist()),
            max(loss.excess(claim) for loss in losses),
            max(loss.epsilon() for loss in losses),
            any(loss.refutes(claim) for loss in losses),
        )

    best: WorstStream | None = None
    for _ in range(ROUNDS):
        choice = generator.integers(len(options), size=queries).tolist()
        found, improved = stream(choice), True
        while improved:
            improved = False
            for place in generator.permutation(queries).tolist():
                for option in range(len(options)):
                    other = stream([*choice[:place], option, *choice[place + 1 :]])
                    if other.above(found):
                        found, improved = other, True
                        choice = [*choice[:place], option, *choice[place + 1 :]]
        if best is None or found.above(best):
            best = found
    assert best is not None
    return best
