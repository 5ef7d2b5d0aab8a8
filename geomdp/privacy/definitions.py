"""Definitions of differential privacy: their parameters, and the relation of neighbours."""

from __future__ import annotations

import enum
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from decimal import ROUND_CEILING, ROUND_FLOOR, Context
from typing import Any

from geomdp._validation import positive, real_number

#: Precision at which costs are computed. Products of two floats, and sums of floats that differ by
#: a factor of at most 2^200, are exact.
BITS = 256


class Adjacency(enum.Enum):
    """Which pairs of data sets are neighbours (GEN-1).

    Examples
    --------
    >>> import geomdp as gd
    >>> print(gd.Adjacency.REPLACE_ONE, gd.Adjacency("add/remove"))
    Adjacency.REPLACE_ONE Adjacency.ADD_REMOVE

    By default, mechanisms hide the value of a record, and the number of records is public:

    >>> workload = gd.workloads.Histogram(3)
    >>> gd.mechanisms.Laplace(workload, n=100, privacy=gd.PureDP(1.0)).guarantee.adjacency
    Adjacency.REPLACE_ONE
    """

    #: Replace one record; the number of records n is public.
    REPLACE_ONE = "replace-one"
    #: Add or remove one record. If answers are divided by a number n, n is declared and public.
    ADD_REMOVE = "add/remove"

    def __repr__(self) -> str:
        return str(self)


def checked_adjacency(adjacency: object) -> Adjacency:
    if not isinstance(adjacency, Adjacency):
        members = ", ".join(f"Adjacency.{member.name}" for member in Adjacency)
        raise ValueError(f"adjacency must be one of {members}, got {adjacency!r}")
    return adjacency


def below_half(value: float, name: str) -> float:
    """Return `value` as a float; ``ValueError`` unless 0 < value < 1/2."""
    number = real_number(value)
    if not 0 < number < 0.5:
        raise ValueError(f"{name} must be above 0 and below 1/2, got {value!r}")
    return number


def rounded_up(formula: Callable[..., Any], *values: float) -> float:
    """`formula` of `values` in balls, rounded up to the least float64 or the next; may be inf."""
    from flint import arb, ctx  # imported here because importing flint is slow

    with ctx.workprec(BITS):
        highest = arb(formula(*map(arb, values))).upper()
        if not highest.is_finite():
            return math.inf
        near = float(highest)
        return near if near >= highest else math.nextafter(near, math.inf)


def printed_down(value: float, digits: int = 6) -> str:
    """The text of an unspent budget or a lower bound: read as a float64, it is at most `value`."""
    return printed(value, digits, ROUND_FLOOR)


def printed(value: float, digits: int = 6, rounding: str = ROUND_CEILING) -> str:
    """The text of a privacy parameter: read as a float64, it is at least `value`."""
    rounded = Context(prec=digits, rounding=rounding).create_decimal(repr(float(value)))
    return f"{float(rounded):.{digits}g}"


class Definition:
    """Base class of the definitions of privacy; the fields are the parameters."""

    def parameters(self) -> dict[str, float]:
        """Parameters by name, as files of releases, ledgers and certificates store them."""
        return dict(vars(self))


@dataclass(frozen=True)
class PureDP(Definition):
    """epsilon-DP of a mechanism M: Pr[M(X) in S] <= e^epsilon Pr[M(X') in S].

    The inequality holds for all neighbours X, X' and all events S (GEN-2).

    Parameters
    ----------
    epsilon : float
        Privacy loss, finite and above 0.

    Examples
    --------
    >>> import geomdp as gd
    >>> privacy = gd.PureDP(0.5)
    >>> print(privacy)
    0.5-DP
    >>> privacy.parameters()
    {'epsilon': 0.5}
    """

    epsilon: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "epsilon", positive(self.epsilon, "epsilon"))

    def __str__(self) -> str:
        return f"{printed(self.epsilon)}-DP"


