"""Check of the rungs that use lines: lengths and risks are computed again.

The lines are orthogonal, or along single queries. The functions that check them have the proofs.
"""

from __future__ import annotations

import itertools
import math

import numpy as np
import numpy.typing as npt

from geomdp.bounds.checker.listed import MOST_ANSWERS, answers_of
from geomdp.bounds.checker.reading import (
    LEAST,
    CertificateRejected,
    Guarantee,
    Measure,
    Part,
    Stated,
    Verified,
    excluded_records,
    require,
    require_at_most,
    require_close,
    rounded_down,
    rounded_up,
)

# Orthogonal lines.

Vector = npt.NDArray[np.float64]
Rows = npt.NDArray[np.int64]
#: `_lengths` leaves out eigenvectors with eigenvalues below this share of the largest eigenvalue.
LEAST_EIGENVALUE = 1e-9


def verify_lines(rung: Part, problem: Stated) -> tuple[Verified, int, int]:
    """Check a rung of orthogonal lines; return the result, and the first and last excluded n.

    Take i pairs of elements (x_j, x'_j). Let w_j be the difference of their answers, and delta_j =
    <u_j, w_j> for orthonormal vectors u_1..u_i. Let T_1..T_i be numbers of steps, and b a number of
    copies. For 0 <= t_j <= T_j let X(t) be a data set of n >= b sum_j T_j records with b t_j copies
    of x_j and b (T_j - t_j) copies of x'_j for every j; all others are copies of a fixed element.
    Then n Q(X(t)) = constant + b sum_j t_j w_j for the k answers Q.

    Fix all entries of t except t_j. Then n <u_j, M(X(t))>, less the part of n <u_j, Q(X(t))> that
    does not depend on t_j, is an estimate of b t_j delta_j by a mechanism M. Data sets of t_j and
    t_j + 1 are b replacements apart. For independent priors, the p-th moment of its error, in units
    of b delta_j, is at least the risk lambda_j for all values of the other entries. The errors add
    up:

        max_X E ||n (M(X) - Q(X))||_2^2  >=  b^2 sum_j lambda_j delta_j^2              (p = 2),
        max_X E ||n (M(X) - Q(X))||_2    >=  b (sum_j (lambda_j delta_j)^2)^(1/2)      (p = 1).

    For the second inequality, use ||e||_2 >= sum_j a_j |<u_j, e>| for the vector a of norm 1 with
    a_j proportional to lambda_j delta_j. Let C be the square root of the first right side divided
    by k for p = 2, and the second divided by sqrt(k) for p = 1. No mechanism with the guarantee has
    an error below C / n on all these data sets: alpha is excluded for all n with b sum_j T_j <= n <
    C / alpha.

    The largest error over all queries is at least that over any k' of them, and so at least their
    Euclidean norm divided by sqrt(k'). So the bound for k' queries holds, with k' in place of k in
    C.
    """
    family, moment = rung.part("family"), problem.measure.moment
    listing = answers_of(family)
    answers = _bounded_queries(family, listing.answers, problem.measure)
    lengths = _lengths(family, answers)
    steps, copies = rung.whole_array("steps", axes=1), rung.whole("copies")
    each = f"the entry 'steps' must have one number for each of {len(lengths)} lines"
    require(len(steps) == len(lengths), each)
    require(bool(steps.min() >= 1), "a line has no step")
    risks = _known_risks(rung, problem.guarantee, copies * problem.changes, moment)
    same = sorted(risks) == sorted(set(steps.tolist()))
    require(same, "the entry 'known' must have one risk for each value in 'steps'")
    squares = sum(
        length**2 * risks[count] ** (2 / moment)
        for count, length in zip(steps.tolist(), lengths.tolist(), strict=True)
    )
    found = copies * math.sqrt(squares / answers.shape[1])
    scale = rung.number("scale")
    require_at_most(scale, found * (1 - 1e-10), "scale")
    first, last = excluded_records(rung, copies * int(steps.sum()), scale / problem.alpha)
    shortest, longest = rounded_down(float(lengths.min())), rounded_up(float(lengths.max()))
    verified = (
        f"{len(steps)} orthogonal {'line' if len(steps) == 1 else 'lines'} with answers {shortest} "
        f"to {longest} apart, and the Bayes risk of the steps on one line"
    )
    return listing.verified(verified), first, last


