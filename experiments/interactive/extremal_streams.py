"""Streams of queries, one per update rule, that force a large share of the rule's update bound.

All records are element 0. The gap of a query is the difference between the true answer and the
answer of the hypothesis. Except for the median rule, every gap is about alpha, the least that an
update needs, so that the rule learns as little as possible. The factor `SLIGHTLY` keeps rounding
errors from making a gap smaller than alpha.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from geomdp.mechanisms.interactive.updates import Median, net, net_fineness
from geomdp.workloads import DenseQuery, SparseQuery

SLIGHTLY = 1 + 1e-6
#: Error of the answers that are given to a rule, in units of alpha; it must be below 1.
ANSWER_ERROR = 0.999


def multiplicative_weights(hypothesis: Any, alpha: float) -> int:
    """Number of updates of multiplicative weights on a finite universe.

    The relative entropy of the data to the hypothesis starts at ln M for M elements. An update by a
    query f with gap alpha lowers this entropy by eta alpha - ln E e^(eta (f - E f)), where eta is
    the learning rate and E the mean over the weights. By Hoeffding's lemma this decrease is at
    least eta alpha - eta^2 / 8. The decrease is hardly larger than this if f is 0 on elements with
    half of the total weight and 1 on the others.
    """
    updates = 0
    while True:
        weights = hypothesis.distribution
        rest = 1 - weights[0]
        if rest < alpha * SLIGHTLY:
            return updates
        # The query is 1 on the lightest other elements, of total weight at most 1/2.
        order = 1 + np.argsort(weights[1:], kind="stable")
        room = min(0.5, rest - alpha * SLIGHTLY)
        before = np.concatenate([[0.0], np.cumsum(weights[order])[:-1]])
        values = np.zeros(len(weights))
        values[order] = np.clip((room - before) / weights[order], 0.0, 1.0)
        values[0] = min((alpha * SLIGHTLY + values @ weights) / rest, 1.0)
        hypothesis.update(DenseQuery(values), values[0] - ANSWER_ERROR * alpha)
        updates += 1


def sparse_weights(hypothesis: Any, alpha: float) -> int:
    """Number of updates of sparse weights by queries on element 0 alone.

    The weight of this element starts at 1/s, because the rule starts with equal weights on s slots.
    """
    updates = 0
    while True:
        value = alpha * SLIGHTLY / (1 - hypothesis.weight(0))
        if value > 1:
            return updates
        hypothesis.update(SparseQuery([0], [value]), value - ANSWER_ERROR * alpha)
        updates += 1


def perceptron(hypothesis: Any, alpha: float) -> int:
    """Number of updates of the perceptron's vector x of M entries, which moves from 0 towards e_0.

    ||x - e_0||^2 starts at 1. An update by a query f with gap alpha lowers this squared distance by
    (2 alpha^2 / M) - (alpha / M)^2 ||f||^2. The least decrease is alpha^2 / M, for ||f||^2 = M.
    After the first update, two queries take turns: (c, 1, .., 1) raises the entries of x, and
    (0, 1, .., 1) lowers all entries but the first. The sum of all entries but the first goes from
    alpha / M to alpha and back. The number c is the least for which the gap is large enough for an
    update.
    """
    updates = 0
    while True:
        first, *others = hypothesis.vector.tolist()
        total, size = sum(others), 1 + len(others)
        if total >= alpha:
            value, other, answer = 0.0, 1.0, ANSWER_ERROR * alpha
        else:
            other = 1.0 if updates else SLIGHTLY / (size - 1)
            value = (alpha * SLIGHTLY + other * total) / (1 - first)
            if value > 1:
                return updates
            answer = value - ANSWER_ERROR * alpha
        hypothesis.update(DenseQuery(np.array([value, *[other] * (size - 1)])), answer)
        updates += 1


def halving_net(alpha: float) -> Median:
    """The median rule for the net of all data sets of floor(1 / alpha) records on two elements.

    The fineness of this net is below alpha.
    """
    records = int(1 / alpha)
    return Median(net(2, records), net_fineness(2, records, n_queries=1))


def median(hypothesis: Any, alpha: float) -> int:
    """Number of updates of `halving_net` by queries that ask for the share of element 1."""
    updates, query = 0, DenseQuery(np.array([0.0, 1.0]))
    while hypothesis.evaluate(query) >= alpha:
        hypothesis.update(query, ANSWER_ERROR * alpha)
        updates += 1
    return updates
