"""The error for a noise or body that cannot be drawn with correct rounding."""

from __future__ import annotations


class NoExactPath(TypeError):  # noqa: N818 (a name like MissingOracle)
    """Raised for a noise or body that cannot be drawn with correct rounding.

    Parameters
    ----------
    item : object
        The noise or body.
    reason : str
        The reason.

    Examples
    --------
    >>> import geomdp as gd
    >>> from geomdp.geometry import sampling
    >>> from geomdp.noise.exact import NoExactPath, RoundedNoise
    >>> K = gd.bodies.NuclearBall(2)
    >>> noise = gd.noise.KNormNoise(K, 1.0, sampling.ExactSampler(K))
    >>> try:
    ...     RoundedNoise(noise, grid=10)
    ... except NoExactPath as error:
    ...     print(str(error).partition(":")[0])
    NuclearBall(2 x 2 matrices in R^3) has no correctly rounded draws
    """

    def __init__(self, item: object, reason: str) -> None:
        super().__init__(f"{item!r} has no correctly rounded draws: {reason}")
