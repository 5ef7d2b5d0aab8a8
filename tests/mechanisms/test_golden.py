"""Golden digests: no mechanism changes its law, its draws or its statements without being noticed.

For each setting of the catalogue, and for the mechanisms outside it, `golden.json` holds a digest
of each of these parts:

* seeded: the noisy values and the answers of a release from a seed;
* exact: the same for an unseeded release whose random bytes are a fixed stream;
* far: the noisy values for a stream that makes the first uniform number less than 2^-3968. Noise
  that is a function of it is hundreds or thousands of scales long. So if a scale changes by a share
  of 1e-6, the noise moves by a step of the grid or so;
* grid: the grid of the exact draw, and how far answers are rounded before it;
* guarantee: its text, without what it protects, which is a row for all;
* prediction: its value, kind and standard error, or the scale or deviation of the noise;
* intervals: half-widths at 95%, or what else a mechanism states about the sizes of its errors;
* with_n: guarantee and prediction for twice as many records, and the grids for 2 n and 10^9.

Bit for bit: texts, grids, choices, and the exact noisy values, if each is the float nearest to a
multiple of the grid; the digest then fixes every whole number that was drawn. All other floats
depend on the last bits of the processor's arithmetic. They are rounded to nine digits of the
largest number in their array (`answer_rounding` to four). Parts that differ even so are in
`LEFT_OUT`, each with its reason. All others were equal with the kernels of OpenBLAS for Prescott,
Nehalem, Sandybridge, Haswell (which is also that for Zen) and SkylakeX, with two threads, and
without the vector instructions of NumPy, Numba and the C library for new processors.

If a digest differs after a change of the code, a law, a draw or a statement has changed. Compare
the values that ``python -m tests.mechanisms.test_golden --show SETTING`` prints before and after.
If the change is meant, run ``python -m tests.mechanisms.test_golden --write "REASON"``. If a digest
differs for the same code on another processor, or with other versions of NumPy and SciPy, compare
the values of both. If they agree to about nine digits, or differ by the choice of a basis, add the
part to `LEFT_OUT`, which needs no other file. If not, one of the two computes wrong numbers.

Digests notice a change, but do not tell right from wrong. So `tests/mutation.py` does not use them:
every mutant would count as noticed, also those that no test of a law notices.
"""

from __future__ import annotations

import argparse
import datetime
import hashlib
import inspect
import json
import math
from collections.abc import Callable, Iterable, Iterator
from fnmatch import fnmatch
from fractions import Fraction
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import pytest

import geomdp.mechanisms
from geomdp.mechanisms import (
    AdditiveMechanism,
    AllParities,
    Cone,
    Covariance,
    ExponentialMechanism,
    IterativeConstruction,
    Median,
    MultiplicativeWeights,
    OnlineConstruction,
    PairMarginals,
    Perceptron,
    PermuteAndFlip,
    Prediction,
    PrintedNumericSparse,
    ReportNoisyMax,
    ResidualGaussian,
    SecondMoment,
    SmoothSummary,
    SparseProject,
    Spectral,
    Staircase,
    UniformLaplace,
    WeightedLaplace,
)
from geomdp.mechanisms.interactive.updates import net
from geomdp.mechanisms.smooth_summary import UniformGaussian
from geomdp.noise import half_widths
from geomdp.noise.tails import simultaneous_half_widths
from geomdp.privacy import Adjacency
from geomdp.workloads import (
    BoxSecondMoment,
    ChosenTables,
    DenseQuery,
    Explicit,
    Histogram,
    Marginals,
    MarginalTables,
    Means,
    SparseQuery,
)
from geomdp.workloads import SecondMoment as Moments
from tests.laws.test_interactive import STREAMS
from tests.mechanisms.catalogue import APPROXIMATE, CONCENTRATED, MECHANISMS, PURE, WORKLOADS
from tests.mechanisms.test_exact_paths import BASES
from tests.mechanisms.test_sparse_project import SETTINGS as ROWS

