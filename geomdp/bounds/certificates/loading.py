"""Certificates back from their files, as objects that can be extended and certified again."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from geomdp.bounds.certificates.certificate import Certificate, Question, rung
from geomdp.bounds.certificates.chain import Link
from geomdp.bounds.certificates.family import PackingFamily
from geomdp.bounds.certificates.files import read_certificate
from geomdp.bounds.certificates.workloads import listed_workload
from geomdp.bounds.lines.lines import OrthogonalLines, line_rung
from geomdp.bounds.metrics import RMS, MeanL2, Metric, WorstCase
from geomdp.bounds.packings.binary_codes import LinearCode
from geomdp.bounds.packings.code_words import CodeWords
from geomdp.bounds.packings.listed import Packing
from geomdp.bounds.packings.marginal_blocks import MarginalBlocks
from geomdp.bounds.packings.random_signs import RandomSignSets
from geomdp.bounds.packings.reed_solomon import ReedSolomon
from geomdp.bounds.packings.set_families import GreedySets, ReedSolomonSets, SetFamily, Singletons
from geomdp.privacy import Adjacency

#: The measures of error, by the name they go by in files.
METRICS: dict[str, type[MeanL2 | RMS | WorstCase]] = {
    kind().name: kind for kind in (MeanL2, RMS, WorstCase)
}


def load_certificate(path: str | Path) -> Certificate:
    """The certificate in the file at `path`, its rungs computed again.

    Listed answers become an `Explicit` workload of the elements used. To check a file without the
    code that wrote it, see `geomdp.bounds.checker`.

    Raises
    ------
    ValueError
        If the file is not a certificate, or was changed; ``SideConditionError`` if a packing
        proves nothing.
    """
    document = read_certificate(Path(path))
    metric: Metric = METRICS[document["metric"]](document["separation_factor"])
    question = Question(
        document["epsilon"], document["alpha"], metric, Adjacency(document["adjacency"])
    )
    return Certificate(question, tuple(_rung_of(part, question) for part in document["rungs"]))


def _rung_of(document: Mapping[str, Any], question: Question) -> Link:
    """A rung from its part of a file."""
    family = document["family"]
    if family["type"] != "orthogonal lines":
        return rung(family_of(family), question)
    workload, elements = listed_workload(family)
    pairs, weights = np.asarray(family["pairs"]), np.asarray(family["weights"])
    lines = OrthogonalLines(workload, elements, pairs, weights)
    return line_rung(lines, np.asarray(document["steps"]), document["copies"], question)


def family_of(document: Mapping[str, Any]) -> PackingFamily:
    """A packing from its part of a file."""
    kind = document["type"]
    if kind == "listed":
        workload, elements = listed_workload(document)
        return Packing(workload, elements, document["datasets"], document["origin"])
    if kind == "random signs":
        return RandomSignSets(
            document["queries"], _sets(document["sets"]), document["failure"], document["seed"]
        )
    if kind not in ("code words", "marginal blocks"):
        raise ValueError(f"the family of a packing must be of a known type, got {kind!r}")
    code = LinearCode(np.asarray(document["generators"]))
    words = ReedSolomon(document["symbols"], document["length"], document["degree"])
    if kind == "code words":
        return CodeWords(document["attributes"], words, code)
    return MarginalBlocks(document["attributes"], document["width"], document["part"], code, words)


def _sets(document: Mapping[str, Any]) -> SetFamily:
    """A family of sets from its part of a file."""
    kind = document["type"]
    if kind == "singletons":
        return Singletons(document["log_count"])
    if kind == "greedy":
        return GreedySets(document["universe"], document["size"])
    if kind == "reed-solomon":
        code = ReedSolomon(document["prime"], document["size"], document["degree"])
        return ReedSolomonSets(code)
    raise ValueError(f"the family of sets must be of a known type, got {kind!r}")
