"""The range of privacy parameters for which noise and lower bounds are computed."""

from __future__ import annotations

from geomdp.privacy.definitions import ZCDP, Privacy, check_privacy

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
