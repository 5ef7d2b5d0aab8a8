"""Planted faults in geometric, staircase and lattice box noise."""

from __future__ import annotations

from experiments.privacy.faults.fault import Fault

MECHANISMS = "tests/mechanisms/test_few_queries.py::"
BUDGET = (
    f"{MECHANISMS}test_no_change_of_one_record_costs_more_than_epsilon_and_some_costs_all",
    f"{MECHANISMS}test_the_sensitivity_depends_on_the_neighbour_relation",
)
DRAWS = ("tests/noise/test_few_queries.py::test_draws_have_the_variances_and_independent_signs",)
LAWS = (
    "tests/noise/test_few_queries.py::test_exact_draws_have_the_probabilities_of_the_lattice",
    *DRAWS,
)

FEW_QUERIES = (
    Fault(
        "lattice: the unit is doubled",
        "the noise never hides some changes by one record",
        "mechanisms.additive_noise.few_queries:listed_lattice",
        "np.maximum(1, divisors)",
        "np.maximum(1, 2 * divisors)",
        BUDGET,
    ),
    Fault(
        "lattice: changes under replace-one used under add/remove",
        "adding a record changes the sums by more than the box allows",
        "mechanisms.additive_noise.few_queries:listed_lattice",
        "np.abs(rows).max(axis=0)",
        "rows.max(axis=0) - rows.min(axis=0)",
        BUDGET,
    ),
    Fault(
        "lattice: changes that float64 rounds are allowed",
        "units are rounded, so the noise never hides some changes by one record",
        "mechanisms.additive_noise.few_queries:LatticeMechanism._prepare",
        "self._sensitivity >= LARGEST_SUM",
        "self._sensitivity >= 4 * LARGEST_SUM",
        (f"{MECHANISMS}test_changes_that_float64_rounds_are_refused",),
    ),
    Fault(
        "lattice: sums that float64 rounds are allowed",
        "rounded sums of neighbours differ by vectors outside the lattice of the noise",
        "mechanisms.additive_noise.few_queries:LatticeMechanism._require_exact_sums",
        "if not self._sums_are_exact:",
        "if self.n > 2 * self._capacity + 2:",
        (f"{MECHANISMS}test_sums_that_float64_rounds_are_refused_before_the_ledger_pays",),
    ),
    Fault(
        "geometric: half the scale",
        "the noise is half as large as the claim requires",
        "mechanisms.additive_noise.few_queries:Geometric.noise",
        "laplace_scale(self._sensitivity, self.privacy)",
        "laplace_scale(self._sensitivity / 2, self.privacy)",
        BUDGET,
    ),
    Fault(
        "geometric: one exact draw for all coordinates",
        "differences of answers have no noise",
        "noise.exact.variates:geometric_differences",
        "pairs = exponentials(2 * len(means), draw)",
        "pairs = [x for x in exponentials(2, draw) for _ in means]",
        LAWS,
    ),
    Fault(
        "geometric: one float64 draw for all coordinates",
        "differences of answers have no noise",
        "noise.few_queries:GeometricNoise.sample",
        "shape = (2, size, self.dimension)",
        "shape = (2, size, 1)",
        DRAWS,
    ),
    Fault(
        "lattice box: one geometric number too few",
        "the size of the box has the wrong distribution",
        "noise.exact.variates:box_multiples",
        "exponentials(term + 1, draw)",
        "exponentials(max(1, term), draw)",
        LAWS,
    ),
    Fault(
        "staircase: steps of half the width",
        "the answers of neighbours can be two steps apart",
        "mechanisms.additive_noise.few_queries:Staircase._noise_for",
        "StaircaseNoise(sensitivity,",
        "StaircaseNoise(sensitivity / 2,",
        (f"{MECHANISMS}test_audit_passes_staircase_noise_and_refutes_half_of_it",),
    ),
    Fault(
        "staircase: exact draws without the sign",
        "noise never lowers an answer",
        "noise.exact.variates:staircase",
        "return size if whole_number(2, draw) else -size",
        "return size",
        (f"{MECHANISMS}test_exact_releases_of_a_real_query_have_the_predicted_error",),
    ),
)
