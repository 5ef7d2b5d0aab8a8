"""What is drawn from a release takes the release only: no record can be reached from it."""

import gc
from types import FunctionType, ModuleType

import numpy as np
import pandas as pd
import pytest

import geomdp as gd

#: A number of records that no public array has as a length.
N = 4999
SCHEMA = gd.data.Schema.from_dict(
    {"region": ["a", "b", "c"], "smoker": bool, "x": {"bounds": [0, 1]}, "y": {"bounds": [0, 1]}}
)


@pytest.fixture(scope="module")
def frame():
    rng = np.random.default_rng(5)
    x = rng.random(N)
    regions, smokers = rng.choice(["a", "b", "c"], N), rng.random(N) < 0.3
    return pd.DataFrame({"region": regions, "smoker": smokers, "x": x, "y": x / 2})


def reachable(root: object) -> list[object]:
    """All objects that can be reached from `root`, by attributes, entries, closures and views."""
    met: dict[int, object] = {}
    todo = [root]
    while todo:
        each = todo.pop()
        if id(each) in met or isinstance(each, type | ModuleType):
            continue
        if type(each).__module__.startswith(("numba", "llvmlite")):
            continue
        met[id(each)] = each
        if isinstance(each, FunctionType):
            todo += each.__closure__ or ()
        else:
            todo += gc.get_referents(each)
        if isinstance(each, np.ndarray):
            todo.append(each.base)
    return list(met.values())


def leaks(found: object, frame: pd.DataFrame) -> list[object]:
    """What can be reached that is as long as the records, or holds true counts or sums of them."""
    cells = pd.crosstab(frame["region"], frame["smoker"]).to_numpy().ravel()
    moments = frame[["x", "y"]].to_numpy().T @ frame[["x", "y"]].to_numpy()
    secret = [cells, cells / N, moments.ravel()]
    caught = []
    for each in reachable(found):
        if isinstance(each, list | tuple | str | bytes | np.ndarray | pd.Index):
            size = each.shape if isinstance(each, np.ndarray) else (len(each),)
            if N in size or (isinstance(each, np.ndarray) and each.size == N):
                caught.append(each)
        if isinstance(each, np.ndarray) and each.dtype.kind in "iuf":
            same = (each.size == s.size and np.allclose(each.ravel(), s, rtol=1e-9) for s in secret)
            caught += [each] * any(same)
    return caught


FORMS = {
    "fitted": {"epsilon": 0.05},
    "projected": {"epsilon": 1.0, "projected": True},
    "unbiased": {"epsilon": 1.0, "unbiased": True},
    "whole": {"epsilon": 0.05, "integers": True},
}


@pytest.mark.parametrize("form", FORMS)
def test_no_record_is_reached_from_tables_and_what_is_drawn_from_them(frame, form):
    released = gd.release(frame, SCHEMA, "marginals:2", columns=["region", "smoker"], **FORMS[form])
    drawn = [released, released.to_frame(), released.tables["region", "smoker"], repr(released)]
    if form == "fitted":
        drawn.append(released.synthetic(100))
    for each in drawn:
        assert not leaks(each, frame)
    assert len(reachable(released)) > 100


def test_no_record_is_reached_from_moments_and_regressions(frame):
    released = gd.tabulation.covariance(frame, SCHEMA, privacy=gd.PureDP(1.0))
    for each in (released, released.regression("y"), released.noise_std):
        assert not leaks(each, frame)
    assert len(reachable(released)) > 20


def test_records_that_are_kept_are_found(frame):
    released = gd.release(frame, SCHEMA, "marginals:2", columns=["region", "smoker"], epsilon=0.05)
    counts = pd.crosstab(frame["region"], frame["smoker"]).to_numpy()
    secrets = [frame, counts, counts.T.copy().T / N, list(frame["region"]), lambda: frame["x"]]
    for secret in secrets:
        object.__setattr__(released, "kept", secret)
        assert leaks(released, frame)
        object.__delattr__(released, "kept")
    assert not leaks(released, frame)
