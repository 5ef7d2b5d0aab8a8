"""Planted faults in exact releases of real-valued answers."""

from __future__ import annotations

from experiments.privacy.faults.fault import Fault

REAL = "tests/mechanisms/test_real_answers.py::"


REAL_ANSWERS = (
    Fault(
        "Covariance: rounded shares of the budget add up to more than all of it",
        "rounding of the shares spends more than epsilon",
        "mechanisms.covariance:_rest",
        "left = math.nextafter(left, 0.0)",
        "break",
        ("tests/mechanisms/test_real_answers.py::test_shares_of_the_budget_never_exceed_it",),
    ),
    Fault(
        "exact second moments: records rounded to nearest",
        "rounding moves unit vectors out of the ball",
        "mechanisms.additive_noise.real_answers:fixed_point",
        "np.trunc(",
        "np.rint(",
        ("tests/test_wide_sums.py::test_rounding_to_nearest_would_leave_the_ball",),
    ),
    Fault(
        "exact second moments: digits of products mixed up",
        "the exact answers are not the sums over records",
        "mechanisms.additive_noise.real_answers:add_products",
        "(low.T @ low, mixed + mixed.T, high.T @ high)",
        "(low.T @ low, 2 * mixed, high.T @ high)",
        ("tests/test_wide_sums.py::test_sums_of_products_are_exact_and_float64_is_caught",),
    ),
    Fault(
        "exact second moments: Wishart noise of half the scale",
        "epsilon is twice what is claimed",
        "noise.exact.vectors:wishart_difference",
        "arb(rate), arb(centre)",
        "2 * arb(rate), arb(centre)",
        (REAL + "test_wishart_noise_is_cone_noise_of_the_spectraplex",),
    ),
    Fault(
        "exact second moments: one Wishart matrix used twice",
        "the noise is the difference of a matrix and itself, which is 0",
        "noise.exact.vectors:wishart_difference",
        "= wishart(draw), wishart(draw)",
        "= (found := wishart(draw)), found",
        (REAL + "test_wishart_noise_is_cone_noise_of_the_spectraplex",),
    ),
    Fault(
        "exact real answers: the scale ignores that answers are rounded",
        "some neighbours are farther apart after rounding",
        "mechanisms.additive_noise.independent_noise:Laplace._in_units",
        "l1_sensitivity(units.workload, self.adjacency)",
        "float(int(self._sensitivity * units.factor))",
        (REAL + "test_laplace_scales_cover_the_rounded_answers",),
    ),
    Fault(
        "exact real answers: truth and noise are divided separately",
        "the lowest bits of the release depend on the exact truth",
        "mechanisms.additive_noise.real_answers:ScaledAnswers.answers",
        "(int(s) * unit + j) / (n * unit)",
        "int(s) / n + j / (n * unit)",
        (REAL + "test_only_noisy_sums_are_read",),
    ),
    Fault(
        "exact smooth moments: rounding of the sums not covered",
        "the noise covers sums before rounding only",
        "mechanisms.smooth_summary:SmoothSummary.__init__",
        "rounded.larger(SLACK)",
        "rounded.larger(-SLACK)",
        ("tests/mechanisms/test_smooth_summary.py",),
    ),
    Fault(
        "PairMarginals: noise on counts is not scaled",
        "one record changes the counts by d times as much as the noise covers",
        "mechanisms.second_moment:PairMarginals._on_counts",
        "times(d, inner.measurement.vector)",
        "inner.measurement.vector",
        (REAL + "test_pair_marginals_round_noise_on_counts",),
    ),
)
