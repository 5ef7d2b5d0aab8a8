"""Privacy parameters, the records that carry them, composition, conversion and calibration."""

from geomdp.privacy.calibration import (
    analytic_gaussian_scale,
    classical_gaussian_scale,
    gaussian_delta,
    gaussian_scale,
    laplace_scale,
    zcdp_gaussian_scale,
)
from geomdp.privacy.composition import (
    advanced_composition,
    basic_composition,
    group_privacy,
    largest_step_epsilon,
    shortcut_step_epsilon,
)
from geomdp.privacy.conversions import (
    convert_adjacency,
    pure_to_zcdp,
    zcdp_to_approx,
    zcdp_to_approx_optimal_order,
)
from geomdp.privacy.guarantees import (
    ZCDP,
    Adjacency,
    ApproxDP,
    Approximate,
    Exact,
    Guarantee,
    Heuristic,
    Privacy,
    PureDP,
    SamplerStatus,
)
from geomdp.privacy.ledger import BudgetExhausted, Ledger
from geomdp.privacy.spends import Spend

__all__ = [
    "ZCDP",
    "Adjacency",
    "ApproxDP",
    "Approximate",
    "BudgetExhausted",
    "Exact",
    "Guarantee",
    "Heuristic",
    "Ledger",
    "Privacy",
    "PureDP",
    "SamplerStatus",
    "Spend",
    "advanced_composition",
    "analytic_gaussian_scale",
    "basic_composition",
    "classical_gaussian_scale",
    "convert_adjacency",
    "gaussian_delta",
    "gaussian_scale",
    "group_privacy",
    "laplace_scale",
    "largest_step_epsilon",
    "pure_to_zcdp",
    "shortcut_step_epsilon",
    "zcdp_gaussian_scale",
    "zcdp_to_approx",
    "zcdp_to_approx_optimal_order",
]
