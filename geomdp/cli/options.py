"""Options that several commands share, as annotated types."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, TypeAlias

import typer

from geomdp.cli.privacy_flags import AdjacencyFlag

QUERIES, PRIVACY, RECORDS, RESULT = "Queries", "Privacy", "Records", "Result"

WorkloadOption: TypeAlias = Annotated[
    str,
    typer.Option(
        "--workload",
        metavar="SPEC",
        help="What to ask, for instance marginals:2; see `geomdp workloads`.",
        rich_help_panel=QUERIES,
    ),
]
ColumnsOption: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--columns",
        metavar="A,B,...",
        help="Columns to ask about, in this order; by default all discrete ones.",
        rich_help_panel=QUERIES,
    ),
]
EpsilonOption: TypeAlias = Annotated[
    float | None,
    typer.Option("--epsilon", metavar="E", help="E-DP, pure.", rich_help_panel=PRIVACY),
]
DeltaOption: TypeAlias = Annotated[
    float | None,
    typer.Option(
        "--delta", metavar="D", help="With --epsilon: (E, D)-DP.", rich_help_panel=PRIVACY
    ),
]
RhoOption: TypeAlias = Annotated[
    float | None,
    typer.Option(
        "--rho", metavar="R", help="Instead of --epsilon: R-zCDP.", rich_help_panel=PRIVACY
    ),
]
ExactOption: TypeAlias = Annotated[
    bool,
    typer.Option(
        "--exact/--allow-heuristic",
        help="Exact samplers only, or also Markov chains, which carry no privacy guarantee.",
        rich_help_panel=PRIVACY,
    ),
]
AdjacencyOption: TypeAlias = Annotated[
    AdjacencyFlag,
    typer.Option(
        "--adjacency",
        help="Neighbouring tables: one record replaced (n is public), or added or removed.",
        rich_help_panel=PRIVACY,
    ),
]
SchemaOption: TypeAlias = Annotated[
    Path | None,
    typer.Option(
        "--schema",
        metavar="FILE",
        help="Public description of the columns (JSON).",
        rich_help_panel=RECORDS,
    ),
]
SampleOption: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--sample",
        metavar="NAME",
        help="A bundled table with its schema: rand or affairs.",
        rich_help_panel=RECORDS,
    ),
]
SeedOption: TypeAlias = Annotated[
    int | None,
    typer.Option(
        "--seed",
        metavar="S",
        help="Make the noise reproducible, and therefore not private.",
        rich_help_panel=RESULT,
    ),
]
DataArgument: TypeAlias = Annotated[
    Path | None,
    typer.Argument(
        metavar="DATA",
        help="Records, one a row, with a header: .csv, .csv.gz or .parquet.",
        show_default=False,
    ),
]
InferSchemaOption: TypeAlias = Annotated[
    bool,
    typer.Option(
        "--infer-schema",
        help="Read the schema off the records instead: for trying out, not private.",
        rich_help_panel=RECORDS,
    ),
]
CountOption: TypeAlias = Annotated[
    int | None,
    typer.Option(
        "--n",
        metavar="N",
        help="Number of records. Counted by default under replace-one; under add-remove the "
        "public number to divide by.",
        rich_help_panel=RECORDS,
    ),
]
PlannedCountOption: TypeAlias = Annotated[
    int,
    typer.Option("--n", metavar="N", help="Number of records.", rich_help_panel=RECORDS),
]
MechanismOption: TypeAlias = Annotated[
    str,
    typer.Option(
        "--mechanism",
        metavar="NAME",
        help="auto takes the least predicted error, without reading records; see "
        "`geomdp mechanisms`.",
        rich_help_panel=PRIVACY,
    ),
]
OutOption: TypeAlias = Annotated[
    Path,
    typer.Option(
        "--out",
        metavar="FILE.csv",
        help="Where the answers go; the privacy record goes to FILE.privacy.json.",
        rich_help_panel=RESULT,
    ),
]
ForceOption: TypeAlias = Annotated[
    bool, typer.Option("--force", help="Overwrite existing files.", rich_help_panel=RESULT)
]
