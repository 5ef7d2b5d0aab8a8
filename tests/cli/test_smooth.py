"""The commands `geomdp smooth summarize` and `geomdp smooth answer`."""

import base64
import errno
import json
import os
import re
import tempfile
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from geomdp.cli.smooth import ERRORS, FORMAT_HELP
from geomdp.mechanisms import MomentProjection
from geomdp.mechanisms.smooth_release import SmoothRelease
from geomdp.privacy import Ledger
from geomdp.workloads.smooth.queries import query_from_dict

N = 300
BOUNDS = "age=0:120,income=-100:900"
QUERIES = [
    {"kind": "GaussianMixture", "centres": [[0.2, -0.5]], "weights": [1.0], "bandwidth": 1.5},
    {"kind": "Logistic", "weights": [1.0, -0.5], "bias": 0.2},
    {"kind": "Polynomial", "exponents": [[2, 1]], "coefficients": [1.0]},
]


def table() -> pd.DataFrame:
    rng = np.random.default_rng(3)
    frame = pd.DataFrame({"age": rng.uniform(0, 120, N), "income": rng.uniform(-100, 900, N)})
    frame["name"] = "someone"
    return frame


def cube(frame: pd.DataFrame) -> np.ndarray:
    return np.stack([frame.age / 60 - 1, (frame.income + 100) / 500 - 1], axis=1)


@pytest.fixture
def run(call):
    """Run the command in a folder that holds people.csv, people.parquet and query.json."""
    table().to_csv("people.csv", index=False)
    table().to_parquet("people.parquet")
    Path("query.json").write_text(json.dumps(QUERIES))
    return lambda line: call(f"smooth {line}")


@pytest.mark.parametrize("data", ["people.csv", "people.parquet"])
def test_almost_without_noise_answers_are_true_means(run, data):
    options = f"--bounds {BOUNDS} --smoothness 4 --epsilon 1e5 --epsilon-above-10 --degree 12"
    out = run(f"summarize {data} {options} --out s.npz").ok()
    assert "143: degrees 0 to 11 in each of 2 variables" in out
    assert "100000-DP, replace-one" in out
    assert f"{N} (counted)" in out
    out = run("answer s.npz --query query.json").ok()
    assert "age, income" in out
    # The first column, the kind and number of a query, has two words.
    lines = [line for line in out.splitlines() if line.startswith(("Gauss", "Logi", "Poly"))]
    rows = [line.split()[1:] for line in lines]
    for row, description in zip(rows, QUERIES, strict=True):
        truth = query_from_dict(description)(cube(table())).mean()
        assert float(row[1]) == pytest.approx(truth, abs=10 * float(row[2]) + float(row[3]) + 1e-7)
        assert float(row[3]) <= 1e-4


def test_the_file_says_what_the_screen_says(run):
    run(f"summarize people.csv --bounds {BOUNDS} --smoothness 2 --rho 0.5 --out s.npz --seed 7")
    release = SmoothRelease.load("s.npz")
    assert str(release.guarantee) == "seeded: no privacy claim"
    bounds = {column.name: column.bounds for column in release.schema.real_columns}
    assert bounds == {"age": (0.0, 120.0), "income": (-100.0, 900.0)}
    assert release.n == N
    _, out, _ = run("answer s.npz --query query.json")
    assert "seeded: no privacy claim" in out
    assert "as released" in out
    release.projected(MomentProjection.on_grid(release.noise_std, 24)).save("moved.npz")
    out = run("answer moved.npz --query query.json").ok()
    assert "projected onto attainable moments; noise std is the value before" in out
    again = f"summarize people.csv --bounds {BOUNDS} --smoothness 2 --rho 1 --out s.npz"
    assert "would overwrite 's.npz'" in run(again).error()


def test_a_single_query_and_a_declared_number(run):
    Path("one.json").write_text(json.dumps(QUERIES[1]))
    options = f"--bounds {BOUNDS} --smoothness 2 --epsilon 1 --n 400 --adjacency add-remove"
    out = run(f"summarize people.csv {options} --out s.npz").ok()
    assert "400 (declared)" in out
    assert "add/remove" in out
    out = run("answer s.npz --query one.json --out a.csv").ok()
    assert "if there are fewer than 400 records, each missing record" in out
    assert np.isfinite(pd.read_csv("a.csv").missing_record).all()


def test_queries_have_names_units_and_a_file(run):
    privacy = "--smoothness 4 --epsilon 1e5 --epsilon-above-10 --degree 8"
    run(f"summarize people.csv --bounds {BOUNDS} {privacy} --out s.npz")
    original = [
        {"kind": "Polynomial", "exponents": [[1, 0]], "coefficients": [1.0], "name": "mean age"},
        {"kind": "Polynomial", "exponents": [[1, 1]], "coefficients": [1.0]},
        {"kind": "Logistic", "weights": [0.01, -0.001], "bias": 0.2},
        {"kind": "Waves", "frequencies": [[0.01, 0]], "amplitudes": [1.0], "phases": [0.3]},
        {"kind": "SoftRange", "low": [30, 0], "high": [60, 500], "width": 1.0},
        {"kind": "GaussianMixture", "centres": [[40, 300]], "weights": [1.0], "bandwidth": 1.5},
    ]
    Path("original.json").write_text(json.dumps(original))
    line = "answer s.npz --query original.json --original-units --out answers.csv"
    out = run(line).ok()
    assert "mean age" in out
    answers = pd.read_csv("answers.csv").set_index("query")
    assert list(answers.columns) == ["kind", "answer", *ERRORS]
    frame, x = table(), cube(table())
    inside = {"kind": "SoftRange", "low": [-0.5, -0.8], "high": [0.0, 0.2], "width": 1.0}
    truths = [
        frame.age.mean(),
        (frame.age * frame.income).mean(),
        (1 / (1 + np.exp(-(0.01 * frame.age - 0.001 * frame.income + 0.2)))).mean(),
        np.cos(0.01 * frame.age + 0.3).mean(),
        query_from_dict(inside)(x).mean(),
        np.exp(-((x - [40 / 60 - 1, 400 / 500 - 1]) ** 2).sum(axis=1) / (2 * 1.5**2)).mean(),
    ]
    np.testing.assert_allclose(answers.answer, truths, rtol=2e-3)
    assert run(line)[0] == 2  # nothing is overwritten unasked
    run(f"{line} --force --out answers.parquet")
    assert len(pd.read_parquet("answers.parquet")) == len(original)
    assert run("answer s.npz --query query.json --out query.csv").code == 0
    Path("link.csv").symlink_to("query.json")
    error = run("answer s.npz --query query.json --out link.csv --force").error()
    assert "would overwrite the input" in error


