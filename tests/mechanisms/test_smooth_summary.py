"""The smooth summary: releases, answers, files, degrees, and input that is refused."""

from __future__ import annotations

import json
import os
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest

import geomdp as gd
from geomdp.data import RealColumn, Schema, encode
from geomdp.mechanisms import (
    MomentProjection,
    PredictionKind,
    SmoothRelease,
    TheoremDegree,
    UniformLaplace,
    WeightedLaplace,
    smooth_summary,
)
from geomdp.mechanisms import smooth_summary as smooth_summary_module
from geomdp.mechanisms.additive_noise.certify import SLACK
from geomdp.mechanisms.smooth_summary import LeastPredictedError, ScaledLaplace, predicted_error
from geomdp.noise.rounding import Numbers, Rounded
from geomdp.privacy import Adjacency, Heuristic
from geomdp.privacy.guarantees import FLOAT64_CAVEAT, rounded_arithmetic
from geomdp.workloads import SmoothQueries
from geomdp.workloads.smooth import GaussianMixture, Jackson, Polynomial, approximate
from tests.mechanisms.test_contracts import Untouchable
from tests.noise.exact.reference import seeded
from tests.stats import mean_agrees

N = 500
PURE = gd.PureDP(1.0)
POINTS = np.random.default_rng(0).uniform(-1, 1, (N, 2))
SCHEMA = Schema((RealColumn("age", (0, 120)), RealColumn("income", (0, 1e5))))
KERNEL = GaussianMixture(np.array([[0.2, -0.5]]), np.array([1.0]), 0.8)
POLYNOMIAL = Polynomial(np.array([[2, 1], [0, 3]]), np.array([1.0, -0.5]))


#: The numbers of degrees that `LeastPredictedError` tries in one variable.
TRIED = [2, 3, 4, 5, 6, 8, 10, 13, 17, 22, 29, 38, 50, 66, 88, 117, 156, 208]


def summary(**options):
    return gd.SmoothSummary(
        2, **({"n": N, "smoothness": 3, "privacy": PURE, "degree": 5} | options)
    )


class TestRelease:
    @pytest.mark.parametrize("count", [120, 2 * N])
    def test_under_add_remove_errors_are_those_of_sums_over_the_declared_number(self, count):
        """A missing record counts with the constant coefficient, which `missing_record` states."""
        loose = summary(privacy=gd.PureDP(1e6), adjacency=Adjacency.ADD_REMOVE)
        points = np.random.default_rng(1).uniform(-1, 1, (count, 2))
        query = Polynomial(np.array([[2, 0], [0, 3]]), np.array([1.0, 0.3]))
        answer = loose.release(points, rng=0).answer(query)
        # x^2 = (1 + T_2(x)) / 2 has the constant Chebyshev coefficient 1/2, and x^3 has 0.
        assert answer.missing_record == pytest.approx(0.5)
        stated = (query(points).sum() + (N - count) * answer.missing_record) / N
        assert answer.noise_std < 1e-4
        assert answer.value == pytest.approx(stated, abs=8 * answer.noise_std)
        # It is neither the mean nor the sum divided by n.
        assert abs(answer.value - query(points).mean()) > 0.1
        assert abs(answer.value - query(points).sum() / N) > 0.1

    def test_answers_are_those_of_the_coefficients(self):
        release = summary().release(POINTS, rng=0)
        found = release.answer(KERNEL, Jackson(1))
        coefficients = approximate(KERNEL, 5, 2, Jackson(1))
        assert found == release.combine(coefficients)
        assert found.value == pytest.approx((coefficients.values * release.moments).sum())
        spread = (coefficients.values**2 * release.noise_std**2).sum() ** 0.5
        assert found.noise_std == pytest.approx(spread)
        assert found.approximation_error == coefficients.approximation_error
        plain = release.answer(lambda points: np.exp(points[:, 0]))
        assert plain.error_bound == np.inf

    def test_chunks_and_frames_give_the_same_release(self):
        whole = summary().release(POINTS, rng=3)
        for given in (iter(np.array_split(POINTS, 7)), pd.DataFrame(POINTS)):
            found = summary().release(given, rng=3)
            np.testing.assert_array_equal(whole.moments, found.moments)

    def test_privacy_record(self):
        assert str(summary().release(POINTS).guarantee).startswith("1-DP, replace-one")
        assert str(summary().release(POINTS, rng=1).guarantee) == "seeded: no privacy claim"
        assert summary(privacy=gd.ZCDP(0.5)).guarantee.privacy == gd.ZCDP(0.5)

    def test_projected(self, tmp_path):
        release = summary(noise=UniformLaplace()).release(POINTS, rng=0)
        projection = MomentProjection.on_grid(release.noise_std, 16)
        moved = release.projected(projection)
        np.testing.assert_array_equal(moved.moments, projection(release.moments))
        assert (moved.moments != release.moments).any()
        assert moved.guarantee == release.guarantee
        assert moved.answer(KERNEL)[1:] == release.answer(KERNEL)[1:]
        moved.save(tmp_path / "s.npz")
        assert SmoothRelease.load(tmp_path / "s.npz").post_processed
        assert not release.post_processed
        with pytest.raises(ValueError, match=r"noisy must have shape \(4, 4\), got \(5, 5\)"):
            release.projected(MomentProjection.on_grid(np.ones((4, 4)), 16))


