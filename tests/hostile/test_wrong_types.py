"""Arguments of a wrong type raise ``ValueError`` with the name of the argument."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

import geomdp as gd
from geomdp.geometry import sampling
from geomdp.noise.exact import public_grid

TAKE_A_BODY: list[Callable[[object], object]] = [
    gd.geometry.Projector,
    gd.geometry.annealed_volume,
    gd.geometry.refine_slabs,
    gd.geometry.second_moment,
    gd.geometry.volume_radius,
    gd.gaussian_width,
    gd.volume,
    gd.plotting.draw,
    lambda body: gd.project(body, [0.0, 0.0]),
    lambda body: gd.sample_uniform(body, 3),
    sampling.ChainSampler,
    sampling.ExactSampler,
    lambda body: gd.noise.ConeNoise(body, 1.0, np.zeros(2)),
    lambda body: gd.noise.KNormNoise(body, 1.0, sampling.ExactSampler(gd.bodies.Ball(2))),
    lambda body: gd.noise.PairedNoise(body, 1.0, np.eye(2)),
    lambda body: gd.plotting.animate_projection(body, [0.0, 0.0], [1.0, 0.0]),
    lambda body: gd.plotting.animate_walk(body, [0.0, 0.0]),
    lambda body: gd.plotting.draw_projection(body, [[1.0, 0.0]]),
    lambda body: gd.plotting.draw_shadow(body, np.eye(2)),
    lambda body: gd.plotting.draw_slice(body, [0.0, 0.0], np.eye(2)),
    lambda body: gd.plotting.shadow_outline(body, np.eye(2)),
    lambda body: gd.plotting.slice_outline(body, np.zeros(2), np.eye(2)),
]


@pytest.mark.parametrize("function", TAKE_A_BODY)
@pytest.mark.parametrize("wrong", [5, "ball", None, [[1.0, 2.0]]])
def test_what_is_no_body_is_named(function, wrong) -> None:
    with pytest.raises(ValueError, match=f"body must be a Body, got {type(wrong).__name__}"):
        function(wrong)


@pytest.mark.parametrize(
    "function",
    [
        gd.noise.half_widths,
        gd.noise.simultaneous_half_widths,
        public_grid,
        gd.plotting.draw_noise,
    ],
)
def test_what_is_no_noise_is_named(function) -> None:
    with pytest.raises(ValueError, match="noise must be a Noise, got Ball"):
        function(gd.bodies.Ball(2))


def test_what_is_no_part_of_a_noise_is_named() -> None:
    with pytest.raises(ValueError, match="parts must be a sequence of Part, got float"):
        gd.noise.MappedNoise([1.0])
    with pytest.raises(ValueError, match="levels must be a sequence of Level, got float"):
        gd.noise.RecursiveNoise([1.0], 1.0)


def test_other_arguments_are_named() -> None:
    with pytest.raises(ValueError, match="walk must be a Walk, got Ball"):
        sampling.round_walk(gd.bodies.Ball(2), np.random.default_rng(0))
    with pytest.raises(ValueError, match="halfspace must be a Halfspace, got Ball"):
        gd.plotting.draw_hyperplane(gd.bodies.Ball(2), None)
    with pytest.raises(ValueError, match="schema must be a Schema, got dict"):
        gd.tabulation.chosen_columns({"a": bool}, None)
    for function in (
        gd.tabulation.takes_reals,
        lambda spec: gd.tabulation.parse_workload(spec, {}),
    ):
        with pytest.raises(ValueError, match="workload must be text such as"):
            function(5)
