"""Mutation testing of one package: ``python -m tests.mutation privacy``.

mutmut works on a copy of the repository. A mutant is the code of the package with one small change
(a sign, a number, a comparison, an argument). For each mutant, mutmut runs the tests of the package
that reach the change. If a test fails, the mutant is killed; if not, the mutant survives. The
report counts the mutants by file and outcome, and prints every survivor. For a survivor, either a
test is missing, or the change makes no difference.

A package has thousands of mutants. For a survivor, all tests that reach the change must run, so a
run over all mutants takes hours. ``--sample 100`` runs 100 mutants drawn at random by a fixed seed.
The killed share of the sample estimates the killed share of all mutants, and the table holds the
95% interval of Clopper and Pearson. ``--table`` writes a row of ``paper_figures/mutation.csv``.

Some changes are not drawn, because no test should notice them: changes to the words of an error
message, to any text with a blank in it, and to capital letters in SQL. Changes to `strict` in a
call of `zip` are not drawn, because `strict` only checks the code around the call. Some other
changes also make no difference that a test should notice, for example a wider margin of a proof.
``tests/harmless_mutants.csv`` lists such changes that occurred in a run, each with the reason. They
are counted separately, and the killed share leaves them out.

Each row of the table is one sample of one package. "killed share" is the share of mutants that a
test notices, among those that were run and are not harmless. "low" and "high" are the ends of the
interval for this share among all mutants of the package that can be drawn. The interval is valid
only if no test was written for this sample. So whoever writes tests for the survivors of a sample
must change `SEED` and measure the row again.

The extra `mutation` must be installed. A run can be stopped and continued with ``--folder``. mutmut
does not change decorated functions, for example properties.
"""

import argparse
import ast
import csv
import functools
import json
import os
import random
import re
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from scipy import stats

ROOT = Path(__file__).parents[1]
TABLE = ROOT / "paper_figures" / "mutation.csv"
#: File of changes that make no difference: function, removed line, added line and reason.
HARMLESS = Path(__file__).with_name("harmless_mutants.csv")
#: Seed for drawing a sample. A second run with this seed draws the same mutants.
SEED = 20261204


def _of_mechanisms(names: str) -> tuple[str, ...]:
    """Paths of the files test_NAME.py in tests/mechanisms, for each NAME in the text `names`."""
    return tuple(f"tests/mechanisms/test_{name}.py" for name in names.split())


