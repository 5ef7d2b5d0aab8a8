"""The checker quickly rejects files that are made to deceive it or to exhaust time and memory."""

import contextlib
import copy
import functools
import hashlib
import io
import itertools
import json
import math
import sys
import time
import zipfile
from collections.abc import Callable
from decimal import Decimal, localcontext
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from geomdp import bounds
from geomdp._numerics.files import read_arrays
from geomdp.bounds.certificates import packing_rung
from geomdp.bounds.checker import reading
from geomdp.bounds.checker.reading import _arrays
from geomdp.bounds.guessing import DistantElements, SeparatedElements
from geomdp.bounds.random_signs import RandomSignSets, singletons
from geomdp.privacy import ZCDP
from geomdp.privacy.definitions import printed as rounded_up
from geomdp.privacy.definitions import printed_down as rounded_down
from geomdp.workloads import Explicit, Histogram, Prefixes
from tests.bounds.test_checker import BOUNDS, FOUR_OF_68, Document, saved, seal, two_sets
from tests.bounds.test_guessing import bound_of
from tests.bounds.test_orthogonal_lines import a_bound
from tests.bounds.test_packing import hamming

#: The checker must reject a hostile file within this number of seconds.
PATIENCE = 20.0


def rejected(path: Path, reason: str) -> None:
    started = time.perf_counter()
    with pytest.raises(bounds.CertificateRejected, match=reason):
        bounds.check_certificate(path)
    assert time.perf_counter() - started < PATIENCE


def changed(path: Path, change: Callable[[Document], object]) -> None:
    document = json.loads(path.read_text())
    change(document)
    seal(path, document)


def test_means_that_overflow_hide_no_equal_data_sets(tmp_path, monkeypatch):
    W, metric = Explicit(np.eye(3)), bounds.WorstCase()
    pairs = np.array(list(itertools.combinations_with_replacement(range(3), 2)))
    packings = [
        bounds.single_elements(W, np.arange(3), np.arange(3), "all"),
        bounds.Packing(W, np.arange(3), pairs),
    ]
    bound = bounds.certify(packings, epsilon=0.05, alpha=0.02, metric=metric)
    path = saved(bound, tmp_path)

    def hide(document: Document) -> None:
        # Multiplying answers, separations and alpha by `unit` does not change the claim, but the
        # sum of two answers of 0.9e308 is infinite. Four copies of the data set with this sum are
        # then inf - inf apart, which is NaN and not 0.
        unit = 0.8e308
        for part, key in (
            *((document, key) for key in ("alpha", "required_separation")),
            *((part, "separation") for part in document["rungs"]),
        ):
            part[key] *= unit
        for part in document["rungs"]:
            part["family"]["answers"] = (unit * np.eye(3)).tolist()
        family = document["rungs"][1]["family"]
        family["answers"].append([0.9e308] * 3)
        family["datasets"][2:] = [[3, 3]] * 4

    changed(path, hide)
    rejected(path, "alpha is not a finite number up to 1e\\+100")
    # If alpha is in the allowed range, the huge answers are rejected.
    huge = path.read_text()
    changed(path, lambda document: document.update(alpha=0.02, required_separation=0.08))
    rejected(path, "rung 0: answers holds NaN, or numbers above")
    # The distances are tested even if all numbers of float64 are in the allowed range.
    path.write_text(huge)
    monkeypatch.setattr(reading, "LARGEST", sys.float_info.max)
    with np.errstate(over="ignore", invalid="ignore"):
        rejected(path, "rung 1: a distance of two answers is not finite")


def test_packings_refuse_answers_whose_means_overflow():
    W = Explicit(np.array([[1.7e308, 0.0, 1.0]]))
    packing = bounds.Packing(W, np.arange(3), np.array([[0, 0], [1, 1], [2, 2], [0, 0]]))
    with pytest.raises(ValueError, match=r"answers must be at most 1e\+100"):
        bounds.certify([packing], epsilon=1.0, alpha=0.01)


