"""Update rules: how a public hypothesis follows noisy answers, and how often it can need to."""

from geomdp.mechanisms.updates.base import Hypothesis, UpdateRule
from geomdp.mechanisms.updates.median import Median, MedianHypothesis, net, net_size
from geomdp.mechanisms.updates.multiplicative import MultiplicativeWeights, WeightedHypothesis
from geomdp.mechanisms.updates.perceptron import LinearHypothesis, Perceptron
from geomdp.mechanisms.updates.sparse_multiplicative import (
    SlotHypothesis,
    SparseMultiplicativeWeights,
)

__all__ = [
    "Hypothesis",
    "LinearHypothesis",
    "Median",
    "MedianHypothesis",
    "MultiplicativeWeights",
    "Perceptron",
    "SlotHypothesis",
    "SparseMultiplicativeWeights",
    "UpdateRule",
    "WeightedHypothesis",
    "net",
    "net_size",
]