class TestNumericalError:
    @pytest.mark.parametrize(("d", "n", "degree"), [(1, 10**8, 64), (2, 10**6, 32), (3, 10**6, 12)])
    def test_is_a_thousand_times_below_the_noise(self, d, n, degree):
        mechanism = gd.SmoothSummary(d, n=n, smoothness=4, privacy=PURE, degree=degree)
        scales = mechanism.noise_std / np.sqrt(2)
        transform = mechanism.transform
        errors = transform.errors + transform.rounding(n)
        assert (errors <= scales / 1000)[scales > 0].all()
        np.testing.assert_array_equal(mechanism.numerical_errors, errors)

    def test_is_part_of_the_noise(self):
        mechanism = summary(noise=UniformLaplace())
        transform, workload = mechanism.transform, mechanism.workload
        slack = 2 * (transform.errors + N * transform.rounding(N))
        expected = workload.l1_diameter() + slack.sum() - slack[0, 0]
        assert mechanism.noise.scales[0] == pytest.approx(expected, rel=1e-15)
        assert mechanism.noise.scales[0] > workload.l1_diameter()

    def test_too_little_noise_for_float64_is_refused(self):
        with pytest.raises(ValueError, match="n or degree must be smaller, or privacy stronger"):
            summary(n=10**9, privacy=gd.PureDP(1e6))


class TestFile:
    def test_round_trip(self, tmp_path):
        release = summary(schema=SCHEMA).release(POINTS)
        release.save(tmp_path / "s.npz")
        loaded = SmoothRelease.load(tmp_path / "s.npz")
        for name in ("n", "d", "degree", "smoothness", "numerical_error", "guarantee", "schema"):
            assert getattr(loaded, name) == getattr(release, name)
        assert loaded.answer(KERNEL) == release.answer(KERNEL)
        np.testing.assert_array_equal(loaded.noise_std, release.noise_std)

    @pytest.mark.parametrize(
        ("change", "words"),
        [
            ({"format": "other"}, "format must be"),
            ({"degree": 1}, "degree must be a whole number, at least 2"),
            ({"degree": 4}, r"moments must have shape \(4, 4\)"),
            ({"n": 0}, "n must be"),
            ({"guarantee": {}}, "not a privacy record"),
            ({"numerical_error": np.nan}, "numerical_error must be"),
            ({"post_processed": 1}, "post_processed must be true or false"),
            (
                {"schema": json.loads(Schema((RealColumn("age", (0, 1)),)).to_json())},
                "schema must have 2 real columns and no others, got 1 real columns among 1",
            ),
            ({"moments": np.full((5, 5), 2.0)}, "moment must be 1"),
            ({"noise_std": -np.ones((5, 5))}, "no noise_std may be negative"),
            ({"noise_std": np.zeros((5, 4))}, r"noise_std must have shape \(5, 5\), got \(5, 4\)"),
            ({"noise_std": np.full((5, 5), np.inf)}, "noise_std must be finite"),
            ({"noise_covariance": np.eye(24)}, "the file must hold the arrays"),
        ],
    )
    def test_what_contradicts_itself_is_refused(self, tmp_path, change, words):
        path = tmp_path / "s.npz"
        summary().release(POINTS).save(path)
        with np.load(path) as file:
            content = dict(file)
        ((name, value),) = change.items()
        if isinstance(value, np.ndarray):
            content[name] = value
        else:
            content["record"] = json.dumps(json.loads(str(content["record"])) | change)
        np.savez(path, **content)
        with pytest.raises(ValueError, match=f"s.npz is not a smooth summary: .*{words}"):
            SmoothRelease.load(path)