def _bounded_queries(family: Part, answers: Vector, measure: Measure) -> Vector:
    """The answers to all queries or, for the largest error only, to those that the file lists."""
    if "queries" not in family.values:
        return answers
    require(measure.largest, "lines for some of the queries bound only the largest error")
    queries = _queries(family, answers)
    require(bool((np.diff(queries) > 0).all()), "queries are not in increasing order")
    return np.asarray(answers[:, queries])


def _queries(family: Part, answers: Vector) -> Rows:
    """The numbers of queries that the file lists, after a check of their range."""
    queries = family.whole_array("queries", axes=1)
    inside = queries.min() >= 0 and queries.max() < answers.shape[1]
    require(bool(inside), f"queries are not numbers from 0 to {answers.shape[1] - 1}")
    return queries


def _pairs(family: Part, answers: Vector) -> Rows:
    """The pairs (i, 2) of row numbers of elements, after a check of their range and number."""
    pairs = family.whole_array("pairs", axes=2)
    inside = pairs.min() >= 0 and pairs.max() < len(answers)
    require(bool(inside) and pairs.shape[1] == 2, "pairs name elements that are not listed")
    enough = len(pairs) * answers.shape[1] <= MOST_ANSWERS
    require(enough, "there are too many answers of pairs")
    return pairs


def _lengths(family: Part, answers: Vector) -> Vector:
    """Lengths |<u_j, w_j>|; the u_j are the columns of the polar factor of the weighted w_j."""
    pairs, weights = _pairs(family, answers), family.array("weights", axes=1)
    positive = len(weights) == len(pairs) and bool((weights > 0).all())
    require(positive, "weights are not one number above 0 per pair")
    require(len(pairs) <= answers.shape[1], "there are more lines than queries")
    family.work.spend(len(pairs) ** 2 * (answers.shape[1] + 10 * len(pairs)))
    family.work.spend(20 * answers.shape[1] * len(pairs))
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


def _known_risks(rung: Part, guarantee: Guarantee, changes: int, moment: int) -> dict[int, float]:
    """Check all risks in the file; return the risk by the number of steps of `changes` changes."""
    found = [verify_risk(line, guarantee, changes, moment) for line in rung.parts("known")]
    require(len(dict(found)) == len(found), "a number of steps has two risks")
    return dict(found)


# Lines along single queries.

#: Largest number of steps of a line, and largest privacy loss of a line along one query.
MOST_STEPS, MOST_QUERY_LOSS = 1000, 600.0
#: Relative rounding error allowed for C; a certificate rounds C down by 1e-10.
SCALE_ROUNDING = 1e-11


