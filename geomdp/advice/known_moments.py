"""Predictions of additive noise for all n and epsilon, from a factor kept in the cache."""

from __future__ import annotations

import functools
import hashlib

import numpy as np

from geomdp._numerics.seeds import PUBLIC_SEED
from geomdp._typing import FloatArray
from geomdp.cache import recalled
from geomdp.mechanisms import AdditiveMechanism, Mechanism, Prediction, PredictionKind, Recursive
from geomdp.mechanisms.additive_noise.units import far_above_rounding
from geomdp.privacy import Exact, PureDP, SamplerStatus
from geomdp.workloads import Workload, explicit_answers

#: If all elements of the universe together have at most this many answers, a hash of all answers
#: identifies the workload.
HASHED = 1 << 22
#: For larger workloads, the answers of at most this many elements are hashed.
ELEMENTS = 64


def predicted(name: str, mechanism: Mechanism) -> tuple[Prediction, SamplerStatus]:
    """Prediction of the mechanism called `name`, and the status of its sampler.

    The error of most additive noise for pure privacy is proportional to 1 / (n epsilon). The factor
    is kept in the cache. If the cache holds the factor of an exact prediction for an exact sampler,
    and rounding of answers is negligible, the noise is not set up.
    """

    def directly() -> tuple[Prediction, SamplerStatus]:
        return mechanism.predicted_rmse, mechanism.sampler

    if not isinstance(mechanism, AdditiveMechanism) or not isinstance(mechanism.privacy, PureDP):
        return directly()
    if not mechanism.inverse_in_epsilon:
        return directly()
    scale = mechanism.n * mechanism.privacy.epsilon

    def factors() -> FloatArray:
        prediction, sampler = directly()
        exact = sampler == Exact() and prediction.kind is PredictionKind.EXACT
        return np.array([prediction.value * scale, prediction.stderr * scale, exact])

    inputs = (name, workload_hash(mechanism.workload), mechanism.adjacency.value)
    value, stderr, exact = recalled("prediction", inputs, (3,), factors, least=0.0).tolist()
    if not exact or not far_above_rounding(mechanism.workload, value / scale):
        return directly()
    source = "E||Z||^2 of the noise (JL-L14)" + ("; from public draws" if stderr else "")
    return Prediction(value / scale, PredictionKind.EXACT, source, stderr / scale), Exact()


def recursive_levels(mechanism: Recursive) -> int:
    """Number of levels of a `Recursive` mechanism that was built without the argument `body`."""
    inputs = (workload_hash(mechanism.workload), mechanism.adjacency.value)

    def levels() -> FloatArray:
        return np.array(float(len(mechanism.noise.levels)))

    return int(recalled("recursive-levels", inputs, (), levels, least=1.0))


@functools.lru_cache(maxsize=2)
def workload_hash(workload: Workload) -> str:
    """Hash of a workload: of its type, its universe, and the answers of its elements.

    If the universe is infinite, or all elements together have more than `HASHED` answers, at most
    64 random elements are used. They are drawn with a fixed public seed.
    """
    universe, m = workload.universe, workload.n_queries
    digest = hashlib.sha256(f"{type(workload).__name__} {m} {universe!r}".encode())
    if universe.size is not None and universe.size * m <= HASHED:
        answers = explicit_answers(workload)
    else:
        count = max(1, min(ELEMENTS, HASHED // m))
        answers = workload.evaluate(universe.sample(count, np.random.default_rng(PUBLIC_SEED)))
    digest.update(np.ascontiguousarray(answers).tobytes())
    return digest.hexdigest()
