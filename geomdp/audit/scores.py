"""Scores that tell the outputs on two inputs apart, for outputs of unknown density.

A score maps an output to a number that is large if the first input is likelier. It is learned from
sample outputs on the two inputs.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from geomdp._typing import FloatArray, IntArray
from geomdp.audit.samplers import Learner, Outputs, Score

#: Standard deviations, and differences of means, below this share of the largest output count as
#: rounding errors. The rounding error of a sum of 2^20 terms is at most 2^20 * 2^-53 = 2^-33 times
#: the sum of their moduli. A further factor of 8 allows for the linear maps that mechanisms apply
#: to their sums. Some correct mechanisms have noise only in a subspace. Their rounding errors
#: outside this subspace depend on the sums. Without the threshold, these errors would "refute" the
#: mechanisms.
ROUNDING = 2.0**-30


class _Spread(NamedTuple):
    """The means of the outputs on two inputs, and the directions in which the outputs vary.

    `gap` (m,) is the difference of the two means, and `middle` (m,) is their average. `axes` (r, m)
    are orthonormal directions in which outputs vary by more than rounding errors. `variances` (r,)
    are the sums of the two sample variances along these directions. Lengths up to `floor` may be
    rounding errors.
    """

    gap: FloatArray
    middle: FloatArray
    axes: FloatArray
    variances: FloatArray
    floor: float

    @property
    def still(self) -> FloatArray:
        """The part (m,) of the gap in directions in which no output varies."""
        rest = self.gap
        # The first subtraction leaves a rounding error along the axes; the second removes it.
        for _ in range(2):
            rest = rest - (rest @ self.axes.T) @ self.axes
        return rest


def _spread(outputs_a: Outputs, outputs_b: Outputs) -> _Spread:
    a, b = as_matrix(outputs_a), as_matrix(outputs_b)
    means = a.mean(axis=0), b.mean(axis=0)
    residuals = [
        (sample - mean) / np.sqrt(max(len(sample) - 1, 1))
        for sample, mean in zip((a, b), means, strict=True)
    ]
    # Use the singular values of the residuals. The eigenvalues of a covariance matrix are the
    # squares of the singular values. In the squares, rounding would hide standard deviations below
    # 1e-8 of the largest standard deviation.
    triangle = np.linalg.qr(np.concatenate(residuals), mode="r")
    _, deviations, axes = np.linalg.svd(triangle, full_matrices=False)
    floor = ROUNDING * max(float(np.abs(a).max()), float(np.abs(b).max()))
    varying = deviations > floor
    return _Spread(
        means[0] - means[1],
        (means[0] + means[1]) / 2,
        axes[varying],
        deviations[varying] ** 2,
        floor,
    )


def fisher_score(outputs_a: Outputs, outputs_b: Outputs) -> Score:
    """The linear score that separates two samples best relative to their spread.

    The score is <w, y> for an output y, with w = S^+ (mean_a - mean_b). S is the sum of the two
    sample covariances and S^+ its pseudo-inverse. For Gaussian noise, the score estimates the
    log-density ratio, up to an affine map. For one-dimensional outputs, the score is the output up
    to sign and scale. The score cannot tell distributions with the same mean apart. It ignores
    directions in which S is 0 up to rounding; `null_space_score` uses these directions. Cost:
    O(trials m^2 + m^3).

    Parameters
    ----------
    outputs_a, outputs_b : (trials, ...) array
        Numeric outputs on the two inputs. Trailing axes are flattened to m coordinates.

    Returns
    -------
    Score
        Maps an array of outputs to an array (trials,) of numbers.

    Raises
    ------
    ValueError
        If an output is not a finite number.

    References
    ----------
    Fisher 1936.

    Examples
    --------
    >>> import numpy as np
    >>> import geomdp as gd
    >>> rng = np.random.default_rng(0)
    >>> score = gd.audit.fisher_score(rng.normal(0.0, 1.0, 500), rng.normal(2.0, 1.0, 500))
    >>> score(np.array([-1.0, 3.0])).round(1)
    array([ 1. , -3.1])
    """
    found = _spread(outputs_a, outputs_b)
    weights = ((found.axes @ found.gap) / found.variances) @ found.axes
    return lambda outputs: as_matrix(outputs) @ weights


def null_space_score(outputs_a: Outputs, outputs_b: Outputs) -> Score | None:
    """Tell the inputs apart in a direction in which the means differ but no output varies.

    If the noise is 0 in a direction in which the two inputs differ, outputs reveal the input. Along
    this direction, each output equals the mean on its own input. The score is 1 for outputs nearer
    to the mean of the first input, and -1 for all others. It detects missing noise in all or some
    coordinates, one draw shared by two coordinates, and noise in a wrong subspace.

    Parameters
    ----------
    outputs_a, outputs_b : (trials, ...) array
        Numeric outputs on the two inputs. Trailing axes are flattened to m coordinates.

    Returns
    -------
    Score or None
        None if the means differ in such directions by at most `ROUNDING` times the largest output.
        Also None for at most m + 2 outputs on both inputs together.

    Raises
    ------
    ValueError
        If an output is not a finite number.

    Examples
    --------
    The second coordinate has no noise, so it tells the inputs apart:

    >>> import numpy as np
    >>> import geomdp as gd
    >>> rng = np.random.default_rng(0)
    >>> first = np.column_stack([rng.normal(size=50), np.zeros(50)])
    >>> second = np.column_stack([rng.normal(size=50), np.ones(50)])
    >>> score = gd.audit.null_space_score(first, second)
    >>> score(np.array([[0.3, 0.0], [0.3, 1.0]]))
    array([ 1., -1.])
    """
    found = _spread(outputs_a, outputs_b)
    still = found.still
    length = float(np.linalg.norm(still))
    # Residuals of N outputs about two means span at most N - 2 directions. For few outputs, a
    # direction without variation therefore does not show that the noise is 0 in it.
    if length <= found.floor or len(outputs_a) + len(outputs_b) - 2 <= len(still):
        return None
    direction = still / length
    boundary = float(found.middle @ direction)
    return lambda outputs: np.where(as_matrix(outputs) @ direction > boundary, 1.0, -1.0)


def outcome_score(outputs_a: Outputs, outputs_b: Outputs) -> Score | None:
    """Log-ratio of the frequencies of each outcome, for discrete laws and laws with atoms.

    score(y) = ln((count_a(y) + 1/2) / (count_b(y) + 1/2)) for outcomes y seen at least twice, and 0
    for all others. Entries are first rounded to multiples of `ROUNDING` times the largest finite
    modulus of an entry. Two outcomes are equal if all their rounded entries are equal. NaN equals
    NaN.

    Parameters
    ----------
    outputs_a, outputs_b : (trials, ...) array
        Outputs on the two inputs: numbers, which may be NaN or infinite.

    Returns
    -------
    Score or None
        None if no outcome was seen twice.

    Raises
    ------
    ValueError
        If the outputs are not an array of a numeric type.

    Examples
    --------
    >>> import numpy as np
    >>> import geomdp as gd
    >>> first, second = np.array([0, 0, 0, 1] * 25), np.array([0, 1, 1, 1] * 25)
    >>> score = gd.audit.outcome_score(first, second)
    >>> score(np.array([0, 1])).round(2)
    array([ 1.09, -1.09])
    """
    unit = quantum(outputs_a, outputs_b)
    keys = np.concatenate([_keys(outputs_a, unit), _keys(outputs_b, unit)])
    outcomes, places = np.unique(keys, return_inverse=True)
    counts = np.bincount(places, minlength=len(outcomes))
    if counts.max() < 2:
        return None
    counts_a = np.bincount(places[: len(outputs_a)], minlength=len(outcomes))
    ratios = np.log((counts_a + 0.5) / (counts - counts_a + 0.5))
    known, ratios = outcomes[counts >= 2], ratios[counts >= 2]

    def score(outputs: Outputs) -> FloatArray:
        asked = _keys(outputs, unit)
        nearest = np.minimum(np.searchsorted(known, asked), len(known) - 1)
        return np.where(known[nearest] == asked, ratios[nearest], 0.0)

    return score


def quantum(*samples: Outputs) -> float:
    """`ROUNDING` times the largest finite modulus in the samples; 1 if no modulus is above 0."""
    sizes = [
        float(np.abs(sample[np.isfinite(sample)]).max(initial=0.0))
        for sample in samples
        if isinstance(sample, np.ndarray) and sample.dtype.kind in "biuf"
    ]
    return ROUNDING * max([*sizes, 0.0]) or 1.0


def snapped(outputs: FloatArray, unit: float) -> FloatArray:
    """Outputs divided by `unit` and rounded, so that scores hardly learn from rounding errors."""
    return np.asarray(np.rint(outputs / unit)) + 0.0  # -0 becomes 0


def _keys(outputs: Outputs, unit: float) -> IntArray:
    """A hash for each outcome. Different outcomes hardly ever have the same hash."""
    _require_numbers(outputs)
    rows = snapped(outputs.reshape(len(outputs), -1).astype(np.float64), unit)
    rows[np.isnan(rows)] = np.nan  # gives every NaN the same bit pattern
    words = rows.view(np.int64)
    # Hash each row: every column has its own random odd multiplier, and the bits are mixed after
    # each column.
    columns = words.shape[1]
    drawn = np.random.default_rng(columns).integers(0, 2**62, size=columns)
    factors = np.asarray(2 * drawn + 1, dtype=np.int64)
    keys = np.zeros(len(words), dtype=np.int64)
    for column in range(columns):
        keys = (keys ^ (words[:, column] * factors[column])) * factors[column]
        keys ^= keys >> 29
    return keys


def as_matrix(outputs: Outputs) -> FloatArray:
    """The outputs as a float64 array (trials, m); ``ValueError`` unless they are finite numbers."""
    _require_numbers(outputs)
    matrix = outputs.reshape(len(outputs), -1).astype(np.float64)
    if not np.isfinite(matrix).all():
        raise ValueError("outputs must be finite unless a score is given, got NaN or infinity")
    return matrix


def _require_numbers(outputs: Outputs) -> None:
    if not isinstance(outputs, np.ndarray) or outputs.ndim == 0:
        raise ValueError(f"outputs must be an array (trials, ...), got {type(outputs).__name__}")
    if outputs.dtype.kind not in "biuf":
        raise ValueError(f"outputs must be numeric unless a score is given, got {outputs.dtype}")


NULL_SPACE = Learner(
    "indicator of being nearer to the first mean, in directions without variation", null_space_score
)
OUTCOMES = Learner("log frequency ratio of the outcome", outcome_score)
LINEAR = Learner("linear score", fisher_score)
#: The learners that an audit uses by default. They need numeric outputs.
DEFAULT_LEARNERS = (NULL_SPACE, OUTCOMES, LINEAR)
