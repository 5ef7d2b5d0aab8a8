"""A search for the stream of queries on which a run of sparse vector has a large privacy loss."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from geomdp._validation import require_type, whole
from geomdp.audit.privacy_loss import PrivacyLoss
from geomdp.audit.sparse_vector import MOST_QUERIES, NoiseScales, SparseVectorLaw
from geomdp.privacy import Privacy
from geomdp.privacy.definitions import check_privacy

#: The search tries these values of (true answer minus threshold). The unit is the scale of the
#: noise on queries. The loss may reach its supremum only in the limit of large distances.
DISTANCES = np.array([-16.0, -8.0, -4.0, -2.0, -1.0, 0.0, 1.0, 2.0, 4.0, 8.0, 16.0])
#: Number of random starts of the search over streams.
ROUNDS = 3
#: In the search, an increase of the excess over the claim, or of epsilon, must exceed this number.
#: Smaller increases may be rounding errors.
GAIN = 1e-10


@dataclass(frozen=True)
class WorstStream:
    """The true answers on two neighbouring inputs, and the privacy loss of a run on them.

    Parameters
    ----------
    first, second : tuple of float
        The differences (true answer minus threshold), on the first and on the second input. Each
        answer differs by at most 1 between the two inputs.
    excess : float
        The larger `PrivacyLoss.excess` over the claim, of the two orders of the inputs.
    epsilon : float
        The least epsilon for which the run is epsilon-DP on these two inputs.
    refuted : bool
        Whether the claim is exceeded by more than rounding errors. The laws are exact, so this is a
        proof and not a statistical test.

    Examples
    --------
    >>> import geomdp as gd
    >>> scales = gd.AboveThreshold(threshold=0.0, privacy=gd.PureDP(1.0)).scales
    >>> worst = gd.audit.worst_stream(scales, gd.PureDP(0.2), cutoff=1, queries=1)
    >>> worst.refuted, round(worst.epsilon, 2)
    (True, 0.25)
    """

    first: tuple[float, ...]
    second: tuple[float, ...]
    excess: float
    epsilon: float
    refuted: bool

    def above(self, other: WorstStream) -> bool:
        """Whether this pair has the larger excess or, at equal excess, the larger epsilon."""
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

    For each query, the search chooses the distance of the true answer from the threshold, and
    whether the answer moves by +1 or by -1 between the two neighbours. It is a coordinate ascent
    from random starts. All laws are exact, so the loss of the stream found is not an estimate.
    Another stream may have a larger loss.

    Parameters
    ----------
    scales : NoiseScales
        As for `SparseVectorLaw`.
    claim : PureDP, ApproxDP or ZCDP
        The guarantee that the mechanism claims.
    cutoff : int
        As for `SparseVectorLaw`.
    queries : int
        Length of the stream, at most 12. The time for each stream tried can grow like 2^queries.
    monotone : bool
        Whether all answers move in the same direction between neighbours.
    rng : Generator or int
        Source of the random starts.

    Raises
    ------
    ValueError
        If `queries`, `cutoff` or a scale of the noise is out of range, or `claim` is no definition
        of privacy, for instance a `Guarantee`.

    Examples
    --------
    >>> import geomdp as gd
    >>> scales = gd.AboveThreshold(threshold=0.0, privacy=gd.PureDP(1.0)).scales
    >>> worst = gd.audit.worst_stream(scales, gd.PureDP(1.0), cutoff=1, queries=1)
    >>> worst.refuted, worst.epsilon <= 1.0
    (False, True)
    """
    require_type(scales, NoiseScales, "scales")
    check_privacy(claim, name="claim")
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
