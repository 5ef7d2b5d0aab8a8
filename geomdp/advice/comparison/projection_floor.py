"""A quick lower bound on the predicted error of `Projected`, for log-concave noise."""

from __future__ import annotations

import math

import numpy as np

from geomdp._numerics.seeds import PUBLIC_SEED
from geomdp.mechanisms import AdditiveMechanism
from geomdp.mechanisms.post_processed.projected import squared_noise_limit

#: Number of random elements of the universe. Their answers are compared in pairs.
ELEMENTS = 64
#: Largest number m of queries for which the covariance (m, m) of the noise is computed. This takes
#: at most 32 MB and a few seconds.
MAX_QUERIES = 1 << 11
#: Variances are multiplied by this factor to keep the result a lower bound. Some variances are
#: estimated from 1024 draws, with errors of a few percent.
KNOWN = 0.9


def projection_floor(noisy: AdditiveMechanism) -> float:
    r"""A lower bound on the prediction of `Projected`, per query; 0 for more than 2048 queries.

    Let Z be the noise on the sums of the m answers over n records. Let K be the convex hull of the
    answers of all elements, with support function h_K. The prediction is at least (s / m)^{1/2},
    where s is the least of E||Z||^2 / n^2, E h_K(Z) / n and the squared diameter of K. For
    symmetric Z and any two points q, q' of K,

    .. math:: E h_K(Z) \ge E |<Z, q - q'>| / 2 \ge (Var <Z, q - q'> / 8)^{1/2}.

    The second inequality needs a log-concave Z. Then E|X| for X = <Z, q - q'> is at least the
    standard deviation of X divided by the square root of 2, with equality for the Laplace
    distribution. The bound uses the largest right-hand side over all pairs of 64 random elements.
    Symmetry and log-concavity of Z are not checked (Barlow-Marshall-Proschan 1963; JL-L13,
    JL-L13b).
    """
    workload, m = noisy.workload, noisy.workload.n_queries
    if m > MAX_QUERIES:
        return 0.0
    answers = workload.evaluate(
        workload.universe.sample(ELEMENTS, np.random.default_rng(PUBLIC_SEED))
    )
    products = answers @ noisy.noise.covariance() @ answers.T
    own = np.diag(products)
    variance = KNOWN * float((own[:, None] + own - 2 * products).max())
    support = math.sqrt(max(variance, 0.0) / 8)
    squared = min(squared_noise_limit(noisy), support / noisy.n, workload.l2_diameter() ** 2)
    return math.sqrt(squared / m)
