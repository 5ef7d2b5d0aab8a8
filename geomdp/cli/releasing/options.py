"""Options of the command `release`. Other commands define their own `--out`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, TypeAlias

import typer

from geomdp._validation import MOST_CONFIDENCE, probability
from geomdp.cli.options import PRIVACY, RECORDS, RESULT, real

InferSchemaOption: TypeAlias = Annotated[
    bool,
    typer.Option(
        "--infer-schema",
        metavar="",
        help="Read the schema from the records, to try something out. This is NOT private.",
        rich_help_panel=RECORDS,
    ),
]
SchedulerOption: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--scheduler",
        metavar="ADDRESS",
        help="Count the records of files on a Dask cluster, for instance tcp://host:8786. Its "
        "workers must find the files under the same paths.",
        rich_help_panel=RECORDS,
    ),
]
OutOption: TypeAlias = Annotated[
    Path,
    typer.Option(
        "--out",
        metavar="FILE",
        help="File for the answers (.csv or .parquet), one row per cell. The privacy record is "
        "written beside it, with the ending .privacy.json.",
        rich_help_panel=RESULT,
    ),
]
UnbiasedOption: TypeAlias = Annotated[
    bool,
    typer.Option(
        "--consistent/--unbiased",
        metavar="",
        help="Adjust answers so that no cell is negative and tables add up, or leave the noisy "
        "answers as they are.",
        rich_help_panel=RESULT,
    ),
]
IntegersOption: TypeAlias = Annotated[
    bool,
    typer.Option(
        "--integers",
        metavar="",
        help="Round counts to whole numbers; consistent tables still add up.",
        rich_help_panel=RESULT,
    ),
]
ConfidenceOption: TypeAlias = Annotated[
    float,
    typer.Option(
        "--confidence",
        parser=real,
        metavar="C",
        help="Probability with which the interval of each answer contains the true answer.",
        rich_help_panel=RESULT,
    ),
]
PlanOption: TypeAlias = Annotated[
    Path | None,
    typer.Option(
        "--plan",
        metavar="FILE",
        help="Use the mechanism that `geomdp advise --save-plan FILE` chose, without comparing "
        "mechanisms again.",
        rich_help_panel=PRIVACY,
    ),
]


def check_confidence(confidence: float) -> None:
    """Raise ``ValueError`` if --confidence is out of range: later, the ledger would have paid."""
    if probability(confidence, "--confidence") > MOST_CONFIDENCE:
        raise ValueError(f"--confidence must be at most {MOST_CONFIDENCE}, got {confidence!r}")
