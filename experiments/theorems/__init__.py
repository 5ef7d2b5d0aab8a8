"""Every theorem, lemma and algorithm of the papers, with its code; see `theorem`."""

from experiments.theorems.additions import ADDITIONS
from experiments.theorems.blum_roth import BLUM_ROTH
from experiments.theorems.iterative import ITERATIVE
from experiments.theorems.nikolov import NIKOLOV
from experiments.theorems.nikolov_bounds import NIKOLOV_BOUNDS
from experiments.theorems.nikolov_covariance import NIKOLOV_COVARIANCE
from experiments.theorems.nikolov_noise import NIKOLOV_NOISE
from experiments.theorems.primitives import PRIMITIVES, SAMPLING
from experiments.theorems.smooth import SMOOTH
from experiments.theorems.sparse_vector import SPARSE_VECTOR
from experiments.theorems.theorem import Paper, Theorem, cited, resolve, shown_by

THEOREMS: tuple[Theorem, ...] = (
    *NIKOLOV,
    *NIKOLOV_COVARIANCE,
    *NIKOLOV_NOISE,
    *NIKOLOV_BOUNDS,
    *BLUM_ROTH,
    *SPARSE_VECTOR,
    *ITERATIVE,
    *SMOOTH,
    *PRIMITIVES,
    *SAMPLING,
    *ADDITIONS,
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
