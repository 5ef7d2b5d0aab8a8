"""Mutants: mistakes planted in the code, and the claims of figures and tests that notice them.

This figure illustrates no paper. It asks whether the claims of the other figures, and the tests of
this library, notice a wrong constant, exponent or noise (GEN-1).

Every mutant is one edit of one function, for example a factor of two, a natural instead of a binary
logarithm, half of the noise, or a bound far too large. It is planted in memory, in two separate
processes. One runs a figure at its quick preset, without any stored result, and lists the claims
that fail. The other runs the tests of the part up to the first test that fails. The quick run of
all figures shows that no claim fails without a mutant.

The tests of the part are whole test files: the tests of the edited function or, if a script is
edited, of the library functions that the script shows. "A claim alone" noticed a mutant if a claim
turns red and all these tests pass. An edit of a script stands for a mistake in the comparison:
another bound, other units, other data on the two sides. The tests of the part do not run the
script, so they cannot notice such an edit. A figure may also end with an error before its claims
are checked. Such a crash does not count as a claim that turned red.

Claims: every mutant is noticed, by a claim, a test or a crash. Every figure has a mutant that turns
one of its claims red, and a mutant that only its claims notice. Every statement in the index
`experiments.theorems` has a claim that some mutant turns red, except the statements that the index
lists with a reason. Goal: every figure has a mutant of the library, not of the script, that only a
claim notices.

A new mutant is one row in a file of `experiments/mutants`. The command
`python -m experiments.mutants WORD` runs the mutants with WORD in their name or in the name of
their figure, and keeps the results for the next run of all mutants.

A mutant is run again after every change of the library, of its script, of its tests, or of a module
that the script or the tests import. Run time on one core: quick 20 s, full an hour and a half.
"""

import enum
import importlib
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np
import pandas as pd

import experiments.engine.tools as ex
from experiments.engine.provenance import content_hash, imported_names
from experiments.engine.script import Needs
from experiments.planting.catalogue import MUTANTS, PlantedEdit
from experiments.planting.edits import Edit
from experiments.planting.runs import failing_test, red_claims
from experiments.theorems.theorem import Theorem, cited
from geomdp import (
    advice,
    audit,
    bodies,
    bounds,
    data,
    geometry,
    mechanisms,
    noise,
    privacy,
    tabulation,
    workloads,
)

NEEDS = Needs(("pytest", "xdist", "hypothesis", "mpmath"), "dev")
#: Results are stale when code of one of these packages changes.
PLANTED_IN = (
    advice, audit, bodies, bounds, data, geometry, mechanisms, noise, privacy, tabulation,
    workloads,
)  # fmt: skip
ROOT = Path(__file__).parents[2]
#: The packages whose modules are followed. The library is not followed: it has its own hash.
FOLLOWED = ("experiments", "tests")
#: Joins the claims of one mutant.
AND = "; "
#: Entry of the table if no claim turned red, or if no test failed.
NONE = "none"
#: Entry in place of the ids of claims if the figure ended with an error. No claim was checked then,
#: so this does not count as a claim that turned red.
CRASH = "crash"


class Noticed(enum.StrEnum):
    """The checks that can notice a mutant, in the order of the legend."""

    ALONE = "a claim alone"
    BOTH = "claim and test"
    TEST = "a test alone"
    CRASH = "a crash of the figure"
    NOTHING = "nothing"


@dataclass(frozen=True)
class Config:
    """One mutant."""

    mutant: str  # Name of the mutant
    #: Folder of `experiments` and short name of the script.
    folder: str
    figure: str
    #: The parameters of the `Edit`.
    where: str
    old: str
    new: str
    tests: str  # Test files of the part, separated by spaces
    code: str  # Hash of the figure, of the tests, and of the modules that they import


def config(mutant: PlantedEdit) -> Config:
    """The configuration of the cell that runs a mutant."""
    return Config(
        mutant=mutant.name,
        folder=mutant.folder,
        figure=mutant.figure,
        where=mutant.where,
        old=mutant.old,
        new=mutant.new,
        tests=" ".join(mutant.tests),
        code=code_of(mutant),
    )


def code_of(mutant: PlantedEdit) -> str:
    """Hash of the code in the files that `files_of` returns; the library is not among them."""
    return content_hash(files_of(mutant))[:16]