class TestDegree:
    def test_theorem(self):
        rule = TheoremDegree()
        mechanism = gd.SmoothSummary(2, n=10**6, smoothness=2, privacy=PURE, degree=rule)
        assert mechanism.degree == 10  # (10^6)^(1/6)
        assert gd.SmoothSummary(3, n=10, smoothness=9, privacy=PURE, degree=rule).degree == 2

    @pytest.mark.parametrize("noise", [UniformLaplace(), WeightedLaplace(2.0)], ids=repr)
    def test_the_least_degree_near_the_best_predicted_error(self, noise):
        """The rule may stop early, if more degrees lower the error by less than 2.5%."""
        n, smoothness = 10_000, 2

        def deviations(workload):
            return noise.calibrate(workload, PURE, Adjacency.REPLACE_ONE).deviations / n

        def error(degree):
            workload = SmoothQueries(1, degree)
            return sum(predicted_error(workload, deviations(workload), smoothness))

        rule = LeastPredictedError()
        chosen = rule.choose(d=1, n=n, smoothness=smoothness, noise_at=deviations)
        best = min(map(error, TRIED))
        assert error(chosen) <= 1.05 / (1 - 0.025) * best
        assert all(error(degree) > 1.05 * best for degree in TRIED if degree < chosen)

    @pytest.mark.parametrize(("largest", "degree"), [(4, 2), (15, 3), (16, 4), (24, 4), (25, 5)])
    def test_the_largest_number_of_moments_is_tried(self, largest, degree, monkeypatch):
        """Without noise, more moments are always better, so the largest allowed t is chosen."""
        monkeypatch.setattr(smooth_summary, "MOST_TRIED", largest)
        rule = LeastPredictedError()
        none = {"noise_at": lambda workload: np.zeros(workload.n_queries)}
        assert rule.choose(d=2, n=10_000, smoothness=2, **none) == degree

    def test_prediction_is_that_of_the_noise(self):
        mechanism = summary()
        assert mechanism.predicted_rmse.kind is PredictionKind.EXACT
        deviations = mechanism.noise_std.ravel()[1:]
        assert mechanism.predicted_rmse.value == pytest.approx((deviations**2).mean() ** 0.5)


class TestBadInput:
    @pytest.mark.parametrize(("value", "words"), [(1.01, "lie in"), (np.nan, "be finite")])
    def test_records_outside_the_cube_before_any_draw(self, value, words):
        points = POINTS.copy()
        points[123, 1] = value
        with pytest.raises(ValueError, match=f"must {words}.*row 123, column 1") as caught:
            summary().release(points, rng=Untouchable())
        assert "1.01" not in str(caught.value)

    def test_tables_with_declared_bounds(self):
        frame = pd.DataFrame({"age": [0.0, 120, 130], "income": [0.0, 1e5, 1]})
        mechanism = gd.SmoothSummary(2, n=3, smoothness=1, privacy=PURE, degree=2, schema=SCHEMA)
        universe = mechanism.workload.universe
        with pytest.raises(ValueError, match="row 2, column 'age'"):
            mechanism.release(encode(frame, SCHEMA, universe), rng=Untouchable())
        release = mechanism.release(encode(frame.clip(upper=120), SCHEMA, universe), rng=0)
        assert release.schema == SCHEMA

    @pytest.mark.parametrize(
        ("options", "words"),
        [
            ({"degree": 1}, "degree must be"),
            ({"degree": 4096}, r"degree\^d must be at most"),
            ({"privacy": gd.ZCDP(1.0), "noise": UniformLaplace()}, "privacy must be PureDP"),
            ({"schema": Schema((RealColumn("age", (0, 1)),))}, "schema must have 2 real columns"),
        ],
    )
    def test_parameters(self, options, words):
        with pytest.raises(ValueError, match=words):
            summary(**options)