def verify_query_lines(rung: Part, problem: Stated) -> tuple[Verified, int, int]:
    """Check a rung of query lines; return the result, and the first and last excluded n.

    Take g pairs of elements (x_j, x'_j) and g queries q_j. The answers of x_j and x'_j to q_j
    differ by at least delta > 0, and those of x_i and x'_i, i > j, are the same. A data set of n >=
    b g T records has b t_j copies of x_j and b (T - t_j) copies of x'_j for every j, 0 <= t_j <= T,
    and copies of a fixed element. The answer to q_j depends on t_1, ..., t_j only.

    Take the same prior on each t_j, independently. Let e_j be n times the absolute error for q_j,
    and s > 0. Given an output and t_1, ..., t_{j-1}, e_j < s only if t_j is in an open interval of
    length 2 s / (b delta) or less, which has at most m whole numbers: m is its length rounded up.
    By `_least_tail`, t_j is outside any m consecutive numbers with a probability of at least p(m).
    This is also true for the mean over t_{j+1}, ..., t_g, because the mean of private densities is
    private. For j = g, then j = g - 1, and so on: all g errors are below s with a probability of at
    most (1 - p(m))^g. Integrate one minus this number over s: n times the mean of the largest error
    is, on some of these data sets, at least

        C = (b delta / 2) sum_{m=1}^T (1 - (1 - p(m))^g).

    An error alpha is excluded for all n with b g T <= n < C / alpha.
    """
    epsilon = problem.pure_epsilon("query lines")
    require(problem.measure.largest, "query lines bound only the largest error")
    family = rung.part("family")
    listing = answers_of(family)
    length, count = _length(family, listing.answers)
    prior, steps, copies = rung.array("prior", axes=1), rung.whole("steps"), rung.whole("copies")
    require(len(prior) == steps + 1, f"the prior does not have {steps + 1} entries")
    require(bool((prior >= 0).all()), "the prior is negative")
    # The sum must be 1. With a tiny sum, products of the prior with factors e^-epsilon would be
    # rounded to multiples of 5e-324.
    require_close(math.fsum(prior.tolist()), 1.0, "the sum of the prior")
    require(steps <= MOST_STEPS, f"a line has more than {MOST_STEPS} steps")
    loss = epsilon * copies * steps
    require(loss <= MOST_QUERY_LOSS, "the steps of a line lose too much privacy")
    family.work.spend(20 * steps**3 + 50_000 * steps**2)
    largest = math.fsum(
        -math.expm1(count * math.log1p(-_least_tail(prior, epsilon * copies, width)))
        for width in range(1, steps + 1)
    )
    found, scale = copies * length / 2 * largest, rung.number("scale")
    require_at_most(scale, found * (1 - SCALE_ROUNDING), "scale")
    first, last = excluded_records(rung, copies * steps * count, scale / problem.alpha)
    verified = (
        f"{count} lines along one query each, with answers at least {rounded_down(length)} apart, "
        "and the largest error of independent guesses on them"
    )
    return listing.verified(verified), first, last


def _length(family: Part, answers: Vector) -> tuple[float, int]:
    """The least difference of a pair's answers to its own query, and the number of pairs."""
    pairs, queries = _pairs(family, answers), _queries(family, answers)
    require(len(queries) == len(pairs), "there is not one query for each pair")
    family.work.spend(10 * len(pairs) * (len(pairs) + answers.shape[1]) + 50_000 * len(pairs))
    first, second = answers[pairs[:, 0]], answers[pairs[:, 1]]
    for line in range(len(pairs)):
        before = queries[:line]
        unchanged = bool((first[line, before] == second[line, before]).all())
        require(unchanged, f"line {line} changes the query of an earlier line")
    own = np.arange(len(pairs))
    lengths = np.abs(first[own, queries] - second[own, queries])
    require(bool((lengths > 0).all()), "a line does not change its own query")
    return float(lengths.min()), len(pairs)


def _least_tail(prior: Vector, epsilon: float, width: int) -> float:
    """The least posterior probability that t is outside a window of `width` numbers."""
    # Let W be the numbers from l to r, x = f_l and y = f_r for the output densities f_t, and q =
    # e^-epsilon. The ratio of the masses outside and inside W is smallest if f_t is as small as
    # possible outside, x q^(l - t) for t < l and y q^(t - r) for t > r, and as large as possible
    # inside, the smaller one of x q^(l - t) and y q^(t - r). The mass outside is linear in (x, y),
    # that inside is concave and piecewise linear. So the ratio is smallest where two pieces meet,
    # at some `peak` in W, and f_t is proportional to q^|t - peak|.
    numbers, least = np.arange(len(prior)), 1.0
    for peak in range(len(prior)):
        masses = prior * np.exp(-epsilon * np.abs(numbers - peak))
        # The prior has the sum 1 and the line loses at most `MOST_QUERY_LOSS`. So the sum of the
        # masses is at least e^-600, and masses that underflow are too small to matter.
        total = float(masses.sum())
        before = np.concatenate([[0.0], np.cumsum(masses)])[: len(prior) - width + 1]
        after = np.concatenate([np.cumsum(masses[::-1])[::-1], [0.0]])[width:]
        least = min(least, float((before + after).min()) / total)
    return least


