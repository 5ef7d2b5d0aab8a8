"""The checker confirms certificates, rejects changed ones, and imports nothing else of geomdp."""

import ast
import copy
import functools
import hashlib
import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import geomdp.bounds.checker
from geomdp import bounds, workloads
from geomdp.bounds.checker.code_packings import least_weight
from geomdp.bounds.random_signs import RandomSignSets, reed_solomon_sets, singletons
from geomdp.cli import main
from geomdp.privacy import Adjacency
from tests.bounds.test_packing import hamming

Document = dict[str, Any]


def listed(workload: workloads.Workload, alpha: float = 0.01) -> bounds.Bound:
    """The bound from single elements with different answers, and from some multisets of three."""
    elements = workload.universe.elements()
    elements = elements[np.unique(workload.evaluate(elements), axis=0, return_index=True)[1]]
    count = len(elements)
    rows = np.array(
        [[i, i, (i + 1) % count] for i in range(count)] + [[i] * 3 for i in range(count)]
    )
    return bounds.certify(
        [
            bounds.single_elements(workload, elements, np.arange(count), "all"),
            bounds.Packing(workload, elements, rows, "multisets"),
        ],
        epsilon=0.3,
        alpha=alpha,
    )


def two_sets() -> bounds.Bound:
    families = [RandomSignSets(500, sets, 1e-3) for sets in (singletons(1.2), FOUR_OF_68)]
    return bounds.certify(families, epsilon=0.05, alpha=0.01)


#: 17^2 sets, each of four of 68 elements.
FOUR_OF_68 = reed_solomon_sets(bounds.ReedSolomon(17, 4, 2))
#: How each bound is proved; every one is proved once, however many tests read it.
BOUNDS: dict[str, Callable[[], bounds.Bound]] = {
    "Hamming": lambda: bounds.certify([hamming()], epsilon=1.0, alpha=0.1),
    "add/remove": lambda: bounds.certify(
        [hamming()], epsilon=0.2, alpha=0.1, metric=bounds.RMS(3.0), adjacency=Adjacency.ADD_REMOVE
    ),
    "parities": lambda: listed(workloads.Parities(4, 2)),
    "2-way": lambda: listed(workloads.Marginals(4, 2)),
    "histogram": lambda: listed(workloads.Histogram(3), 0.02),
    "prefixes": lambda: listed(workloads.Prefixes(6)),
    "ranges": lambda: listed(workloads.Ranges(5)),
    "tables": lambda: listed(workloads.MarginalTables([2, 3, 2], 2)),
    "explicit": lambda: listed(workloads.Explicit(np.random.default_rng(0).uniform(-1, 1, (5, 7)))),
    "large": lambda: listed(workloads.RandomSigns(90, 60, 0)),
    "code words": lambda: bounds.marginal_bound(40, 1, epsilon=0.5, alpha=0.01),
    "worst case of a list": lambda: bounds.certify(
        [bounds.single_elements(workloads.Explicit(-np.eye(3)), np.arange(3), np.arange(3), "all")],
        epsilon=0.05,
        alpha=0.02,
        metric=bounds.WorstCase(),
    ),
    "worst case": lambda: bounds.marginal_bound(
        9, 1, epsilon=0.5, alpha=0.01, metric=bounds.WorstCase()
    ),
    "blocks": lambda: bounds.marginal_bound(32, 2, epsilon=0.1, alpha=0.002),
    "width 3": lambda: bounds.marginal_bound(
        20, 3, epsilon=0.1, alpha=0.0005, metric=bounds.MeanL2(3.0)
    ),
    "random signs": lambda: bounds.random_sign_bound(10_000, 20.0, epsilon=0.5, alpha=0.005),
    "two sizes of sets": two_sets,
}
BOUNDS = {name: functools.cache(prove) for name, prove in BOUNDS.items()}


def saved(bound: bounds.Bound, folder: Path) -> Path:
    assert isinstance(bound.certificate, bounds.Certificate)
    path = folder / "bound.json"
    bound.certificate.save(path)
    return path


