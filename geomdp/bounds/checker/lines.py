"""Check of the rungs that use orthogonal lines: lengths and risks are computed again.

`geomdp.bounds.lines.orthogonal_lines` and `geomdp.bounds.lines.bayes_risk` explain the proof and
its notation.
"""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from geomdp.bounds.checker.listed import answers_of
from geomdp.bounds.checker.values import Part, require, require_close, rounded_down, rounded_up
from geomdp.bounds.checker.verified import Verified

Vector = npt.NDArray[np.float64]

#: `_lengths` leaves out eigenvectors with eigenvalues below this share of the largest eigenvalue.
LEAST_EIGENVALUE = 1e-9
#: Relative rounding error allowed for a sum over the T steps of a line. For T = 1000,
#: the rounding errors are below a quarter of this number. Honest files have a larger margin, 5e-12.
ROUNDING = 1e-12
#: The risk of a line is checked for a list of estimates y and for each point t of the prior. This
#: is the largest number of pairs (y, t): the check then takes about a second.
MOST_CELLS = 1 << 24
#: Largest number of points of a prior. `ROUNDING` is large enough for this number.
MOST_STEPS = 1001


def verify_lines(
    rung: Part, alpha: float, epsilon: float, moment: int
) -> tuple[Verified, int, int]:
    """Check a rung (one step of a certificate) that uses orthogonal lines.

    Returns the result of the check, and the first and last number of records that the rung
    excludes. `epsilon` is the privacy loss of replacing one record. `moment` is 2 for a root mean
    squared error and 1 for other errors.
    """
    family = rung.part("family")
    answers, subject, queries, conditions = answers_of(family)
    lengths = _lengths(family, answers)
    steps, copies = rung.whole_array("steps", axes=1), rung.whole("copies")
    require(
        len(steps) == len(lengths),
        f"the entry 'steps' must have one number for each of {len(lengths)} lines",
    )
    require(bool(steps.min() >= 1), "a line has no step")
    risks = _risks(rung, epsilon * copies, moment)
    require(
        sorted(risks) == sorted(set(steps.tolist())),
        "the entry 'known' must have one risk for each value in 'steps'",
    )
    squares = sum(
        length**2 * risks[count] ** (2 / moment)
        for count, length in zip(steps.tolist(), lengths.tolist(), strict=True)
    )
    found = copies * math.sqrt(squares / answers.shape[1])
    scale = rung.number("scale")
    require_close(scale, found, "scale")
    require(scale <= found * (1 - 1e-10), f"scale is {found:.15g} up to rounding, not {scale:.15g}")
    first, last = rung.whole("first"), rung.whole("last")
    records = copies * int(steps.sum())
    require(first == records, f"first is {records}, the file says {first}")
    reach = scale / alpha
    require(math.isfinite(reach), "alpha is too small for float64")
    require(last <= reach * (1 + 1e-15), f"last is {math.floor(reach)}, the file says {last}")
    require(last + 1 > reach * (1 - 1e-10), f"last is {math.floor(reach)}, not {last}")
    shortest, longest = rounded_down(float(lengths.min())), rounded_up(float(lengths.max()))
    return (
        Verified(
            subject=subject,
            queries=queries,
            verified=(
                f"{len(steps)} orthogonal lines with answers {shortest} to {longest} "
                f"apart, and the Bayes risk of the steps on one line",
            ),
            conditions=conditions,
        ),
        first,
        last,
    )