class TestExactRelease:
    def test_moments_are_exact_quotients_of_rounded_sums_and_noise(self, monkeypatch):
        mechanism = summary()
        monkeypatch.setattr(os, "urandom", seeded(1))
        release = mechanism.release(POINTS)
        exact = Rounded([Numbers(mechanism._exact.computable())], mechanism.grid)
        noise = exact.draw(seeded(1))
        count, sums = mechanism.transform.sums([POINTS])
        assert count == N
        unit = Fraction(2) ** mechanism.grid
        for moment, total, j in zip(
            release.moments.ravel()[1:], sums.ravel()[1:].tolist(), noise, strict=True
        ):
            whole = round(Fraction(total) * unit)
            assert moment == float((whole + j) / unit / N)

    def test_noise_covers_the_rounding_of_sums(self):
        """The noise is larger by a share of 1e-6. A grid step is below 1e-9 of every deviation."""
        mechanism = summary()
        exact, plain = mechanism._exact.deviations, mechanism.noise.deviations
        np.testing.assert_allclose(exact / plain - 1, 1e-6, rtol=0.1)
        assert 2.0**-mechanism.grid <= plain.min() * 1e-9

    def test_noise_covers_a_step_of_the_grid_in_the_change_of_every_sum(self, monkeypatch):
        """On a coarse grid, the scale grows in proportion to the l1 change of the rounded sums."""
        monkeypatch.setattr(smooth_summary_module, "EXTRA_BITS", -5)
        mechanism = summary(noise=UniformLaplace())
        steps = mechanism.workload.n_queries * 2.0**-mechanism.grid
        expected = 1 + steps / mechanism.workload.l1_diameter()
        ratio = mechanism._exact.deviations / mechanism.noise.deviations
        assert expected > 1.01
        np.testing.assert_allclose(ratio, expected, rtol=2e-6)

    @pytest.mark.statistical
    @pytest.mark.parametrize("rng", [None, np.random.default_rng(1)], ids=["exact", "seeded"])
    @pytest.mark.parametrize("privacy", [PURE, gd.ZCDP(0.5)], ids=str)
    def test_law(self, privacy, rng, monkeypatch):
        monkeypatch.setattr(os, "urandom", seeded(2))
        mechanism = summary(privacy=privacy, degree=3)
        _, sums = mechanism.transform.sums([POINTS])
        releases = [mechanism.release(POINTS, rng) for _ in range(1000)]
        moments = np.array([release.moments.ravel()[1:] for release in releases])
        errors = (moments - sums.ravel()[1:] / N) / releases[0].noise_std.ravel()[1:]
        mean_agrees(errors, np.zeros(errors.shape[1]))
        mean_agrees(errors**2, np.ones(errors.shape[1]))

    def test_what_is_not_proved_keeps_its_caveat(self):
        proved = summary()
        assert proved.guarantee.arithmetic == rounded_arithmetic(proved.grid, SLACK)
        assert summary(adjacency=Adjacency.ADD_REMOVE).guarantee.arithmetic == FLOAT64_CAVEAT


def test_the_guarantee_states_the_sampler_of_the_noise_given():
    """If the noise that the caller gives has a heuristic sampler, the guarantee is heuristic."""

    class Approached(ScaledLaplace):
        sampler = Heuristic("a chain")

    class Chain(UniformLaplace):
        def calibrate(self, workload, privacy, adjacency, slack=0.0):
            return Approached(super().calibrate(workload, privacy, adjacency, slack).scales)

    found = gd.SmoothSummary(1, noise=Chain(), n=50, smoothness=2, privacy=PURE, degree=3)
    assert found.guarantee.sampler == Heuristic("a chain")
    assert found.guarantee.arithmetic == FLOAT64_CAVEAT
    assert found.grid is None  # so unseeded releases draw from the heuristic sampler
    assert "heuristic" in str(found.release(np.zeros((50, 1))).guarantee)
