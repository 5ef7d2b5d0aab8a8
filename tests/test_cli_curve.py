"""`geomdp curve` writes three files, warns if it reads records, and explains bad input."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pandas as pd
import pytest

from geomdp.cli import main
from geomdp.cli.plans import NOT_PRIVATE, NOTHING_EXCLUDED, parse_range

SCHEMA = {
    "format": "geomdp schema",
    "version": 1,
    "columns": [{"name": name, "kind": "boolean"} for name in ("smoker", "retired", "veteran")],
}


class Outcome:
    """Exit code and output of one call."""

    def __init__(self, code: int, out: str, err: str) -> None:
        self.code, self.out, self.err = code, out, err


@pytest.fixture
def call(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]):
    monkeypatch.chdir(tmp_path)
    # Lower bounds for 4 errors are enough here. `test_error_curve` tests the bounds themselves.
    monkeypatch.setattr("geomdp.advice.error_curve.EXCLUDED_ERRORS", 4)
    Path("schema.json").write_text(json.dumps(SCHEMA))
    rows = [("true", "false", "true"), ("false", "false", "true")] * 20
    pd.DataFrame(rows, columns=["smoker", "retired", "veteran"]).to_csv("survey.csv", index=False)

    def run(*arguments: str) -> Outcome:
        monkeypatch.setattr(sys, "argv", ["geomdp", "curve", *arguments])
        with pytest.raises(SystemExit) as stop:
            main()
        printed = capsys.readouterr()
        assert isinstance(stop.value.code, int)
        return Outcome(stop.value.code, printed.out, printed.err)

    return run


ASK = ["--schema", "schema.json", "--workload", "marginals:1", "--epsilon", "1", "--n", "10:1000"]


def test_a_schema_alone_gives_predictions(call) -> None:
    result = call(*ASK, "--out", "mine.png")
    assert result.code == 0, result.err
    assert result.err == ""
    assert "least error" in result.out
    assert {path.suffix for path in Path().glob("mine.*")} == {".csv", ".png", ".svg"}
    table = pd.read_csv("mine.csv")
    assert set(table.quantity) == {"predicted", "excluded"}
    assert (table.n.min(), table.n.max()) == (10, 1000)
    # The figure marks and names the best mechanisms that the command prints. By default, no
    # mechanism in the table has a heuristic sampler.
    figure = Path("mine.svg").read_text()
    printed = " ".join(result.out.split())
    for n in (10, 1000):
        best = table[(table.quantity == "predicted") & (table.n == n)]
        name = best.loc[best.rmse.idxmin(), "curve"]
        assert f"with {n} records ({name})" in printed
        assert f"least with {n} records:" in figure
        assert name in figure
    assert not table.sampler.fillna("").str.startswith("heuristic").any()
    # Without --force, a second run overwrites nothing.
    before = Path("mine.png").read_bytes()
    refused = call(*ASK, "--out", "mine.png")
    assert refused.code == 2
    assert "use --force" in refused.err
    assert Path("mine.png").read_bytes() == before


def test_a_guarantee_without_a_lower_bound_says_so(call) -> None:
    weak = ["--schema", "schema.json", "--workload", "marginals:2", "--rho", "5", "--n", "10:1000"]
    result = call(*weak)
    assert result.code == 0, result.err
    assert NOTHING_EXCLUDED in " ".join(result.out.split())
    assert "no shaded region: the" in Path("curve.svg").read_text()
    assert NOTHING_EXCLUDED not in " ".join(call(*ASK, "--force").out.split())


def test_records_are_measured_with_a_warning(call) -> None:
    Path("curve.csv").write_text("of an earlier run")
    result = call("survey.csv", *ASK, "--force")
    assert result.code == 0, result.err
    assert NOT_PRIVATE in " ".join(result.err.split())
    table = pd.read_csv("curve.csv")
    assert "measured, not private" in set(table.quantity)
    assert "not private" in Path("curve.svg").read_text()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--out", "mine.pdf"], "--out must name a file ending in .png"),
        (["--out", "nowhere/mine.png"], "--out must be in an existing folder"),
        (["--n", "1000:10"], "--n must be LOW:HIGH"),
        (["--n", "1000"], "--n must be LOW:HIGH"),
        (["--n", "0:10"], "--n must be LOW:HIGH"),
        (["--n", "10:99999999"], "--n must be LOW:HIGH"),
        (["--measure"], "--measure needs --sample"),
        (["--sample", "rand"], "give either --schema or --sample"),
        (["missing.csv"], "missing.csv"),
    ],
)
def test_bad_input_is_one_line_and_writes_nothing(call, arguments, message) -> None:
    result = call(*ASK, *arguments)
    assert result.code == 2
    assert result.out == ""
    (line,) = result.err.splitlines()
    assert line.startswith("geomdp: error: ")
    assert message in line
    assert not [*Path().glob("*.png"), *Path().glob("curve.*")]


def test_numbers_of_records_are_four_a_decade() -> None:
    assert parse_range("100:1000000")[::4] == [100, 1000, 10_000, 100_000, 1_000_000]
    assert parse_range("5:6") == [5, 6]
    assert len(parse_range("1:10")) == 5


def test_conjunctions_of_two_of_three_bits(call) -> None:
    """For so few columns, some constructions of packings find no code that they could use."""
    asked = ["--workload", "conjunctions:2", "--epsilon", "1", "--n", "10:1000"]
    result = call("--schema", "schema.json", *asked, "--out", "pairs.png")
    assert result.code == 0, result.err
    table = pd.read_csv("pairs.csv")
    assert set(table.quantity) == {"predicted", "excluded"}
    assert (table.n.min(), table.n.max()) == (10, 1000)
