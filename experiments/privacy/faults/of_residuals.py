"""Faults of Gaussian noise on the residuals of tables: variances, costs, draws and measurements."""

from __future__ import annotations

from experiments.privacy.faults.fault import Fault

SCALES = "tests/mechanisms/test_residual_scales.py::"
MECHANISM = "tests/mechanisms/test_residual_gaussian.py::"
NOISE = "tests/noise/test_residual_noise.py::"
PAIRS = (f"{SCALES}test_no_pair_of_records_costs_more",)
FARTHEST = (f"{MECHANISM}test_no_neighbours_are_farther_apart_than_the_guarantee_allows",)
COSTS = "mechanisms.strategies.residual_scales:"
GAUSSIAN = "mechanisms.additive_noise.strategy_mechanism:"

RESIDUALS = (
    Fault(
        "residuals: the cost of add/remove used under replace-one",
        "replacing a record can cost more than the cost computed for it",
        "mechanisms.strategies.residual_scales:best_scales",
        "adjacency is Adjacency.ADD_REMOVE",
        "adjacency is not None",
        PAIRS,
    ),
    Fault(
        "residuals: half the cost of a replaced record",
        "the squared sensitivity is half of the true value",
        f"{COSTS}ProfileCost.largest",
        "return 2 * (whole - float(tensor[place])) + allowance",
        "return (whole - float(tensor[place])) + allowance",
        PAIRS,
    ),
    Fault(
        "residuals: only records that differ in all columns are considered",
        "records that differ in some columns can cost more",
        f"{COSTS}ProfileCost.largest",
        "place = np.unravel_index(np.argmin(tensor), tensor.shape)",
        "place = tuple(n - 1 for n in tensor.shape)",
        PAIRS,
    ),
    Fault(
        "residuals: one kind of sets of columns costs nothing",
        "the residuals of the largest sets of columns are left out of the sensitivity",
        f"{COSTS}ProfileCost.at_most",
        "return self.largest(highest)[0]",
        "return self.largest(np.where(self.kinds.sum(axis=1) < sum(self.most), highest, 0))[0]",
        PAIRS,
    ),
    Fault(
        "residuals: the mean precision of a kind used in place of the largest",
        "sets of columns that are measured more precisely cost more than is counted",
        f"{COSTS}ProfileCost.at_most",
        "np.maximum.at(highest, self.kind, precisions)",
        "highest += np.bincount(self.kind, precisions) / np.bincount(self.kind)",
        PAIRS,
    ),
    Fault(
        "residuals: merged columns counted with the fewest levels",
        "columns with more levels cost more than is counted",
        f"{COSTS}ProfileCost.__init__",
        "_krawtchouk(len(members), max(levels[i] for i in members), most)",
        "_krawtchouk(len(members), min(levels[i] for i in members), most)",
        (f"{SCALES}test_merged_classes_and_caps_are_proved_bounds",),
    ),
    Fault(
        "residuals: the factor l / (l - 1) is left out, where l is the fewest levels",
        "a record can change a residual by more than is counted",
        f"{COSTS}CappedCost.at_most",
        "2 * self.shares * self.caps * precisions",
        "2 * self.shares * precisions",
        (
            f"{SCALES}test_no_pair_of_records_costs_more",
            f"{SCALES}test_merged_classes_and_caps_are_proved_bounds",
        ),
    ),
    Fault(
        "residuals: the mean change of a table used in place of the largest",
        "two records can differ in the columns that change each table most",
        "mechanisms.strategies.residual_scales:TableCost.at_most",
        "(held @ changes).max(axis=1)",
        "(held @ changes).mean(axis=1)",
        PAIRS,
    ),
    Fault(
        "residuals: columns of two levels counted as if they had more",
        "each such column makes the noise smaller by a factor of the square root of 2",
        f"{GAUSSIAN}ResidualGaussian._proved_scales",
        "least = unit * np.sqrt(self._best.variances * doubled)",
        "least, doubled = unit * np.sqrt(self._best.variances), np.ones_like(doubled)",
        FARTHEST,
    ),
    Fault(
        "residuals: scales are not proved to be large enough",
        "a scale can be below the least one that is private",
        f"{GAUSSIAN}ResidualGaussian._proved_scales",
        "scales, more = least, 2.0**-52",
        "scales, more = least, 2.0**-52\n    return least / 2",
        FARTHEST,
    ),
    Fault(
        "residuals: no noise on the first residual of each shape",
        "its sums are released without noise",
        "noise.gaussian:ResidualNoise.sample",
        "drawn *= np.tile(self.scales[group.numbers], size)[:, None]",
        "drawn *= np.tile(self.scales[group.numbers], size)[:, None]\n"
        "        drawn[:: group.count] = 0",
        (f"{MECHANISM}test_releases_have_the_covariance_of_the_formula",),
    ),
    Fault(
        "residuals: one draw for two Gaussian variables",
        "two of the three variables of a column of three levels are the same",
        "noise.exact.tables:residual_vector",
        "gaussians(len(factors), draw)",
        "[g for g in gaussians((len(factors) + 1) // 2, draw) for _ in range(2)][: len(factors)]",
        (f"{NOISE}test_the_noise_is_that_of_the_proof",),
    ),
    Fault(
        "residuals: the float filter ignores the error of a difference",
        "coordinates are rounded although the rounding is uncertain",
        "noise.exact.tables:near_residuals",
        "off = (one + others) * (1 + 2.0**-40) + rounding_error(cells)",
        "off = 0 * (one + others)",
        (f"{NOISE}test_float_errors_are_proved",),
    ),
    Fault(
        "residuals: one coordinate without its noise",
        "one difference of counts is released without noise",
        f"{GAUSSIAN}ResidualGaussian._from_rounded",
        "noisy = quotients(sums, multiples, unit, self.n)",
        "noisy = quotients(sums, multiples, unit, self.n)\n    noisy[-1] = sums[-1] / self.n",
        (f"{MECHANISM}test_exact_releases_have_the_covariance_of_the_formula",),
    ),
)
