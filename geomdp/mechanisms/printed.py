"""Statements of the papers that are false or not proved, as printed: for study, not for use.

The proofs of two statements about accuracy fail: `PrintedNumericSparse` with
`numeric_sparse_printed` (DISC-11, corrected in `NumericSparse`), and `IterativeConstruction` with
`PRINTED_STOPPING` (DISC-13). Both mechanisms are as private as they claim. Two statements fail in
privacy: `printed_shortcut_step` (DISC-5, corrected in `shortcut_step_epsilon`) and
`printed_smooth_scale` (DISC-15, corrected in `UniformLaplace`). They only return numbers, from
which no mechanism computes its noise.
"""

from __future__ import annotations

import math

from geomdp._validation import positive, probability, whole
from geomdp.bounds.upper.theorems import numeric_sparse_printed as numeric_sparse_printed
from geomdp.mechanisms.interactive.iterative import StoppingDesign
from geomdp.mechanisms.interactive.sparse_vector import PrintedNumericSparse as PrintedNumericSparse

#: The shares of the target accuracy alpha that Roth's lecture gives to noise, loss and stopping
#: level. A run with these shares is private. The lecture states an error of at most alpha, but the
#: shares guarantee only an error of at most 3 alpha / 2 (DISC-13).
PRINTED_STOPPING = StoppingDesign(noise=1 / 4, loss=1 / 2, level=3 / 4)


def printed_shortcut_step(epsilon: float, slack_delta: float, steps: int) -> float:
    """The printed epsilon of each of T steps, eps / sqrt(8 T ln(1/delta)); the theorem is false.

    The formula is printed for every delta below 1. At eps = 1 its proof fails for delta above 0.709
    if T = 1, and for delta above 0.779 for every T. For delta near 1, T such steps can spend more
    than (eps, delta) (DISC-5). The corrected `privacy.shortcut_step_epsilon` refuses an epsilon
    above 1, and it takes an `ApproxDP`, whose delta is below 1/2.

    Examples
    --------
    >>> import geomdp as gd
    >>> step = gd.mechanisms.printed.printed_shortcut_step(1.0, slack_delta=0.9, steps=1000)
    >>> spent = gd.privacy.advanced_composition(gd.PureDP(step), 1000, slack_delta=0.49)
    >>> round(step, 4), round(spent.epsilon, 2)
    (0.0344, 2.51)
    """
    epsilon, steps = positive(epsilon, "epsilon"), whole(steps, "steps")
    return epsilon / math.sqrt(-8 * steps * math.log(probability(slack_delta, "slack_delta")))


def printed_smooth_scale(d: int, degree: int, *, n: int, epsilon: float) -> float:
    """The scale t^d / (n eps) of Laplace noise on Chebyshev moments; often too small for eps-DP.

    t is `degree`. Under replace-one, the moments of neighbours can differ by more than t^d / n in
    the l1 norm for t >= 3. For d = 1 and large t, such noise spends 1.217 eps (DISC-15).
    `UniformLaplace` has the corrected scale.

    Examples
    --------
    >>> import geomdp as gd
    >>> printed = gd.mechanisms.printed.printed_smooth_scale(1, 20, n=1000, epsilon=1.0)
    >>> workload = gd.workloads.SmoothQueries(1, degree=20)
    >>> corrected = gd.mechanisms.UniformLaplace().calibrate(
    ...     workload, gd.PureDP(1.0), gd.Adjacency.REPLACE_ONE
    ... )
    >>> round(1000 * printed, 1), round(float(corrected.scales.max()), 1)  # noise on sums
    (20.0, 23.7)
    """
    powers = float(whole(degree, "degree", minimum=2)) ** whole(d, "d")
    return powers / (whole(n, "n") * positive(epsilon, "epsilon"))