GOLDEN = Path(__file__).with_name("golden.json")
N, SEED = 20, 3
#: Slow, until the digests have been seen equal on machines of several makers.
pytestmark = pytest.mark.slow

#: In the stream of the part "far", number of words of 62 bits of the first number that are 0.
ZERO_WORDS = 64
Parts = dict[str, Any]

#: Workloads whose answers or records are real numbers or few. They have exact paths of their own.
MORE = {
    "histogram": Histogram(4),
    "real answers": Explicit(np.random.default_rng(0).uniform(-1, 1, (3, 7))),
    "simplex": Explicit(np.random.default_rng(1).uniform(-1, 1, (3, 4))),
    "one real query": Explicit([[0.0, 0.3, 1.0]]),
    "means": Means(3),
    "second moments": Moments(2),
}
ALL = (PURE, CONCENTRATED, APPROXIMATE)
CHOSEN = ChosenTables({"a": 2, "b": 3, "c": 4}, [["a", "b"], ["b", "c"]], [1.0, 2.5])
#: Mechanisms for one kind of workload: a constructor, workloads and guarantees.
OWN: dict[str, tuple[Any, list[Any], tuple[Any, ...]]] = {
    "SecondMoment": (SecondMoment, [Moments(2), Moments(3)], ALL),
    "SecondMoment shrunk": (partial(SecondMoment, shrink=True), [Moments(3)], ALL),
    "Covariance": (Covariance, [Moments(2), Moments(3)], ALL),
    "PairMarginals": (PairMarginals, [Marginals(3, 2)], ALL),
    "ResidualGaussian": (
        ResidualGaussian,
        [MarginalTables([2, 3, 2], 2), MarginalTables([2] * 4, 3), CHOSEN],
        (CONCENTRATED, APPROXIMATE),
    ),
    "Cone": (Cone, [BoxSecondMoment(2)], (PURE,)),
    "Spectral": (Spectral, [MarginalTables([2, 2, 2], 2)], ALL),
    "Staircase": (Staircase, [Explicit([[0.0, 0.3, 1.0]]), Marginals(1, 1)], ALL),
}
CHOICES = (ExponentialMechanism, ReportNoisyMax, PermuteAndFlip)
RULES = (MultiplicativeWeights(4), Perceptron(4), Median(net(4, 16), 0.0625))
#: Records of constructions, repeated; numbers of records, and options if these are few.
COLUMN = np.array([0, 0, 0, 1, 3], dtype=np.int8)
SIZES: tuple[tuple[int, Parts], ...] = (
    (400_000, {}),
    (500, {"alpha": 0.2, "epsilon_0": 0.05}),
)
QUERIES = [DenseQuery(row) for row in [*np.eye(4), [0.1, 0.2, 0.7, 1.0]]]
MOMENTS = [
    (UniformLaplace(), PURE),
    (WeightedLaplace(3), PURE),
    (UniformGaussian(), CONCENTRATED),
    (UniformGaussian(), APPROXIMATE),
]