def seal(path: Path, document: Document) -> None:
    """Write a changed document with a correct digest, so that only its statements can be wrong."""
    document.pop("digest", None)
    content = hashlib.sha256(json.dumps(document, sort_keys=True, separators=(",", ":")).encode())
    if path.with_suffix(".npz").exists():
        with np.load(path.with_suffix(".npz")) as stored:
            for name in sorted(stored.files):
                content.update(name.encode() + stored[name].tobytes())
    path.write_text(json.dumps(document | {"digest": content.hexdigest()}))


def rejected(path: Path, document: Document, reason: str = ".") -> None:
    """Assert that the checker rejects the file at `path` after `document` is written to it."""
    seal(path, document)
    with pytest.raises(bounds.CertificateRejected, match=reason):
        bounds.check_certificate(path)


def forged_rungs_are_rejected(
    bound: bounds.Bound, folder: Path, changes: dict[str, Callable[[Document], object]]
) -> None:
    """Assert that the checker confirms a bound, and rejects it after each change of a last rung."""
    path = saved(bound, folder)
    original = path.read_text()
    assert bounds.check_certificate(path).records == bound.value
    for name, change in changes.items():
        document = json.loads(original)
        change(document["rungs"][-1])
        document["lower_bound"] = document["rungs"][-1]["last"]
        seal(path, document)
        try:
            bounds.check_certificate(path)
        except bounds.CertificateRejected:
            continue
        raise AssertionError(f"the checker confirms a forged rung: {name}")


#: Changes of any rung with a scale.
FORGED_RUNG: dict[str, Callable[[Document], object]] = {
    "scale": lambda rung: rung.update(scale=rung["scale"] * 1.001),
    "first": lambda rung: rung.update(first=rung["first"] - 1),
    "last": lambda rung: rung.update(last=rung["last"] + 1),
    "copies": lambda rung: rung.update(copies=rung["copies"] + 1),
    "many copies": lambda rung: rung.update(copies=10**6),
}


@pytest.mark.parametrize("name", BOUNDS)
def test_certificates_are_confirmed(name, tmp_path):
    bound = BOUNDS[name]()
    path = saved(bound, tmp_path)
    checked = bounds.check_certificate(path)
    assert checked.records == bound.value > 0
    assert isinstance(bound.certificate, bounds.Certificate)
    last = [rung["last"] for rung in json.loads(path.read_text())["rungs"]]
    assert last == [rung.last for rung in bound.certificate.rungs]


def numbers_of(document: Document) -> list[tuple[Document, str]]:
    """Pairs (part, key) for the numbers of a document, its rungs and their families.

    The version is left out, and the seed: with another seed, the statements are about other signs.
    """
    rungs = document["rungs"]
    families = [rung["family"] for rung in rungs]
    sets = [family["sets"] for family in families if "sets" in family]
    return [
        (part, key)
        for part in (document, *rungs, *families, *sets)
        for key, value in part.items()
        if isinstance(value, int | float) and key not in ("version", "seed")
    ]


@pytest.mark.parametrize(
    "name", ["Hamming", "add/remove", "histogram", "blocks", "random signs", "code words"]
)
def test_every_changed_number_is_rejected(name, tmp_path):
    path = saved(BOUNDS[name](), tmp_path)
    original = json.loads(path.read_text())
    for i, (part, key) in enumerate(numbers_of(original)):
        # A float such as log_odds = 0, which no factor changes, is changed by 0.01.
        step = 1 if isinstance(part[key], int) else 0.01 * (part[key] or 1)
        for sign in (-1, 1):
            if key == "separation" and sign < 0:
                continue  # the proof also holds for a smaller separation
            changed = copy.deepcopy(original)
            altered, _ = numbers_of(changed)[i]
            altered[key] += sign * step
            rejected(path, changed)


