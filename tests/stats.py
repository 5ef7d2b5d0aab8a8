"""Statistical assertions whose thresholds follow from the sample size and a stated level.

Each assertion fails a correct program with probability at most `level` (1e-6 unless said
otherwise). An assertion on several numbers divides the level among them (Bonferroni). The tests
`binomial_below`, `binomial_above`, `binomial_agrees`, `ks_uniform` and `ks_same` are exact or
conservative at any sample size. `mean_agrees` and `mean_at_most` rest on the central limit theorem
for studentised means and therefore ask for at least `MINIMUM_SAMPLES`.
"""

import math
from collections.abc import Callable

import numpy as np
import numpy.typing as npt
import scipy.special
import scipy.stats

from geomdp._typing import BoolArray, FloatArray
from geomdp.audit import AuditResult, Sampler
from geomdp.audit.claims import definition
from geomdp.audit.refutation import judge
from geomdp.privacy import Guarantee, Privacy

#: False-alarm probability of one statistical assertion.
LEVEL = 1e-6
#: Fewest samples for which a normal quantile at level 1e-6 is trusted for a mean.
MINIMUM_SAMPLES = 1000


def ks_uniform(values: npt.ArrayLike, level: float = LEVEL) -> None:
    """Assert that independent `values` (n,) are uniform on [0, 1], by the exact KS distribution."""
    values = np.asarray(values, dtype=float)
    _check_sample(values, "values", ndim=1, minimum=10)
    assert values.min() >= 0, f"value {values.min()} is below 0"
    assert values.max() <= 1, f"value {values.max()} is above 1"
    result = scipy.stats.kstest(values, "uniform", method="exact")
    assert result.pvalue > level, (
        f"KS distance {result.statistic:.4g} from uniform with n = {len(values)} has "
        f"p = {result.pvalue:.2g}, level {level:g}"
    )


def audit_event(
    sample_a: Sampler,
    sample_b: Sampler,
    guarantee: Guarantee | Privacy,
    *,
    trials: int,
    event: Callable[[npt.NDArray], BoolArray],
    rng: int,
) -> AuditResult:
    """The audit of a claim by one event that is fixed beforehand, so that all outputs test it."""
    rngs = np.random.default_rng(rng).spawn(2)
    hits_a, hits_b = (
        int(np.count_nonzero(event(sample(trials, each))))
        for sample, each in zip((sample_a, sample_b), rngs, strict=True)
    )
    return judge(definition(guarantee), hits_a, hits_b, trials, LEVEL, "event")


def ks_same(first: npt.ArrayLike, second: npt.ArrayLike, level: float = LEVEL) -> None:
    """Assert that two independent samples (n,) and (k,) have one distribution.

    Uses Massart's inequality for each empirical distribution function, so it is conservative:
    distance <= sqrt(ln(4 / level) / 2) (n^(-1/2) + k^(-1/2)) fails with probability <= level.
    """
    first, second = np.asarray(first, dtype=float), np.asarray(second, dtype=float)
    _check_sample(first, "first", ndim=1, minimum=10)
    _check_sample(second, "second", ndim=1, minimum=10)
    everything = np.sort(np.concatenate([first, second]))
    ranks = [
        np.searchsorted(np.sort(part), everything, side="right") / len(part)
        for part in (first, second)
    ]
    distance = float(np.abs(ranks[0] - ranks[1]).max())
    threshold = math.sqrt(math.log(4 / level) / 2) * (len(first) ** -0.5 + len(second) ** -0.5)
    assert distance <= threshold, f"KS distance {distance:.4g} is above {threshold:.4g}"


