"""Planted faults in correctly rounded noise, and in exact comparisons of noisy numbers."""

from __future__ import annotations

from experiments.privacy.faults.fault import Fault

VARIATES = ("tests/noise/exact/test_variates.py",)
VECTORS = (
    "tests/noise/exact/test_vectors.py::test_rounded_noise_has_mean_zero_and_the_stated_covariance",
)
PLANTED = ("tests/noise/exact/test_planted_defects.py",)
NUMBERS = ("tests/noise/exact/test_laplace_numbers.py",)
ROUNDING = ("tests/noise/exact/test_rounding.py",)
SINGLE = ("tests/laws/test_single_numbers.py",)

NEAR = ("tests/noise/exact/test_near.py",)

EXACT_NOISE = (
    Fault(
        "float64 filter: Laplace draws of half the scale",
        "most coordinates get half their noise",
        "noise.exact.near:near_laplaces",
        "scale * (logs[count:] - logs[:count])",
        "scale / 2 * (logs[count:] - logs[:count])",
        NEAR,
    ),
    Fault(
        "float64 filter: Gaussian sine used twice",
        "coordinates of the noise are equal in pairs",
        "noise.exact.near:near_gaussians",
        "length * cosine",
        "length * sine",
        NEAR,
    ),
    Fault(
        "float64 filter: errors are not counted",
        "a float64 number can be rounded to another multiple than the exact number",
        "noise.exact.near:nearest_by_floats",
        "np.ldexp(errors, grid)",
        "0 * np.ldexp(errors, grid)",
        NEAR,
    ),
    Fault(
        "float64 filter: both points of cone noise from one draw",
        "both points of the cone are the same",
        "noise.exact.near_elliptope:near_cone",
        "_places(body.order, one.stop)",
        "_places(body.order, 2 * shape)",
        ("tests/noise/exact/test_near_elliptope.py::test_values_are_within_their_errors",),
    ),
    Fault(
        "float64 filter: both radii of cone noise from one draw",
        "both radii of cone noise are the same",
        "noise.exact.near_elliptope:near_cone",
        "shape + np.arange(shape)",
        "np.arange(shape)",
        ("tests/noise/exact/test_near_elliptope.py::test_values_are_within_their_errors",),
    ),
    Fault(
        "polytope in whole numbers: all simplices are equally likely",
        "points are not uniform on the body",
        "noise.exact.points:_triangulated",
        "list(accumulate(cones.volumes))",
        "list(range(1, len(cones.volumes) + 1))",
        ("tests/noise/exact/test_points.py::test_simplices_of_different_volumes",),
    ),
    Fault(
        "exact Laplace: half the scale",
        "the exact draws have a quarter of their variance",
        "noise.exact.variates:laplaces",
        "(a / b).log()",
        "(a / b).log() / 2",
        VARIATES,
    ),
    Fault(
        "exact Laplace: one draw for all coordinates",
        "differences of answers have no noise",
        "noise.exact.variates:laplaces",
        "draw.uniforms(2 * count)",
        "[u for u in draw.uniforms(2) for _ in range(count)]",
        VECTORS,
    ),
    Fault(
        "exact Gaussian: sine used twice",
        "coordinates of the noise are equal in pairs",
        "noise.exact.variates:gaussians",
        "length * cosine",
        "length * sine",
        VECTORS,
    ),
    Fault(
        "exact Gaussian: half the deviation",
        "rho is four times what is claimed",
        "noise.exact.vectors:gaussian_vector",
        "arb(scale)",
        "arb(scale) / 2",
        (
            "tests/mechanisms/test_rounded_gaussian.py::"
            "test_the_noise_is_that_of_the_proof_in_all_coordinates",
        ),
    ),
    Fault(
        "exact Gamma: one exponential too few",
        "the radii are those of a body of one dimension less",
        "noise.exact.variates:gamma",
        "half_gamma(2 * shape, draw)",
        "half_gamma(2 * shape - 2, draw)",
        VARIATES,
    ),
    Fault(
        "exact K-norm: wrong dimension in the Gamma law",
        "the radius is that of a body of one dimension less",
        "noise.exact.vectors:_knorm",
        "noise.effective_dimension + 1",
        "noise.effective_dimension",
        VECTORS,
    ),
    Fault(
        "exact cone: one radius for both vectors",
        "the noise is the difference of two dependent vectors",
        "noise.exact.vectors:_cone",
        "gamma(shape, draw) / rate, gamma(shape, draw) / rate",
        "(gamma(shape, draw) / rate,) * 2",
        VECTORS,
    ),
    Fault(
        "exact cone: noise on the count forgotten",
        "the number of records has no noise under add/remove",
        "noise.exact.vectors:_cone",
        "lift.answers(moved, first - second)",
        "lift.answers(moved, arb(0))",
        VECTORS,
    ),
    Fault(
        "exact paired noise: wrong dimension in the Gamma law",
        "the radius is that of a cone of one dimension less",
        "noise.exact.vectors:_paired",
        "2 * noise.body.dimension + 1",
        "2 * noise.body.dimension",
        VECTORS,
    ),
    Fault(
        "exact mapped noise: first measurement only",
        "all other measurements have no noise",
        "noise.exact.vectors:_mapped",
        "for part in noise.parts]",
        "for part in noise.parts[:1]]",
        VECTORS,
    ),
    Fault(
        "bits drawn anew for more precision",
        "the rounding uses bits that do not continue the first draw",
        "noise.exact.rounding:refined",
        "Draw(bits, words)",
        "Draw(UniformBits(entropy), words)",
        PLANTED,
    ),
    Fault(
        "rounded down in place of nearest",
        "the noise is biased by half a unit",
        "noise.exact.rounding:nearest_multiples",
        "value * scale + _HALF",
        "value * scale",
        ROUNDING,
    ),
    Fault(
        "uniform numbers without their highest bit",
        "all uniform numbers lie below one half",
        "noise.exact.variates:UniformBits._fresh",
        "(64 - WORD_BITS)",
        "(65 - WORD_BITS)",
        ("tests/noise/exact/test_uniforms.py",),
    ),
    Fault(
        "a uniform number is read twice",
        "two variables share their randomness",
        "noise.exact.variates:Draw._read",
        "self._next += count",
        "self._next += count - 1",
        PLANTED,
    ),
    Fault(
        "one Laplace variable for all comparisons",
        "the noise of the threshold and of the query cancel",
        "noise.scalar:LaplaceNumbers._next",
        "LaplaceNumber(self._block, self._used - 1)",
        "LaplaceNumber(self._block, 0)",
        NUMBERS,
    ),
    Fault(
        "exact threshold without noise",
        "sparse vector compares with the true threshold",
        "noise.scalar:ExactNoise.threshold",
        "NoisyThreshold(value, scale,",
        "NoisyThreshold(value, scale * 1e-9,",
        SINGLE,
    ),
    Fault(
        "exact released value: half the scale",
        "released values get half their noise",
        "noise.scalar:ExactNoise.laplace",
        "rounded_value(value, scale,",
        "rounded_value(value, scale / 2,",
        SINGLE,
    ),
    Fault(
        "exact comparison: half the query noise",
        "comparisons spend twice their epsilon",
        "noise.scalar:ExactNoise.reaches",
        "threshold.reached_by(value, scale,",
        "threshold.reached_by(value, scale / 2,",
        SINGLE,
    ),
    Fault(
        "exact exponential mechanism: half the scale",
        "the choice spends twice its epsilon",
        "noise.scalar:exact_argmax",
        "/ unit + z for",
        "/ unit + z / 2 for",
        NUMBERS,
    ),
    Fault(
        "proof of the Gaussian scale skipped",
        "a scale below the least one is accepted",
        "noise.exact.rounding:_suffices",
        ">= squared",
        ">= 0",
        (
            "tests/mechanisms/test_rounded_gaussian.py::test_proved_scales_suffice_and_scales_rounded_to_nearest_do_not",
        ),
    ),
    Fault(
        "exact point of a ball: root of the wrong order",
        "points of a ball crowd at its surface",
        "noise.exact.points:_ball_points",
        "draw.uniform().root(dimension)",
        "draw.uniform().root(dimension + 1)",
        ("tests/noise/exact/test_points.py::test_points_have_the_second_moment_of_the_body",),
    ),
)
