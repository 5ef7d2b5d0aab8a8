"""Faults of mechanisms that add noise to exact sums: sensitivity, noise, release and the ledger."""

from __future__ import annotations

from experiments.privacy.faults.fault import Fault

CONTRACTS = "tests/mechanisms/test_contracts.py::"
BUDGET = (f"{CONTRACTS}test_no_difference_of_neighbours_exceeds_the_budget",)
ORDER = ("tests/mechanisms/test_release_order.py",)
PAYS = ("tests/mechanisms/test_ledger_use.py",)
LAWS = ("tests/laws/test_mechanisms.py",)
NOISES = ("tests/laws/test_noises.py",)
STRATEGIES = "tests/mechanisms/test_strategies.py::"


def _divided(norm: str, by: int) -> Fault:
    return Fault(
        f"{norm} sensitivity divided by {by}",
        f"noise is {by} times too small",
        f"mechanisms.base:{norm}_sensitivity",
        f"workload.{norm}_diameter()",
        f"workload.{norm}_diameter() / {by}",
        BUDGET,
    )


ADDITIVE = (
    *(_divided(norm, by) for norm in ("l1", "l2") for by in (2, 10, 50)),
    Fault(
        "l1 sensitivity under add/remove: half the radius",
        "the noise covers half of what adding a record can change",
        "mechanisms.base:l1_sensitivity",
        "workload.l1_radius()",
        "workload.l1_radius() / 2",
        BUDGET,
    ),
    Fault(
        "K used in place of K - K",
        "the noise covers answers but not their differences",
        "bodies.sensitivity:neighbour_body",
        "return difference_body(K)",
        "return symmetric_hull(K)",
        BUDGET,
    ),
    Fault(
        "K - K used in place of conv(K, -K)",
        "adding a record can change the sums by more than the body allows",
        "bodies.sensitivity:neighbour_body",
        "return symmetric_hull(K)",
        "return difference_body(K)",
        BUDGET,
    ),
    Fault(
        "affine span used in place of linear span under add/remove",
        "the number of records is released without noise",
        "mechanisms.base:answer_hull",
        "hull = _linear_span(hull)",
        "hull = hull",
        BUDGET,
    ),
    Fault(
        "ball with half the radius",
        "the body of the K-norm noise leaves out some differences",
        "mechanisms.additive_noise.ellipsoid:Ball._root",
        "self._radius * self._span.basis",
        "self._radius / 2 * self._span.basis",
        BUDGET,
    ),
    Fault(
        "ellipsoid around points shifted by half of their mean",
        "under add/remove, the ellipsoid leaves out some of the points themselves",
        "mechanisms.additive_noise.ellipsoid:_add_remove_root",
        "least_trace_ellipsoid(Rows(points), tolerance=GAP)",
        "least_trace_ellipsoid(Rows(points - points.mean(axis=0) / 2), tolerance=GAP)",
        BUDGET,
    ),
    Fault(
        "certified rows: too small an ellipsoid is accepted",
        "exact releases claim a guarantee whose proof fails",
        "mechanisms.additive_noise.real_answers:proved_bound",
        "(longest + 2 * error)",
        "0.99 * (longest + 2 * error)",
        ("tests/mechanisms/test_certified_rows.py::test_what_sticks_out_is_refused",),
    ),
    Fault(
        "certified bodies: too small a body is accepted",
        "exact releases claim a guarantee whose proof fails",
        "mechanisms.additive_noise.knorm:core_holds",
        "adjacency) <= 1)",
        "adjacency) <= 1.01)",
        (
            "tests/mechanisms/test_certified_bodies.py::test_what_sticks_out_by_a_millionth_is_refused",
        ),
    ),
    Fault(
        "certified polytopes: a polytope that leaves out differences is accepted",
        "exact releases claim a guarantee whose proof fails",
        "mechanisms.additive_noise.knorm:_whole_image",
        "(widths <= offsets).all()",
        "(widths <= 2 * offsets).all()",
        (
            "tests/mechanisms/test_certified_bodies.py::test_a_polytope_that_misses_a_difference_is_refused",
        ),
    ),
    Fault(
        "Laplace mechanism: half the scale",
        "epsilon is twice what is claimed",
        "privacy.calibration:laplace_scale",
        "change / e,",
        "change / e / 2,",
        ("tests/privacy/test_calibration.py::test_laplace_scale_bounds_the_density_ratio",),
    ),
    Fault(
        "Laplace scale not rounded up",
        "the float scale spends more than epsilon",
        "privacy.calibration:laplace_scale",
        "rounded_up(lambda change, e: change / e, sensitivity, privacy.epsilon)",
        "sensitivity / privacy.epsilon",
        ("tests/mechanisms/test_unseeded_streams.py", "tests/privacy/test_calibration.py"),
    ),
    Fault(
        "Cone: each of two vectors spends all of epsilon",
        "replacing a record costs 2 epsilon",
        "mechanisms.additive_noise.cone:Cone._noise_over",
        "ConeNoise(body, epsilon / 2, centre, matrix)",
        "ConeNoise(body, epsilon, centre, matrix)",
        ("tests/mechanisms/test_cone.py",),
    ),
    Fault(
        "Cone: the body is shifted to its centroid under add/remove",
        "the number of records, which is private there, gets no noise of its own",
        "mechanisms.additive_noise.cone:Cone._noise_over",
        "ConeNoise(body, epsilon, origin, matrix, constant)",
        "ConeNoise(body, epsilon, body.centroid() if matrix is None else origin, matrix)",
        ("tests/mechanisms/test_cone.py",),
    ),
    Fault(
        "TightCone: epsilon is doubled",
        "the noise has half its radius",
        "mechanisms.additive_noise.cone:TightCone.noise",
        "PairedNoise(body, epsilon, matrix)",
        "PairedNoise(body, 2 * epsilon, matrix)",
        LAWS,
    ),
    Fault(
        "TightCone: the count is exact under add/remove",
        "the constant part of the answers gets no noise",
        "mechanisms.additive_noise.cone:TightCone.noise",
        "np.zeros(body.dimension), matrix, constant)",
        "np.zeros(body.dimension), matrix)",
        LAWS,
    ),
    Fault(
        "Spectral: the body is not scaled by the number of columns",
        "differences are larger than the body by this number",
        "mechanisms.additive_noise.cone:Spectral.noise",
        "Scaled(SpectraplexDifference(p), float(p))",
        "Scaled(SpectraplexDifference(p), 1.0)",
        ("tests/mechanisms/test_spectral.py",),
    ),
    Fault(
        "Matrix: the exact loss is not computed",
        "rounding of scales and shares spends more than epsilon",
        "mechanisms.strategies.design:exact_loss",
        "return max(cases)",
        "return None",
        (
            "tests/mechanisms/test_rounded_measurements.py::"
            "test_no_pair_of_neighbours_costs_more_than_epsilon_in_exact_arithmetic",
        ),
    ),
    Fault(
        "Matrix: a replaced record counts as a change of 1, not 2",
        "cells get half their Laplace noise",
        "mechanisms.strategies.design:_l1_change",
        "2.0 if",
        "1.0 if",
        (f"{STRATEGIES}test_measurements_stay_within_the_budget",),
    ),
    Fault(
        "Matrix: answers that no measurement determines are allowed",
        "a part of the answers is released without noise",
        "mechanisms.strategies.design:check_rebuilt",
        "<= allowed)",
        "<= np.inf)",
        (f"{STRATEGIES}test_undetermined_answers_are_refused",),
    ),
    Fault(
        "Matrix: a level of small cost is not measured",
        "answers that need this level are released partly without noise",
        "mechanisms.strategies.weights:_without_tiny",
        "kept[best] = max(kept[best], LEAST_SHARE)",
        "kept[best] = kept[best]",
        (f"{STRATEGIES}test_what_costs_anything_is_measured",),
    ),
    Fault(
        "answers are not projected back onto their subspace",
        "rounding errors of the exact sums show outside this subspace, where there is no noise",
        "mechanisms.additive_noise.base:AdditiveMechanism._restored",
        "if self._hull is None:",
        "if True:",
        LAWS,
    ),
    Fault(
        "noise used twice",
        "the difference of two sums has no noise",
        "mechanisms.base:once",
        "unused.pop()(sums)",
        "unused[0](sums)",
        ("tests/mechanisms/test_rounded_releases.py::test_noise_is_used_once",),
    ),
    Fault(
        "ledger paid after drawing",
        "a process that is killed in between gives answers without payment",
        "mechanisms.release:release_once",
        "        ledger.spend(guarantee, label)\n    return draw(prepared, statistic)",
        "        pass\n    output = draw(prepared, statistic)\n    if ledger is not None:\n"
        "        ledger.spend(guarantee, label)\n    return output",
        ORDER,
    ),
    Fault(
        "ledger is not asked before records are read",
        "records are read although the budget is spent",
        "mechanisms.release:release_once",
        "ledger.require(guarantee, label)",
        "pass",
        PAYS,
    ),
    Fault(
        "ledger not paid",
        "releases cost nothing",
        "mechanisms.release:release_once",
        "ledger.spend(guarantee, label)",
        "pass",
        PAYS,
    ),
    Fault(
        "number of records not checked",
        "sums are divided by a wrong public n",
        "mechanisms.release:release_once",
        "count != n",
        "count < 0",
        PAYS,
    ),
    Fault(
        "post-processing reads the data",
        "answers move towards the exact means",
        "mechanisms.base:Mechanism.release",
        "Release(self.process(noisy),",
        "Release(self.process((noisy + sums[: len(noisy)] / self.n) / 2),",
        LAWS,
    ),
    Fault(
        "Coarse: answers not rounded to the net",
        "one record changes the sums by more than the noise covers",
        "mechanisms.reduced_answers:Coarse.totals",
        "self.inner.totals(records)",
        "Mechanism.totals(self, records)",
        ("tests/mechanisms/test_coarse.py",),
    ),
    Fault(
        "Coarse of Coarse: answers rounded to the outer net only",
        "one record changes the sums by more than the noise covers",
        "mechanisms.reduced_answers:Coarse.totals",
        "self.inner.totals(records)",
        "self._coarsened.totals(records)",
        ("tests/mechanisms/test_coarse.py",),
    ),
    Fault(
        "clipping leaves records outside the ball",
        "one record changes more than the noise covers",
        "mechanisms.second_moment:clipped_to_ball",
        "norms > (1 - margin) / largest",
        "norms > 1.5 / largest",
        (
            "tests/mechanisms/test_second_moment.py::test_clipping_is_explicit_and_scales_rows_to_the_sphere",
        ),
    ),
)
