"""Uniform numbers: new bits are appended, known bits never change, and the OS is the source."""

from __future__ import annotations

import os

import numpy as np
import pytest
import scipy.stats
from flint import arb, ctx

from geomdp.noise import LaplaceNoise
from geomdp.noise.rounding import BLOCK, WORD_BITS, Draw, Rounded, Undecided, UniformBits
from tests.noise.exact.reference import seeded
from tests.stats import LEVEL, ks_uniform


class Scripted:
    """A source of bytes with stated words for the first number and random words for all others."""

    def __init__(self, *first_words):
        self._words = list(first_words)
        self._filler = seeded(0)

    def __call__(self, count):
        data = self._filler(count)
        if not self._words:
            return data
        own = self._words.pop(0) << (64 - WORD_BITS)
        return own.to_bytes(8, "little") + data[8:]


def test_more_words_are_appended_to_the_known_ones():
    bits = UniformBits(seeded(1))
    short = bits.words(0, 1000, 2)
    long = bits.words(0, 1000, 6)
    assert long[:2] == short
    assert bits.words(300, 310, 3) == [words[300:310] for words in long[:3]]
    everything = {word for words in long for word in words}
    assert len(everything) == 6000
    assert 0 <= min(everything) <= max(everything) < 1 << WORD_BITS


def test_words_grow_when_a_longer_evaluation_stopped_early():
    bits = UniformBits(seeded(2))
    first = bits.words(0, 3, 4)
    second = bits.words(0, 2 * BLOCK, 2)
    assert [words[:3] for words in second] == first[:2]


def test_a_finer_interval_lies_in_the_coarser_one():
    bits = UniformBits(seeded(3))
    with ctx.workprec(400):
        coarse, fine = Draw(bits, 2).uniforms(200), Draw(bits, 5).uniforms(200)
    assert all(wide.contains(narrow.mid()) for wide, narrow in zip(coarse, fine, strict=True))
    assert max(float(value.rad()) for value in coarse) < 2.0**-124
    assert max(float(value.rad()) for value in fine) < 2.0**-309


def test_intervals_are_the_words_read():
    bits = UniformBits(Scripted(1 << (WORD_BITS - 1), 0, 3, 5))
    with ctx.workprec(400):
        value, step = Draw(bits, 2).uniform(), arb(2) ** -124
        assert value.contains(arb(0.5))
        assert value.contains(0.5 + step)
        # The radius of a ball is rounded up, by a relative 2^-29 at most.
        assert not value.contains(0.5 - step / 1000)
        assert not value.contains(0.5 + 1.001 * step)


@pytest.mark.statistical
def test_uniform_numbers_are_uniform():
    ks_uniform([float(value) for value in Draw(UniformBits(seeded(4)), 2).uniforms(20_000)])


@pytest.mark.statistical
def test_order_is_a_uniform_permutation():
    bits = UniformBits(seeded(5))
    draw = Draw(bits, 2)
    counts: dict[tuple[int, ...], int] = {}
    for _ in range(24_000):
        found = tuple(draw.order(4))
        counts[found] = counts.get(found, 0) + 1
    assert len(counts) == 24
    assert scipy.stats.chisquare(list(counts.values())).pvalue > LEVEL


def test_order_of_equal_prefixes_is_undecided():
    data = np.full(BLOCK, 12345 << 2, dtype="<u8").tobytes()
    with pytest.raises(Undecided):
        Draw(UniformBits(lambda count: data[:count]), 2).order(2)


def test_the_default_source_is_the_operating_system(monkeypatch):
    given = seeded(6)
    monkeypatch.setattr(os, "urandom", lambda count: given(count))
    noise = LaplaceNoise(5, 3.0)
    assert Rounded.of(noise, 40).draw() == Rounded.of(noise, 40).draw(seeded(6))


def test_an_exhausted_source_is_an_error():
    with pytest.raises(OSError, match="gave 3 bytes of"):
        Rounded.of(LaplaceNoise(2, 1.0), 10).draw(lambda _: b"abc")
