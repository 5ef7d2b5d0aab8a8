"""Problems that the scripts on smooth queries share: kernel mixtures, and records to ask about."""

from functools import cache

import numpy as np

from experiments.engine.tools import FloatArray
from geomdp.workloads.smooth import GaussianMixture
from geomdp.workloads.smooth.evaluation import Coefficients

#: Number of kernels of one query, and number of places at which the records lie.
KERNELS, PLACES = 3, 10
#: Narrowest bandwidth of a kernel by number of variables, below the resolution 1 / t of the
#: summaries of degree t. A larger t resolves narrower kernels but adds noise, so the worst query
#: depends on t.
NARROWEST = {1: 1e-3, 2: 1e-2, 3: 5e-2}
#: Public seed of the queries, which are a part of the problem.
SEED = 20131205


@cache
def kernel_family(d: int, smoothness: int, count: int) -> tuple[GaussianMixture, ...]:
    """Random Gaussian mixtures; derivatives of order 0 to K = `smoothness` are at most 1 in size.

    Each mixture has three kernels at uniform centres. Its weights are Gaussian, divided by the
    mixture's bound on derivatives up to order K. The logarithm of its bandwidth is uniform between
    ln(NARROWEST[d]) and 0. A larger family begins with the queries of a smaller one.
    """
    rng = np.random.default_rng(SEED)
    queries = []
    for _ in range(count):
        bandwidth = float(np.exp(rng.uniform(np.log(NARROWEST[d]), 0.0)))
        centres, weights = rng.uniform(-1, 1, (KERNELS, d)), rng.standard_normal(KERNELS)
        bound = GaussianMixture(centres, weights, bandwidth).derivative_bound(smoothness)
        queries.append(GaussianMixture(centres, weights / bound, bandwidth))
    return tuple(queries)


def random_places(d: int, count: int, rng: np.random.Generator) -> FloatArray:
    """`count` lists of ten uniform points of the cube, as an array (count, 10, d)."""
    return rng.uniform(-1, 1, (count, PLACES, d))


def records_at(places: FloatArray, n: int) -> FloatArray:
    """Records (n, d) at the places; numbers of records at two places differ by at most one.

    Approximation errors change sign over the cube and would cancel for records spread smoothly. The
    theorem is claimed for every data set, so the records are put at a few places, where the errors
    cancel less.
    """
    return np.resize(places, (n, places.shape[1]))


def shares(n: int) -> FloatArray:
    """The share of n records that lie at each of the ten places."""
    counts = np.full(PLACES, n // PLACES)
    counts[: n % PLACES] += 1
    return np.asarray(counts / n)


def true_answers(queries: tuple[GaussianMixture, ...], places: FloatArray, n: int) -> FloatArray:
    """Exact answers (r, q) of q queries on n records at each of r lists of `places` (r, 10, d)."""
    points = places.reshape(-1, places.shape[-1])
    values = np.stack([query(points) for query in queries], axis=1)
    return np.asarray(np.einsum("rpq,p->rq", values.reshape(len(places), PLACES, -1), shares(n)))


def stacked(coefficients: tuple[Coefficients, ...]) -> FloatArray:
    """Coefficients of queries as a matrix (q, t^d); its product with moments gives the answers."""
    return np.array([each.values.ravel() for each in coefficients])
