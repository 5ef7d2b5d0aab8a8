"""Noise with draws that are correctly rounded values of draws in real arithmetic (X-GRID).

A noise is a function F of an infinite string of fair bits. Given the first bits, ball arithmetic
(`flint.arb`) encloses the value of F in a box. More bits of the same string make the box smaller.
The draw ends when all points of the box have the same nearest multiples of a public power of two.
So the result is a rounded draw from the real-valued distribution itself, and not from a float64
approximation. Rounding is post-processing, so the privacy proof for real numbers also holds for the
result.

Randomness comes from the operating system (`os.urandom`). The floats in noises and bodies (scales,
epsilon, entries of matrices) are taken as exactly the numbers that they represent. A privacy proof
must hold for these numbers.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
