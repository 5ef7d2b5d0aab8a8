"""The replay of a run of a construction from its public transcript."""

from __future__ import annotations

from collections.abc import Iterable

from geomdp.mechanisms import Answer
from geomdp.mechanisms.interactive.updates import Hypothesis, Query, UpdateRule, follow


def replay(
    rule: UpdateRule[Query], alpha: float, exchanges: Iterable[tuple[Query, Answer]]
) -> Hypothesis[Query]:
    """The hypothesis of a run, rebuilt from its public queries and answers (post-processing).

    `alpha` is that of an online construction, or half that of an iterative construction.
    """
    hypothesis = rule.start(alpha)
    for query, answer in exchanges:
        if answer.above:
            assert answer.value is not None
            follow(hypothesis, query, answer.value)
    return hypothesis
