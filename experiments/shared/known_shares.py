"""All parities, answered from the shares of the elements instead of from records."""

from dataclasses import dataclass
from typing import Any

import numpy as np

import geomdp as gd
from experiments.engine.tools import FloatArray


@dataclass(frozen=True)
class Shares:
    """A distribution on the elements, under the attribute name that hypotheses use."""

    distribution: FloatArray


def falling_shares(size: int) -> FloatArray:
    """Shares of `size` elements that fall as 1 / rank."""
    weights = 1 / np.arange(1, size + 1)
    return np.asarray(weights / weights.sum())


class KnownShares(gd.mechanisms.AllParities):
    """All parities, answered from given shares, so that n may be as large as a theorem needs."""

    def __init__(self, shares: FloatArray) -> None:
        super().__init__(len(shares).bit_length() - 1)
        self.shares = shares

    def truths(self, records: Any, n: int) -> FloatArray:
        """Answers from the shares; `records` and `n` are not used."""
        del records, n
        return self.estimates(Shares(self.shares))
