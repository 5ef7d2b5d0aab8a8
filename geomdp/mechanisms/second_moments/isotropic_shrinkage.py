"""Shrink noisy matrices towards multiples of the identity, if noise can explain the difference."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from geomdp._numerics.linalg import svec, unsvec
from geomdp._numerics.seeds import PUBLIC_SEED
from geomdp._typing import FloatArray
from geomdp.noise.base import Noise

#: Number of public draws of the noise, and rank of the limit. The traceless part of each draw has
#: a largest eigenvalue. The limit is the fifth largest of these 1000 numbers. So if the true
#: matrix is a multiple of the identity, the noise exceeds the limit with probability 5 / 1001. The
#: noisy matrix is then not shrunk, and the error is several times larger (at d = 50, n = 5000:
#: 0.095 instead of 0.015). If this probability were 10 / 1001, shrinkage would gain much less on
#: isotropic data. If this probability were 1 / 1001, a true matrix with one large eigenvalue would
#: be shrunk more often. Shrinkage could then multiply errors by up to 1.2 (at d = 20, n = 100).
DRAWS, RANK = 1000, 5
#: Number of matrix entries in memory at a time: 2^22 float64 are 32 MB.
BLOCK_ENTRIES = 1 << 22


@dataclass(frozen=True)
class IsotropicShrinkage:
    """Shrink Y = M + W to (t / d) I + s Y_0, if noise explains the largest eigenvalue of Y_0.

    M (d, d) is psd with trace at most T, and W is noise. Y_0 = Y - (tr Y / d) I, W_0 is the
    traceless part of W, and t is tr Y clipped to [0, T]. The factor of James and Stein (1961) is s
    = max(0, 1 - v / ||Y_0||_F^2) with v = E ||W_0||_F^2. For all M and `limit`, (E ||result -
    M||_F^2)^(1/2) <= (E ||W||_F^2)^(1/2) + v^(1/2), because (1 - s) ||Y_0|| <= v^(1/2).
    """

    #: Order of the matrices.
    d: int
    #: v = E ||W_0||_F^2.
    energy: float
    #: Largest eigenvalue of Y_0 that noise alone can explain; see `top_eigenvalue_limit`.
    limit: float
    #: T, infinite if traces have no limit.
    largest_trace: float = 1.0

    def __call__(self, noisy: FloatArray) -> FloatArray:
        """Map Y to the result, both as vectors (m,) of their upper triangles (`svec`)."""
        trace, traceless = split_trace(noisy, self.d)
        # The largest eigenvalue detects a few large eigenvalues even in large noise, which the norm
        # of Y_0 would not. No M_0 has an eigenvalue above (1 - 1/d) T, so a limit above this number
        # tests nothing.
        visible = self.limit < (1 - 1 / self.d) * self.largest_trace
        if visible and np.linalg.eigvalsh(unsvec(traceless))[-1] > self.limit:
            return noisy
        square = float(traceless @ traceless)
        kept = max(0.0, 1 - self.energy / square) if square > 0 else 0.0
        identity = svec(np.eye(self.d))
        return np.asarray(
            min(max(float(trace), 0.0), self.largest_trace) / self.d * identity + kept * traceless
        )


def split_trace(vectors: FloatArray, d: int) -> tuple[FloatArray, FloatArray]:
    """Traces (...,) and traceless parts (..., m) of symmetric matrices, as svec (..., m)."""
    identity = svec(np.eye(d))
    traces = vectors @ identity
    return traces, vectors - traces[..., None] / d * identity


def top_eigenvalue_limit(noise: Noise, d: int) -> float:
    """Fifth largest lambda_max(W_0) of 1000 draws W of `noise`, as svec (m,), from a public seed.

    One more draw exceeds it with probability 5 / 1001. Cost: O(d^3) per draw; 5 s at d = 200.
    """
    rng = np.random.default_rng(PUBLIC_SEED)
    tops: list[float] = []
    block = max(1, min(DRAWS, BLOCK_ENTRIES // d**2))
    for start in range(0, DRAWS, block):
        draws = noise.sample(rng, min(block, DRAWS - start))
        tops += np.linalg.eigvalsh(unsvec(split_trace(draws, d)[1]))[:, -1].tolist()
    return sorted(tops)[-RANK]