def test_failure_probabilities_that_add_up_to_one_say_nothing(tmp_path):
    families = [RandomSignSets(500, sets, 0.9) for sets in (singletons(1.2), FOUR_OF_68)]
    problem = bounds.Problem(0.05, 0.01)
    rungs = tuple(packing_rung(family, problem) for family in families)
    assert rungs[0].last < rungs[1].last
    path = tmp_path / "vacuous.json"
    bounds.Certificate(problem, rungs).save(path)
    rejected(path, "must add up to less than 1, got 1.8")
    with pytest.raises(bounds.SideConditionError, match=r"less than 1, got 1\.8"):
        bounds.certify(families, epsilon=0.05, alpha=0.01)
    honest = two_sets()
    assert any("at least 1 - 0.002" in text for text in honest.assumptions)


@pytest.mark.parametrize(
    ("queries", "log_count"), [(10**4, 20.0), (10**17, 30.0), (10**17, 1e15), (10**30, 1e20)]
)
def test_the_union_bound_holds_exactly_for_any_number_of_queries(queries, log_count):
    family = RandomSignSets(queries, singletons(log_count), 1e-6)
    with localcontext() as context:
        context.prec = 100
        x, delta = Decimal(family.document()["tilt"]), Decimal(family.deviation)
        # In the notation of `verify_signs`, E Y^4 <= 3 - 1/s = 2 for sets of s = 1 element, so
        # E e^(-x Y^2) <= 1 - x + 2 x^2 / 2.
        moment = 1 - x + x * x
        rate = -x * (1 - delta) - moment.ln()
        failure = 2 * Decimal(log_count) - Decimal(2).ln() - queries * rate
        assert failure <= Decimal(family.failure).ln()


def test_a_deviation_too_small_for_many_queries_is_rejected(tmp_path):
    problem = bounds.Problem(1e-3, 1e-3)
    family = RandomSignSets(10**17, singletons(1e15), 1e-6)
    path = tmp_path / "many.json"
    bounds.Certificate(problem, (packing_rung(family, problem),)).save(path)
    assert bounds.check_certificate(path).records > 0
    # If the deviation is a relative 1e-11 smaller, the exponent of the union bound changes by tens
    # of thousands.
    changed(
        path, lambda d: d["rungs"][0]["family"].update(deviation=family.deviation * (1 - 1e-11))
    )
    rejected(path, "the union bound gives a failure")


def test_statements_are_rounded_to_the_safe_side(tmp_path):
    assert (rounded_down(0.3), rounded_up(0.3)) == ("0.3", "0.3")
    assert (rounded_down(0.12345678), rounded_up(0.12345678)) == ("0.123456", "0.123457")
    assert (rounded_down(2e-9, 2), rounded_up(1.001, 2)) == ("2e-09", "1.1")
    bound = bounds.certify([hamming()], epsilon=0.5000007, alpha=0.0500000777)
    checked = bounds.check_certificate(saved(bound, tmp_path))
    for text in (bound.statement, checked.statement):
        assert "0.5-DP" in text
        assert " 0.05 with" in text
    close = bounds.guessing_bound(Explicit(0.99999998 * np.eye(8)), epsilon=0.1, alpha=0.02)
    said = bounds.check_certificate(saved(close, tmp_path)).verified[0]
    assert said.startswith("8 elements with answers at least 0.499999 apart")


