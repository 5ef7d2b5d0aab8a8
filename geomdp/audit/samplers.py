"""Samplers of a mechanism's outputs, and scores that tell the outputs on two inputs apart."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias, TypeVar

import numpy as np
import numpy.typing as npt

from geomdp._typing import BoolArray, FloatArray

#: Draws independent outputs (trials, ...) of a mechanism on one fixed input.
Sampler: TypeAlias = Callable[[int, np.random.Generator], npt.NDArray[Any]]
#: Maps outputs (trials, ...) to numbers (trials,), large where the first input is likelier.
Score: TypeAlias = Callable[[npt.NDArray[Any]], FloatArray]
#: Maps outputs (trials, ...) to whether the event holds, (trials,).
Event: TypeAlias = Callable[[npt.NDArray[Any]], BoolArray]

Data = TypeVar("Data")


def repeat(mechanism: Callable[[Data, np.random.Generator], npt.ArrayLike], data: Data) -> Sampler:
    """The sampler that runs `mechanism(data, rng)` once per trial.

    Parameters
    ----------
    mechanism : callable
        Returns one output, of the same shape every time. For a `geomdp` mechanism M:
        ``lambda records, rng: M.release(records, rng).answers``.
    data : object
        The input it is run on.

    Returns
    -------
    Sampler
        Draws (trials, ...) outputs.
    """

    def sample(trials: int, rng: np.random.Generator) -> npt.NDArray[Any]:
        return np.stack([np.asarray(mechanism(data, rng)) for _ in range(trials)])

    return sample


def fisher_score(outputs_a: npt.NDArray[Any], outputs_b: npt.NDArray[Any]) -> Score:
    """The linear score that separates two samples best relative to their spread.

    score(y) = <w, y> with w = S^+ (mean_a - mean_b), S the sum of the two sample covariances.
    For Gaussian noise it is the log-density ratio up to a constant; for one-dimensional outputs
    it is the output itself, up to sign and scale. It cannot see differences between distributions
    of the same mean.

    Parameters
    ----------
    outputs_a, outputs_b : (trials, ...) array
        Numeric outputs on the two inputs, trailing axes flattened to m coordinates.

    Returns
    -------
    Score
        Maps (trials, ...) outputs to (trials,) numbers.

    Raises
    ------
    ValueError
        Outputs that are not finite numbers.

    References
    ----------
    Fisher 1936. Cost: O(trials m^2 + m^3).
    """
    a, b = _matrix(outputs_a), _matrix(outputs_b)
    difference = a.mean(axis=0) - b.mean(axis=0)
    covariance = sum(np.atleast_2d(np.cov(sample, rowvar=False)) for sample in (a, b))
    # Least squares: the covariance is singular where the noise lies in a subspace.
    weights = np.linalg.lstsq(covariance, difference, rcond=None)[0]
    return lambda outputs: _matrix(outputs) @ weights


def _matrix(outputs: npt.NDArray[Any]) -> FloatArray:
    """Outputs as (trials, m) finite float64."""
    if outputs.dtype.kind not in "biuf":
        raise ValueError(f"outputs must be numeric or come with a score, got {outputs.dtype}")
    matrix = outputs.reshape(len(outputs), -1).astype(np.float64)
    if not np.isfinite(matrix).all():
        raise ValueError("outputs must be finite or come with a score, got NaN or infinity")
    return matrix
