"""Privacy bugs that were published, each rebuilt from its description, beside the mended mechanism.

Each function draws outputs on two neighbouring inputs from code of our own. A bug keeps only what
breaks the privacy claim. `BUGS` lists all of them with their sources. OpenDP 2416 is missing,
because no description of it was found.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

import experiments.engine.tools as ex
import geomdp as gd
from geomdp.noise import LaplaceNoise

#: `Generator.laplace` computes noise from uniform numbers in [0, 1) that are multiples of 2^-53.
SPACING = 2.0**-53
#: Number of records of a correctly rounded release. It is a power of two, so that dividing by it
#: is exact in float64 and the means lie on a grid.
RELEASED = 64
#: Number of mechanisms among which the releases of a cell are divided.
KINDS = 3


def float_outputs(scale: float, draws: int, rng: np.random.Generator) -> ex.Row:
    """Count noisy versions of the answer 0 that noise added to the answer 1 cannot give."""
    released = 0.0 + LaplaceNoise(1, scale).sample(rng, draws)[:, 0]
    explained = {a: [possible(y, a, scale) for y in released.tolist()] for a in (0.0, 1.0)}
    return {"hits": explained[1.0].count(False), "unexplained": explained[0.0].count(False)}


def rounded_outputs(epsilon: float, releases: int) -> ex.Row:
    """Count unseeded releases that the neighbour, or the data set itself, cannot give."""
    privacy, off = gd.PureDP(epsilon), np.zeros(2, dtype=int)
    records = np.zeros((RELEASED, 3), dtype=int)
    neighbour = records.copy()
    neighbour[0] = 1
    for mechanism in (
        gd.mechanisms.Laplace(gd.workloads.Marginals(3, 2), n=RELEASED, privacy=privacy),
        gd.mechanisms.Cone(gd.workloads.Marginals(3, 2), n=RELEASED, privacy=privacy),
        gd.mechanisms.KNorm(gd.workloads.Parities(3, 1), n=RELEASED, privacy=privacy),
    ):
        mechanism.set_up()
        assert mechanism.grid is not None
        sums = [mechanism.workload.totals(each).sums for each in (neighbour, records)]
        count = releases // KINDS
        answers = np.array([mechanism.release(records).answers for _ in range(count)])
        for i, reached in enumerate(sums):
            steps = (answers * RELEASED - reached) * 2.0**mechanism.grid
            off[i] += int((steps != np.rint(steps)).any(axis=1).sum())
    return {"hits": int(off[0]), "unexplained": int(off[1])}


def possible(output: float, answer: float, scale: float) -> bool:
    """Whether some draw of `Generator.laplace` added to `answer` gives `output` in float64.

    A uniform number v gives the noise b ln(2 v) if v < 1/2, and -b ln(2 - 2 v) otherwise, where b
    is `scale`.
    """
    noise = output - answer
    middle = math.exp(-abs(noise) / scale)
    # Try all uniform numbers whose noise can round to the output. To each side, allow amply for the
    # rounding of the output, of the logarithm and of its product with the scale.
    width = middle / scale * (math.ulp(output) + 2 * math.ulp(noise) + 2 * math.ulp(scale))
    reach = math.ceil(width / SPACING) + 4
    centre = round((1 - middle / 2 if noise > 0 else middle / 2) / SPACING)
    for k in range(max(centre - reach, 1), min(centre + reach + 1, round(1 / SPACING))):
        v = k * SPACING
        found = -scale * math.log(2 - v - v) if v >= 0.5 else scale * math.log(v + v)
        if answer + found == output:
            return True
    return False


Outputs = npt.NDArray[np.generic]
#: Draws `trials` outputs; the first argument says whether the mechanism is mended, the second
#: whether the input is the neighbour.
Draw = Callable[[bool, bool, int, np.random.Generator], Outputs]

#: Noisy sums are rounded to multiples of this number where a mended mechanism rounds.
GRID = 2.0**-10
#: Number of records, number of queries of a run of sparse vector, and number of composed releases.
RECORDS, QUERIES, STEPS = 100, 100, 100
#: The claim of Gaussian noise in float64.
ROUGH = gd.ApproxDP(1.0, 1e-5)
#: Each composed release is 0.1-DP. `TOLERANCE` is the delta of their composition.
STEP, TOLERANCE = 0.1, 0.01


@dataclass(frozen=True)
class Bug:
    """A published bug with the claim that it breaks."""

    source: str  # Project with the number of its issue, or paper
    what: str  # The bug in a few words, for the figure
    claim: gd.privacy.Privacy  # The claim of the mechanism with the bug
    draw: Draw
    mended_claim: gd.privacy.Privacy | None = None  # If mending changes the claim, not the noise
    score: gd.audit.Score | None = None  # A score that the audit is given; None for learned scores
    most: int = 100_000  # Largest number of trials of an audit
    breaks: bool = True  # Whether the claim is false; False if it is only too weak


def noisy_max(mended: bool, neighbour: bool, trials: int, rng: np.random.Generator) -> Outputs:
    """Choose between the scores (0, 0), at the neighbour (1, -1), with a scale of 1.

    Permute-and-flip visits the scores in random order, and takes the visited one with probability
    e^(its distance from the best). The mended mechanism adds Gumbel noise (exponential mechanism).
    """
    scores = np.array([1.0, -1.0] if neighbour else [0.0, 0.0])
    if mended:
        return (scores + rng.gumbel(size=(trials, 2))).argmax(axis=1)
    second = rng.random(trials) < 0.5 * math.exp(scores[1] - scores.max())
    return second.astype(int)


def missing_sum(mended: bool, neighbour: bool, trials: int, rng: np.random.Generator) -> Outputs:
    """A sum of numbers in [0, 1], where the neighbour has one missing value.

    The bug fills it with NaN after the bounds were checked; the mended sum fills it with 0.
    """
    records = np.ones(RECORDS)
    records[0] = (0.0 if mended else np.nan) if neighbour else 1.0
    return records.sum() + rng.laplace(0.0, 1.0, trials)


def odometer(_mended: bool, neighbour: bool, trials: int, rng: np.random.Generator) -> Outputs:
    """The sum of 100 releases with Laplace noise, each 0.1-DP: the best linear view of them."""
    noise = rng.laplace(0.0, 1 / STEP, (trials, STEPS))
    return (neighbour + noise).sum(axis=1)


def odometer_claim(term: float) -> gd.ApproxDP:
    """The claim of advanced composition with `term` in place of ln(1 / delta)."""
    linear = STEPS * STEP * math.expm1(STEP)
    return gd.ApproxDP(linear + STEP * math.sqrt(2 * STEPS * term), TOLERANCE)


def covariance(mended: bool, neighbour: bool, trials: int, rng: np.random.Generator) -> Outputs:
    """The covariance of two columns in [0, 1], where the neighbour has the record (9, 9).

    The bug clips the records and then reads the ones that are not clipped.
    """
    records = np.linspace(0.0, 1.0, RECORDS)[:, None] * np.array([1.0, 1.0])
    if neighbour:
        records[0] = 9.0
    clipped = np.clip(records, 0.0, 1.0)
    value = float(np.cov((clipped if mended else records).T)[0, 1])
    # One record of n changes the covariance of columns in [0, 1] by at most 1 / n.
    return value + rng.laplace(0.0, 1 / RECORDS, trials)


def regression(mended: bool, neighbour: bool, trials: int, rng: np.random.Generator) -> Outputs:
    """The sum of x^2 for x in [-1, 2], where the neighbour has one more record, 2.

    The bug takes the lower end of the range twice, and so a sensitivity of 1 instead of 4.
    """
    lower, upper = -1.0, 2.0
    ends = (lower, upper) if mended else (lower, lower)
    sensitivity = max(abs(end) for end in ends) ** 2
    records = [1.0] * RECORDS + [upper] * neighbour
    return sum(x**2 for x in records) + rng.laplace(0.0, sensitivity, trials)


def clipped_sum(_mended: bool, neighbour: bool, trials: int, rng: np.random.Generator) -> Outputs:
    """A sum of numbers in [-1, 1] with Gaussian noise of scale 2; one record changes from 1 to -1.

    The bug states rho for a sensitivity of 1, as if a record were added, not replaced.
    """
    return (-1.0 if neighbour else 1.0) + rng.normal(0.0, 2.0, trials)


def float_laplace(mended: bool, neighbour: bool, trials: int, rng: np.random.Generator) -> Outputs:
    """The answer 0, or 1, plus Laplace noise by NumPy; the mended answer is rounded to a grid."""
    return on_grid(mended, float(neighbour) + rng.laplace(0.0, 1.0, trials))


def float_normal(mended: bool, neighbour: bool, trials: int, rng: np.random.Generator) -> Outputs:
    """The answer 0, or 1, plus Gaussian noise; the mended answer is rounded to a grid."""
    scale = gd.privacy.gaussian_scale(1.0, ROUGH)
    return on_grid(mended, float(neighbour) + rng.normal(0.0, scale, trials))


def on_grid(mended: bool, outputs: ex.FloatArray) -> Outputs:
    """The outputs, rounded to multiples of `GRID` if mended."""
    return np.rint(outputs / GRID) * GRID if mended else outputs


def explained(outputs: Outputs) -> ex.FloatArray:
    """1 for outputs that the answer 0 can give and the answer 1 cannot; -1 the other way round."""
    values = [[possible(y, answer, 1.0) for answer in (0.0, 1.0)] for y in outputs.tolist()]
    return np.array(values, dtype=float) @ [1.0, -1.0]


def precise(outputs: Outputs) -> ex.FloatArray:
    """1 for outputs with bits below 2^-53: adding noise to 1 cannot give them."""
    scaled = np.abs(outputs) * 2.0**53
    return (scaled != np.rint(scaled)).astype(float)


def id_codes(mended: bool, neighbour: bool, trials: int, rng: np.random.Generator) -> Outputs:
    """Noisy counts of an id above 2^53 and of the next id, where the neighbour misses one value.

    The bug holds a column with a missing value as float64, which rounds all its ids.
    """
    categories = np.array([2**53, 2**53 + 1])
    column = np.full(RECORDS, 2**53 + 1)
    present = np.arange(RECORDS) > 0 if neighbour else np.full(RECORDS, True)
    if neighbour and not mended:
        column = np.where(present, column.astype(float), np.nan)[present].astype(np.int64)
    counts = (column[: present.sum(), None] == categories).sum(axis=0)
    return counts + rng.laplace(0.0, 1.0, (trials, 2))


def sparse_vector(mended: bool, neighbour: bool, trials: int, rng: np.random.Generator) -> Outputs:
    """Sparse vector with cutoff 1 on 100 queries whose answers equal the threshold.

    At the neighbour, the answers are higher by 1 and lower by 1 in turn. A run halts after one
    query found above. With the bug, all queries are asked before the first is answered, so each is
    compared. -1 stands for a query that was not asked.
    """
    threshold = rng.laplace(0.0, 2.0, (trials, 1))
    moved = (-1.0) ** np.arange(QUERIES) if neighbour else np.zeros(QUERIES)
    answers = moved + rng.laplace(0.0, 4.0, (trials, QUERIES))
    above = (answers >= threshold).astype(int)
    if not mended:
        return above
    asked = np.cumsum(above, axis=1) - above == 0
    return np.where(asked, above, -1)


ONE = gd.PureDP(1.0)
#: Issues are named by project and number. The last two were bugs of this library.
BUGS = (
    Bug("OpenDP 2911", "noisy max states 1/4 of its rho", gd.ZCDP(0.5), noisy_max),
    Bug("OpenDP 2936", "a missing value turns a sum into NaN", ONE, missing_sum),
    Bug("SmartNoise 622", "clips, then reads unclipped data", ONE, covariance),
    Bug("diffprivlib 104", "takes the lower bound twice", ONE, regression),
    Bug(
        "Google DP 378",
        "sensitivity halved for replace-one",
        gd.ZCDP(0.125),
        clipped_sum,
        mended_claim=gd.ZCDP(0.5),
    ),
    Bug("Mironov 2012", "gaps of float64 Laplace noise", ONE, float_laplace, None, explained, 3000),
    Bug("Haney et al. 2022", "precision of a float64 sum", ROUGH, float_normal, None, precise),
    Bug("geomdp, ids", "one missing value recodes all ids", ONE, id_codes),
    Bug("geomdp, sparse", "more answers than the cutoff", ONE, sparse_vector, most=30_000),
    Bug(
        "SmartNoise 621",
        "odometer without its logarithm",
        odometer_claim(1 / TOLERANCE),
        odometer,
        mended_claim=odometer_claim(math.log(1 / TOLERANCE)),
        breaks=False,
    ),
)