@pytest.mark.parametrize(("text", "reason"), [
    ("[" * 100_000, "the file cannot be evaluated|not JSON"),
    ('{"format": ' + "[" * 100 + "]" * 100 + "}", "the format is unknown"),
    ('{"arrays": [], "format": "geomdp packing certificate", "version": 1, "a": '
     + "[" * 900 + "]" * 900 + "}", "the file cannot be evaluated|the digest does not match"),
    ('{"format": 1' + "0" * 5000 + "}", "more than 1000 digits"),
    ('{"format": NaN}', "NaN is not a finite number"),
    ("[1, 2]", "not a JSON object"),
    ("\x00\xff", "not JSON"),
    ('{"format": "geomdp packing certificate", "version": 1, "arrays": 3}',
     "arrays is not a list of names"),
    ('{"format": "geomdp packing certificate", "version": 1, "arrays": [["a"]]}',
     "text.npz is not a file of plain arrays"),
])  # fmt: skip
def test_texts_that_are_no_certificate(text, reason, tmp_path):
    path = tmp_path / "text.json"
    path.write_text(text, encoding="latin-1")
    rejected(path, reason)


def test_long_texts_are_not_read(tmp_path):
    path = tmp_path / "long.json"
    path.write_bytes(b" " * (1 << 24) + b"{}")
    rejected(path, "longer than")


#: Values that are not numbers, and extreme numbers. They replace the entries of a certificate.
NONSENSE: list[Any] = [
    [1.0], [[[1.0]]], [],
    {},
    {"array": {}}, {"array": "none"},
    None, True, "1", -1, 0, 5e-324, 1e308,
    10**90,
    2**200,
]  # fmt: skip


#: Reasons for a rejection that do not name the changed entry of a certificate.
OTHER_REASONS: dict[str, list[str]] = {
    "alpha": ["required_separation is"],
    "copies": ["lose too much privacy", "epsilon times the number of points", "risk is"],
    "epsilon": ["lose too much privacy"],
    "family": ["type is not a text"],
    "log_count": ["the union bound"],
    "name": ["the workload '1' is unknown"],
    "privacy": ["definition is not a text"],
    "queries": ["the union bound", "one query for each pair", "change its own query"],
    "separation_factor": ["log_odds is"],
    "sets": ["type is not a text"],
    "steps": ["the prior does not have"],
    "symbols": ["is not a prime"],
    "type": ["the family '1' is unknown", "the family of sets '1' is unknown"],
    "workload": ["name is not a text"],
}


#: Bounds from orthogonal lines and query lines, and from elements with answers far apart.
OTHER_BOUNDS: dict[str, Callable[[], bounds.Bound]] = {
    "lines": lambda: a_bound(Histogram(4)),
    "query lines": lambda: bounds.query_lines_bound(Prefixes(8), epsilon=0.4, alpha=0.04),
    "separated elements": lambda: bound_of(
        SeparatedElements, Histogram(8), bounds.Problem(0.4, 0.04)
    ),
    "distant elements": lambda: bound_of(DistantElements, Histogram(8), bounds.Problem(0.4, 0.04)),
    "zCDP": lambda: bounds.orthogonal_lines_bound(Histogram(4), privacy=ZCDP(0.02), alpha=0.02),
}


@pytest.mark.parametrize("name", ["Hamming", "tables", "blocks", "random signs", *OTHER_BOUNDS])
def test_every_value_is_rejected_when_it_is_nonsense(name, tmp_path):
    path = saved((BOUNDS | OTHER_BOUNDS)[name](), tmp_path)
    original = json.loads(path.read_text())

    def objects(document: Document) -> list[tuple[str, Document]]:
        """The document and the parts of its first rung, with the start of the reason."""
        rung = document["rungs"][0]
        inner = (value for value in rung["family"].values() if isinstance(value, dict))
        parts = (rung, rung["family"], *inner)
        return [("", document), *(("rung 0: ", part) for part in parts)]

    for i, (start, part) in enumerate(objects(original)):
        # `weights` is left out: a single line may have any weight above 0, so [1.0] can be valid.
        for key in set(part) - {"digest", "origin", "assumptions", "seed", "weights"}:
            reasons = "|".join([rf"\b{key}\b", *OTHER_REASONS.get(key, [])])
            for value in NONSENSE:
                if value == part[key]:
                    continue
                document = copy.deepcopy(original)
                objects(document)[i][1][key] = value
                seal(path, document)
                refers = isinstance(value, dict) and "array" in value
                missing = "^array .* is missing|" if refers else ""
                rejected(path, f"{missing}^{start}.*({reasons})")