def files_of(mutant: PlantedEdit) -> set[Path]:
    """The mutant's script, its tests, `conftest.py`, and the modules that these import."""
    script = ROOT / "experiments" / mutant.folder / f"{mutant.figure}.py"
    return with_imports([script, ROOT / "tests/conftest.py", *(ROOT / t for t in mutant.tests)])


def with_imports(files: Iterable[Path]) -> set[Path]:
    """The `files`, and all followed modules that they import, directly or through others."""
    found: set[Path] = set()
    unread = list(files)
    while unread:
        path = unread.pop()
        if path not in found:
            found.add(path)
            unread += _imported(path)
    return found


@cache
def _imported(path: Path) -> tuple[Path, ...]:
    """Files of the followed modules that the file imports, also within its functions."""
    names = imported_names(path.read_text(encoding="utf-8"))
    followed = [name for name in names if name.partition(".")[0] in FOLLOWED]
    # A name is a module, a package, or an object in a module. An object has no file.
    places = [ROOT.joinpath(*name.split(".")) for name in followed]
    candidates = [file for at in places for file in (at.with_suffix(".py"), at / "__init__.py")]
    return tuple(file for file in candidates if file.is_file())


def compute(config: Config, _: np.random.Generator) -> ex.Row:
    """Run the figure, then the tests, each in a process of its own."""
    edit = Edit(config.where, config.old, config.new)
    claims = red_claims(edit, f"experiments.{config.folder}.{config.figure}")
    test = failing_test(edit, config.tests.split())
    return {
        "file": config.where.partition(":")[0].replace(".", "/") + ".py",
        "edit": f"{config.old} -> {config.new}",
        "claim_ids": AND.join(claim.id or CRASH for claim in claims) or NONE,
        "claim": AND.join(claim.name for claim in claims) or NONE,
        "test": test or NONE,
    }


def outcomes(mutants: pd.DataFrame) -> pd.Series:
    """The member of `Noticed` for each mutant; a crash takes precedence over a failed test."""
    crashed, by_test = mutants.claim_ids == CRASH, mutants.test != NONE
    by_claim = (mutants.claim_ids != NONE) & ~crashed
    found = {
        Noticed.CRASH: crashed,
        Noticed.ALONE: by_claim & ~by_test,
        Noticed.BOTH: by_claim & by_test,
        Noticed.TEST: ~by_claim & by_test,
    }
    return pd.Series(np.select([*found.values()], [*found], Noticed.NOTHING), mutants.index)


def red_claims_of(mutants: pd.DataFrame) -> set[str]:
    """The claims that some mutant turns red, as the index names them: ``script::id``."""
    return {
        f"{figure}::{id}"
        for figure, ids in zip(mutants.figure, mutants.claim_ids, strict=True)
        for id in cited(ids)
    }


def unrefuted(theorems: Iterable[Theorem], red: Collection[str]) -> list[str]:
    """Ids of the statements that have no claim in `red`."""
    return [theorem.id for theorem in theorems if not set(theorem.claims) & set(red)]


def claims(mutants: pd.DataFrame) -> ex.Claims:
    noticed = outcomes(mutants)
    counts = ", ".join(f"{(noticed == each).sum()} by {each}" for each in list(Noticed)[:-1])
    survivors = list(mutants.mutant[noticed == Noticed.NOTHING])
    unseen = without(mutants, noticed.isin([Noticed.ALONE, Noticed.BOTH]))
    figures = mutants.figure.nunique()
    name = "no mutant survives"
    measured = f"{len(mutants)} mutants: {counts}" + listed(survivors)
    yield ex.Claim(name, ex.each_case(not survivors), measured, "all are noticed", "GEN-1")
    name = "every figure has a claim that turns red for a mutant"
    measured = f"{figures - len(unseen)} of {figures} figures" + listed(unseen)
    yield ex.Claim(name, ex.each_case(not unseen), measured, "all", "GEN-1")
    yield from claims_of_all(mutants)


def listed(names: Sequence[str]) -> str:
    """Text to follow a count: the `names` that are exceptions; empty if there are none."""
    return f"; not {', '.join(names)}" if names else ""


def without(mutants: pd.DataFrame, chosen: pd.Series) -> list[str]:
    """The figures that have no mutant among the chosen ones."""
    return sorted({*mutants.figure} - {*mutants.figure[chosen]})