#: Fractional part of a number at which `rounded` jumps, subtracted from 1.
JUMP = Fraction(0.618034)
#: Mechanisms whose noisy values are computed in float64 from other exact draws. Whether such a
#: value is the float nearest to a multiple of the grid can differ between processors.
COMPUTED = (
    *("Matrix*", "Hierarchical*", "Fitted*", "Ellipsoid*", "JL*"),
    *("KNorm*, prefixes, replace-one", "Recursive, prefixes, replace-one"),
)
DRAWS, EVERYTHING = "seeded exact far intervals", "seeded exact far prediction with_n intervals"
#: Parts that differ between processors: for each reason, patterns of settings, and the parts.
LEFT_OUT: dict[str, dict[str, str]] = {
    "a basis is computed of singular vectors, which are not unique for equal singular values": {
        "*Ball, flat, *": "seeded intervals",
        "*Ball, histogram, *": DRAWS,
        "*Ball, tables, *": DRAWS,
        "Projected Ball, tables, *": "prediction",
        "Coarse Ball, prefixes, *": "seeded",
        "Ellipsoid, histogram, *": DRAWS,
        "Ellipsoid, one-way marginals, *": "seeded intervals",
        "Ellipsoid, parities, *": "seeded intervals",
        "Ellipsoid, tables, *": DRAWS,
        "Ellipsoid, two-way marginals, *": "seeded intervals",
        "KNorm exact, flat, *": "seeded intervals",
        "KNorm exact, tables, *": DRAWS,
        "Recursive, flat, *": "seeded intervals",
        "Recursive, tables, *": DRAWS,
        "Ball approximate, flat, *": "seeded intervals",
        "Ball approximate, histogram, *": DRAWS,
        "Ball approximate, tables, *": DRAWS,
        "Ellipsoid approximate, histogram, *": "seeded intervals",
        "Ellipsoid approximate, parities, *": "seeded intervals",
        "Ellipsoid approximate, tables, *": DRAWS,
        "Ellipsoid approximate, two-way marginals, *": "seeded intervals",
    },
    "an optimiser stops within a tolerance of a best choice that is not unique or not sharp": {
        "Ellipsoid, signs, *": "seeded intervals",
        "*Hierarchical, stretched, *": DRAWS,
        "Matrix, flat, *": EVERYTHING,
        "Matrix, one real query, *": EVERYTHING,
        "Matrix, stretched, *": EVERYTHING,
        "Matrix, two-way marginals, *": "far",
        "Matrix listed, flat, *": EVERYTHING,
        "Matrix listed, one real query, *": EVERYTHING,
        "Matrix listed, stretched, *": EVERYTHING,
        "Matrix listed, two-way marginals, *": "far",
        "Matrix Gaussian, histogram, *": "far",
        "Matrix Gaussian, tables, *": "exact far",
        "ResidualGaussian, ChosenTables*": "seeded",
    },
    "a Markov chain on the same body takes other steps, and the guarantee states its diagnostics": {
        "KNorm, tables, *": "seeded guarantee prediction with_n intervals",
    },
}


class Bytes:
    """A fixed stream of bytes. In each of the first `zeros` calls, the first 64 bits are 0.

    Each call of `os.urandom` fetches one more word of all uniform numbers of a draw.
    """

    def __init__(self, zeros: int) -> None:
        self._left, self._block, self._zeros = b"", 0, zeros

    def __call__(self, count: int) -> bytes:
        while len(self._left) < count:
            self._left += hashlib.shake_256(b"golden %d" % self._block).digest(1 << 14)
            self._block += 1
        taken, self._left = self._left[:count], self._left[count:]
        self._zeros -= 1
        return taken if self._zeros < 0 else bytes(8) + taken[8:]


def bits(values: Any) -> list[str]:
    return [float(x).hex() for x in np.ravel(values)]


def rounded(values: Any, digits: int = 9) -> list[int]:
    """The exponent of a power of ten, and the values in units of it: nine digits of the largest.

    Many values are multiples of powers of two or ten, which must not lie where rounding jumps. So
    the jumps are not half-way between units, and the exponent does not jump at a power of ten.
    """
    numbers = [Fraction(x) for x in np.ravel(np.asarray(values, dtype=float)).tolist()]
    largest = max(map(abs, numbers), default=Fraction(0))
    exponent = math.floor(math.log10(largest) + 0.07) - digits + 1 if largest else 0
    return [exponent, *(math.floor(x / Fraction(10) ** exponent + JUMP) for x in numbers)]


def exact_or_rounded(size: Fraction, values: Any) -> list[Any]:
    """The bits of values if each is the float nearest to a multiple of 1 / `size`."""
    nearest = [float(round(Fraction(x) * size) / size) for x in values.tolist()]
    return bits(values) if nearest == values.tolist() else rounded(values)


