"""Upper and lower bounds on the number of records private mechanisms need."""

from geomdp.bounds.binary_codes import LinearCode, greedy_code
from geomdp.bounds.bound import Bound, Side
from geomdp.bounds.certificate import Certificate, Rung, SideConditionError, certify
from geomdp.bounds.certificate_loading import load_certificate
from geomdp.bounds.checker import CertificateRejected, Checked, check_certificate
from geomdp.bounds.cliques import largest_clique
from geomdp.bounds.code_words import CodeWords
from geomdp.bounds.instance_optimality import InstanceOptimality, instance_optimality
from geomdp.bounds.line_search import (
    additive_noise_error,
    orthogonal_lines_bound,
    orthogonal_lines_error,
)
from geomdp.bounds.marginal_blocks import MarginalBlocks
from geomdp.bounds.marginals import marginal_bound
from geomdp.bounds.metrics import RMS, MeanL2, Metric, WorstCase
from geomdp.bounds.orthogonal_lines import LineRung, OrthogonalLines
from geomdp.bounds.packing import Packing
from geomdp.bounds.packing_search import Effort, packing_search
from geomdp.bounds.private_line import PrivateLine, private_line
from geomdp.bounds.random_signs import RandomSignSets
from geomdp.bounds.reed_solomon import ReedSolomon
from geomdp.bounds.separated import exact_separated, greedy_separated, single_elements
from geomdp.bounds.set_families import GreedySets, ReedSolomonSets, Singletons, greedy_sets
from geomdp.bounds.volume import VolumeRadius, volume_bound, volume_radii
from geomdp.bounds.worst_case import random_sign_bound

__all__ = [
    "RMS",
    "Bound",
    "Certificate",
    "CertificateRejected",
    "Checked",
    "CodeWords",
    "Effort",
    "GreedySets",
    "InstanceOptimality",
    "LineRung",
    "LinearCode",
    "MarginalBlocks",
    "MeanL2",
    "Metric",
    "OrthogonalLines",
    "Packing",
    "PrivateLine",
    "RandomSignSets",
    "ReedSolomon",
    "ReedSolomonSets",
    "Rung",
    "Side",
    "SideConditionError",
    "Singletons",
    "VolumeRadius",
    "WorstCase",
    "additive_noise_error",
    "certify",
    "check_certificate",
    "exact_separated",
    "greedy_code",
    "greedy_separated",
    "greedy_sets",
    "instance_optimality",
    "largest_clique",
    "load_certificate",
    "marginal_bound",
    "orthogonal_lines_bound",
    "orthogonal_lines_error",
    "packing_search",
    "private_line",
    "random_sign_bound",
    "single_elements",
    "volume_bound",
    "volume_radii",
]