def blocks(**change: int) -> Callable[[Document], object]:
    return lambda document: document["rungs"][0]["family"].update(change)


def named(**workload: Any) -> Callable[[Document], object]:
    return lambda document: document["rungs"][0]["family"].update(workload=workload)


def of_3000(name: str, **workload: Any) -> Callable[[Document], object]:
    """Two equal elements of 3000 attributes."""
    family = {"workload": {"name": name, **workload}, "elements": [[0] * 3000] * 2}
    return lambda document: document["rungs"][0]["family"].update(family, datasets=[[0], [1]])


def lengthened(document: Document) -> None:
    sets = {"type": "reed-solomon", "prime": 2**61 - 1, "size": 2**50, "degree": 2**49}
    document["rungs"][-1]["family"]["sets"] = sets


@pytest.mark.parametrize(("name", "change", "reason"), [
    ("blocks", blocks(width=2**200), "width must be"),
    ("blocks", blocks(attributes=2**250, width=30), "attributes must be"),
    ("blocks", blocks(attributes=2072, part=2048), "the check takes too long"),
    ("code words", blocks(attributes=2**200), "attributes must be"),
    ("code words", blocks(symbols=2**61 - 1, length=2**60), "words are longer than"),
    ("histogram", named(name="histogram", N=10**12), "N must be"),
    ("ranges", named(name="ranges", N=10**6), "there are more than"),
    ("prefixes", named(name="prefixes", N=2**250), "N must be"),
    ("Hamming", named(name="marginals", d=2**250, k=2**249), "d must be"),
    ("Hamming", of_3000("marginals", d=3000, k=3), "there are more than"),
    ("Hamming", of_3000("marginal tables", columns=[2] * 3000, k=1500), "there are more than|the"),
    ("Hamming", of_3000("marginal tables", columns=[1 << 52] * 3000, k=2), "there are more than"),
    ("Hamming", of_3000("marginal tables", columns=[1] * 3000, k=2), "the check takes too long"),
    ("random signs", lengthened, "the union bound gives a failure"),
    ("tables", named(name="marginal tables", columns=[2, 3, 10**15], k=2), "there are more than"),
])  # fmt: skip
def test_small_files_take_no_time(name, change, reason, tmp_path):
    path = saved(BOUNDS[name](), tmp_path)
    changed(path, change)
    rejected(path, f"^rung [01]: {reason}")


def npz(path: Path, members: dict[str, bytes]) -> None:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in members.items():
            archive.writestr(f"{name}.npy", content)


def test_arrays_beyond_the_limit_are_not_unpacked(tmp_path, monkeypatch):
    path = saved(BOUNDS["large"](), tmp_path)
    monkeypatch.setattr(reading, "MAX_ARRAYS", 1 << 20)
    npz(path.with_suffix(".npz"), {"a": bytes(1 << 20), "b": b"0"})
    assert path.with_suffix(".npz").stat().st_size < 1 << 12
    rejected(path, "the arrays are larger than 1048576 bytes")


def test_the_checker_rounds_as_the_library_does():
    for value in (0.3, 1.0, 0.12345678, 1e-300, 123456789.0, math.pi):
        assert reading.rounded_down(value) == rounded_down(value)
        assert reading.rounded_up(value) == rounded_up(value)


#: An array in NumPy's format: eight bytes, the length of the header in two bytes, the header, and
#: from byte 128 on the numbers.
STORED = io.BytesIO()
np.save(STORED, np.arange(8))
MAGIC, NUMBERS = STORED.getvalue()[:8], STORED.getvalue()[128:]
HEADER = STORED.getvalue()[10:128].decode().rstrip(" \n")


