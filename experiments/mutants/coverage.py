"""Which checks noticed a mutant, and for which statements of the index no claim turned red."""

from __future__ import annotations

import enum
from collections.abc import Collection, Iterable

import numpy as np
import pandas as pd

from experiments.theorems.theorem import Theorem, cited

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


def outcomes(mutants: pd.DataFrame) -> pd.Series:
    """The member of `Noticed` for each mutant; a crash takes precedence over a failed test.

    Parameters
    ----------
    mutants : DataFrame
        Columns `claim_ids`, with the ids of red claims, `CRASH` or `NONE`; and `test`, with the
        first failing test or `NONE`.
    """
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
    """The claims that some mutant turns red, as the index names them: ``script::id``.

    Parameters
    ----------
    mutants : DataFrame
        Columns `figure`, the short name of the script, and `claim_ids`, one text with the ids of
        all red claims of a mutant. A claim may have several ids.
    """
    return {
        f"{figure}::{id}"
        for figure, ids in zip(mutants.figure, mutants.claim_ids, strict=True)
        for id in cited(ids)
    }


def unrefuted(theorems: Iterable[Theorem], red: Collection[str]) -> list[str]:
    """Ids of the statements that have no claim in `red`."""
    return [theorem.id for theorem in theorems if not set(theorem.claims) & set(red)]