def mean_agrees(samples: npt.ArrayLike, expected: npt.ArrayLike, level: float = LEVEL) -> None:
    """Assert that independent `samples` (n, ...) have mean `expected` (...), two-sided.

    It checks |mean - expected| <= z stderr + rounding in every entry, where a standard normal
    variable exceeds z with probability level / (2 * number of entries). Entries that do not vary
    must agree up to rounding.
    """
    error, stderr, z, rounding = _deviation(samples, expected, level, sides=2)
    worst = np.unravel_index(np.argmax(np.abs(error) - z * stderr - rounding), error.shape)
    assert (np.abs(error) <= z * stderr + rounding).all(), (
        f"mean is off by {error[worst]:.4g} = {error[worst] / max(stderr[worst], 1e-300):.1f} "
        f"standard errors at entry {tuple(map(int, worst))}, allowed {z:.2f}"
    )


def mean_at_most(samples: npt.ArrayLike, bound: npt.ArrayLike, level: float = LEVEL) -> None:
    """Assert that independent `samples` (n, ...) have mean at most `bound` (...), one-sided."""
    error, stderr, z, rounding = _deviation(samples, bound, level, sides=1)
    excess = error - z * stderr - rounding
    assert (excess <= 0).all(), (
        f"mean exceeds its bound by {excess.max():.4g} beyond {z:.2f} stderr"
    )


def binomial_above(successes: int, trials: int, probability: float, level: float = LEVEL) -> None:
    """Assert that `successes` is consistent with a success probability of at least `probability`.

    Fails if P(Binomial(trials, probability) <= successes) <= level: an exact lower-tail test.
    """
    tail = float(scipy.stats.binom.cdf(successes, trials, probability))
    assert tail > level, (
        f"{successes} of {trials} successes are too few for probability >= {probability:g}: "
        f"tail {tail:.2g}, level {level:g}"
    )


def binomial_below(successes: int, trials: int, probability: float, level: float = LEVEL) -> None:
    """Assert that `successes` is consistent with a success probability of at most `probability`.

    Fails if P(Binomial(trials, probability) >= successes) <= level: an exact upper-tail test.
    """
    tail = float(scipy.stats.binom.sf(successes - 1, trials, probability))
    assert tail > level, (
        f"{successes} of {trials} successes are too many for probability <= {probability:g}: "
        f"tail {tail:.2g}, level {level:g}"
    )


def binomial_agrees(successes: int, trials: int, probability: float, level: float = LEVEL) -> None:
    """Assert that `successes` is consistent with success probability `probability`, two-sided."""
    binomial_above(successes, trials, probability, level / 2)
    binomial_below(successes, trials, probability, level / 2)


def _check_sample(values: FloatArray, name: str, ndim: int | None, minimum: int) -> None:
    if ndim is not None and values.ndim != ndim:
        raise ValueError(f"{name} must have {ndim} axes, got shape {values.shape}")
    if len(values) < minimum:
        raise ValueError(f"{name} must hold at least {minimum} samples, got {len(values)}")
    assert np.isfinite(values).all(), f"{name} has entries that are not finite"


def _deviation(
    samples: npt.ArrayLike, expected: npt.ArrayLike, level: float, sides: int
) -> tuple[FloatArray, FloatArray, float, FloatArray]:
    """Deviation of the mean, its standard error, the normal quantile, and the rounding error."""
    samples = np.asarray(samples, dtype=float)
    expected = np.asarray(expected, dtype=float)
    _check_sample(samples, "samples", ndim=None, minimum=MINIMUM_SAMPLES)
    if expected.shape not in ((), samples.shape[1:]):
        raise ValueError(f"expected must have shape {samples.shape[1:]}, got {expected.shape}")
    stderr = samples.std(axis=0, ddof=1) / math.sqrt(len(samples))
    entries = max(1, math.prod(samples.shape[1:]))
    z = -float(scipy.special.ndtri(level / (sides * entries)))
    # The mean and `expected` have rounding errors: allow a thousand units in the last place.
    rounding = 1e3 * np.finfo(float).eps * np.maximum(np.abs(samples).max(axis=0), np.abs(expected))
    return samples.mean(axis=0) - expected, stderr, z, rounding