def _lengths(family: Part, answers: Vector) -> Vector:
    """|<u_j, w_j>| for differences w_j of answers and orthonormal vectors u_j.

    The weighted w_j are the columns of a matrix. The u_j are the columns of its polar factor.
    """
    pairs, weights = family.whole_array("pairs", axes=2), family.array("weights", axes=1)
    inside = pairs.min() >= 0 and pairs.max() < len(answers)
    require(bool(inside) and pairs.shape[1] == 2, "pairs name elements that are not listed")
    require(
        len(weights) == len(pairs) and bool((weights > 0).all()),
        "weights are not one number above 0 per pair",
    )
    require(len(pairs) <= answers.shape[1], "there are more lines than queries")
    family.work.spend(len(pairs) ** 2 * (answers.shape[1] + 10 * len(pairs)))
    differences = answers[pairs[:, 0]] - answers[pairs[:, 1]]
    scaled = differences * (weights / weights.max())[:, None]
    values, vectors = np.linalg.eigh(scaled @ scaled.T)
    require(bool(values[-1] > 0), "all differences are 0")
    kept = values > LEAST_EIGENVALUE * values[-1]
    axes = (vectors[:, kept] / np.sqrt(values[kept])).T @ scaled
    # Rounding makes axes of small eigenvalues less accurately orthonormal. One Newton step for the
    # polar factor corrects them.
    axes = 1.5 * axes - 0.5 * (axes @ axes.T) @ axes
    frame = vectors[:, kept] @ axes
    # The bound holds for any u_j if the matrix of the u_j has operator norm at most 1. The result
    # is divided by this norm. So the weights and the rounding of the steps above need no check.
    norm = math.sqrt(float(np.linalg.eigvalsh(frame @ frame.T)[-1]))
    return np.asarray(np.abs(np.einsum("jk,jk->j", frame, differences)) / norm)


def _risks(rung: Part, epsilon: float, moment: int) -> dict[int, float]:
    """The checked risk for each number of steps of a line."""
    risks: dict[int, float] = {}
    for line in rung.parts("known"):
        prior, risk = line.array("prior", axes=1), line.number("risk")
        allowances = line.array("allowances", axes=1)
        require(len(prior) > 1, "a prior has one point only")
        require(
            len(allowances) == len(prior), "there is not one allowance for each point of a prior"
        )
        require(bool((prior >= 0).all()), "a prior is negative")
        mass = math.fsum(prior.tolist())
        require_close(mass, 1.0, "the sum of a prior")
        spacing = line.number("spacing")
        require(0 < spacing <= 1 and (moment == 2 or spacing == 1), "spacing is out of range")
        require(len(prior) ** 2 / spacing <= MOST_CELLS, "a line has too many steps or points y")
        require(len(prior) <= MOST_STEPS, f"a line has more than {MOST_STEPS - 1} steps")
        line.work.spend(50 * int(len(prior) ** 2 / spacing))
        # e^600 is in the range of float64.
        require(epsilon * len(prior) < 600, "epsilon times the number of points is above 600")
        require(risk > 0, "a risk is not above 0")
        # The sum of a prior can differ from 1 by rounding. Prior and allowances may be divided by
        # this sum: the condition that `_holds` checks stays the same.
        total = math.fsum(allowances.tolist()) / mass
        require_close(risk, total, "risk")
        require(risk <= total, f"risk is {total:.15g}, the file says {risk:.15g}")
        require(
            _holds(prior, allowances, epsilon, moment, spacing),
            "the allowances are too large: some private estimate of a number from 0 to "
            f"{len(prior) - 1} may have an error below {risk:.15g}",
        )
        risks[len(prior) - 1] = risk
    return risks


def _holds(prior: Vector, allowances: Vector, epsilon: float, moment: int, spacing: float) -> bool:
    """Whether sum_t f_t (pi_t |y - t|^p - nu_t) >= 0 for all estimates y and all densities f.

    pi is the prior, nu are the allowances, and p is the `moment`. f_t > 0 is the density of an
    output at t. From each t to the next, f_t changes by a factor from e^-epsilon to e^epsilon. The
    test is a dynamic program from the last t down: `least` is the least value of the sum from t on,
    divided by f_t. The least value is attained at the largest or the smallest factor. `size` is the
    sum of the absolute values of the same terms. The rounding error of the sum is a small share of
    `size`. So the sum must be at least this share, `ROUNDING` times `size`.
    """
    points = np.arange(0.0, len(prior) - 1 + spacing, spacing)
    least, size = np.zeros(len(points)), np.zeros(len(points))
    for t in reversed(range(len(prior))):
        distance = np.abs(points - t)
        loss = distance if moment == 1 else distance**2 - (spacing / 2) ** 2
        factor = np.where(least > 0, math.exp(-epsilon), math.exp(epsilon))
        gain = prior[t] * loss - allowances[t]
        terms = prior[t] * np.abs(loss) + abs(allowances[t])
        least, size = gain + factor * least, terms + factor * size
    return bool((least >= ROUNDING * size).all())
