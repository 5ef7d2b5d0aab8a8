"""Second moments by Laplace noise on eigenvalues and privately sampled eigenvectors.

This is the algorithm of Amin, Dick, Kulesza, Munoz and Vassilvitskii 2019. Eigenvalues get Laplace
noise. Eigenvectors are chosen one after the other by the exponential mechanism. Each eigenvector
then has a Bingham distribution, which is sampled exactly by rejection (Kent, Ganeiber and Mardia
2018).
"""

import math

import numpy as np
import numpy.typing as npt
import scipy.optimize

Array = npt.NDArray[np.float64]

#: Share of epsilon for the eigenvalues. The first d - 1 eigenvectors share the rest evenly. For
#: d = 1 the eigenvalue gets all of epsilon.
VALUES_SHARE = 0.5
#: Number of proposals drawn at a time.
BATCH = 64


def eigenvector_sampling(total: Array, epsilon: float, rng: np.random.Generator) -> Array:
    """An epsilon-DP estimate of `total` (d, d) under replace-one.

    `total` is the sum of x x^T over the records x, which have norm at most 1. Replacing a record
    moves the eigenvalues by at most 2 in l1 norm, and u^T total u by at most 1 for a unit vector u.
    """
    d = len(total)
    values = np.linalg.eigvalsh(total)[::-1]
    share = VALUES_SHARE if d > 1 else 1.0
    noisy = values + rng.laplace(scale=2 / (share * epsilon), size=d)
    each = (1 - share) * epsilon / max(d - 1, 1)
    frame, chosen = np.eye(d), np.empty((d, d))
    for i in range(d - 1):
        inside = frame.T @ total @ frame
        direction = bingham(each / 2 * inside, rng)
        chosen[i] = frame @ direction
        # Continue in the orthogonal complement of all chosen eigenvectors.
        rest = np.linalg.qr(np.column_stack([direction, np.eye(len(direction))]))[0]
        frame = frame @ rest[:, 1 : len(direction)]
    chosen[d - 1] = frame[:, 0]
    return np.asarray((chosen.T * np.maximum(noisy, 0.0)) @ chosen)


def bingham(matrix: Array, rng: np.random.Generator) -> Array:
    """Draw a unit vector x of R^q exactly, with density proportional to exp(x^T matrix x).

    Let A = lambda_max I - matrix, where lambda_max is the largest eigenvalue of `matrix`. Let a_i
    be the eigenvalues of A, and let b solve sum_i 1 / (b + 2 a_i) = 1. Proposals come from the
    angular Gaussian with precision I + 2 A / b. For unit vectors x,
    exp(-x^T A x) is at most e^(-(q - b) / 2) (q / b)^(q / 2) (x^T (I + 2 A / b) x)^(-q / 2).
    """
    values, vectors = np.linalg.eigh(matrix)
    decay, q = values.max() - values, len(values)
    b = scipy.optimize.brentq(lambda b: np.sum(1 / (b + 2 * decay)) - 1, 1e-9, q + 1e-9)
    precision = 1 + 2 * decay / b
    limit = -(q - b) / 2 + q / 2 * math.log(q / b)
    while True:
        proposals = rng.standard_normal((BATCH, q)) / np.sqrt(precision)
        proposals /= np.linalg.norm(proposals, axis=1, keepdims=True)
        squares = proposals**2
        logs = -squares @ decay + q / 2 * np.log(squares @ precision) - limit
        accepted = np.flatnonzero(np.log(rng.random(BATCH)) < logs)
        if len(accepted):
            return np.asarray(vectors @ proposals[accepted[0]])
