"""GF(2^64) is compared with the `galois` package, and the additive FFT with direct evaluation."""

from __future__ import annotations

import galois
import numpy as np
import numpy.typing as npt
import pytest

from geomdp.mechanisms.sparse_summary import (
    REDUCTION,
    apply_map,
    evaluate_on_coset,
    inverse,
    multiply,
    subspace_maps,
)

Words = npt.NDArray[np.uint64]


@pytest.fixture(scope="module")
def reference() -> type[galois.FieldArray]:
    polynomial = galois.Poly.Int((1 << 64) | REDUCTION)
    assert polynomial.is_irreducible()
    # The element 2 (the polynomial x) generates the multiplicative group of this field. galois
    # would need minutes to find a generator.
    return galois.GF(2**64, irreducible_poly=polynomial, primitive_element=2, verify=False)


def random_words(seed: int, count: int) -> Words:
    words = np.random.default_rng(seed).integers(0, 1 << 64, size=count, dtype=np.uint64)
    words[:4] = 0, 1, 1 << 63, (1 << 64) - 1
    return words


def as_ints(words: Words) -> list[int]:
    return [int(word) for word in words]


def test_products_agree_with_galois(reference: type[galois.FieldArray]) -> None:
    a, b = random_words(1, 300), random_words(2, 300)[::-1].copy()
    product = reference(as_ints(a)) * reference(as_ints(b))
    assert as_ints(multiply(a, b)) == [int(x) for x in product]


def test_inverses_agree_with_galois(reference: type[galois.FieldArray]) -> None:
    words = as_ints(random_words(3, 12))[1:]
    assert [inverse(word) for word in words] == [int(x) for x in reference(words) ** -1]
    with pytest.raises(ValueError, match="no inverse"):
        inverse(0)


def subspace_polynomial(field: type[galois.FieldArray], j: int, point: int) -> galois.FieldArray:
    """s_j(point) by its definition: the product of point - v over all words v below 2^j."""
    return np.prod(field([point ^ v for v in range(1 << j)]))


@pytest.mark.parametrize("levels", [1, 2, 3, 5])
def test_butterfly_agrees_with_direct_evaluation(
    reference: type[galois.FieldArray], levels: int
) -> None:
    """A polynomial at theta + v, for all words v below 2^levels.

    Basis polynomial i is the product of the normalised s'_j over the bits j that are 1 in i.
    """
    size, theta = 1 << levels, 0x8123_4567_89AB_CD00
    maps = subspace_maps(levels)
    coefficients = random_words(5, max(size, 4))[:size]
    shifts = np.array(
        [[apply_map(row, np.uint64(v)) for v in range(size)] for row in maps], dtype=np.uint64
    )
    origin = np.array([apply_map(row, np.uint64(theta)) for row in maps], dtype=np.uint64)
    values = np.empty(size, dtype=np.uint64)
    evaluate_on_coset(coefficients, origin, shifts, values)
    for v in range(size):
        factors = [
            subspace_polynomial(reference, j, theta ^ v) / subspace_polynomial(reference, j, 1 << j)
            for j in range(levels)
        ]
        total = reference(0)
        for i, coefficient in enumerate(as_ints(coefficients)):
            term = reference(coefficient)
            for j in range(levels):
                if i >> j & 1:
                    term = term * factors[j]
            total = total + term
        assert int(values[v]) == int(total)
