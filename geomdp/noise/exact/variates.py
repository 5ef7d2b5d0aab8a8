"""Random numbers and vectors from independent uniform U, V, U_1, .. in [0, 1], in balls."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from operator import mul

from flint import arb

from geomdp.noise.exact.uniforms import Draw, Undecided

#: A vector of balls.
Vector = list[arb]


def decided_below(first: arb, second: arb) -> bool:
    """Whether first < second; `Undecided` if the balls leave both answers possible."""
    if first < second:
        return True
    if first >= second:
        return False
    raise Undecided


def whole_part(value: arb) -> int:
    """The largest whole number that is at most `value`; `Undecided` if the ball allows several."""
    part = value.floor().unique_fmpz()
    if part is None:
        raise Undecided
    return int(part)


def whole_number(below: int, draw: Draw) -> int:
    """A uniform whole number in 0, .., k - 1 for k = `below`: floor(k U)."""
    return whole_part(draw.uniform() * below)


def exponentials(count: int, draw: Draw) -> Vector:
    """Independent exponential variables of mean 1: -ln U."""
    return [-value.log() for value in draw.uniforms(count)]


def laplaces(count: int, draw: Draw) -> Vector:
    """Independent variables of density exp(-|x|) / 2: ln(U / V), a difference of exponentials."""
    numbers = draw.uniforms(2 * count)
    return [(a / b).log() for a, b in zip(numbers[:count], numbers[count:], strict=True)]


def geometric_differences(means: Vector, draw: Draw) -> list[int]:
    """Differences of floor(m E), m in `means`: whole j with P(j) proportional to exp(-|j| / m)."""
    pairs = exponentials(2 * len(means), draw)
    firsts, seconds = pairs[: len(means)], pairs[len(means) :]
    return [
        whole_part(mean * first) - whole_part(mean * second)
        for mean, first, second in zip(means, firsts, seconds, strict=True)
    ]


def box_multiples(
    coefficients: list[int], counts: Sequence[int], epsilon: arb, draw: Draw
) -> list[int]:
    """A draw of `LatticeBoxNoise` in multiples of the units; see the notes of that class."""
    odds = 1 / (epsilon.exp() - 1)
    weights = [a * odds**j for j, a in enumerate(coefficients)]
    mark, passed, term = draw.uniform() * ball_sum(weights), weights[0], 0
    while term + 1 < len(weights) and not decided_below(mark, passed):
        term += 1
        passed += weights[term]
    steps = [whole_part(x / epsilon) for x in exponentials(term + 1, draw)]
    radius = term + sum(steps)
    return [whole_number(2 * radius * c + 1, draw) - radius * c for c in counts]


def staircase(epsilon: arb, share: arb, draw: Draw) -> arb:
    """A number with the density of `StaircaseNoise`, for steps of width 1."""
    steps = whole_part(exponentials(1, draw)[0] / epsilon)
    part, place = draw.uniforms(2)
    outer_weight = (1 - share) * (-epsilon).exp()
    if decided_below(part * (share + outer_weight), outer_weight):
        size = steps + share + (1 - share) * place
    else:
        size = steps + share * place
    return size if whole_number(2, draw) else -size


def gaussians(count: int, draw: Draw) -> Vector:
    """Independent standard Gaussian variables, in pairs: (-2 ln U)^(1/2) (sin, cos)(2 pi V)."""
    pairs = (count + 1) // 2
    numbers = draw.uniforms(2 * pairs)
    values = []
    for first, second in zip(numbers[:pairs], numbers[pairs:], strict=True):
        length = (-2 * first.log()).sqrt()
        sine, cosine = (2 * second).sin_cos_pi()
        values += [length * sine, length * cosine]
    return values[:count]


def half_gamma(twice_shape: int, draw: Draw) -> arb:
    """A gamma variable of shape `twice_shape` / 2: -ln(U_1 .. U_s), plus E cos^2(2 pi V) if odd."""
    total = arb(0)
    if twice_shape >= 2:
        total = -reduce(mul, draw.uniforms(twice_shape // 2)).log()
    if twice_shape % 2:
        first, second = draw.uniforms(2)
        total -= first.log() * (2 * second).cos_pi() ** 2
    return total


def gamma(shape: int, draw: Draw) -> arb:
    return half_gamma(2 * shape, draw)


def dirichlet(count: int, twice_shape: int, draw: Draw) -> Vector:
    """Shares of the Dirichlet law with `count` equal parameters `twice_shape` / 2."""
    if twice_shape == 2:
        parts = exponentials(count, draw)
    else:
        parts = [half_gamma(twice_shape, draw) for _ in range(count)]
    total = ball_sum(parts)
    return [part / total for part in parts]


def direction(dimension: int, draw: Draw) -> Vector:
    """A uniformly distributed unit vector: a Gaussian vector divided by its length."""
    vector = gaussians(dimension, draw)
    length = ball_sum([x * x for x in vector]).sqrt()
    return [x / length for x in vector]


def power_exponentials(count: int, exponent: arb, draw: Draw) -> Vector:
    """Independent variables of density proportional to exp(-x^p) on x > 0, for p > 1.

    An exponential X is kept with probability exp(X - X^p - c), at least 1/e on average, where c is
    the maximum of x - x^p, at x = p^(-1/(p - 1)).
    """
    top = exponent ** (-1 / (exponent - 1))
    highest = top - top**exponent
    kept: Vector = []
    while len(kept) < count:
        value, other = exponentials(2, draw)
        if decided_below(highest - value + value**exponent, other):
            kept.append(value)
    return kept


def bartlett_row(place: int, order: int, draw: Draw) -> Vector:
    """Row i = `place` of a lower triangular L such that L L^T has the law of G G^T (Bartlett 1933).

    G is a standard Gaussian matrix (p, p + 1) with p = `order`. The first i entries are Gaussian,
    and the diagonal entry is a chi variable with p + 1 - i degrees of freedom.
    """
    return [*gaussians(place, draw), (2 * half_gamma(order + 1 - place, draw)).sqrt()]


def bartlett_factor(order: int, draw: Draw) -> list[Vector]:
    return [bartlett_row(place, order, draw) for place in range(order)]


def ball_sum(values: Vector) -> arb:
    return sum(values, start=arb(0))
