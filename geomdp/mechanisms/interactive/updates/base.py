"""The update rule: a public hypothesis about the data that a few noisy answers make accurate.

A rule is a B(alpha)-IDC (BR-IDC): fed queries Q_t with |Q_t(D) - Q_t(D_t)| >= alpha and answers
within alpha of Q_t(D), it makes at most B(alpha) updates before no such query is left. The answer
is used only through the side of the hypothesis it lies on.
"""

from __future__ import annotations

from typing import Protocol, TypeVar

from geomdp.workloads.single_queries.single_query import LinearQuery

Query = TypeVar("Query", bound=LinearQuery, contravariant=True)


class Hypothesis(Protocol[Query]):
    """A public state that answers queries and moves towards noisy answers."""

    def evaluate(self, query: Query) -> float:
        """The hypothesis' answer to `query`."""

    def update(self, query: Query, answer: float) -> None:
        """Move towards the noisy `answer` to `query`."""


class UpdateRule(Protocol[Query]):
    """How to start a hypothesis for a target accuracy, and how many updates it can need."""

    def bound(self, alpha: float) -> float:
        """The bound B(alpha) on the number of updates at accuracy `alpha`."""

    def start(self, alpha: float) -> Hypothesis[Query]:
        """The initial hypothesis for accuracy `alpha`."""
