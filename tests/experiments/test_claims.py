"""Claims pass on data that satisfy them and fail on other data; figures show what was measured."""

import math
from dataclasses import dataclass

import numpy as np
import pandas as pd
import pytest
from matplotlib.figure import Figure

import experiments.engine.tools as ex
from experiments.engine import claims
from experiments.engine.claims import BEYOND, Claim, NoLimit, Verdict, claims_table
from experiments.engine.figures import drawing
from tests.stats import binomial_below

NS = (10, 100, 1000)
POINT = ["family", "n"]


@dataclass(frozen=True)
class Prediction:
    value: float
    stderr: float = 0.0
    kind: str = "exact"


def table(exponent: float = -1.0, prediction: float = 1.0, stderr: float = 0.0) -> pd.DataFrame:
    """Errors of two families with RMS n^exponent, and predictions `prediction` times n^exponent."""
    rng = np.random.default_rng(3)
    rows = []
    for family in ("a", "b"):
        for n in NS:
            root = n**exponent
            for trial in range(2):
                # Gamma(4) / 4 has mean 1.
                measured = ex.MeanSquare.of(root**2 * rng.gamma(4.0, 1 / 4, size=500))
                predicted = ex.predicted_columns(Prediction(prediction * root, stderr * root))
                place = {"family": family, "n": n, "trial": trial}
                rows.append({**place, **measured.columns(), **predicted})
    return pd.DataFrame(rows)


@pytest.mark.parametrize(("verdict", "passed", "used"), [
    (claims.at_most([1.0, 3.0], [2.0, 3.0]), True, 1.0),
    (claims.at_most(0.0, 1.0), True, 0.0),
    (claims.below([1.0, 3.0], [2.0, 3.0]), False, 1.0),
    (claims.at_least([8.0, 2.0], 2.0), True, 1.0),
    (claims.at_least(math.inf, 1.0), True, 0.0),
    (claims.above(2.0, 2.0), False, 1.0),
    (claims.between([0.5, 1.0], -1.0, 1.0), True, 1.0),
    (claims.between(1.5, -1.0, 1.0), False, 1.5),
    (claims.not_rare([0.5, 1.0], 1e-6), True, math.log(0.5) / math.log(1e-6)),
    (claims.not_rare(1e-6, 1e-6), False, 1.0),
    (claims.at_most(math.nan, 1.0), False, BEYOND),
    (claims.at_most(math.inf, 1.0), False, BEYOND),
    (claims.at_least(0.0, 1.0), False, BEYOND),
    (claims.not_rare(0.0, 1e-6), False, BEYOND),
    (claims.each_case(True), True, NoLimit.EVERY_CASE),
    (claims.in_order(False) & claims.at_most(1.0, 2.0), False, 0.5),
    (claims.in_order(True) & claims.each_case(True), True, NoLimit.ORDER),
], ids=str)  # fmt: skip
def test_a_verdict_says_how_near_its_limit_is(verdict, passed, used):
    assert verdict.passed is passed
    assert verdict.used == (used if isinstance(used, NoLimit) else pytest.approx(used))


def test_an_allowance_may_be_zero():
    assert claims.within_allowance([0.0, 1.0], [0.0, 1.0]) == 1.0
    assert claims.within_allowance(0.0, 0.0) == 0.0
    for measured, allowed in ((1e-9, 0.0), (math.nan, 1.0), (math.inf, math.nan)):
        assert claims.within_allowance(measured, allowed) == BEYOND


def test_no_measurement_and_what_is_no_distance_are_refused():
    with pytest.raises(ValueError, match="at least 1 measurement"):
        claims.share(np.empty(0), 1.0)
    for used in (math.inf, math.nan, -0.1):
        with pytest.raises(ValueError, match="used must be finite and at least 0"):
            Verdict(True, used)


def test_records_and_tables_show_verdicts():
    yes = Claim("yes [sic]", Verdict(True, 0.25), "1", "1", "A")
    no = Claim("no", claims.in_order(False), "2", "1", "B")
    assert (yes.to_dict()["used"], yes.to_dict()["no_limit"]) == (0.25, None)
    assert no.to_dict()["used"] is None
    assert "order" in str(no.to_dict()["no_limit"])
    shown = claims_table([("script", yes), ("script", no)])
    assert [str(cell) for cell in shown.columns[2].cells] == ["passed", "FAILED"]
    assert str(next(iter(shown.columns[1].cells))) == "yes [sic]"


