"""Good arguments of privacy definitions and formulas, ledgers and schemas."""

from __future__ import annotations

import geomdp as gd
from geomdp import data, privacy
from geomdp.privacy import (
    advanced_composition,
    group_privacy,
    largest_step_epsilon,
    member_privacy,
    shortcut_step_epsilon,
    zcdp_to_approx,
)
from geomdp.privacy.definitions import analytic_gaussian_scale, gaussian_delta, laplace_scale
from tests.hostile.constructors.row import Constructor, of

PURE, CONCENTRATED, APPROXIMATE = gd.PureDP(1.0), gd.ZCDP(0.5), gd.ApproxDP(1.0, 1e-6)
BOOLEAN = data.BooleanColumn("a")

RECORDS: dict[str, Constructor] = {
    "PureDP": of(gd.PureDP, "epsilon:positive", epsilon=1.0),
    "ApproxDP": of(gd.ApproxDP, "epsilon:positive delta:share", epsilon=1.0, delta=1e-6),
    "ZCDP": of(gd.ZCDP, "rho:positive", rho=0.5),
    "group_privacy": of(group_privacy, "size:whole", privacy=PURE, size=2),
    "member_privacy": of(member_privacy, "size:whole", privacy=PURE, size=2),
    "advanced_composition": of(
        advanced_composition, "steps:whole slack_delta:share", step=PURE, steps=3, slack_delta=1e-6
    ),
    "largest_step_epsilon": of(largest_step_epsilon, "steps:whole", total=APPROXIMATE, steps=3),
    "shortcut_step_epsilon": of(shortcut_step_epsilon, "steps:whole", total=APPROXIMATE, steps=3),
    "zcdp_to_approx": of(zcdp_to_approx, "delta:share", privacy=CONCENTRATED, delta=1e-6),
    "laplace_scale": of(laplace_scale, "sensitivity:positive", sensitivity=1.0, privacy=PURE),
    "analytic_gaussian_scale": of(
        analytic_gaussian_scale, "sensitivity:positive", sensitivity=1.0, privacy=APPROXIMATE
    ),
    "gaussian_delta": of(
        gaussian_delta,
        "sensitivity:positive scale:positive epsilon:positive",
        sensitivity=1.0,
        scale=3.0,
        epsilon=1.0,
    ),
    "Approximate": of(privacy.Approximate, "tv:share", tv=0.5, source="a theorem"),
    "Heuristic": of(privacy.Heuristic, reason="a chain"),
    "Guarantee": of(
        privacy.Guarantee,
        "privacy:object adjacency:object sampler:object",
        privacy=PURE,
        adjacency=gd.Adjacency.REPLACE_ONE,
        sampler=privacy.Exact(),
        arithmetic="none",
        seeded=False,
    ),
    "Ledger": of(
        gd.Ledger,
        "budget:object adjacency:object",
        budget=PURE,
        adjacency=gd.Adjacency.REPLACE_ONE,
    ),  # test_files and the tests of ledgers cover the argument `path`
    "BooleanColumn": of(data.BooleanColumn, name="a", missing=False),
    "CategoricalColumn": of(
        data.CategoricalColumn, name="a", categories=("x", "y"), other=False, missing=False
    ),
    "NumericColumn": of(data.NumericColumn, name="a", edges=(0.0, 1.0, 2.0), missing=False),
    "DateColumn": of(
        data.DateColumn,
        "days:object",
        name="a",
        days=("2024-01-01", "2024-12-31"),
        by="month",
        order="ymd",
        missing=False,
    ),
    "SkippedColumn": of(data.SkippedColumn, name="a", reason="an identifier"),
    "CsvFormat": of(data.CsvFormat, separator=";", encoding="latin-1"),
    "RealColumn": of(data.RealColumn, name="a", bounds=(0.0, 1.0), clip=False),
    "Schema": of(data.Schema, "columns:object", columns=(BOOLEAN,)),
    "data.Query": of(data.Query, sql="select 1", database=None),
}
