"""Correct rounding: more bits until every coordinate of a vector has one nearest grid point."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

from flint import arb, ctx

from geomdp.noise.exact.uniforms import WORD_BITS, Draw, Entropy, Undecided, UniformBits

Result = TypeVar("Result")

#: Words of each uniform number at the first evaluation: 124 bits. A coordinate of standard
#: deviation s is then known to about 2^-110 s, so that on a grid of s / 1024 one of 2^99 is left
#: undecided.
FIRST_WORDS = 2
#: Words at the last: 15872 bits. More are needed only for grids finer than 2^-15000, or for a
#: coordinate that lies exactly between two grid points with positive probability.
LAST_WORDS = 256

_HALF = arb(0.5)


class PrecisionExhausted(ArithmeticError):  # noqa: N818 (a name like BudgetExhausted)
    """A draw was still undecided at the largest precision."""

    def __init__(self) -> None:
        super().__init__(
            f"a draw is still undecided at {LAST_WORDS * WORD_BITS} bits: the grid is too fine for "
            "that precision, or a coordinate lies between two grid points with positive probability"
        )


def refined(
    evaluate: Callable[[Draw], Result],
    entropy: Entropy | None = None,
    filtered: Callable[[UniformBits], Result] | None = None,
) -> Result:
    """The value of `evaluate` at the first precision at which it is decided.

    Parameters
    ----------
    evaluate : callable
        A function of the uniform numbers that raises `Undecided` if their boxes, or the working
        precision, are too wide. It must compute everything inexact inside the call: a ball that was
        rounded before never becomes smaller.
    entropy : callable, optional
        Source of the bits; by default the operating system's.
    filtered : callable, optional
        A faster way to the same value, tried first: it is given the same bits, and raises
        `Undecided` where it cannot tell the value.

    Raises
    ------
    PrecisionExhausted
        If it is undecided at 15872 bits. There is no fallback.
    """
    bits = UniformBits(entropy)
    if filtered is not None:
        try:
            return filtered(bits)
        except Undecided:
            pass
    words = FIRST_WORDS
    while words <= LAST_WORDS:
        try:
            with ctx.workprec(words * WORD_BITS):
                return evaluate(Draw(bits, words))
        except Undecided:
            words *= 2
    raise PrecisionExhausted


def nearest_multiples(values: Sequence[arb], grid: int) -> list[int]:
    """The whole numbers j with j 2^-grid nearest to each value; halves are rounded up.

    Parameters
    ----------
    values : sequence of arb
        Balls, each of which holds the value.
    grid : int
        k; negative for grids coarser than 1.

    Raises
    ------
    Undecided
        If a ball holds a midpoint of two grid points together with values below it.
    """
    # A product with a power of two is exact at any precision.
    scale = arb(2) ** grid
    result = []
    for value in values:
        # floor(x + 1/2) over the ball; the addition widens the ball by its own rounding.
        whole = (value * scale + _HALF).floor().unique_fmpz()
        if whole is None:
            raise Undecided
        result.append(int(whole))
    return result