def drawn(release: Callable[[int | None], Any], form: Any, *, far: bool = True) -> Parts:
    """What `release` draws: arrays, of which the first has the given form in exact releases.

    If the form is None, unseeded releases are not exact and have no digests.
    """
    parts: Parts = {"seeded": list(map(rounded, release(SEED)))}
    if form is not None:
        with patch("os.urandom", Bytes(zeros=0)):
            first, *rest = release(None)
        parts["exact"] = [form(first), *map(rounded, rest)]
    if form is not None and far:
        with patch("os.urandom", Bytes(zeros=ZERO_WORDS)):
            parts["far"] = form(release(None)[0])
    return parts


def predicted(prediction: Prediction) -> list[Any]:
    return [rounded(prediction.value), prediction.kind.value, rounded(prediction.stderr)]


def text(guarantee: Any) -> str:
    return str(guarantee).replace("; protects a row", "")


def offline(setting: str, build: Callable[[], Any]) -> Parts | str:
    """The parts of a mechanism with `release` and `with_n`."""
    try:
        mechanism = build()
        mechanism.set_up()
    except ValueError:
        return "refused"
    records, grid = mechanism.workload.universe.sample(N, SEED), mechanism.grid

    def release(rng: int | None) -> Any:
        found = mechanism.release(records, rng)
        return found.noisy, found.answers

    form: Any = None
    if grid is not None:
        computed = any(fnmatch(setting, pattern) for pattern in COMPUTED)
        form = rounded if computed else partial(exact_or_rounded, N * Fraction(2) ** grid)
    parts = drawn(release, form)
    twin = mechanism.with_n(2 * N)
    grids = [twin.grid, mechanism.with_n(10**9).grid]
    parts |= {
        "grid": [grid],
        "guarantee": text(mechanism.guarantee),
        "prediction": predicted(mechanism.predicted_rmse),
        "with_n": [text(twin.guarantee), predicted(twin.predicted_rmse), grids],
    }
    inner = getattr(mechanism, "inner", mechanism)
    if isinstance(inner, AdditiveMechanism) and inner.workload is mechanism.workload:
        # Roundings are differences of nearly equal numbers, so few of their digits are stable.
        parts["grid"] += rounded(inner.answer_rounding, digits=4)
        parts["intervals"] = [
            rounded(widths(inner.noise)) for widths in (half_widths, simultaneous_half_widths)
        ]
    return parts


def choice(build: Callable[[], Any]) -> Parts | str:
    """The parts of a mechanism that chooses a query."""
    try:
        mechanism = build()
    except ValueError:
        return "refused"
    records = mechanism.workload.universe.sample(N, SEED)

    def release(seed: int | None) -> Any:
        rng = None if seed is None else np.random.default_rng(seed)
        return [[mechanism.release(records, rng).index for _ in range(10)]]

    law = mechanism.probabilities(mechanism.workload.answers(records))
    return drawn(release, bits, far=False) | {
        "guarantee": text(mechanism.guarantee),
        "prediction": [rounded(mechanism.scale), rounded(law)],
        "intervals": rounded(mechanism.loss(0.05)),
    }


def as_numbers(answers: Iterable[Any]) -> list[float]:
    return [float(x) for above, value in answers for x in (above, value or 0.0)]


def stream(kind: Any, **options: Any) -> Parts:
    """The parts of a sparse vector mechanism that is asked until it halts."""

    def release(rng: int | None) -> Any:
        run = kind(0.0, rng=rng, **options)
        answers = run.ask_many([-40.0, -5.0, -1.0])
        while not run.halted:
            answers.append(run.ask(10.0 * (len(answers) % 7)))
        return [as_numbers(answers)]

    run = kind(0.0, **options)
    scales = [s for s in (run.scales.threshold, run.scales.query, run.scales.answer) if s]
    return drawn(release, bits, far=False) | {
        "guarantee": text(run.guarantee),
        "prediction": [run.scales.redraw, rounded(scales)],
    }