def test_a_ledger_pays_for_a_summary(run):
    line = f"summarize people.csv --bounds {BOUNDS} --smoothness 2 --epsilon 1 --force --out s.npz"
    out = run(f"{line} --ledger people.ledger --budget epsilon=1.5").ok()
    assert "epsilon 0.5 of 1.5 left" in out
    Path("people.csv").unlink()  # refused before the records are read
    assert "does not fit" in run(f"{line} --ledger people.ledger").error()
    assert "no proved cost" in run(f"{line} --ledger people.ledger --seed 1").error()


PAID = f"summarize people.csv --bounds {BOUNDS} --smoothness 2 --epsilon 1 --out s.npz --ledger l"


@pytest.mark.parametrize("writes", [0, 1])
def test_a_full_disk_costs_nothing_or_no_summary(run, monkeypatch, tmp_path, writes):
    """The disk is full before the room for the summary is taken, or after it is paid."""
    sync, left = os.fsync, list(range(writes))

    def limited(descriptor):
        if not left:
            raise OSError(errno.ENOSPC, "No space left on device")
        left.pop()
        sync(descriptor)

    monkeypatch.setattr(os, "fsync", limited)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    code, out, err = run(f"{PAID} --budget epsilon=1")
    assert (code, len(err.splitlines())) == (2, 1)
    assert "geomdp: error: s.npz: No space left on device" in err
    assert not [*Path().glob("*s.npz*")]
    with Ledger.existing(Path("l")) as ledger:
        assert len(ledger.spends()) == writes
    if writes == 1:
        assert "1-DP was charged to l, and the answers are on standard output" in err
        Path("printed.npz").write_bytes(base64.b64decode(out.partition("\n")[2]))
        assert str(SmoothRelease.load("printed.npz").guarantee).startswith("1-DP, replace-one")


def test_the_queries_in_the_help_have_the_stated_shapes():
    """All queries in the help have two columns, and the polynomial has one row for each term."""
    by_kind = {}
    for line in re.findall(r"^(?=\{)(.*\})", FORMAT_HELP, re.MULTILINE):
        content = json.loads(line)
        content.pop("name", None)
        by_kind[content["kind"]] = query_from_dict(content)
    assert by_kind.keys() == {"SoftRange", "Logistic", "Polynomial", "GaussianMixture", "Waves"}
    assert {query.dimension for query in by_kind.values()} == {2}
    x1, x2 = 0.5, -0.25
    assert by_kind["Polynomial"]([[x1, x2]]).tolist() == [x1**2 * x2 - 0.5 * x2]
    assert "one row for each term" in FORMAT_HELP


SOUND = "summarize people.csv --smoothness 2 --epsilon 1 --out s.npz"


@pytest.mark.parametrize(
    ("line", "words"),
    [
        (f"{SOUND} --bounds age=0:100", r"between 0 and 100: row \d+, column 'age'"),
        (f"{SOUND} --bounds name=0:1", "must be a number: row 0, column 'name'"),
        (f"{SOUND} --bounds age=5:5", "column 'age': bounds must be 2 numbers, increasing"),
        (f"{SOUND} --bounds age=5", r"--bounds must be NAME=LOW:HIGH,\.\.\., got 'age=5'"),
        (f"{SOUND} --bounds age=a:b", "--bounds of 'age' must be numbers, got 'a:b'"),
        (f"{SOUND} --bounds weight=0:1", "the header has no column 'weight'"),
        (f"{SOUND} --bounds {BOUNDS} --n 7", "must number n = 7, got 300"),
        (f"{SOUND} --bounds {BOUNDS} --degree 1", "degree must be"),
        (f"{SOUND} --bounds {BOUNDS} --smoothness 0", "--smoothness must be"),
        (f"{SOUND} --bounds {BOUNDS} --adjacency add-remove", "needs --n"),
        (f"{SOUND} --bounds {BOUNDS} --out s.csv", r"ending in \.npz"),
        ("answer query.json --query query.json", "is not a smooth summary"),
        ("answer none.npz --query query.json", "No such file"),
    ],
)
def test_bad_input_ends_with_one_line_and_writes_nothing(run, line, words):
    error = run(line).error()
    assert re.search(words, error), error
    assert not Path("s.npz").exists()


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("{", "--query bad.json"),
        ("[]", "must hold at least 1 query, got 0"),
        ('[{"kind": "Cosine"}]', "query number 0: kind must be one of"),
        ('{"kind": "Logistic", "weights": [1.0]}', "must have the parameters"),
        ('{"kind": "Logistic", "weights": [1.0], "bias": 0.0}', "must have 2 variables"),
    ],
)
def test_bad_queries(run, content, words):
    run(f"{SOUND} --bounds {BOUNDS}")
    Path("bad.json").write_text(content)
    assert words in run("answer s.npz --query bad.json").error()
