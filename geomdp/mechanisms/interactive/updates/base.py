"""The update rule: how noisy answers correct a public hypothesis about the data."""

from __future__ import annotations

from typing import Protocol, TypeVar, runtime_checkable

from geomdp.workloads.single_queries.single_query import LinearQuery

#: Smallest accuracy alpha that may be asked for. At this accuracy the bounds of all rules are in
#: the range of float64.
LEAST_ALPHA = 1e-100

Query = TypeVar("Query", bound=LinearQuery, contravariant=True)


class UnfollowedAnswerError(ValueError):
    """No hypothesis agrees with a noisy answer, so the bound does not hold; nothing was changed."""


class Hypothesis(Protocol[Query]):
    """A public estimate of the data that answers queries and is updated by noisy answers."""

    def evaluate(self, query: Query) -> float:
        """The hypothesis' answer to `query`."""

    def update(self, query: Query, answer: float) -> None:
        """Move the hypothesis' answer to `query` towards the noisy `answer`."""


@runtime_checkable
class UpdateRule(Protocol[Query]):
    """Starts hypotheses for a target accuracy and bounds the number of updates they need (BR-IDC).

    Let D be the data and D_t the hypothesis before update t. Let every update get a query Q_t with
    |Q_t(D) - Q_t(D_t)| >= alpha and an answer that differs from Q_t(D) by less than alpha. Then
    after at most B(alpha) updates, no query Q with |Q(D) - Q(D_t)| >= alpha is left.
    """

    def bound(self, alpha: float) -> float:
        """B(alpha), a bound on the number of updates at accuracy `alpha`; can be infinite."""

    def start(self, alpha: float) -> Hypothesis[Query]:
        """The initial hypothesis for accuracy `alpha`."""


def follow(hypothesis: Hypothesis[Query], query: Query, answer: float) -> bool:
    """Update `hypothesis`; False if its rule cannot follow the answer, which is paid for."""
    try:
        hypothesis.update(query, answer)
    except UnfollowedAnswerError:
        return False
    return True