def online(n: int, rule: Any, **options: Any) -> Parts:
    """The parts of an online construction that is asked five queries."""
    records = np.repeat(COLUMN, n // len(COLUMN))
    build = partial(OnlineConstruction, rule, n=n, queries=5, records=records, **options)

    def release(rng: int | None) -> Any:
        run = build(rng=rng)
        return [as_numbers(map(run.ask, QUERIES))]

    run = build()
    return drawn(release, rounded, far=False) | constructed(run, run.guarantee)


def iterative(n: int, rule: Any, **options: Any) -> Parts:
    """The parts of an iterative construction for the parities of two bits."""
    records = np.repeat(COLUMN, n // len(COLUMN))
    run = IterativeConstruction(rule, AllParities(2), n=n, **options)

    def release(rng: int | None) -> Any:
        exchanges = run.release(records, rng).exchanges
        return as_numbers(answer for _, answer in exchanges), [q.values for q, _ in exchanges]

    return drawn(release, rounded, far=False) | constructed(run, run.release(records).guarantee)


def constructed(run: Any, guarantee: Any) -> Parts:
    return {
        "guarantee": text(guarantee),
        "prediction": [run.updates_allowed, rounded(run.alpha)],
        "intervals": rounded(run.accuracy or 0.0),
    }


def sparse(**options: Any) -> Parts:
    """The parts of a sparse projection with 64 rows."""
    mechanism = SparseProject(n=5, sparsity=2, queries=3, rows=64, rng=1, **options)
    records, query = [3, 3, 5, 9, 2**40], SparseQuery.from_mapping({3: 1.0, 9: 0.5})

    def release(rng: int | None) -> Any:
        summary = mechanism.release(records, rng)
        return summary.vector, summary.answer(query)

    return drawn(release, bits) | {
        "grid": mechanism.grid,
        "guarantee": text(mechanism.guarantee),
        "prediction": rounded(mechanism.sigma),
    }


def smooth(**options: Any) -> Parts:
    """The parts of a smooth summary of degree 4 in two variables."""
    mechanism, twin = (SmoothSummary(2, n=n, smoothness=3, degree=4, **options) for n in (N, 2 * N))
    records = mechanism.workload.universe.sample(N, SEED)

    def release(rng: int | None) -> Any:
        found = mechanism.release(records, rng)
        return found.moments, found.noise_std  # an exact release has a little more noise

    return drawn(release, None if mechanism.grid is None else bits) | {
        "grid": mechanism.grid,
        "guarantee": text(mechanism.guarantee),
        "prediction": predicted(mechanism.predicted_rmse),
        "intervals": rounded(mechanism.numerical_errors),
        "with_n": [text(twin.guarantee), predicted(twin.predicted_rmse), twin.grid],
    }


def settings() -> Iterator[tuple[str, Callable[[], Parts | str]]]:
    """The names of all settings, and functions that compute their parts."""
    for adjacency in Adjacency:
        end, both = adjacency.value, {"adjacency": adjacency}
        for key, workload in (WORKLOADS | MORE).items():
            for name, entry in MECHANISMS.items():
                build = partial(entry.build, workload, N, entry.privacy, adjacency)
                setting = f"{name}, {key}, {end}"
                yield setting, partial(offline, setting, build)
            for kind in CHOICES:
                build = partial(kind, workload, n=N, privacy=PURE, **both)
                yield f"{kind.__name__}, {key}, {end}", partial(choice, build)
        for name, (kind, workloads, claims) in OWN.items():
            for workload, privacy in product(workloads, claims):
                build = partial(kind, workload, n=N, privacy=privacy, **both)
                setting = f"{name}, {workload!r}, {privacy}, {end}"
                yield setting, partial(offline, setting, build)
        for name, (kind, options, *_) in STREAMS.items():
            yield f"{kind.__name__}, {name}, {end}", partial(stream, kind, **options, **both)
            if adjacency is Adjacency.ADD_REMOVE and kind is not PrintedNumericSparse:
                given = options | both | {"monotone": True}
                yield f"{kind.__name__}, {name}, monotone", partial(stream, kind, **given)
        for rule, privacy, (n, few) in product(RULES, (PURE, APPROXIMATE), SIZES):
            given = {"privacy": privacy} | both | few
            rest = f"{rule!r}, {n} records, {privacy}, {end}"
            yield f"OnlineConstruction, {rest}", partial(online, n, rule, **given)
            if rule is RULES[0]:  # parities are estimated from a distribution
                yield f"IterativeConstruction, {rest}", partial(iterative, n, rule, **given)
        for noise, privacy in ROWS:
            parts = partial(sparse, noise=noise, privacy=privacy, **both)
            yield f"SparseProject, {noise!r}, {privacy}, {end}", parts
        for noise, privacy in MOMENTS:
            parts = partial(smooth, noise=noise, privacy=privacy, **both)
            yield f"SmoothSummary, {noise!r}, {privacy}, {end}", parts


SETTINGS = dict(settings())
#: The settings of each mechanism.
FAMILIES: dict[str, list[str]] = {}
for each in sorted(SETTINGS):
    FAMILIES.setdefault(each.split(", ")[0], []).append(each)


def digests(setting: str) -> dict[str, str] | str:
    """A digest of each part that does not depend on the processor, or "refused"."""
    parts = SETTINGS[setting]()
    if isinstance(parts, str):
        return parts
    return {
        part: hashlib.sha256(json.dumps(value).encode()).hexdigest()[:16]
        for part, value in sorted(parts.items())
        if part not in left_out(setting)
    }


def left_out(setting: str) -> set[str]:
    return {
        part
        for patterns in LEFT_OUT.values()
        for pattern, names in patterns.items()
        if fnmatch(setting, pattern)
        for part in names.split()
    }


def golden() -> dict[str, Any]:
    return dict(json.loads(GOLDEN.read_text(encoding="utf-8")))


@pytest.mark.parametrize("mechanism", FAMILIES)
def test_nothing_has_changed(mechanism: str) -> None:
    expected = golden()["settings"]
    changed = [
        f"{setting}: {part}"
        for setting in FAMILIES[mechanism]
        for part in differing(expected.get(setting, {}), digests(setting))
        if part not in left_out(setting)
    ]
    assert not changed, "\n".join(
        ["other values than before (see the module's docstring)", *changed]
    )


def differing(first: Any, second: Any) -> list[str]:
    """Names of the parts that differ."""
    if isinstance(first, str) or isinstance(second, str):
        return [] if first == second else ["refused before or now"]
    return sorted(part for part in first | second if first.get(part) != second.get(part))


def test_the_file_and_the_tables_are_complete() -> None:
    document = golden()
    assert set(document["settings"]) == set(SETTINGS)
    datetime.date.fromisoformat(document["reason"].split(": ")[0])
    for pattern in {pattern for patterns in LEFT_OUT.values() for pattern in patterns}:
        assert any(fnmatch(setting, pattern) for setting in SETTINGS)
    exported = {name: getattr(geomdp.mechanisms, name) for name in geomdp.mechanisms.__all__}
    releasing = {
        name
        for name, item in exported.items()
        if inspect.isclass(item) and (hasattr(item, "release") or hasattr(item, "ask"))
    }
    assert releasing - {base.__name__ for base in BASES} <= {
        word for name in FAMILIES for word in name.split()
    }


def write(reason: str) -> None:
    lines = [f"{json.dumps(name)}: {json.dumps(digests(name))}" for name in sorted(SETTINGS)]
    head = json.dumps(f"{datetime.date.today().isoformat()}: {reason}")
    text = f'{{"reason": {head}, "settings": {{\n' + ",\n".join(lines) + "\n}}\n"
    GOLDEN.write_text(text, encoding="utf-8")


def main() -> None:
    parser = argparse.ArgumentParser(description="Golden digests of all mechanisms.")
    action = parser.add_mutually_exclusive_group(required=True)
    action.add_argument("--write", metavar="REASON", help="write the file, and why it changes")
    action.add_argument("--show", metavar="SETTING", help="print the values of the parts")
    chosen = parser.parse_args()
    if chosen.show is not None:
        print(json.dumps(SETTINGS[chosen.show](), indent=1))
    elif chosen.write.strip():
        write(chosen.write.strip())
    else:
        parser.error("--write needs a reason")


if __name__ == "__main__":
    main()
