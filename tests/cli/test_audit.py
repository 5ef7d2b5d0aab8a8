"""`geomdp audit` prints verdicts, gives reasons for what it omits, and refuses bad input."""

import re
from pathlib import Path

import numpy as np
import pytest

from geomdp.advice.candidates import CANDIDATES
from geomdp.audit.claims import smallest_violation
from geomdp.cli import audit
from geomdp.data import Schema
from geomdp.noise import LaplaceNoise
from geomdp.privacy import ZCDP, PureDP

ASKED = ["--schema", "schema.json", "--workload", "conjunctions:1", "--seed", "1"]


@pytest.fixture
def run(call):
    Path("schema.json").write_text(Schema.from_dict({"smoker": bool, "retired": bool}).to_json())
    return lambda *words: call("audit", *words)


def row_of(name, out):
    (line,) = re.findall(rf"^{name} .*$", out, flags=re.MULTILINE)
    return line


@pytest.mark.statistical
def test_every_mechanism_is_audited_or_left_out_with_a_reason(run):
    code, out, _ = run(*ASKED, "--epsilon", "1", "--trials", "400")
    assert code == 0
    above, _, below = out.partition("left out")
    for row in CANDIDATES:
        audited = re.search(rf"^{row.flag} +not refuted", above, flags=re.MULTILINE)
        assert audited or re.search(rf"^{row.flag} +\S+", below, flags=re.MULTILINE), row.flag
    for command in ("ask", "smooth"):
        assert "gd.audit." in row_of(command, below)
    assert "1-DP, replace-one" in out
    assert "2 x 200" in row_of("laplace", out)
    assert "purely private" in row_of("gaussian", below)
    for slow in ("jl", "coarse"):
        words = f"takes a full run: to audit it, add --mechanism {slow}, or --all"
        assert words in " ".join(row_of(slow, below).split())


@pytest.mark.statistical
def test_mechanisms_beyond_the_limit_are_left_out_and_all_brings_them(run, monkeypatch):
    asked = [*ASKED, "--epsilon", "1", "--trials", "64"]
    for most, audited in ((0, 1), (3 * 2 * 64, 3)):  # of 2 queries and 64 trials
        monkeypatch.setattr(audit, "MOST_NUMBERS", most)
        above, _, below = run(*asked).ok().partition("left out")
        assert above.count("not refuted") == audited
        assert "not refuted" in row_of("laplace", above)
        words = f"{audited} audits of this size are made: to audit it, add --mechanism knorm-exact"
        assert words in " ".join(below.split())
    above, _, below = run(*asked, "--all").ok().partition("left out")
    assert above.count("not refuted") == 15
    assert "--all" not in below


@pytest.mark.statistical
@pytest.mark.parametrize("adjacency", ["replace-one", "add-remove"])
def test_a_mechanism_without_noise_on_one_query_is_refuted(run, monkeypatch, adjacency):
    true_sample = LaplaceNoise.sample
    monkeypatch.setattr(
        LaplaceNoise, "sample", lambda self, rng, size: true_sample(self, rng, size) * [1.0, 0.0]
    )
    asked = [*ASKED, "--epsilon", "1", "--trials", "2000", "--adjacency", adjacency]
    code, out, _ = run(*asked, "--mechanism", "laplace", "--mechanism", "ball")
    assert code == 1
    assert "REFUTED" in row_of("laplace", out)
    assert "without variation" in " ".join(out.split())
    assert "not refuted" in row_of("ball", out)


@pytest.mark.statistical
def test_other_claims_and_steps(run):
    asked = [*ASKED, "--rho", "0.5", "--trials", "400", "--mechanism", "projected-gaussian"]
    code, out, _ = run(*asked)
    assert code == 0
    assert re.search(r"at delta \S+", row_of("projected-gaussian", out))
    assert "on records" in " ".join(out.split())
    again = run(*asked).out  # with the same seed
    assert re.sub(r"\d+\.\d s", "", again) == re.sub(r"\d+\.\d s", "", out)


@pytest.mark.parametrize(
    ("claim", "name"), [(["--epsilon", "1"], "epsilon"), (["--rho", "0.5"], "rho")]
)
def test_the_default_is_small_and_says_what_it_cannot_show(run, claim, name):
    mechanism = "laplace" if name == "epsilon" else "gaussian"
    code, out, _ = run(*ASKED, *claim, "--mechanism", mechanism)
    assert code == 0
    # Half of the 1000 trials test the claim.
    assert "2 x 500" in row_of(mechanism, out)
    privacy = PureDP(1.0) if name == "epsilon" else ZCDP(0.5)
    least, less = (smallest_violation(privacy, trials=trials) for trials in (500, 5000))
    assert f"1000 trials can show a true {name} of {least:.3g} or more" in out
    assert f"--trials 10000 can show {less:.3g}." in out
    assert ("Renyi divergences show rho >=" in " ".join(out.split())) is (name == "rho")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--epsilon", "1", "--trials", "63"], "--trials must be a whole number, at least 64"),
        (["--epsilon", "1", "--level", "0"], "--level must be above 0 and below 1, got 0.0"),
        (["--epsilon", "1", "--level", "5e-324"], "level must be at least 1e-300, got 5e-324"),
        (["--epsilon", "1", "--mechanism", "gaussian"], "--mechanism gaussian does not apply"),
        (["--epsilon", "1", "--mechanism", "ball", "--all"], "give either --mechanism or --all"),
        ([], "give either --epsilon"),
    ],
)
def test_bad_input_is_one_line(run, arguments, message):
    assert message in run(*ASKED, *arguments).error()


def test_without_scikit_learn_the_command_says_so(run, monkeypatch):
    import importlib.util

    true_find = importlib.util.find_spec
    monkeypatch.setattr(
        importlib.util, "find_spec", lambda name: None if name == "sklearn" else true_find(name)
    )
    asked = [*ASKED, "--epsilon", "1", "--trials", "400", "--mechanism", "cone"]
    code, out, err = run(*asked)
    assert code == 0
    assert "classifier" not in out
    assert 'pip install "geomdp[audit]"' in err
    assert np.isfinite(float(row_of("cone", out).split()[3]))