def test_changed_data_sets_answers_and_elements_are_rejected(tmp_path):
    path = saved(BOUNDS["Hamming"](), tmp_path)
    original = json.loads(path.read_text())

    changes: list[tuple[Callable[[Document], object], str]] = [
        (lambda family: family["datasets"].__setitem__(3, [5]), "separation is 0"),
        (lambda family: family["elements"][0].__setitem__(0, 1), "separation is 0.612"),
        (lambda family: family["elements"][0].__setitem__(0, 2), "elements are not 0 or 1"),
        (lambda family: family["datasets"].pop(3), "log_others"),
        (lambda family: family["datasets"].__setitem__(3, [16]), "not listed"),
        (lambda family: family["workload"].update(k=2), "separation"),
        (lambda family: family["workload"].update(k=9), "k is above"),
    ]
    for change, reason in changes:
        changed = copy.deepcopy(original)
        change(changed["rungs"][0]["family"])
        rejected(path, changed, reason)
    # Another order of the data sets has the same separation, but not the same digest.
    untouched = copy.deepcopy(original)
    untouched["rungs"][0]["family"]["datasets"].reverse()
    path.write_text(json.dumps(untouched))
    with pytest.raises(bounds.CertificateRejected, match="digest"):
        bounds.check_certificate(path)


def test_changed_large_arrays_are_rejected(tmp_path):
    path = saved(BOUNDS["large"](), tmp_path)
    document = json.loads(path.read_text())
    beside = path.with_suffix(".npz")
    with np.load(beside) as stored:
        arrays = {name: stored[name].copy() for name in stored.files}
    for values in arrays.values():
        values[0] = values[1]
    np.savez_compressed(beside, **arrays)
    with pytest.raises(bounds.CertificateRejected, match="digest"):
        bounds.check_certificate(path)
    rejected(path, document, "separation is 0")


def test_a_missing_rung_and_rungs_of_two_workloads_are_rejected(tmp_path):
    path = saved(BOUNDS["blocks"](), tmp_path)
    document = json.loads(path.read_text())
    assert len(document["rungs"]) > 1
    first = document["rungs"].pop(0)
    rejected(path, document, "the rungs before end at 0")
    other = json.loads(
        saved(bounds.marginal_bound(33, 2, epsilon=0.1, alpha=0.002), tmp_path).read_text()
    )
    document["rungs"] = [other["rungs"][0], *document["rungs"]]
    assert other["rungs"][0]["last"] >= first["last"] - 60
    rejected(path, document, "for 2 workloads")


def test_the_checker_imports_nothing_else_of_geomdp():
    folder = Path(geomdp.bounds.checker.__file__).parent
    for source in folder.glob("*.py"):
        for node in ast.walk(ast.parse(source.read_text())):
            if isinstance(node, ast.ImportFrom | ast.Import):
                module = [node.module or ""] if isinstance(node, ast.ImportFrom) else []
                for name in module or [alias.name for alias in node.names]:
                    assert not name.startswith("geomdp") or name.startswith("geomdp.bounds.checker")


def test_the_command_prints_and_exits(tmp_path, monkeypatch, capsys):
    path = saved(BOUNDS["Hamming"](), tmp_path)

    def run(name: str) -> tuple[object, str, str]:
        monkeypatch.setattr(sys, "argv", ["geomdp", "check-bound", name])
        with pytest.raises(SystemExit) as stop:
            main()
        printed = capsys.readouterr()
        return stop.value.code, printed.out, printed.err

    code, out, _ = run(str(path))
    assert code == 0
    assert "sc > 3" in out
    assert "all 120 pairs" in out
    assert "for marginals of d = 8, k = 1 has" in " ".join(out.split())
    document = json.loads(path.read_text())
    document["lower_bound"] = 4
    seal(path, document)
    code, out, _ = run(str(path))
    assert code == 1
    assert "rejected" in out
    assert "lower_bound is 3, the file says 4" in out
    code, out, err = run(str(tmp_path / "none.json"))
    assert (code, out) == (2, "")
    assert "No such file" in err


