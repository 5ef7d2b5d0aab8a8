"""Exponents of n in the results on smooth queries, for n records of dimension d.

The argument `smoothness` is K: queries have bounded derivatives up to order K.
"""


def accuracy(d: int, smoothness: int) -> float:
    """The error falls as n^(-K / (2 d + K)), by Theorem 3.1 of Wang et al. 2013 (SM-T3.1)."""
    return smoothness / (2 * d + smoothness)


def accuracy_of_weighted(d: int, smoothness: int) -> float:
    """The error with weighted noise may fall as n^(-min(1, K / (1.5 d))), up to logarithms.

    This is a hypothesis (SM-X1).
    """
    return min(1.0, smoothness / (1.5 * d))


def summary_time(d: int, smoothness: int) -> float:
    """The time for a summary grows as n^((3 d + K) / (2 d + K)) (SM-TAB)."""
    return (3 * d + smoothness) / (2 * d + smoothness)


def answer_time(d: int, smoothness: int) -> float:
    """The time for an answer grows as n^((d + 2 + 2 d / K) / (2 d + K)), up to logarithms.

    Source: SM-TAB.
    """
    return (d + 2 + 2 * d / smoothness) / (2 * d + smoothness)
