"""The chart "which mechanism": questions in order, each with what to use if the answer is yes."""

from __future__ import annotations

from dataclasses import dataclass

from experiments.guide.reference import exports
from geomdp.advice.candidates import CANDIDATES, Candidate, Guarantees

#: How the table of mechanisms writes the guarantees that a mechanism can give.
DEFINITIONS = {
    Guarantees.PURE: "ε, which implies the others",
    Guarantees.CONCENTRATED: "(ε, δ), ρ",
    Guarantees.ANY: "ε, (ε, δ), ρ",
}


@dataclass(frozen=True)
class Decision:
    """One question and what to use if the answer is yes."""

    question: str  # Ends with a question mark
    answer: str  # What to do if the answer is yes; ends with a full stop
    use: tuple[str, ...]  # Dotted names of what to use, as in the reference
    section: str  # Label of the section of the guide with an example


#: Questions in the order in which they are asked: the first yes decides.
DECISIONS = (
    Decision(
        "Do queries come one at a time, each chosen after earlier answers?",
        "Ask which answers exceed a threshold, or have all queries answered from public estimates.",
        (
            "geomdp.mechanisms.AboveThreshold",
            "geomdp.mechanisms.NumericSparse",
            "geomdp.mechanisms.OnlineConstruction",
        ),
        "one-at-a-time",
    ),
    Decision(
        "Are records points in a cube, and queries smooth functions that are chosen later?",
        "Release noisy moments of the records once; they answer any smooth query.",
        ("geomdp.mechanisms.SmoothSummary",),
        "smooth-queries",
    ),
    Decision(
        "Is the universe too large to list, and does each query count few of its elements?",
        "Release a random projection of the histogram once.",
        ("geomdp.mechanisms.SparseProject",),
        "sparse-queries",
    ),
    Decision(
        "Is the answer a covariance matrix of real vectors, with an unknown mean?",
        "Release second moments and mean together.",
        ("geomdp.mechanisms.Covariance",),
        "covariance",
    ),
    Decision(
        "Do you have a table, and want counts of its columns?",
        "One call reads and encodes the table, chooses a mechanism and releases the counts.",
        ("geomdp.tabulation.release",),
        "a-table",
    ),
    Decision(
        "Any other fixed list of linear queries?",
        "Describe it as a workload; the advisor ranks mechanisms that fit by predicted error.",
        ("geomdp.advice.advise",),
        "fixed-queries",
    ),
)


def chart() -> str:
    """The questions as boxes, one below the other, in reStructuredText."""
    steps = "".join(_step(number, step) for number, step in enumerate(DECISIONS, start=1))
    return f".. container:: decisions\n\n{steps}"


def _step(number: int, step: Decision) -> str:
    names = ", ".join(f":py:obj:`~{name}`" for name in step.use)
    return (
        f"   .. container:: question\n\n      **{number}.** {step.question}\n\n"
        f"   .. container:: answer\n\n      {step.answer} {names}."
        f" :ref:`Example <{step.section}>`\n\n"
    )


def candidate_table() -> str:
    """The mechanisms that the advisor compares, from its own table, in reStructuredText."""
    rows = "".join(_row(candidate) for candidate in CANDIDATES)
    return (
        ".. list-table::\n   :header-rows: 1\n   :widths: 18 14 68\n   :class: candidates\n\n"
        "   * - mechanism\n     - guarantees\n     - noise, and when it is ahead\n"
        f"{rows}"
    )


def _row(candidate: Candidate) -> str:
    (found,) = (export for export in exports() if export.value is candidate.kind)
    return (
        f"   * - :py:obj:`{candidate.name or found.name} <{found.path}>` ({candidate.flag})\n"
        f"     - {DEFINITIONS[candidate.guarantees]}\n"
        f"     - {_sentence(candidate.summary)} {candidate.suits}\n"
    )


def _sentence(text: str) -> str:
    return f"{text[0].upper()}{text[1:]}."
