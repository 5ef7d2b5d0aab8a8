"""The closed forms of workloads agree with the enumeration of their universes."""

import copy
import pickle
from inspect import isabstract

import numpy as np
import pytest

from geomdp import workloads as wl
from geomdp._numerics.linalg import AffineHull
from geomdp.workloads.explicit import Coarsened
from tests.workloads.cases import FINITE, INFINITE, check_reach, reach_of

everywhere = pytest.mark.parametrize("workload", FINITE, ids=repr)


@everywhere
def test_shapes(workload):
    answers = wl.explicit_answers(workload)
    assert answers.shape == (workload.universe.size, workload.n_queries)
    assert answers.dtype == np.float64
    assert len(workload.labels()) == workload.n_queries
    assert len(set(workload.labels())) == workload.n_queries


@everywhere
def test_extreme_answers_are_the_best_element_with_the_lowest_number(workload):
    # If answers are whole, small whole directions give ties and exact scores.
    rng = np.random.default_rng(0)
    answers = wl.explicit_answers(workload)
    whole_answers = np.array_equal(answers, np.round(answers))
    shape = (40, workload.n_queries)
    directions = (
        rng.integers(-2, 3, shape).astype(float) if whole_answers else rng.normal(size=shape)
    )
    directions[0] = 0.0 if whole_answers else directions[0]
    best = answers[(directions @ answers.T).argmax(axis=1)]
    np.testing.assert_allclose(workload.extreme_answers(directions), best, rtol=0, atol=1e-14)


@everywhere
def test_extreme_answers_attain_the_support_function(workload):
    directions = np.random.default_rng(1).normal(size=(30, workload.n_queries))
    scores = directions @ wl.explicit_answers(workload).T
    attained = np.einsum("bm,bm->b", directions, workload.extreme_answers(directions))
    np.testing.assert_allclose(attained, scores.max(axis=1), rtol=1e-12, atol=1e-12)
    breadths = workload.breadth(directions)
    np.testing.assert_allclose(breadths, np.ptp(scores, axis=1), rtol=1e-12, atol=1e-12)


@everywhere
def test_no_directions_and_bad_directions(workload):
    m = workload.n_queries
    assert workload.extreme_answers(np.empty((0, m))).shape == (0, m)
    for bad in (np.zeros(m), np.zeros((2, m + 1)), np.full((1, m), np.nan)):
        with pytest.raises(ValueError, match="directions must"):
            workload.extreme_answers(bad)


@everywhere
def test_diameters_and_radii_are_attained(workload):
    check_reach(workload, wl.explicit_answers(workload))


@everywhere
def test_affine_hull_is_that_of_the_enumerated_answers(workload):
    answers = wl.explicit_answers(workload)
    hull, enumerated = workload.affine_hull(), AffineHull.of_points(answers)
    assert hull.basis.shape == (workload.n_queries, enumerated.dimension)
    scale = workload.l2_radius()
    assert hull.residual(answers).max() <= 1e-13 * scale * workload.n_queries
    gram = hull.basis.T @ hull.basis
    np.testing.assert_allclose(gram, np.eye(hull.dimension), rtol=0, atol=1e-13)


@everywhere
def test_blocks_split_the_hull_and_attain_their_diameters(workload):
    answers = wl.explicit_answers(workload)
    blocks = workload.blocks()
    basis = (
        np.hstack([block.basis for block in blocks]) if blocks else np.empty((len(answers.T), 0))
    )
    hull = workload.affine_hull()
    assert basis.shape == hull.basis.shape
    np.testing.assert_allclose(basis.T @ basis, np.eye(hull.dimension), rtol=0, atol=1e-13)
    # Equal dimension, so one inclusion of the spans is enough.
    np.testing.assert_allclose(basis @ (basis.T @ hull.basis), hull.basis, rtol=0, atol=1e-12)
    for block in blocks:
        reach = reach_of(answers @ block.basis)
        assert block.diameter == pytest.approx(reach["l2_diameter"], rel=1e-12, abs=1e-12)
        assert reach["l2_radius"] <= block.radius * (1 + 1e-12)