#: For each package of geomdp, or family of mechanisms, the folders and files of tests that should
#: kill its mutants.
TESTS = {
    "privacy": ("tests/privacy", "tests/tabulation/test_persons.py"),
    "noise": ("tests/noise", "tests/laws/test_noises.py", "tests/laws/test_single_numbers.py"),
    "mechanisms/additive_noise": (
        "tests/laws/test_mechanisms.py",
        *_of_mechanisms("oracles exact_table exact_proofs exact_sums release_order arguments"),
        *_of_mechanisms("joint_tables cone recursive spectral residual_gaussian"),
        *_of_mechanisms("few_queries exact_paths coarse contracts"),
        "tests/test_wide_sums.py",
    ),
    "mechanisms/interactive": (
        "tests/laws/test_interactive.py",
        *_of_mechanisms("online_iterative sparse_privacy sparse_vector private_counts"),
        *_of_mechanisms("updates unseeded_streams release_order ledger_use texts"),
    ),
    "mechanisms": (  # the other modules of the package itself, without subpackages
        "tests/laws/test_mechanisms.py",
        "tests/hostile/test_extreme_scales.py",
        "tests/tabulation/test_persons.py",
        *_of_mechanisms("arguments contracts ledger_use release_order texts"),
        *_of_mechanisms("exact_paths exact_table exact_sums oracles priors unseeded_streams"),
        *_of_mechanisms("printed"),
    ),
    "mechanisms/post_processed": (
        "tests/laws/test_mechanisms.py",
        *_of_mechanisms("oracles coarse priors projected contracts private_counts release_order"),
        "tests/tabulation/test_entropic.py",
    ),
    "mechanisms/second_moments": _of_mechanisms(
        "second_moment covariance pair_marginals exact_sums contracts release_order texts"
    ),
    "mechanisms/selection": _of_mechanisms("selection release_order ledger_use"),
    "mechanisms/smooth": _of_mechanisms(
        "smooth_noise smooth_summary moment_projection release_order ledger_use texts"
    ),
    "mechanisms/sparse": (
        "tests/mechanisms/hashing",
        *_of_mechanisms("sparse_project sparse_privacy private_counts ledger_use texts"),
    ),
    "mechanisms/strategies": _of_mechanisms(
        "strategies joint_tables product_noise residual_scales exact_table exact_proofs"
        " residual_gaussian contracts"
    ),
    "bounds/checker": ("tests/bounds",),
}
#: Families of mechanisms with a row in `TESTS`, and their modules in `geomdp/mechanisms`.
FAMILIES = {
    "mechanisms/post_processed": ("projected", "reduced_answers"),
    "mechanisms/second_moments": ("second_moment", "covariance"),
    "mechanisms/selection": ("selection",),
    "mechanisms/smooth": ("smooth_release", "smooth_summary"),
    "mechanisms/sparse": ("sparse_project", "sparse_summary"),
}
#: These tests are not run: tests that start processes, tests that measure time, tests of the
#: advisor, which take a minute, and tests of the line that a warning names, because mutmut puts a
#: call of its own between a function and its caller.
LEFT_OUT = (
    "not process and not kill and not forked and not fast and not speed and not advisor_ "
    "and not epsilon_warn"
)
#: Changes to this function are not drawn: it looks for its caller, where mutmut puts its own call.
LOOKS_FOR_ITS_CALLER = "geomdp.mechanisms.base.x_warn_if_weak"
#: Functions that raise an error, with the position of the argument that serves only for the error
#: message: a text, or the name of a parameter.
REQUIREMENTS = {
    "require": 1,
    "require_close": 2,
    "positive": 1,
    "probability": 1,
    "whole": 1,
    "require_type": 2,
    "finite_array": 1,
    "listed": 1,
    "batch": 2,
    "vector": 2,
}
#: Methods with a statement of SQL, or part of one, as an argument. Outside quotes SQL does not
#: distinguish small and capital letters.
SQL = ("execute", "_transaction")
#: Outcomes by the exit codes of the workers of mutmut.
OUTCOMES = {0: "survived", 1: "killed", 3: "killed", 33: "no test", 34: "skipped", None: "not run"}


def mutated(package: str) -> list[str]:
    """Patterns of the modules to mutate, without those that have a row of their own in `TESTS`."""
    if package in FAMILIES:
        return [f"geomdp/mechanisms/{name}.py" for name in FAMILIES[package]]
    if not any(name.startswith(f"{package}/") for name in TESTS):
        return [f"geomdp/{package}/*"]
    modules = sorted((ROOT / "geomdp" / package).glob("*.py"))
    others = {name for row in FAMILIES.values() for name in row}
    return [path.relative_to(ROOT).as_posix() for path in modules if path.stem not in others]


def prepare(package: str, folder: Path) -> None:
    """Copy the tracked files to `folder`, and configure mutmut there to change only `package`."""
    listed = subprocess.run(
        ["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=True
    )
    for name in filter(None, listed.stdout.split("\0")):
        if not name.startswith("paper_figures/"):
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, folder / name)
    selection = {
        "source_paths": ["geomdp"],
        "only_mutate": mutated(package),
        "also_copy": ["experiments", "README.md", "CHANGELOG.md", "CONTRIBUTING.md"],
        "pytest_add_cli_args": [
            *("-n", "0", "-p", "no:cacheprovider", "-p", "tests.mutation", "-k", LEFT_OUT)
        ],
        "pytest_add_cli_args_test_selection": list(TESTS[package]),
        "process_isolation": "forkserver",  # so that workers start without results of other runs
        "timeout_multiplier": 5.0,
    }
    lines = [f"{key} = {json.dumps(value)}" for key, value in selection.items()]
    with (folder / "pyproject.toml").open("a", encoding="utf-8") as file:
        file.write("\n".join(["", "[tool.mutmut]", *lines, ""]))


def pytest_runtest_setup() -> None:
    """Forget what earlier tests computed, as mutmut uses this module as a plugin of pytest.

    Otherwise a test that takes a result of another test from a cache would not reach the change.
    """
    for name, module in list(sys.modules.items()):
        if name.partition(".")[0] in ("geomdp", "tests"):
            for value in vars(module).values():
                if isinstance(value, functools._lru_cache_wrapper):
                    value.cache_clear()


