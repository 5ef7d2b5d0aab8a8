"""The result of one run of an iterative construction."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Generic

from geomdp.mechanisms.interactive.distinguishers import AnyQuery
from geomdp.mechanisms.interactive.transcript import Answer
from geomdp.mechanisms.interactive.updates.base import Hypothesis
from geomdp.privacy import Guarantee


@dataclass(frozen=True)
class IterativeRelease(Generic[AnyQuery]):
    """The result of one run: a public hypothesis with its error bound, and the privacy guarantee.

    Parameters
    ----------
    hypothesis : Hypothesis
        It answers every query of the class. These answers are post-processing and cost no privacy.
    accuracy : float or None
        With probability at least 1 - beta, no answer of the hypothesis to a query of the class has
        a larger error. None if no theorem gives a bound for the run (see `IterativeConstruction`),
        or if no hypothesis of the update rule agreed with a noisy answer. Under add/remove, errors
        are against sums divided by n, and it is None unless the run ended by its stopping test.
    guarantee : Guarantee
        The privacy guarantee of the run.
    exchanges : tuple of (query, Answer)
        Queries and noisy answers, in order; after the stopping test, the last has ``above=False``.

    Examples
    --------
    >>> import numpy as np
    >>> import geomdp as gd
    >>> cells = [gd.workloads.DenseQuery(row) for row in np.eye(3)]
    >>> mechanism = gd.IterativeConstruction(
    ...     gd.mechanisms.MultiplicativeWeights(3),
    ...     gd.mechanisms.EnumeratedQueries(cells),
    ...     n=100_000,
    ...     privacy=gd.PureDP(1.0),
    ... )
    >>> records = np.array([0] * 70_000 + [1] * 30_000)
    >>> release = mechanism.release(records, rng=0)  # a simulation: the seed voids privacy
    >>> round(release.accuracy, 3), len(release.exchanges)
    (0.378, 6)
    >>> release.hypothesis.distribution.round(2)
    array([0.43, 0.3 , 0.27])
    """

    hypothesis: Hypothesis[AnyQuery]
    accuracy: float | None
    guarantee: Guarantee
    exchanges: tuple[tuple[AnyQuery, Answer], ...]

    def __repr__(self) -> str:
        return (
            f"IterativeRelease({accuracy_in_words(self.accuracy)} after {len(self.exchanges)} "
            f"queries; {self.guarantee})"
        )


def accuracy_in_words(accuracy: float | None) -> str:
    return "no stated accuracy" if accuracy is None else f"accuracy {accuracy:.3g}"
