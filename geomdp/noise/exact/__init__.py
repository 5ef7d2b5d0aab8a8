"""Noise whose draws are correctly rounded: the output of the proof, on a finite computer (X-GRID).

A noise is a function F of an infinite string of fair bits. Given finitely many bits, ball
arithmetic (`flint.arb`) encloses F in a box. The box is refined, by more bits of the same string,
until every coordinate has one nearest multiple of a public power of two. So what is returned is the
rounding of a draw from the real-valued law, not of a float64 approximation to it: rounding is
post-processing, and the privacy proof stated for real numbers holds as it stands.

Randomness comes from the operating system (`os.urandom`). Floats in noises and bodies (scales,
epsilon, entries of matrices) are taken as the dyadic rationals they are; a proof must hold for
these numbers.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