def test_pooling_groups_by_the_keys_and_over_the_rest():
    pooled = ex.pooled_by(table(), POINT)
    assert set(pooled) == {(family, n) for family in ("a", "b") for n in NS}
    assert {mean.count for mean in pooled.values()} == {1000}
    values = np.random.default_rng(0).gamma(2.0, size=60)
    parts = [ex.MeanSquare.of(part) for part in np.split(values, [10, 25])]
    pooled, direct = ex.MeanSquare.pooled(parts), ex.MeanSquare.of(values)
    assert pooled.count == direct.count
    assert pooled.value == pytest.approx(direct.value, rel=1e-14)
    assert pooled.stderr == pytest.approx(direct.stderr, rel=1e-13)


# The relative standard error of a mean of 1000 Gamma(4)/4 squares is 1/sqrt(4000) = 1.6%. A root
# that is 20% off has a square that is at least 36% off, which is more than 20 standard errors.
@pytest.mark.parametrize(("prediction", "stderr", "agrees", "bounded"), [
    (1.0, 0.0, True, True),
    (0.8, 0.0, False, False),
    (1.2, 0.0, False, True),
    (1.2, 0.2, True, True),
    (3.0, 0.0, False, True),
])  # fmt: skip
def test_predictions_and_bounds(prediction, stderr, agrees, bounded):
    rows = table(prediction=prediction, stderr=stderr)
    claim = ex.agrees_with_prediction("x", "X", rows, POINT)
    assert claim.passed is agrees
    assert claim.measured.startswith("6 points")
    if not stderr:
        # The share used is that of the printed deviation in the printed limit, to one decimal.
        off = abs(float(claim.measured.split("furthest off by ")[1].split(" ")[0]))
        allowed, used = float(claim.theory.split(" ")[1]), claim.verdict.used
        assert (off - 0.05) / (allowed + 0.05) <= used <= (off + 0.05) / (allowed - 0.05)
        assert claim.passed == (used <= 1)
    bound = ex.stays_below_prediction("x", "X", rows, POINT)
    assert bound.passed is bounded
    share = float(bound.measured.split("at most ")[1].split(" ")[0])
    assert share == pytest.approx(1 / prediction, rel=0.1)
    assert bound.passed == (bound.verdict.used <= 1)


def test_slopes_are_claimed_with_their_intervals():
    slopes = ex.slopes_by(table(), ["family"], "n")
    assert set(slopes) == {("a",), ("b",)}
    near = ex.slopes_are("x", "X", slopes, -1.0, 0.1)
    within = ex.slopes_lie_within("x", "X", slopes, -1.1, -0.9)
    assert near.passed
    assert within.passed
    assert near.verdict.used == pytest.approx(within.verdict.used)
    assert near.verdict.used < 1
    assert not ex.slopes_are("x", "X", slopes, -1.0, 1e-4).passed, "the intervals are wider"
    assert not ex.slopes_are("x", "X", slopes, -0.5, 1.0).passed, "the true slope is -1, not -0.5"
    assert not ex.slopes_lie_within("x", "X", slopes, -1.1, -1.0).passed


def test_order_needs_a_gap_beyond_chance():
    large = ex.pooled_by(table(), POINT)
    small = ex.pooled_by(table().assign(mean_square=lambda t: t.mean_square / 2), POINT)
    better, worse, equal = (
        ex.is_below("x", "X", *pair) for pair in ((small, large), (large, small), (large, large))
    )
    assert [claim.passed for claim in (better, worse, equal)] == [True, False, False]
    assert better.verdict.used < 1 < equal.verdict.used
    with pytest.raises(ValueError, match="must hold the same points"):
        ex.is_below("x", "X", large, {("a", 10): large["a", 10]})


def test_roots_their_intervals_and_ratios():
    mean = ex.MeanSquare(4.0, 0.4, 10_000)
    assert mean.root == 2.0
    assert mean.root_stderr == pytest.approx(0.1)
    # The 97.5% quantile of Student's t is 1.960 for 9999 degrees of freedom, as for a normal law.
    ends = [math.sqrt(4 - 1.96 * 0.4), math.sqrt(4 + 1.96 * 0.4)]
    assert mean.root_interval(level=0.05) == pytest.approx(ends, rel=1e-3)
    assert ex.MeanSquare(1.0, 1.0, 3).root_interval(1e-6)[0] == 0.0
    assert ex.quantile(0.25, 2) == pytest.approx(1.0)  # Cauchy
    relative = mean.over(8.0)
    assert (relative.root, relative.root_stderr) == (0.25, pytest.approx(0.1 / 8))


