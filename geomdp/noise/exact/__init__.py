"""Noise with draws that are correctly rounded values of draws in real arithmetic (X-GRID).

A noise is a function F of an infinite string of fair bits. From the first bits, ball arithmetic
(`flint.arb`) encloses the value of F in a box, which more bits of the same string make smaller. The
draw ends when all points of the box have the same nearest multiples of a public power of two. So it
is a rounded draw from the real-valued distribution itself. Rounding is post-processing, so the
privacy proof for real numbers also holds for the result.

Randomness comes from `os.urandom`. The floats in noises and bodies are taken as exact numbers, for
which a privacy proof must hold.
"""
