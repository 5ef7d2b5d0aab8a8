r"""A lower bound on the error of all purely private noise, from the error of Gaussian noise.

Let D be the set of all differences of the sums of neighbours. Let Z be noise that is added to sums
of answers and makes them epsilon-DP. Take any w in D, any direction u, and a = <u, w> > 0. The laws
of <u, Z> and <u, Z> + a have a density ratio between e^-epsilon and e^epsilon. Divide <u, Z> by a,
and split it into a whole number and the fractional part. Given the fractional part, the whole
number k has probabilities p(k) with p(k + 1) / p(k) in [q, 1 / q] for q = e^-epsilon. Among all
such p and for every centre c, the means of (k - c)^2 and of |k - c| are least for p(k) proportional
to q^|k| and c = 0: geometric noise. (To prove it, shift k so that |c| <= 1/2, and let V be the
claimed least mean. The sums over i >= 0 of q^i ((d + i)^2 - V) and of q^i (d + i - V) are at least
0 for every d >= 1/2. So a tail of p with a given first probability adds least to the mean minus V
if the tail falls by the factor q in each step.) Hence

    Var <u, Z> >= <u, w>^2 / (2 sinh(epsilon / 2)^2),      E |<u, Z>| >= |<u, w>| / sinh(epsilon).

The first inequality for all u says that the ellipsoid {v : v^T Cov(Z)^-1 v <= 2 sinh(epsilon/2)^2}
contains D. Let T be the least trace of S over all ellipsoids {v : v^T S^-1 v <= 1} that contain D.
Then E ||Z||^2 >= T / (2 sinh(epsilon / 2)^2). The best Gaussian noise has E ||Z||^2 = T sigma^2,
where sigma is its scale for sensitivity 1. Under rho-zCDP, sigma^2 = 1 / epsilon^2 for
epsilon = sqrt(2 rho). So no epsilon-DP noise is better if 2 sinh(epsilon / 2)^2 <= epsilon^2, that
is, for rho up to 4.4.

References
----------
Ghosh-Roughgarden-Sundararajan 2012 and Geng-Viswanath 2016 for one query; formula sheet JL-ELL,
JL-GAUSS, JL-L13b. The bound for many queries is derived here.
"""

from __future__ import annotations

import math

import numpy as np

from geomdp._numerics.seeds import PUBLIC_SEED
from geomdp.advice.comparison.trials import Built, Trials
from geomdp.bounds.certificates.problem import CHANGES
from geomdp.mechanisms import Matrix, PredictionKind, ResidualGaussian
from geomdp.mechanisms.additive_noise.ellipsoid import is_around_differences_alone
from geomdp.privacy import ZCDP, ApproxDP, PureDP, gaussian_scale
from geomdp.workloads import Workload

#: The error of every Gaussian noise is at least this share of the error of the best Gaussian noise
#: found. If the search for the ellipsoid of `Matrix` converges, the trace exceeds the least trace
#: by 0.5% at most, so the error exceeds the least error by 0.25% at most.
OPTIMAL = 0.995
#: For a larger epsilon no bound is stated, because sinh(2 epsilon) could overflow.
MOST_EPSILON = 300.0
#: Number of random elements of the universe whose answers are compared in pairs.
ELEMENTS = 64


def pure_noise_floor(trials: Trials) -> float:
    r"""A lower bound, per query, on the predictions of purely private noise, projected or not.

    Let m be the number of queries, K the convex hull of all answers, and h_K its support function.
    The prediction of `Projected` is at least (s / m)^(1/2), where s is the least of three numbers:
    E ||Z||^2 / n^2, E h_K(Z) / n and the squared diameter of K. If Z has mean 0,
    E h_K(Z) >= E |<Z, q - q'>| / 2 for any answers q, q'. So the inequalities in the module's
    docstring give lower bounds on the first two numbers, and the third is known. Under add/remove,
    q - q' is the sum of two differences of neighbours, and epsilon counts twice.

    It is 0 if pure privacy is asked for, if epsilon is above `MOST_EPSILON`, or if the best
    Gaussian noise is not known.
    """
    setting, epsilon = trials.setting, trials.setting.pure.epsilon
    if isinstance(setting.privacy, PureDP) or epsilon > MOST_EPSILON:
        return 0.0
    gaussian = min((t.prediction.value for t in trials.built if _is_optimal(t)), default=0.0)
    unit = gaussian / gaussian_scale(1.0, setting.privacy)
    noise = OPTIMAL * unit / (math.sqrt(2) * math.sinh(epsilon / 2))
    if noise < trials.least:
        return noise  # The other terms can only lower the result further.
    workload, m = setting.workload, setting.workload.n_queries
    lost = CHANGES[setting.adjacency] * epsilon
    support = _squared_distance(workload) / (2 * math.sinh(lost))
    squares = (m * noise**2, support / setting.n, workload.l2_diameter() ** 2)
    return math.sqrt(min(squares) / m)


def _is_optimal(trial: Built) -> bool:
    """Whether `trial` is Gaussian noise alone, and none has less than `OPTIMAL` times its error."""
    if trial.step is not None or trial.prediction.kind is not PredictionKind.EXACT:
        return False
    match trial.mechanism:
        case Matrix(privacy=ZCDP() | ApproxDP(), workload=workload, adjacency=adjacency):
            # If there are too many differences to list, the ellipsoid is searched only in a family
            # that is easy to compute.
            return is_around_differences_alone(workload, adjacency)
        case ResidualGaussian(is_best=is_best):
            return is_best
    return False


def _squared_distance(workload: Workload) -> float:
    """The largest squared distance between the answers of two of 64 random elements."""
    elements = workload.universe.sample(ELEMENTS, np.random.default_rng(PUBLIC_SEED))
    answers = workload.evaluate(elements)
    products = answers @ answers.T
    own = np.diag(products)
    return float((own[:, None] + own - 2 * products).max())
