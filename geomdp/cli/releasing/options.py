"""Options of the command `release` alone."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, TypeAlias

import typer

from geomdp.cli.options import PRIVACY, RECORDS, RESULT, real

InferSchemaOption: TypeAlias = Annotated[
    bool,
    typer.Option(
        "--infer-schema",
        metavar="",
        help="Read the schema off the records instead: for trying out, not private.",
        rich_help_panel=RECORDS,
    ),
]
SchedulerOption: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--scheduler",
        metavar="ADDRESS",
        help="Count files on a Dask cluster, for instance tcp://host:8786; its workers must reach "
        "them under the same paths.",
        rich_help_panel=RECORDS,
    ),
]
OutOption: TypeAlias = Annotated[
    Path,
    typer.Option(
        "--out",
        metavar="FILE",
        help="Where the answers go (.csv or .parquet), one row a cell; the privacy record goes to "
        "FILE.privacy.json.",
        rich_help_panel=RESULT,
    ),
]
UnbiasedOption: TypeAlias = Annotated[
    bool,
    typer.Option(
        "--consistent/--unbiased",
        metavar="",
        help="Move answers so that no cell is negative and tables add up, or leave the noise as it "
        "is.",
        rich_help_panel=RESULT,
    ),
]
IntegersOption: TypeAlias = Annotated[
    bool,
    typer.Option(
        "--integers",
        metavar="",
        help="Round counts to whole ones; consistent tables still add up.",
        rich_help_panel=RESULT,
    ),
]
ConfidenceOption: TypeAlias = Annotated[
    float,
    typer.Option(
        "--confidence",
        parser=real,
        metavar="C",
        help="Probability with which the interval of each answer holds the truth.",
        rich_help_panel=RESULT,
    ),
]
PlanOption: TypeAlias = Annotated[
    Path | None,
    typer.Option(
        "--plan",
        metavar="FILE",
        help="Use the mechanism that `geomdp advise --save-plan FILE` chose, without comparing "
        "again.",
        rich_help_panel=PRIVACY,
    ),
]
