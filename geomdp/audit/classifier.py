"""Scores learned by a classifier, for outputs of unknown density. Needs the extra ``audit``."""

from __future__ import annotations

import numpy as np

from geomdp._typing import FloatArray
from geomdp.audit.samplers import Learner, Outputs, Score
from geomdp.audit.scores import grain, snapped

#: Largest number of outputs per input that the classifier learns from. More outputs take longer and
#: change little.
MOST_LEARNED = 50_000
#: The smallest number of outputs in a leaf of a tree. The log-odds of a leaf are then known to
#: about 2 / sqrt(200) = 0.14.
LEAF = 200


def classifier_score(outputs_a: Outputs, outputs_b: Outputs) -> Score | None:
    """Log-odds that an output comes from the first input, by gradient-boosted trees (scikit-learn).

    If both inputs have equal numbers of outputs, the log-odds of a perfect classifier are
    ln(p_a / p_b) for the densities p_a and p_b of the outputs. No other score gives more powerful
    tests. Outputs that are not whole numbers are first rounded to multiples of 2^-30 times the
    largest absolute value in their coordinate, so that the classifier cannot learn from rounding
    errors. Infinity counts as NaN. The result is None for fewer than 800 outputs on both inputs
    together, or if no entry is finite. Parameters are as for `fisher_score`, and errors too, except
    for ``ImportError`` if scikit-learn is missing, which the extra ``audit`` installs.

    Examples
    --------
    >>> import numpy as np
    >>> import geomdp as gd
    >>> rng = np.random.default_rng(0)
    >>> score = gd.audit.classifier_score(rng.normal(0.0, 1.0, 500), rng.normal(2.0, 1.0, 500))
    >>> bool(score(np.array([-1.0]))[0] > score(np.array([3.0]))[0])
    True
    """
    from sklearn.ensemble import HistGradientBoostingClassifier

    a, b = outputs_a[:MOST_LEARNED], outputs_b[:MOST_LEARNED]
    if len(a) + len(b) < 4 * LEAF:
        return None
    units = grain(a, b)
    # scikit-learn does not accept a column without any finite number.
    usable = np.isfinite(np.concatenate([snapped(each, units) for each in (a, b)])).any(axis=0)
    if not usable.any():
        return None

    def points(outputs: Outputs) -> FloatArray:
        rows = snapped(outputs, units)[:, usable]
        return np.where(np.isfinite(rows), rows, np.nan)

    classifier = HistGradientBoostingClassifier(
        max_iter=40, min_samples_leaf=LEAF, early_stopping=False, random_state=0
    )
    classifier.fit(np.concatenate([points(a), points(b)]), np.repeat([1, 0], [len(a), len(b)]))

    def score(outputs: Outputs) -> FloatArray:
        return np.asarray(classifier.decision_function(points(outputs)), dtype=np.float64)

    return score


CLASSIFIER = Learner("log-odds of a classifier", classifier_score)
