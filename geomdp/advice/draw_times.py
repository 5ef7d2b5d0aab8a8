"""Estimate how long one draw of noise takes, from the size of its body."""

from __future__ import annotations

from geomdp.bodies import NuclearBall, Scaled, SpectraplexDifference
from geomdp.bodies.base import Body
from geomdp.noise import KNormNoise, MappedNoise
from geomdp.noise.base import Noise

#: Seconds of one core for a draw of eigenvalues by coupling from the past (an exact sampler),
#: divided by the cube of the order of the matrix. Measured: 3 ms at order 10, 0.13 s at order 31,
#: and 2.9 s at order 101.
COUPLING_SECONDS = 3e-6


def draw_seconds(noise: Noise) -> float:
    """Approximate seconds that coupling from the past takes per draw; 0 for all other noise."""
    if isinstance(noise, MappedNoise):
        return sum(draw_seconds(part.noise) for part in noise.parts)
    return COUPLING_SECONDS * _order(noise.body) ** 3 if isinstance(noise, KNormNoise) else 0.0


def _order(body: Body) -> int:
    """Order d of the matrices of a body sampled by coupling from the past; 0 for other bodies."""
    if isinstance(body, Scaled):
        return _order(body.body)
    return body.d if isinstance(body, SpectraplexDifference | NuclearBall) else 0