def archive(header: str, method: int = zipfile.ZIP_STORED) -> bytes:
    """An .npz file of the array "a" with this header."""
    content, file = header.encode(), io.BytesIO()
    with zipfile.ZipFile(file, "w", method) as members:
        length = len(content).to_bytes(2, "little")
        members.writestr("a.npy", MAGIC + length + content + NUMBERS)
    return file.getvalue()


@functools.cache
def bound() -> bounds.Bound:
    """A bound from the elements 0, ..., 7. These are the numbers in `STORED`."""
    return bounds.guessing_bound(Histogram(8), epsilon=0.1, alpha=0.2)


def certificate_beside(content: bytes, folder: Path) -> Path:
    """The path of a certificate with `content` as its .npz file, whose array "a" has the elements.

    If the checker can read this file, the digest is right, so it does not protect from the damage.
    """
    path = saved(bound(), folder)
    document = json.loads(path.read_text())
    document.pop("digest")
    assert document["rungs"][-1]["family"]["elements"] == list(range(8))
    document["rungs"][-1]["family"]["elements"] = {"array": "a"}
    document["arrays"] = ["a"]
    path.with_suffix(".npz").write_bytes(content)
    digest = hashlib.sha256(json.dumps(document, sort_keys=True, separators=(",", ":")).encode())
    with contextlib.suppress(bounds.CertificateRejected):
        for name, values in sorted(_arrays(path.with_suffix(".npz")).items()):
            digest.update(name.encode() + values.tobytes())
    path.write_text(json.dumps(document | {"digest": digest.hexdigest()}))
    return path


def check(content: bytes, folder: Path, *refusals: type[Exception]) -> None:
    """Both readers may raise `refusals`; otherwise, the bound is that of undamaged numbers."""
    path = certificate_beside(content, folder)
    with contextlib.suppress(*refusals):
        assert bounds.check_certificate(path).records == bound().value
    with contextlib.suppress(*refusals):
        read_arrays(path.with_suffix(".npz"), ("a",))


HEADERS = {
    "objects": HEADER.replace("<i8", "|O"),
    "complex numbers": HEADER.replace("<i8", "<c8"),
    "too long": HEADER.replace("8,", "10000000000,"),
    "no dict": "(((",
    "open bracket": HEADER.replace("(8,)", "(((8,)"),
    "indentation": "if 1:\n    1\n  2" + HEADER,
    "type is an empty tuple": HEADER.replace("'<i8'", "()"),
    "type of one entry": HEADER.replace("'<i8'", "('<i8',)"),
    "type with a comma": HEADER.replace("'<i8'", "'<,i8'"),
    "fields of no names": HEADER.replace("'<i8'", "[()]"),
    "nested types": HEADER.replace("'<i8'", "(" * 50 + "'<i8'" + ", (1,))" * 50),
    "deep type": HEADER.replace("'<i8'", "[" * 2000 + "]" * 2000),
    "keys of two types": HEADER.replace("'shape'", "()"),
    "huge shape": HEADER.replace("8,", "9" * 2000 + ","),
    "negative shape": HEADER.replace("8,", "-2, -4"),
    "shape of a truth value": HEADER.replace("8,", "True, 8"),
}


@pytest.mark.parametrize("content", [*map(archive, HEADERS.values()), STORED.getvalue()])
def test_malformed_arrays_are_rejected(content, tmp_path):
    with pytest.raises(bounds.CertificateRejected):
        bounds.check_certificate(certificate_beside(content, tmp_path))
    check(content, tmp_path, ValueError)


@pytest.mark.parametrize("method", [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, zipfile.ZIP_LZMA])
def test_changed_archives_prove_nothing_else(method, tmp_path):
    rng = np.random.default_rng(0)
    whole = archive(HEADER, method)
    check(whole, tmp_path)
    for _ in range(60):
        content = bytearray(whole)
        for place in rng.integers(len(content), size=int(rng.integers(1, 4))):
            content[place] = int(rng.integers(256))
        end = int(rng.integers(len(content))) if rng.random() < 0.1 else len(content)
        check(bytes(content[:end]), tmp_path, ValueError)