@dataclass(frozen=True)
class ApproxDP(Definition):
    """(epsilon, delta)-DP of a mechanism M: Pr[M(X) in S] <= e^epsilon Pr[M(X') in S] + delta.

    The inequality holds for all neighbours X, X' and all events S (GEN-2).

    Parameters
    ----------
    epsilon : float
        Privacy loss, finite and above 0.
    delta : float
        The additive term, 0 < delta < 1/2.

    Examples
    --------
    >>> import geomdp as gd
    >>> privacy = gd.ApproxDP(epsilon=1.0, delta=1e-6)
    >>> print(privacy)
    (1, 1e-06)-DP
    >>> privacy.parameters()
    {'epsilon': 1.0, 'delta': 1e-06}
    """

    epsilon: float
    delta: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "epsilon", positive(self.epsilon, "epsilon"))
        object.__setattr__(self, "delta", below_half(self.delta, "delta"))

    def __str__(self) -> str:
        return f"({printed(self.epsilon)}, {printed(self.delta)})-DP"


@dataclass(frozen=True)
class ZCDP(Definition):
    """rho-zero-concentrated DP of a mechanism M: D_a(M(X) || M(X')) <= rho a for all a > 1.

    D_a is the Renyi divergence of order a. The inequality holds for all neighbours X, X'.

    Parameters
    ----------
    rho : float
        Concentrated privacy loss, finite and above 0.

    Examples
    --------
    >>> import geomdp as gd
    >>> privacy = gd.ZCDP(rho=0.5)
    >>> print(privacy)
    0.5-zCDP
    >>> round(gd.privacy.zcdp_to_approx(privacy, delta=1e-6).epsilon, 3)
    5.757
    """

    rho: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "rho", positive(self.rho, "rho"))

    def __str__(self) -> str:
        return f"{printed(self.rho)}-zCDP"


Privacy = PureDP | ApproxDP | ZCDP


def check_privacy(privacy: object, *kinds: type[Definition], name: str = "privacy") -> None:
    """``ValueError`` if `privacy` is not one of `kinds` (by default any definition of privacy)."""
    kinds = kinds or (PureDP, ApproxDP, ZCDP)
    if not isinstance(privacy, kinds):
        *first, last = (kind.__name__ for kind in kinds)
        wanted = f"{', '.join(first)} or {last}" if first else last
        raise ValueError(f"{name} must be {wanted}, got {privacy!r}")


def privacy_from_parameters(definition: str, parameters: Mapping[str, float]) -> Privacy:
    """The definition with a class name and parameters; ``ValueError`` if they are invalid."""
    kinds: dict[str, type[Privacy]] = {kind.__name__: kind for kind in (PureDP, ApproxDP, ZCDP)}
    try:
        return kinds[definition](**parameters)
    except (KeyError, TypeError) as error:
        raise ValueError(
            f"this is not a privacy record: got the definition {definition!r} with the parameters "
            f"{parameters!r}"
        ) from error


# The range of privacy parameters for which noise and lower bounds are computed.


#: Smallest and largest epsilon or rho of a mechanism or lower bound. Parameters in practice lie far
#: inside this range. Far outside the range, squares of noise scales can overflow, and searches for
#: a scale or for the steps of a lower bound may not end.
LEAST_LOSS, LARGEST_LOSS = 1e-12, 1e12


def check_range(privacy: Privacy, what: str = "a mechanism") -> None:
    """``ValueError`` if epsilon or rho is outside [1e-12, 1e12], before any budget is spent."""
    check_privacy(privacy)
    name, loss = ("rho", privacy.rho) if isinstance(privacy, ZCDP) else ("epsilon", privacy.epsilon)
    if not LEAST_LOSS <= loss <= LARGEST_LOSS:
        raise ValueError(
            f"{name} of {what} must be from {LEAST_LOSS:g} to {LARGEST_LOSS:g}, got {loss!r}"
        )


#: Above this epsilon or rho, a release protects so little that the caller must know.
WEAK = 10


def weakness(privacy: Privacy) -> str:
    """What a guarantee with epsilon or rho above 10 means, on one line; empty for any other."""
    check_privacy(privacy)
    name, loss = ("rho", privacy.rho) if isinstance(privacy, ZCDP) else ("epsilon", privacy.epsilon)
    if loss <= WEAK:
        return ""
    factor = f"by a factor of {'about' if name == 'rho' else 'up to'} e^{loss:g}"
    return f"{name} {loss:g} protects little: one record can change the odds of a result {factor}"