# The Bayes risk of one line, under zCDP or (epsilon, delta)-DP.

#: Relative error allowed for a sum over the steps of a line: above the rounding errors of
#: `MOST_STEPS` terms, and below 1e-12, by which a certificate rounds risks down.
RISK_ROUNDING = 4e-13


def verify_risk(line: Part, guarantee: Guarantee, changes: int, moment: int) -> tuple[int, float]:
    """The number of steps, each of `changes` changes, and the checked risk of a line.

    A mechanism estimates t in {0, ..., T} by y, and the data sets of t and t + 1 are b changes
    apart. `verify_allowances` explains the argument for pure privacy. For another guarantee, a file
    names one of three arguments, of which "allowances" is the same under (epsilon, delta)-DP.

    "pairs", for the uniform prior and the mean of |y - t|^p: this power is the integral over the u
    between t and y of 1 (p = 1) or 2 |u - t| (p = 2). Take u between s and s + 1, and pair t = s -
    j with t' = s + 1 + j. The probabilities that y is on the wrong side of u for t and for t' add
    up to at least the overlap for (2 j + 1) b changes. For p = 2 the smaller weight has the
    integral 2 j + 1/2. There are T - 2 j numbers s for each j, so the mean is at least

        sum over j from 0 to (T - 1) / 2 of (T - 2 j) / (T + 1) w_j overlap((2 j + 1) b),

    where w_j = 1 for p = 1 and w_j = 2 j + 1/2 for p = 2.

    "differences", for the mean squared error under zCDP, is van Trees' inequality with differences.
    Let f_t be the output density, pi the prior, c_0, ..., c_{T-1} weights above 0 and c_{-1} = c_T
    = 0. Let g_t = c_t f_t - c_{t-1} f_{t-1} and psi = g_t / (pi_t f_t). The g_t of an output add up
    to 0, so the mean of (y - t) psi is that of - t psi, which is c_0 + ... + c_{T-1}. The mean of
    psi^2 is at most sum_t ((c_t - c_{t-1})^2 + kappa c_{t-1}^2) / pi_t, where kappa bounds the
    chi-square divergence of one step. The Cauchy-Schwarz inequality for the best prior gives

        E (y - t)^2 >= (sum_t c_t)^2 / (sum_{t=0}^T ((c_t - c_{t-1})^2 + kappa c_{t-1}^2)^(1/2))^2.
    """
    if guarantee.is_pure:
        return verify_allowances(line, guarantee.epsilon * changes, 0.0, moment)
    argument = line.word("argument")
    if argument == "allowances":
        require(guarantee.delta > 0, "allowances prove nothing under zCDP")
        return verify_allowances(line, *guarantee.of_group(changes), moment)
    risk = line.number("risk")
    if argument == "pairs":
        steps = line.whole("steps", most=MOST_STEPS)
        line.work.spend(50_000 * steps)  # under zCDP, an overlap needs the root of an equation
        found = _paired(steps, guarantee, changes, moment)
    elif argument == "differences":
        require(moment == 2, "differences bound a root mean squared error only")
        weights = line.array("weights", axes=1).tolist()
        steps = len(weights)
        require(steps <= MOST_STEPS, f"a line has more than {MOST_STEPS} steps")
        require(min(weights) >= LEAST, f"a weight is below {LEAST:g}")
        line.work.spend(1000 * steps)
        found = _differences(weights, guarantee.chi_square(changes))
    else:
        raise CertificateRejected(f"the argument {argument!r} for a line is unknown")
    require(risk > 0, "a risk is not above 0")
    require_close(risk, found, "risk")
    require(risk <= found * (1 - RISK_ROUNDING), f"risk is {found:.15g}, the file says {risk:.15g}")
    return steps, risk


