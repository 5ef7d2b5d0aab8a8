"""Rejection inside an envelope: exact points, and refusals where they could not be had."""

from __future__ import annotations

import numpy as np
import pytest

from geomdp.bodies import (
    Ball,
    Box,
    CrossPolytope,
    Ellipsoid,
    LinearImage,
    MissingOracle,
    NuclearBall,
    Scaled,
    Shifted,
    Simplex,
    SlabBody,
    SpectraplexDifference,
    TriangulatedPolytope,
    VPolytope,
)
from geomdp.geometry.sampling import RejectionSampler, UniformSampler
from geomdp.noise import KNormNoise
from geomdp.privacy import Exact
from tests.geometry.bodies import MembershipOnly, OracleOnly
from tests.stats import LEVEL, binomial_agrees, ks_uniform

CUBE = Box(-np.ones(3), np.ones(3))
OCTAHEDRON = np.vstack([np.eye(3), -np.eye(3)])


@pytest.mark.statistical
@pytest.mark.parametrize("scale", [1e-3, 1.0, 1e3])
def test_points_are_uniform_at_every_scale(scale):
    """The ball in the cube: ||U||^3 is uniform; also right at the edge."""
    sampler = RejectionSampler(MembershipOnly(Ball(3, scale)), Box.centred(np.full(3, scale)))
    points = sampler.draw(np.random.default_rng(1), 4000)
    assert points.shape == (4000, 3)
    shares = (np.linalg.norm(points, axis=1) / scale) ** 3
    ks_uniform(shares, LEVEL)
    binomial_agrees(int((shares > 0.999).sum()), 4000, 0.001)
    ks_uniform(np.arctan2(points[:, 1], points[:, 0]) / (2 * np.pi) + 1 / 2)


@pytest.mark.statistical
def test_the_rate_is_the_ratio_of_volumes():
    """The octahedron fills 1/6 of its cube; the rate is measured from 64 hits or more."""
    sampler = RejectionSampler(VPolytope(OCTAHEDRON), CUBE)
    assert isinstance(sampler, UniformSampler)
    assert sampler.status == Exact()
    hits = len(sampler._accepted(4000, np.random.default_rng(2)))
    binomial_agrees(hits, 4000, 1 / 6)
    # 64 hits or more: within 60% of the truth, five standard errors.
    assert 0.4 / 6 < sampler.rate < 1.6 / 6


def test_noise_by_rejection_is_exact():
    slabs = SlabBody(np.vstack([np.eye(3), np.ones((1, 3))]), np.array([1, 1, 1, 1.5]))
    noise = KNormNoise(slabs, 1.0, RejectionSampler(slabs, CUBE))
    assert noise.sampler == Exact()
    assert noise.sample(np.random.default_rng(0), 5).shape == (5, 3)


PLANE = np.linalg.qr(np.random.default_rng(2).standard_normal((4, 2)))[0]

HELD = {
    "vertices": (VPolytope(OCTAHEDRON), Ball(3)),
    "lopsided box": (Simplex(np.vstack([np.zeros(3), np.eye(3)])), Box(np.zeros(3), np.ones(3))),
    "support in a box": (Ball(3), CUBE),
    "support in slabs' image": (Ball(3), LinearImage(2 * np.eye(3), CUBE)),
    "radius in a ball": (MembershipOnly(NuclearBall(2)), Ball(3, 2)),
    "radius in a cross-polytope": (Ball(3), CrossPolytope(3, 2)),
    "simplices": (Ball(2), TriangulatedPolytope(2 * np.vstack([np.eye(2), -np.eye(2)]))),
    "flat": (LinearImage(PLANE, CrossPolytope(2)), Ellipsoid(PLANE)),
}


@pytest.mark.parametrize(("body", "envelope"), HELD.values(), ids=HELD.keys())
def test_envelopes_that_hold_the_body(body, envelope):
    points = RejectionSampler(body, envelope).draw(np.random.default_rng(3), 20)
    assert body.contains(points).all()
    # A little smaller, each of these touches its body no longer or cannot be shown to hold it.
    with pytest.raises(ValueError, match=r"must hold|cannot be verified"):
        RejectionSampler(body, Scaled(envelope, 0.45))


@pytest.mark.parametrize(
    ("body", "envelope", "message"),
    [
        (Ball(3), Box(-np.ones(3), np.array([1, 1, 0.9])), "envelope must hold"),
        (Ball(3), Shifted(Ball(3, 3), np.ones(3)), "cannot be verified"),
        (SpectraplexDifference(2), NuclearBall(2), "cannot be verified"),
        (Ball(2), CUBE, "envelope must have dimension 2"),
        (LinearImage(PLANE, Ball(2)), Ball(4), "must have the affine hull"),
        (LinearImage(PLANE, Ball(2)), Ellipsoid(3 * np.eye(4)[:, :2]), "must have the affine hull"),
        (Ball(3, 1e-3), CUBE, r"envelope must fit the body: \d+ of \d+ uniform points"),
    ],
    ids=["too small", "shifted", "no proof", "dimension", "hull", "plane", "hopeless"],
)
def test_what_would_not_be_exact_is_refused(body, envelope, message):
    with pytest.raises(ValueError, match=message):
        RejectionSampler(body, envelope)


def test_missing_oracles_and_bad_numbers():
    with pytest.raises(MissingOracle, match="SlabBody has no exact sampler"):
        RejectionSampler(Ball(3), SlabBody(np.eye(3), np.ones(3)))
    with pytest.raises(MissingOracle, match="contains"):
        RejectionSampler(OracleOnly(Ball(3)), CUBE)
    for rate in (0, 1.5, float("nan"), "1"):
        with pytest.raises(ValueError, match="least_rate must be in"):
            RejectionSampler(Ball(3), CUBE, least_rate=rate)
    with pytest.raises(ValueError, match="n must be a whole number"):
        RejectionSampler(Ball(3), CUBE).draw(np.random.default_rng(0), 0)
    assert RejectionSampler(Ball(3), CUBE, least_rate=0.4).rate > 0.4
    with pytest.raises(ValueError, match="less than 0\\.9 of them"):
        RejectionSampler(Ball(3), CUBE, least_rate=0.9)