def mutmut(folder: Path, *arguments: str) -> None:
    """Run mutmut in `folder`, on the copy there."""
    environment = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
    command = [sys.executable, "-m", "mutmut", *arguments]
    subprocess.run(command, cwd=folder, env=environment, check=False)


def shown(folder: Path, name: str) -> str:
    """The change that a mutant makes, as a diff."""
    command = [sys.executable, "-m", "mutmut", "show", name]
    run = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=True)
    return run.stdout


def outcomes(folder: Path) -> dict[str, dict[str, str]]:
    """What happened to each mutant, by the file of the package and the mutant's name."""
    found = {}
    for path in sorted((folder / "mutants").rglob("*.meta")):
        codes = json.loads(path.read_text(encoding="utf-8"))["exit_code_by_key"]
        if codes:
            found[path.name.removesuffix(".meta")] = {
                name: OUTCOMES.get(code, "timed out") for name, code in codes.items()
            }
    return found


class _WithoutWords(ast.NodeTransformer):
    """Removes texts for people and the capital letters of SQL from a syntax tree."""

    def visit_Raise(self, node: ast.Raise) -> ast.Raise:
        """Keep only the type of the error."""
        if isinstance(node.exc, ast.Call):
            node.exc = node.exc.func
        return node

    def visit_Call(self, node: ast.Call) -> ast.AST:
        """Remove arguments that are only names or texts for people; write SQL in small letters."""
        if isinstance(node.func, ast.Attribute) and node.func.attr in SQL:
            _in_small_letters(node.args)
            return node
        self.generic_visit(node)
        called = ast.unparse(node.func)
        shown = REQUIREMENTS.get(called, len(node.args))
        del node.args[shown : shown + 1]
        unseen = ("strict",) if called == "zip" else ("name", "user")
        node.keywords = [word for word in node.keywords if word.arg not in unseen]
        return node

    def visit_Constant(self, node: ast.Constant) -> ast.Constant:
        """Replace texts with a blank by "". Other texts are names and keys, which code reads."""
        return ast.Constant("") if isinstance(node.value, str) and " " in node.value else node


def _in_small_letters(statements: list[ast.expr]) -> None:
    """Write the words of SQL in small letters, but do not change texts in quotes."""
    for part in (node for statement in statements for node in ast.walk(statement)):
        if isinstance(part, ast.Constant) and isinstance(part.value, str):
            pieces = re.split("('[^']*')", part.value)
            pieces[::2] = [piece.lower() for piece in pieces[::2]]
            part.value = "".join(pieces)


def changes_of_words(module: Path) -> set[str]:
    """Mutants of a module that differ from the original only in what `_WithoutWords` removes."""
    functions = {
        node.name: node
        for node in ast.walk(ast.parse(module.read_text(encoding="utf-8")))
        if isinstance(node, ast.FunctionDef) and "__mutmut_" in node.name
    }
    trees = {}
    for name, node in functions.items():
        node.name = ""
        trees[name] = ast.dump(_WithoutWords().visit(node))
    return {
        name
        for name, tree in trees.items()
        if tree == trees[name.rpartition("_")[0] + "_orig"] and not name.endswith("_orig")
    }


def all_changes_of_words(folder: Path) -> set[str]:
    """The names that `changes_of_words` gives for all modules of a run."""
    words = set()
    for path in (folder / "mutants").rglob("*.py.meta"):
        if json.loads(path.read_text(encoding="utf-8"))["exit_code_by_key"]:
            words |= changes_of_words(path.with_suffix(""))
    return words


def drawn(folder: Path, size: int) -> list[str]:
    """Names of `size` mutants, drawn without replacement; changes of words are not drawn."""
    # mutmut has no command that only makes mutants; it makes them before it looks for this name.
    mutmut(folder, "run", "--max-children", "1", "no mutant has this name")
    words = all_changes_of_words(folder)
    names = sorted(name for by_name in outcomes(folder).values() for name in by_name)
    names = [name for name in names if name.rpartition(".")[2] not in words]
    names = [name for name in names if not name.startswith(LOOKS_FOR_ITS_CALLER)]
    return random.Random(SEED).sample(names, min(size, len(names)))