def claims_of_all(mutants: pd.DataFrame) -> ex.Claims:
    """Claims that need the results of all mutants; none if some mutants are missing."""
    if set(MUTANTS) - set(mutants.mutant):
        return
    yield only_a_claim(mutants)
    yield of_the_index(mutants)


def only_a_claim(mutants: pd.DataFrame) -> ex.Claim:
    """Every figure has a mutant that one of its claims notices and no test of the part notices."""
    left, figures = without(mutants, outcomes(mutants) == Noticed.ALONE), mutants.figure.nunique()
    name = "every figure has a mutant that only a claim of its own notices"
    measured = f"{figures - len(left)} of {figures} figures" + listed(left)
    return ex.Claim(name, ex.each_case(not left), measured, "all", "GEN-1")


def goals(mutants: pd.DataFrame) -> list[ex.Goal]:
    """Number of figures with a library mutant that only a claim notices; no goal for a sample."""
    if set(MUTANTS) - set(mutants.mutant):
        return []
    of_library = mutants["where"].str.startswith("geomdp.")
    left = without(mutants, of_library & (outcomes(mutants) == Noticed.ALONE))
    return [
        ex.Goal(
            "figures with a mutant of the library that only a claim notices",
            mutants.figure.nunique() - len(left),
            mutants.figure.nunique(),
            ex.Aim.AT_LEAST,
            "tests of the edited functions notice every mistake in the library that was tried for "
            + ", ".join(left),
        )
    ]


def of_the_index(mutants: pd.DataFrame) -> ex.Claim:
    """Every statement of the index that is not left out has a claim that a mutant turns red."""
    # The index is imported by its name as text. With an import statement, every edit of an entry
    # of the index would make all results stale.
    index = importlib.import_module("experiments.theorems")
    left_out = index.UNCLAIMED | index.UNREFUTED
    claimed = [theorem for theorem in index.THEOREMS if theorem.id not in left_out]
    left = unrefuted(claimed, red_claims_of(mutants))
    claim_name = "every statement of the index has a claim that a mutant turns red"
    measured = (
        f"{len(claimed) - len(left)} of {len(claimed)} statements"
        + listed(left)
        + f"; left out: {', '.join(left_out)}"
    )
    return ex.Claim(claim_name, ex.each_case(not left), measured, "all", "GEN-1")


def plot(table: pd.DataFrame) -> ex.Figure:
    found = outcomes(table)
    counts = pd.crosstab(table.folder, found).reindex(columns=list(Noticed), fill_value=0)
    counts.loc["all"] = counts.sum()
    figure = ex.Figure(figsize=(7.2, 1.4 + 0.24 * len(counts)))
    axes = figure.subplots()
    axes.set(xlim=(-1.6, len(Noticed) + 0.4), ylim=(len(counts) - 0.4, -1))
    axes.set_axis_off()
    for column, name in enumerate(["mutants", *Noticed]):
        words = name.replace(" of the figure", "").replace(" ", "\n", 1)
        axes.text(column, -0.6, words, ha="center", va="bottom", size=ex.SMALL, color=ex.QUIET)
    for row, (folder, numbers) in enumerate(counts.iterrows()):
        weight = "bold" if folder == "all" else "normal"
        name = str(folder).replace("_", " ")
        axes.text(-0.7, row, name, ha="right", va="center", weight=weight)
        for column, number in enumerate([numbers.sum(), *numbers]):
            axes.text(column, row, f"{number}", ha="center", va="center", weight=weight)
    seen, survivors = len(table), int((found == Noticed.NOTHING).sum())
    alone = table.figure[found == Noticed.ALONE].nunique()
    return ex.headline(
        figure,
        f"Claims and tests notice {seen - survivors} of {seen} planted mistakes",
        f"Every mistake is one edit. {alone} of {table.figure.nunique()} figures have one that only"
        " a claim notices. Noticed by:",
    )


def _sweep(names: Collection[str]) -> ex.Sweep[Config]:
    return ex.Sweep(tuple(config(MUTANTS[name]) for name in MUTANTS if name in names))


#: Names of the mutants that the quick preset runs.
SAMPLE = ("median: a third of the logarithm of the net",)
QUICK = _sweep(SAMPLE)
FULL = _sweep(MUTANTS)