@pytest.mark.parametrize(("mean", "expected", "score"), [
    (ex.MeanSquare(4.5, 0.3, 100), (2.0,), 0.5 / 0.3),
    # The square of an estimate 2 +- 0.1 is 4 +- 0.4, and hypot(0.3, 0.4) = 0.5.
    (ex.MeanSquare(4.5, 0.3, 100), (2.0, 0.1), 1.0),
    (ex.MeanSquare(4.0, 0.0, 2), (2.0 * (1 + 1e-15),), 0.0),
    (ex.MeanSquare(4.0, 0.0, 2), (1.9,), math.inf),
    (ex.MeanSquare(4.0, 0.0, 2), (2.1,), -math.inf),
])  # fmt: skip
def test_deviation_counts_both_uncertainties(mean, expected, score):
    assert ex.deviation(mean, *expected) == pytest.approx(score)


@pytest.mark.parametrize(("parts", "name"), [
    ((0.0, 0.1, 5), "value"),
    ((math.nan, 0.1, 5), "value"),
    ((1.0, -0.1, 5), "stderr"),
    ((1.0, math.inf, 5), "stderr"),
    ((1.0, 0.1, 1), "count"),
])  # fmt: skip
def test_mean_squares_check_their_parts(parts, name):
    with pytest.raises(ValueError, match=name):
        ex.MeanSquare(*parts)


def test_slope_of_a_power_law_is_its_exponent():
    x = [10.0, 30.0, 100.0, 500.0]
    means = [ex.MeanSquare((3 * n**-0.5) ** 2, 0.0, 5) for n in x]
    slope = ex.log_log_slope(x, means, level=1e-6)
    assert slope.value == pytest.approx(-0.5, abs=1e-12)
    assert slope.covers(-0.5)
    assert slope.high - slope.low < 1e-10
    with pytest.raises(ValueError, match="2 different positions"):
        ex.log_log_slope([10.0, 10.0], means[:2], 1e-6)
    with pytest.raises(ValueError, match="one per mean"):
        ex.log_log_slope([10.0, 20.0], means[:1], 1e-6)
    assert str(ex.Slope(-0.5, -0.6, -0.4)) == "-0.500 [-0.600, -0.400]"


@pytest.mark.statistical
def test_slope_interval_covers_at_its_level_and_excludes_another_power():
    # In 400 fits at level 0.05, the number of misses must be consistent with a probability of at
    # most 0.07. The additional 0.02 are for two approximations: the delta method, and Student's t
    # with the smallest count.
    rng = np.random.default_rng(1)
    x = np.geomspace(10, 1000, 6)
    misses = 0
    for _ in range(400):
        means = [ex.MeanSquare.of(n**-2.0 * rng.gamma(5.0, size=200)) for n in x]
        misses += not ex.log_log_slope(x.tolist(), means, level=0.05).covers(-1.0)
    assert misses > 0
    binomial_below(misses, 400, 0.07)
    slope = ex.log_log_slope(x.tolist(), means, level=1e-6)
    assert slope.within(-1.1, -0.9)
    assert not slope.covers(-0.5)
    assert not slope.within(-0.95, -0.9)


MEANS = {100: ex.MeanSquare(4.0, 0.4, 50), 10: ex.MeanSquare(9.0, 0.9, 50)}


def test_measurements_are_drawn_in_order_inside_their_band():
    axes = Figure().subplots()
    ex.draw_measured(axes, MEANS, ex.Look("C0", "o"), "K-norm")
    (line,) = axes.lines
    np.testing.assert_array_equal(line.get_xdata(), [10, 100])
    np.testing.assert_array_equal(line.get_ydata(), [3, 2])
    (band,) = axes.collections
    corners = band.get_paths()[0].vertices
    for n, mean in MEANS.items():
        heights = corners[corners[:, 0] == n, 1]
        assert (heights.min(), heights.max()) == pytest.approx(mean.root_interval(ex.BAND_LEVEL))
    ex.draw_measured(axes, MEANS, ex.Look("C0", "o", filled=False), "x", joined=False)
    assert axes.lines[1].get_linestyle() == "None"
    assert axes.lines[1].get_markerfacecolor() == "white"


def test_a_legend_shows_each_label_once_under_its_heading():
    with drawing():
        figure, panels = ex.panels((6, 4), ["left", "right"])
        for axes in panels:
            ex.draw_theory(axes, [1, 2], [1, 2], "black", "exact", dashes=(1, 2))
            ex.draw_measured(axes, MEANS, ex.Look("C0", "o"), "K-norm")
        assert axes.lines[0].is_dashed()
        ex.shared_legend(figure, {"measured": ["K-norm", "never drawn"], "theory": ["exact"]})
        figure.draw_without_rendering()
    texts = [text.get_text() for text in figure.legends[0].get_texts()]
    assert texts == ["measured", "K-norm", "", "theory", "exact", ""]
    with pytest.raises(ValueError, match=r"\['exact'\] are missing"):
        ex.shared_legend(figure, {"measured": ["K-norm"]})