def survivors(folder: Path) -> Iterator[tuple[str, str, str, str]]:
    """Name, function, removed lines and added lines of each mutant that no test noticed."""
    for by_name in outcomes(folder).values():
        for name, what in by_name.items():
            if what in ("survived", "no test"):
                lines = shown(folder, name).splitlines()
                removed, added = (changed_lines(lines, sign) for sign in "-+")
                yield name, name.rpartition("__mutmut_")[0], removed, added


def changed_lines(diff: list[str], sign: str) -> str:
    """The lines of a diff that begin with `sign`, without the line of the file name."""
    return " ".join(line[1:].strip() for line in diff if re.match(rf"[{sign}](?![{sign}])", line))


def explained(folder: Path) -> Iterator[tuple[str, str, str, str]]:
    """Name, reason, removed and added lines of each survivor; an unknown reason is empty."""
    known, words = harmless(), all_changes_of_words(folder)
    for name, function, removed, added in survivors(folder):
        reason = known.get((function, removed, added), "")
        if name.rpartition(".")[2] in words:
            reason = "Only a text for people or letters of SQL change."
        yield name, reason, removed, added


def harmless() -> dict[tuple[str, str, str], str]:
    """The reason why a change makes no difference, by function, removed and added lines."""
    with HARMLESS.open(encoding="utf-8", newline="") as file:
        return {
            (r["function"], r["removed"], r["added"]): r["reason"] for r in csv.DictReader(file)
        }


def row(package: str, folder: Path) -> dict[str, object]:
    """Counts of outcomes, and the killed share with its interval; a time-out counts as killed."""
    counts = Counter(what for by_name in outcomes(folder).values() for what in by_name.values())
    excused = sum(reason != "" for _, reason, *_ in explained(folder))
    run = counts.total() - counts["not run"] - counts["skipped"]
    killed = counts["killed"] + counts["timed out"]
    interval = stats.binomtest(killed, run - excused).proportion_ci(0.95, method="exact")
    return {
        "package": package,
        "mutants": counts.total(),
        "run": run,
        **{name: counts[name] for name in ("killed", "timed out", "survived", "no test")},
        "harmless": excused,
        "killed share": round(killed / (run - excused), 3),
        "low": round(interval.low, 3),
        "high": round(interval.high, 3),
    }


def write(result: dict[str, object]) -> None:
    """Put the row of a package into the committed table, in place of an earlier one."""
    rows = []
    if TABLE.exists():
        with TABLE.open(encoding="utf-8", newline="") as file:
            rows = [old for old in csv.DictReader(file) if old["package"] != result["package"]]
    with TABLE.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, list(result), lineterminator="\n")
        writer.writeheader()
        writer.writerows(sorted([*rows, result], key=lambda each: str(each["package"])))


def report(folder: Path) -> None:
    """Print the outcomes by file, and the survivors as diffs."""
    found = outcomes(folder)
    for name, by_name in found.items():
        counts = Counter(by_name.values())
        if counts.total() > counts["not run"]:
            print(f"{name:28}", dict(counts))
    for name, reason, removed, added in explained(folder):
        print(f"{name}: {reason or 'UNEXPLAINED'}\n  - {removed}\n  + {added}")


def main() -> None:
    """Run mutmut on one package and report."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("package", choices=TESTS)
    parser.add_argument("--sample", type=int, help="how many mutants, drawn at random; else all")
    parser.add_argument("--folder", type=Path, help="a folder of an earlier run, to continue it")
    parser.add_argument("--report-only", action="store_true", help="only read what --folder holds")
    parser.add_argument("--table", action="store_true", help=f"write the counts to {TABLE.name}")
    chosen = parser.parse_args()
    folder = chosen.folder or Path(tempfile.mkdtemp(prefix="geomdp-mutation-"))
    if not (folder / "geomdp").exists():
        folder.mkdir(parents=True, exist_ok=True)
        prepare(chosen.package, folder)
    print(f"in {folder}")
    if not chosen.report_only:
        names = [] if chosen.sample is None else drawn(folder, chosen.sample)
        mutmut(folder, "run", "--max-children", "1", *names)
    report(folder)
    result = row(chosen.package, folder)
    print(result)
    if chosen.table:
        write(result)


if __name__ == "__main__":
    main()
