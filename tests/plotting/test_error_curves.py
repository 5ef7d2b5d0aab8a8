"""Error curves: the figure shows the table, and marks curves without a privacy guarantee."""

import io
import xml.etree.ElementTree as ET

import matplotlib as mpl
import pandas as pd
import pytest
from matplotlib.collections import PolyCollection
from matplotlib.colors import to_hex

import geomdp as gd
from geomdp.advice import Quantity
from geomdp.plotting import error_curve
from geomdp.plotting.error_curves import EXCLUDED_COLOUR, NOTHING_EXCLUDED, ErrorCurve, draw_table

W = gd.workloads.MarginalTables({"a": 2, "b": 2, "c": 2}, k=2)


@pytest.fixture(scope="module")
def curve() -> ErrorCurve:
    return error_curve(
        W, ns=[10, 100, 1000], privacy=gd.PureDP(1.0), records=W.universe.sample(60, rng=0)
    )


def test_every_curve_of_the_table_is_drawn(curve):
    axes, ratios = curve.figure.axes
    drawn, below = ({tuple(line.get_ydata()) for line in each.lines} for each in (axes, ratios))
    of = dict(list(curve.table.groupby("quantity")))
    least = of[Quantity.PREDICTED.value].groupby("n").rmse.min()
    for quantity in (Quantity.PREDICTED, Quantity.MEASURED):
        for _, points in of[quantity.value].groupby("curve"):
            assert tuple(points.rmse) in drawn
            relative = tuple(points.rmse.to_numpy() / least[points.n].to_numpy())
            assert quantity is Quantity.MEASURED or relative in below
    (shaded,) = [part for part in axes.collections if isinstance(part, PolyCollection)]
    assert to_hex(shaded.get_facecolor()[0]).upper() == EXCLUDED_COLOUR
    top = {y for _, y in shaded.get_paths()[0].vertices}
    assert set(of[Quantity.EXCLUDED.value].rmse) <= top


def test_dashed_means_heuristic_and_the_legend_says_so(curve):
    axes, _ = curve.figure.axes
    predicted = curve.table[curve.table.quantity == Quantity.PREDICTED.value]
    curves = [points for _, points in predicted.groupby("curve")]
    samplers = {tuple(points.rmse): points.sampler.iloc[0] for points in curves}
    found = {
        (line.get_linestyle() == "--", samplers[tuple(line.get_ydata())] != "exact")
        for line in axes.lines
        if tuple(line.get_ydata()) in samplers
    }
    assert found == {(False, False), (True, True)}
    (legend,) = curve.figure.legends
    texts = [text.get_text() for text in legend.get_texts()]
    assert "KNorm, heuristic" in texts
    assert "heuristic sampler:\nno privacy guarantee" in texts
    assert "measured on records,\nnot private" in texts
    assert "out of reach of\nevery mechanism" in texts
    assert NOTHING_EXCLUDED not in texts


def test_the_legend_says_that_nothing_is_shaded():
    weak = error_curve(W, ns=[10, 100], privacy=gd.ZCDP(100.0), exact_only=True)
    assert Quantity.EXCLUDED.value not in set(weak.table.quantity)
    (legend,) = weak.figure.legends
    texts = {text.get_text() for text in legend.get_texts()}
    assert NOTHING_EXCLUDED in texts
    assert not [it for it in weak.figure.axes[0].collections if isinstance(it, PolyCollection)]


def test_the_settings_of_the_user_neither_matter_nor_change(curve):
    def files() -> dict[str, bytes]:
        return ErrorCurve(curve.table, draw_table(curve.table, "title")).encoded()

    expected = files()
    with mpl.rc_context({"lines.linewidth": 17.0}):
        assert files() == expected
        assert mpl.rcParams["lines.linewidth"] == 17.0
    assert expected[".png"].startswith(b"\x89PNG")
    assert ET.fromstring(expected[".svg"].decode()).tag.endswith("svg")
    assert len(pd.read_csv(io.BytesIO(expected[".csv"]))) == len(curve.table)


def test_a_budget_curve_shows_limits_the_least_budget_and_what_is_impossible():
    targets = [gd.advice.HalfWidth(0.05), gd.advice.RootMeanSquare(0.1, ["a", "b"])]
    found = gd.budget_for(W, n=500, targets=targets, privacy=gd.ZCDP)
    drawn = gd.plotting.budget_curve(found)
    (axes,) = drawn.figure.axes
    lines = {tuple(line.get_ydata()) for line in axes.lines}
    for target in targets:
        errors = drawn.table[drawn.table.curve == str(target)].error
        assert tuple(errors) in lines
        assert (target.limit, target.limit) in lines
    assert axes.get_xlabel() == "rho"
    # All errors are proportional to 1 / sqrt(rho), and the star lies on the curve that binds.
    binding = drawn.table[drawn.table.curve == str(found.binding)]
    assert (binding.error * binding.rho**0.5).to_numpy() == pytest.approx(
        found.binding.limit * found.budget**0.5, rel=1e-6
    )
    (shade,) = axes.patches
    assert shade.get_x() + shade.get_width() == pytest.approx(found.impossible.budget)