def _paired(steps: int, guarantee: Guarantee, changes: int, moment: int) -> float:
    """The lower bound on the mean of |y - t|^p, p = `moment`, by the argument "pairs"."""
    terms = []
    for apart in range(1, steps + 1, 2):
        number = steps + 1 - apart
        integral = 1.0 if moment == 1 else apart - 0.5
        terms.append(number * integral * guarantee.overlap(apart * changes))
    return math.fsum(terms) / (steps + 1)


def _differences(weights: list[float], chi_square: float) -> float:
    """The bound by "differences"; dividing by the largest weight makes underflow harmless."""
    largest = max(weights)
    padded = [0.0, *(weight / largest for weight in weights), 0.0]
    root = math.sqrt(chi_square)
    roots = [math.hypot(y - x, x * root) for x, y in itertools.pairwise(padded)]
    return (math.fsum(padded) / math.fsum(roots)) ** 2


# The Bayes risk of one line, proved by a prior and allowances.

#: Relative rounding error allowed for a sum over the T steps of a line. The rounding errors of
#: T = 1000 steps are below a quarter of it; a certificate leaves a margin of about 5e-12.
ALLOWANCE_ROUNDING = 1e-12
#: Largest number of pairs of a point t of the prior and an estimate y, and of points of a prior.
MOST_CELLS, MOST_POINTS = 1 << 24, 1001
#: Relative rounding error allowed for the cost of delta; that of a certificate is 1e-11.
PRICE_ROUNDING = 5e-12


def verify_allowances(line: Part, epsilon: float, delta: float, moment: int) -> tuple[int, float]:
    """The number of steps and the checked risk of a line, for the privacy of one step.

    A private mechanism estimates t in {0, ..., T}, and one step leads from t to t + 1. So under
    epsilon-DP per step, the densities f_t of an output satisfy e^-epsilon <= f_{t+1} / f_t <=
    e^epsilon. Let pi be a prior on t, nu_0, ..., nu_T any numbers (the allowances), and p = 1 or 2
    the moment. For every estimator y, the mean of |y - t|^p, the risk, is at least nu_0 + ... +
    nu_T if

        sum_t f_t (pi_t |y - t|^p - nu_t) >= 0   for all f > 0 with these ratios, all y in [0, T].

    Proof: integrate over the outputs; each f_t integrates to 1, and an estimate outside [0, T] is
    worse than the nearest end. For fixed y, dynamic programming gives the least sum over f. Let V_T
    = g_T and g_t = pi_t |y - t|^p - nu_t. Then

        V_t = g_t + min(e^-epsilon V_{t+1}, e^epsilon V_{t+1}),   and V_0 >= 0 is the condition.

    It is checked at finitely many points y. For p = 1 the sum is linear in y between whole numbers.
    For p = 2 and points that are h apart, (y - t)^2 is at most h^2 / 4 below its chord, so the
    condition is checked with (y - t)^2 - h^2 / 4.

    Under (epsilon, delta)-DP the excesses s_t = max(0, f_t - e^epsilon f_{t+1}) and s'_t = max(0,
    f_{t+1} - e^epsilon f_t) have integrals of at most delta. Each step loses a term:

        V_{t+1} f_{t+1} >= e^-epsilon V_{t+1} f_t - e^-epsilon V_{t+1} s_t     if V_{t+1} > 0,
        V_{t+1} f_{t+1} >= e^epsilon V_{t+1} f_t - |V_{t+1}| s'_t              otherwise.

    So the risk is at least nu_0 + ... + nu_T - delta K. K is the sum over t = 1, ..., T of
    e^-epsilon max_y V_t(y) and of -min_y V_t(y) (each 0 if negative). For p = 2, chords minus h^2 /
    4 replace (y - t)^2 in g_t. Then V_t is concave between neighbouring points y, so the minimum is
    at a point. The maximum is at most that of g_t + ... + g_T, which is convex in y: it is at y = 0
    or y = T. Without the terms h^2 / 4 it is still an upper bound.
    """
    prior, risk = line.array("prior", axes=1), line.number("risk")
    allowances = line.array("allowances", axes=1)
    require(len(prior) > 1, "a prior has one point only")
    require(len(allowances) == len(prior), "a prior has more or fewer points than allowances")
    require(bool((prior >= 0).all()), "a prior is negative")
    mass = math.fsum(prior.tolist())
    require_close(mass, 1.0, "the sum of a prior")
    spacing = line.number("spacing")
    require(0 < spacing <= 1 and (moment == 2 or spacing == 1), "spacing is out of range")
    require(len(prior) ** 2 / spacing <= MOST_CELLS, "a line has too many steps or points y")
    require(len(prior) <= MOST_POINTS, f"a line has more than {MOST_POINTS - 1} steps")
    line.work.spend(50 * int(len(prior) ** 2 / spacing))
    # e^600 is in the range of float64.
    require(epsilon * len(prior) < 600, "epsilon times the number of points is above 600")
    require(risk > 0, "a risk is not above 0")
    # The sum of a prior can differ from 1 by rounding. Prior and allowances may be divided by
    # this sum: the condition that `_holds` checks stays the same.
    total = math.fsum(allowances.tolist()) / mass
    if delta > 0:
        price = _price(prior, allowances, epsilon, moment, spacing)
        total -= delta * price / mass * (1 + PRICE_ROUNDING)
    require_close(risk, total, "risk")
    require(risk <= total, f"risk is {total:.15g}, the file says {risk:.15g}")
    require(
        _holds(prior, allowances, epsilon, moment, spacing),
        "the allowances are too large: some private estimate of a number from 0 to "
        f"{len(prior) - 1} may have an error below {risk:.15g}",
    )
    return len(prior) - 1, risk


