"""The range of privacy parameters for which mechanisms compute their noise."""

from __future__ import annotations

from geomdp.privacy import ZCDP, Privacy
from geomdp.privacy.definitions import check_privacy

#: Smallest and largest epsilon or rho of a mechanism. Above this range, the noise is smaller than
#: the rounding error of a mean (1e-16). Below this range, the mean is smaller than the rounding
#: error of the noise. Far outside the range, squares of noise scales overflow, and searches for a
#: scale do not end.
LEAST_LOSS, LARGEST_LOSS = 1e-12, 1e12


def check_range(privacy: Privacy) -> None:
    """Raise ``ValueError`` if epsilon, or rho, is below 1e-12 or above 1e12.

    Constructors of mechanisms call this function, so that a value out of range raises before any
    budget is spent. Definitions of privacy and their composition have no such range.
    """
    check_privacy(privacy)
    name, loss = ("rho", privacy.rho) if isinstance(privacy, ZCDP) else ("epsilon", privacy.epsilon)
    if not LEAST_LOSS <= loss <= LARGEST_LOSS:
        raise ValueError(
            f"{name} of a mechanism must be from {LEAST_LOSS:g} to {LARGEST_LOSS:g}, got {loss!r}"
        )
