"""Every theorem, lemma and algorithm of the papers, with its code; see `theorem`."""

from pathlib import Path

from experiments.theorems.theorem import Paper, Theorem, cited, read, resolve, shown_by

#: The files of this folder that hold the statements, in the order of the gallery.
FILES = (
    "nikolov", "nikolov_covariance", "nikolov_noise", "nikolov_bounds", "blum_roth",
    "sparse_vector", "iterative", "smooth", "primitives", "additions",
)  # fmt: skip
THEOREMS = tuple(
    theorem for name in FILES for theorem in read(Path(__file__).parent / f"{name}.toml")
)

#: Statements that no claim of a figure can refute, with the reason. Remove a statement when a claim
#: of a new figure can refute it.
UNCLAIMED = {
    "LAB-1": "no theorem: it says what the laboratory costs, which depends on the machine",
    "LAB-2": "no theorem: times and speeds are drawn, but depend on the machine and its load",
}

#: Statements whose claims fail for none of the wrong edits in `experiments.mutants`, with the
#: reason.
UNREFUTED: dict[str, str] = {}

__all__ = ["THEOREMS", "UNCLAIMED", "UNREFUTED", "Paper", "Theorem", "cited", "resolve", "shown_by"]
