"""A lower bound on the bound of a projection, without its draws: noise that is log-concave."""

from __future__ import annotations

import math

import numpy as np

from geomdp._numerics.seeds import PUBLIC_SEED
from geomdp.mechanisms import AdditiveMechanism
from geomdp.mechanisms.post_processed.projected import squared_noise_limit

#: Elements whose answers are compared in pairs.
ELEMENTS = 64
#: Most queries for which the covariance (m, m) is taken: seconds and 32 MB at most.
MAX_QUERIES = 1 << 11
#: Share of the variances that counts: estimated ones come from 1024 draws, and those of single
#: directions are known to a few percent.
KNOWN = 0.9


def projection_floor(noisy: AdditiveMechanism) -> float:
    r"""A lower bound on the prediction of `Projected`, per query; 0 for more than 2048 queries.

    That prediction is the least of E||Z||^2 / n^2, E h_K(Z) / n and the squared diameter of K, each
    over m, to the power 1/2. For symmetric Z and any two answers q, q' in K,

    .. math:: E h_K(Z) \ge E |<Z, q - q'>| / 2 \ge (Var <Z, q - q'> / 8)^{1/2},

    the second where Z is log-concave: then E|X| is at least the standard deviation of X = <Z, q -
    q'> over the square root of 2, with equality for the Laplace distribution. The largest of these
    is taken over pairs of 64 elements.

    Parameters
    ----------
    noisy : AdditiveMechanism
        Noise Z that is symmetric and log-concave.

    References
    ----------
    Barlow-Marshall-Proschan 1963 (moments of log-concave densities); formula sheet JL-L13, JL-L13b.
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
