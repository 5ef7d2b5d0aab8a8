"""Additive mechanisms: exact sums plus noise that does not depend on the data, divided by n."""

from __future__ import annotations

import abc
import copy
import math
from typing import Self

import numpy as np

from geomdp._linalg import AffineHull
from geomdp._typing import FloatArray
from geomdp._validation import whole
from geomdp.mechanisms.base import Mechanism, Prediction, PredictionKind
from geomdp.noise.base import Noise


class AdditiveMechanism(Mechanism):
    """M(X) = (sum over x in X of Q(x) + Z) / n for a noise Z fixed by workload and privacy.

    The error is Z/n whatever the data, so the prediction is an equality. Z is on sums: `with_n`
    copies share it. Concrete mechanisms differ in the noise, and their constructors in the claim.
    """

    @property
    @abc.abstractmethod
    def noise(self) -> Noise:
        """Distribution of Z, on sums of answer vectors."""

    @property
    @abc.abstractmethod
    def _hull(self) -> AffineHull | None:
        """Public subspace that holds all released means; None for all of R^m."""

    @property
    def predicted_rmse(self) -> Prediction:
        """(E ||Z||_2^2 / m)^(1/2) / n, the same for every data set.

        Its standard error is above 0 where E ||Z||^2 is known by simulation only.
        """
        moment = self.noise.second_moment()
        value = math.sqrt(moment.value / self.workload.n_queries) / self.n
        # d sqrt(x) / sqrt(x) = dx / (2 x).
        stderr = value * moment.stderr / (2 * moment.value)
        estimated = "" if moment.samples == 0 else f"; E||Z||^2 from {moment.samples} public draws"
        source = f"E||Z||^2 of the noise (JL-L14){estimated}"
        return Prediction(value, PredictionKind.EXACT, source, stderr)

    def with_n(self, n: int) -> Self:
        """The same mechanism for `n` records; the noise object is shared."""
        n = whole(n, "n")
        # First, so that the copy carries the results with it.
        self.set_up()
        twin = copy.copy(self)
        twin.n = n
        return twin

    def set_up(self) -> None:
        _ = self.noise, self._hull

    def privatise(self, sums: FloatArray, rng: np.random.Generator) -> FloatArray:
        answers = (sums + self.noise.sample(rng, 1)) / self.n
        if self._hull is None:
            return np.asarray(answers[0])
        # The noise covers the subspace only. Rebuilding the answers from their coordinates there
        # leaves nothing of the data outside it, not even the rounding of the sums.
        return np.asarray(self._hull.embed(self._hull.coordinates(answers))[0])