@pytest.mark.parametrize(("sets", "reason"), [
    ({"type": "singletons", "log_count": -5.0}, "log_count is not above 0"),
    ({"type": "greedy", "universe": 64, "size": 4}, "the family of sets 'greedy' is unknown"),
    ({"type": "reed-solomon", "prime": 2**31 - 1, "size": 99, "degree": 99}, "union bound"),
    ({"type": "singletons", "log_count": 10**400}, "log_count is not a finite number"),
])  # fmt: skip
def test_sets_beyond_all_sizes_are_rejected(sets, reason, tmp_path):
    path = saved(two_sets(), tmp_path)
    document = json.loads(path.read_text())
    document["rungs"][0]["family"]["sets"] = sets
    rejected(path, document, reason)


def test_sums_of_generators_may_be_lighter_than_all_of_them():
    # The sum of the last two generators has weight 1. All other nonzero words have weight 3 to 5.
    generators = np.array([[1, 1, 1, 0, 0, 0], [0, 0, 1, 1, 1, 0], [0, 0, 1, 1, 1, 1]])
    assert least_weight(generators) == 1


STATEMENTS = {
    "Hamming": "no 1-DP mechanism (replace-one) for marginals of d = 8, k = 1 has mean l2 error "
    "per query at most 0.1 with 3 records or fewer",
    "add/remove": "no 0.2-DP mechanism (add/remove) for marginals of d = 8, k = 1 has root mean "
    "squared error per query at most 0.1 with 16 records or fewer",
    "tables": "no 0.3-DP mechanism (replace-one) for marginal tables of columns = [2, 3, 2], "
    "k = 2 has mean l2 error per query at most 0.01 with 87 records or fewer",
    "explicit": "no 0.3-DP mechanism (replace-one) for 5 queries with the answers of the file has "
    "mean l2 error per query at most 0.01 with 51 records or fewer",
    "worst case": "no 0.5-DP mechanism (replace-one) for marginals of d = 9, k = 1 has worst-case "
    "error over the queries at most 0.01 with 299 records or fewer",
    "width 3": "no 0.1-DP mechanism (replace-one) for marginals of d = 20, k = 3 has mean l2 error "
    "per query at most 0.0005 with 2273 records or fewer",
    "two sizes of sets": "no 0.05-DP mechanism (replace-one) for 500 random sign queries (seed 0) "
    "has mean l2 error per query at most 0.01 with 1344 records or fewer",
}


@pytest.mark.parametrize("name", STATEMENTS)
def test_a_statement_names_the_workload_the_error_and_the_records(name, tmp_path):
    assert bounds.check_certificate(saved(BOUNDS[name](), tmp_path)).statement == STATEMENTS[name]


def test_what_is_sampled_or_taken_is_said(tmp_path):
    explicit = bounds.check_certificate(saved(BOUNDS["explicit"](), tmp_path))
    assert explicit.conditions == (
        "the answers of the elements are those of the file, all of one workload",
    )
    bound = BOUNDS["random signs"]()
    signs = bounds.check_certificate(saved(bound, tmp_path))
    assert any("with probability at least" in text for text in signs.conditions)
    assert any("the universe has at least e^" in text for text in signs.conditions)
    proved = bounds.check_certificate(saved(BOUNDS["blocks"](), tmp_path))
    assert proved.conditions == ()


def test_a_small_certificate_may_follow_a_large_one(tmp_path):
    path = saved(BOUNDS["large"](), tmp_path)
    assert path.with_suffix(".npz").exists()
    certificate = BOUNDS["Hamming"]().certificate
    assert isinstance(certificate, bounds.Certificate)
    with pytest.raises(ValueError, match=r"must end in \.json"):
        certificate.save(tmp_path / "bound.txt")
    certificate.save(path)
    assert [each.name for each in tmp_path.iterdir()] == ["bound.json"]
    assert bounds.check_certificate(path).records == 3
