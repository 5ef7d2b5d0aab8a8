"""Upper and lower bounds on the number of records private mechanisms need."""

from geomdp.bounds.binary_codes import LinearCode, greedy_code
from geomdp.bounds.bound import Bound, Side
from geomdp.bounds.certificate import Certificate, SideConditionError, certify
from geomdp.bounds.code_words import CodeWords
from geomdp.bounds.marginal_blocks import MarginalBlocks
from geomdp.bounds.marginals import marginal_bound
from geomdp.bounds.metrics import RMS, MeanL2, Metric, WorstCase
from geomdp.bounds.packing import Packing
from geomdp.bounds.random_signs import RandomSignSets
from geomdp.bounds.reed_solomon import ReedSolomon
from geomdp.bounds.set_families import GreedySets, ReedSolomonSets, Singletons, greedy_sets
from geomdp.bounds.worst_case import random_sign_bound

__all__ = [
    "RMS",
    "Bound",
    "Certificate",
    "CodeWords",
    "GreedySets",
    "LinearCode",
    "MarginalBlocks",
    "MeanL2",
    "Metric",
    "Packing",
    "RandomSignSets",
    "ReedSolomon",
    "ReedSolomonSets",
    "Side",
    "SideConditionError",
    "Singletons",
    "WorstCase",
    "certify",
    "greedy_code",
    "greedy_sets",
    "marginal_bound",
    "random_sign_bound",
]