def _holds(prior: Vector, allowances: Vector, epsilon: float, moment: int, spacing: float) -> bool:
    """Whether V_0 >= 0, minus rounding, at all points y with distance h = `spacing`."""
    points = np.arange(0.0, len(prior) - 1 + spacing, spacing)
    least, size = np.zeros(len(points)), np.zeros(len(points))
    for t in reversed(range(len(prior))):
        distance = np.abs(points - t)
        loss = distance if moment == 1 else distance**2 - (spacing / 2) ** 2
        factor = np.where(least > 0, math.exp(-epsilon), math.exp(epsilon))
        gain = prior[t] * loss - allowances[t]
        terms = prior[t] * np.abs(loss) + abs(allowances[t])
        least, size = gain + factor * least, terms + factor * size
    # `least` is V_0. Its rounding error is at most this share of `size`, the sum of the absolute
    # values of the same terms.
    return bool((least >= ALLOWANCE_ROUNDING * size).all())


def _price(prior: Vector, allowances: Vector, epsilon: float, moment: int, spacing: float) -> float:
    """K of `verify_allowances`: under (epsilon, delta)-DP, the risk is smaller by delta K."""
    last = len(prior) - 1
    points = np.minimum(np.arange(0.0, last + spacing, spacing), last)
    sums, first_end, last_end, price = np.zeros(len(points)), 0.0, 0.0, 0.0
    for t in reversed(range(1, len(prior))):
        distance = np.abs(points - t)
        loss = distance if moment == 1 else distance**2 - (spacing / 2) ** 2
        factor = np.where(sums > 0, math.exp(-epsilon), math.exp(epsilon))
        sums = prior[t] * loss - allowances[t] + factor * sums
        first_end += float(prior[t]) * t**moment - float(allowances[t])
        last_end += float(prior[t]) * (last - t) ** moment - float(allowances[t])
        price += math.exp(-epsilon) * max(0.0, first_end, last_end)
        price += max(0.0, -float(sums.min()))
    return price
