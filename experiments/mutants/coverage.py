"""Which statements of the index would be noticed if their code were wrong?"""

from __future__ import annotations

from collections.abc import Collection, Iterable

import pandas as pd

from experiments.theorems.theorem import Theorem, cited


def red_claims_of(mutants: pd.DataFrame) -> set[str]:
    """The claims that some mutant turns red, as the index names them: ``script::id``.

    Parameters
    ----------
    mutants : DataFrame
        Columns `figure` and `claim_ids`: the text of all ids under which the red claims of one
        mutant stand in the record. A claim may have several ids.
    """
    return {
        f"{figure}::{id}"
        for figure, ids in zip(mutants.figure, mutants.claim_ids, strict=True)
        for id in cited(ids)
    }


def unrefuted(theorems: Iterable[Theorem], red: Collection[str]) -> list[str]:
    """Ids of the statements none of whose claims is in `red`."""
    return [theorem.id for theorem in theorems if not set(theorem.claims) & set(red)]