@everywhere
def test_chunked_answers_equal_the_mean_of_evaluated_rows(workload):
    records = workload.universe.sample(200, rng=7)
    expected = workload.evaluate(records).mean(axis=0)
    one_shot = workload.answers(records)
    np.testing.assert_allclose(one_shot, expected, rtol=1e-12, atol=1e-13)
    pieces = [records[:1], records[1:1], records[1:130], records[130:]]
    from_generator = workload.totals(piece for piece in pieces)
    assert from_generator.count == 200
    np.testing.assert_allclose(from_generator.sums / 200, one_shot, rtol=1e-14, atol=1e-14)
    np.testing.assert_array_equal(workload.answers(pieces), from_generator.sums / 200)


@everywhere
def test_no_records(workload):
    nothing = workload.universe.sample(0, rng=0)
    assert workload.evaluate(nothing).shape == (0, workload.n_queries)
    totals = workload.totals(iter([]))
    assert totals.count == 0
    np.testing.assert_array_equal(totals.sums, np.zeros(workload.n_queries))
    for empty in (nothing, [], iter([])):
        with pytest.raises(ValueError, match="at least 1 record, got 0"):
            workload.answers(empty)


@everywhere
def test_copies_behave_alike(workload):
    records = workload.universe.sample(30, rng=2)
    for twin in (pickle.loads(pickle.dumps(workload)), copy.deepcopy(workload)):
        assert repr(twin) == repr(workload)
        np.testing.assert_array_equal(twin.answers(records), workload.answers(records))


@pytest.mark.parametrize(
    ("make", "other"),
    [
        (lambda: wl.Histogram(4), wl.Histogram(5)),
        (lambda: wl.Prefixes(4), wl.Histogram(4)),
        (lambda: wl.Ranges(4), wl.Ranges(5)),
        (lambda: wl.Marginals(5, 2), wl.Parities(5, 2)),
        (lambda: wl.Parities(5, 2), wl.Parities(5, 3)),
        (lambda: wl.SecondMoment(3), wl.SecondMoment(4)),
        (lambda: wl.MarginalTables({"a": 2, "b": 3}, 1), wl.MarginalTables({"b": 3, "a": 2}, 1)),
    ],
)
def test_equality_and_hash_follow_the_parameters(make, other):
    one, two = make(), make()
    one.affine_hull(), one.blocks()  # cached values do not count
    assert one == two
    assert hash(one) == hash(two)
    assert one != other
    if not isinstance(one, wl.MarginalTables):  # its repr does not list the columns
        assert eval(repr(one), vars(wl).copy()) == one


def test_every_exported_workload_has_an_instance():
    exported = {
        kind
        for kind in (getattr(wl, name) for name in wl.__all__)
        if isinstance(kind, type) and issubclass(kind, wl.Workload) and not isabstract(kind)
    }
    covered = {type(workload) for workload in (*FINITE, *INFINITE)}
    assert covered == exported | {Coarsened}


@pytest.mark.parametrize("workload", [*FINITE, *INFINITE], ids=repr)
def test_repr_is_one_short_line(workload):
    assert repr(workload).startswith(f"{type(workload).__name__}(")
    assert len(repr(workload)) <= 80
    assert "\n" not in repr(workload)
    assert "array" not in repr(workload)


@pytest.mark.parametrize(
    ("workload", "labels"),
    [
        (wl.Histogram(2), ["x=0", "x=1"]),
        (wl.Prefixes(2), ["x<=0", "x<=1"]),
        (wl.Ranges(2), ["0<=x<=0", "0<=x<=1", "1<=x<=1"]),
        (wl.Marginals(3, 2), ["x0&x1", "x0&x2", "x1&x2"]),
        (wl.Parities(3, 2), ["parity(x0,x1)", "parity(x0,x2)", "parity(x1,x2)"]),
        (wl.MarginalTables({"a": 2, "b": 2}, 2), ["a=0,b=0", "a=0,b=1", "a=1,b=0", "a=1,b=1"]),
        (wl.Means(2), ["x0", "x1"]),
        (wl.SecondMoment(2), ["x0^2", "sqrt(2)*x0*x1", "x1^2"]),
        (wl.RandomSigns(2, 9, rng=3), ["q0", "q1"]),
    ],
    ids=repr,
)
def test_labels(workload, labels):
    assert workload.labels() == labels


@pytest.mark.parametrize("workload", [wl.SecondMoment(3), wl.Marginals(25, 2)], ids=repr)
def test_no_enumeration_of_large_universes(workload):
    with pytest.raises(ValueError, match=r"at most 2\^26 answers"):
        wl.explicit_answers(workload)
