"""Samplers of a mechanism's outputs, and the types of scores, events and learners."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias, TypeVar

import numpy as np
import numpy.typing as npt

from geomdp._typing import BoolArray, FloatArray

#: Outputs of a mechanism, one for each trial: an array of shape (trials, ...).
Outputs: TypeAlias = npt.NDArray[Any]
#: Draws independent outputs of a mechanism on one fixed input.
Sampler: TypeAlias = Callable[[int, np.random.Generator], Outputs]
#: Maps outputs to an array (trials,) of numbers. Outputs that are likelier on the first of two
#: inputs get larger numbers.
Score: TypeAlias = Callable[[Outputs], FloatArray]
#: Maps outputs to an array (trials,) of booleans: whether each output is in the event.
Event: TypeAlias = Callable[[Outputs], BoolArray]

Data = TypeVar("Data")


@dataclass(frozen=True)
class Learner:
    """A way to learn a score from outputs of a mechanism on two inputs.

    Parameters
    ----------
    name : str
        The score in words, for the description of the event.
    learn : callable
        Maps two arrays of outputs, on the first and on the second input, to a score. The result is
        None if no score is found that tells the inputs apart.

    Examples
    --------
    >>> import numpy as np
    >>> import geomdp as gd
    >>> learner = gd.audit.Learner("minus the output", lambda first, second: np.negative)
    >>> pair = gd.audit.Pair(
    ...     "0 and 1 records",
    ...     lambda trials, rng: rng.laplace(0.0, 0.5, trials),
    ...     lambda trials, rng: rng.laplace(1.0, 0.5, trials),
    ...     learners=(learner,),
    ... )
    >>> gd.audit.audit_pairs([pair], gd.PureDP(1.0), trials=20_000, rng=0).refuted
    True
    """

    name: str
    learn: Callable[[Outputs, Outputs], Score | None]

    def __repr__(self) -> str:
        return f"Learner({self.name!r})"


def repeat(mechanism: Callable[[Data, np.random.Generator], npt.ArrayLike], data: Data) -> Sampler:
    """The sampler that runs `mechanism(data, rng)` once per trial.

    Parameters
    ----------
    mechanism : callable
        Returns one output, of the same shape every time. For a `geomdp` mechanism M:
        ``lambda records, rng: M.release(records, rng).answers``. A mechanism whose outputs have
        different lengths must pad them with NaN: the length is part of the output.
    data : object
        The input on which the mechanism is run.

    Examples
    --------
    >>> import numpy as np
    >>> import geomdp as gd
    >>> mechanism = gd.mechanisms.Laplace(gd.workloads.Histogram(2), n=3, privacy=gd.PureDP(1.0))
    >>> sample = gd.audit.repeat(
    ...     lambda records, rng: mechanism.release(records, rng).answers, np.array([0, 0, 1])
    ... )
    >>> sample(100, np.random.default_rng(0)).shape
    (100, 2)
    """

    def sample(trials: int, rng: np.random.Generator) -> Outputs:
        return _stacked([mechanism(data, rng) for _ in range(trials)])

    return sample


def _stacked(outputs: list[npt.ArrayLike]) -> Outputs:
    """The outputs as one array (trials, ...); ``ValueError`` if their shapes differ."""
    arrays = [np.asarray(output) for output in outputs]
    for array in arrays:
        same_shape(array[None], arrays[0].shape, "in another run")
    return np.stack(arrays)


def draw(sample: Sampler, trials: int, rng: np.random.Generator) -> Outputs:
    """`trials` outputs of a sampler; ``ValueError`` if it returns another number of outputs."""
    returned = sample(trials, rng)
    try:
        outputs = np.asarray(returned)
    except ValueError:  # NumPy's reason for ragged lists
        raise ValueError("outputs must have one shape, got several; pad them with NaN") from None
    if outputs.ndim == 0 or len(outputs) != trials:
        raise ValueError(f"a sampler must return {trials} outputs, got shape {outputs.shape}")
    if outputs.size == 0:
        raise ValueError(f"outputs must hold at least 1 number, got shape {outputs.shape[1:]}")
    return outputs


def same_shape(outputs: Outputs, expected: tuple[int, ...], where: str) -> Outputs:
    """The outputs; ``ValueError`` if one output has another shape than `expected`."""
    if outputs.shape[1:] != expected:
        raise ValueError(
            f"outputs must have one shape, got {expected} and then {outputs.shape[1:]} {where}; "
            "a shape that depends on the records is part of the output: pad outputs with NaN"
        )
    return outputs


def scores_of(score: Score, outputs: Outputs) -> FloatArray:
    """The scores (trials,) of outputs; ``ValueError`` for another shape or NaN."""
    scores = np.asarray(score(outputs), dtype=np.float64)
    if scores.shape != (len(outputs),):
        raise ValueError(f"a score must have shape ({len(outputs)},), got {scores.shape}")
    if np.isnan(scores).any():
        raise ValueError(f"scores must not be NaN, got {np.isnan(scores).sum()} of {len(scores)}")
    return scores
