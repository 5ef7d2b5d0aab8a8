"""Scores learned by a classifier, for laws that are neither known nor linear: extra `audit`."""

from __future__ import annotations

import numpy as np

from geomdp._typing import FloatArray
from geomdp.audit.samplers import Learner, Outputs, Score
from geomdp.audit.scores import as_matrix, quantum, snapped

#: Most outputs per input that the classifier learns from: more change little and take long.
MOST_LEARNED = 50_000
#: The smallest number of outputs in a leaf of a tree. The log-odds of a leaf are then known to
#: about 2 / sqrt(200) = 0.14.
LEAF = 200


def classifier_score(outputs_a: Outputs, outputs_b: Outputs) -> Score | None:
    """Log-odds of the first input by gradient-boosted trees (scikit-learn).

    The log-odds of a perfect classifier of equally many outputs from both inputs are the
    log-density ratio ln(p_a / p_b), the most powerful score. Outputs count in multiples of
    2^-30 times the largest, so that rounding tells nothing.

    Parameters
    ----------
    outputs_a, outputs_b : (trials, ...) array
        Numeric outputs on the two inputs, trailing axes flattened to m coordinates.

    Returns
    -------
    Score or None
        None for fewer outputs than a tree with two leaves needs.

    Raises
    ------
    ValueError
        Outputs that are not finite numbers.
    ImportError
        Without scikit-learn, which the extra ``audit`` installs.
    """
    from sklearn.ensemble import HistGradientBoostingClassifier

    a, b = as_matrix(outputs_a)[:MOST_LEARNED], as_matrix(outputs_b)[:MOST_LEARNED]
    if len(a) + len(b) < 4 * LEAF:
        return None
    unit = quantum(a, b)
    classifier = HistGradientBoostingClassifier(
        max_iter=40, min_samples_leaf=LEAF, early_stopping=False, random_state=0
    )
    learned = snapped(np.concatenate([a, b]), unit)
    classifier.fit(learned, np.repeat([1, 0], [len(a), len(b)]))

    def score(outputs: Outputs) -> FloatArray:
        points = snapped(as_matrix(outputs), unit)
        return np.asarray(classifier.decision_function(points), dtype=np.float64)

    return score


CLASSIFIER = Learner("log-odds of a classifier", classifier_score)
