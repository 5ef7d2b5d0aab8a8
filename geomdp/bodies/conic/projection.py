"""Nearest positive semidefinite matrices with a given diagonal, by a semismooth Newton method.

The problem min { ||X - G||_F : X psd, X_ii = b_i } has the dual

    min over y of  theta(y) = ||(G + Diag y)_+||_F^2 / 2 - <b, y>,

where (.)_+ sets negative eigenvalues to 0. At the optimum, X = (G + Diag y)_+. The gradient of
theta is diag((G + Diag y)_+) - b. Newton's method converges quadratically; each step solves a
linear system with the generalised Hessian by conjugate gradients (Qi and Sun 2006).
"""

from __future__ import annotations

import numpy as np

from geomdp._typing import FloatArray

#: Newton's method stops when the error of the diagonal is at most this share of the largest entry
#: of b.
DIAGONAL_ERROR = 1e-13
#: Largest number of Newton steps; 5 to 10 are usual.
MOST_STEPS = 200
#: `DECREASE`: a step is accepted if theta falls by this share of the predicted decrease (Armijo's
#: rule). `REGULAR`: this multiple of the identity is added to the Hessian, which may be singular.
DECREASE, REGULAR = 1e-4, 1e-10
#: If a line search needs a step shorter than this share of the Newton step, rounding errors limit
#: the search, and Newton's method stops.
SHORTEST = 1e-10


def nearest_with_diagonal(matrix: FloatArray, diagonal: FloatArray) -> FloatArray:
    """The psd X (p, p) nearest to a symmetric G, with diagonal exactly b > 0; O(p^3) per step."""
    # Replace the diagonal of G by b. This only shifts y, because the problem depends on G + Diag y.
    target = matrix - np.diag(np.diag(matrix)) + np.diag(diagonal)
    shift = np.zeros(len(diagonal))
    value, gradient, parts = _dual(target, shift, diagonal)
    for _ in range(MOST_STEPS):
        if np.abs(gradient).max() <= DIAGONAL_ERROR * diagonal.max():
            break
        step = _newton_step(parts, gradient, float(diagonal.max()))
        slope, length = float(gradient @ step), 1.0
        trial = _dual(target, shift + step, diagonal)
        # Near the optimum, changes of theta are below the rounding error of theta, about 1e-16
        # |theta|. Therefore accept steps that increase theta by at most this slack.
        slack = 1e-15 * abs(value)
        while trial[0] > value + DECREASE * length * slope + slack and length > SHORTEST:
            length /= 2
            trial = _dual(target, shift + length * step, diagonal)
        if length <= SHORTEST:
            break
        shift = shift + length * step
        value, gradient, parts = trial
    values, vectors = parts
    nearest = (vectors * np.maximum(values, 0.0)) @ vectors.T
    scale = np.sqrt(diagonal / np.diag(nearest))
    nearest *= np.outer(scale, scale)
    np.fill_diagonal(nearest, diagonal)
    return np.asarray((nearest + nearest.T) / 2)


def _dual(
    target: FloatArray, shift: FloatArray, diagonal: FloatArray
) -> tuple[float, FloatArray, tuple[FloatArray, FloatArray]]:
    """theta(y), its gradient, and the eigenvalues and eigenvectors of G + Diag y."""
    values, vectors = np.linalg.eigh(target + np.diag(shift))
    positive = np.maximum(values, 0.0)
    gradient = (vectors**2) @ positive - diagonal
    return float(positive @ positive / 2 - diagonal @ shift), gradient, (values, vectors)


def _newton_step(
    parts: tuple[FloatArray, FloatArray], gradient: FloatArray, size: float
) -> FloatArray:
    """The solution h of (V + REGULAR I) h = -gradient, for a V in the generalised Hessian."""
    from scipy.sparse.linalg import LinearOperator, cg  # slow import

    values, vectors = parts
    positive = np.maximum(values, 0.0)
    gaps = values[:, None] - values[None, :]
    # Eigenvalues that differ only by rounding errors count as equal.
    same = np.abs(gaps) <= 1e-14 * float(np.abs(values).max())
    slopes = np.where(
        same,
        ((values[:, None] > 0) | (values[None, :] > 0)).astype(np.float64),
        (positive[:, None] - positive[None, :]) / np.where(same, 1.0, gaps),
    )

    def product(direction: FloatArray) -> FloatArray:
        inner = slopes * (vectors.T @ (direction[:, None] * vectors))
        return np.asarray(((vectors @ inner) * vectors).sum(axis=1) + REGULAR * direction)

    p = len(gradient)
    operator = LinearOperator((p, p), matvec=product, dtype=np.float64)
    # Quadratic convergence needs more accurate steps as the gradient falls.
    accuracy = min(1e-2, float(np.linalg.norm(gradient)) / size)
    step, _ = cg(operator, -gradient, rtol=max(accuracy, 1e-12), maxiter=4 * p)
    return np.asarray(step)
