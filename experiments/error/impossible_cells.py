"""Impossible cells and nested columns: the error with and without the declaration.

Formula sheet JL-L14 (error of additive noise), GEN-2, X-MAXENT; no theorem of the papers.

Claim: if a schema declares a skip pattern (only smokers smoke a number of cigarettes a day) or a
column that refines another (county in region), the possible cells of all 2-way tables get less
noise, because fewer combinations and fewer tables are measured. For Laplace noise on r regions with
s counties each, beside columns of 4 and 2 levels, three tables are measured in place of six, and
cells of regions are sums of s cells. So the noise changes by the factor
((42 s + 8) / (21 s + 26))^(1/2) / 2, with r = 3. Fitted tables err less, too; impossible cells are
0, and regions are the sums of their counties. Without the declaration they are not.

Run time on one core: quick 1 min, full 3 min.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pandas as pd

import experiments.engine.tools as ex
import geomdp as gd

#: Number of records, and of regions.
N, REGIONS = 1000, 3


class Declared(ex.Curve):
    """What the schema declares, in the order of the legend."""

    SKIP = "skip pattern", "C0", "o"
    NESTED = "county in region", "C2", "s"
    BOTH = "both", "C4", "^"


class Budget(ex.Curve):
    """The definition of privacy."""

    PURE = r"$\varepsilon = 1$"
    RHO = r"$\rho = 1/2$"

    @property
    def privacy(self) -> gd.PureDP | gd.ZCDP:
        return gd.PureDP(1.0) if self is Budget.PURE else gd.ZCDP(0.5)


@dataclass(frozen=True)
class Config:
    declared: Declared  # What the schema declares
    size: int  # Levels of smokers' cigarettes, and counties of each region
    budget: Budget  # Definition of privacy
    releases: int  # Fitted releases, with and without the declaration


def schemas(config: Config) -> tuple[gd.data.Schema, gd.data.Schema]:
    """The schema without and with the declaration."""
    daily = [f"d{i}" for i in range(config.size)]
    inside = {f"r{i}": [f"r{i}c{j}" for j in range(config.size)] for i in range(REGIONS)}
    columns: dict[str, object] = {"age": ["1", "2", "3", "4"], "sex": ["f", "m"]}
    impossible, refines = [], {}
    if config.declared is not Declared.NESTED:
        columns |= {"smoker": ["never", "former", "current"], "daily": ["none", *daily]}
        impossible = [
            {"smoker": ["never", "former"], "daily": daily},
            {"smoker": ["current"], "daily": ["none"]},
        ]
    if config.declared is not Declared.SKIP:
        columns |= {"region": list(inside), "county": [c for own in inside.values() for c in own]}
        refines = {"county": {"region": inside}}
    plain = gd.data.Schema.from_dict(columns)
    return plain, plain.declare(impossible=impossible, refines=refines)


def records(schema: gd.data.Schema, rng: np.random.Generator) -> pd.DataFrame:
    """Records with unequal shares of all levels, as the declarations allow them."""
    drawn = {}
    for name, levels in schema.labels.items():
        shares = rng.dirichlet(np.full(len(levels), 2.0))
        drawn[name] = rng.choice(list(levels), N, p=shares)
    if "daily" in drawn:
        smokes = drawn["smoker"] == "current"
        some = rng.choice([level for level in schema.labels["daily"] if level != "none"], N)
        drawn["daily"] = np.where(smokes, some, "none")
    if "county" in drawn:
        drawn["region"] = np.array([county.partition("c")[0] for county in drawn["county"]])
    return pd.DataFrame(drawn)


def truth(result: gd.tabulation.Tabulation, frame: pd.DataFrame) -> np.ndarray:
    """The true shares of all cells."""
    parts = []
    for (one, other), table in result.tables.items():
        found = pd.crosstab(frame[one], frame[other], normalize="all")
        parts.append(found.reindex(index=table.index, columns=table.columns, fill_value=0.0))
    return np.concatenate([part.to_numpy().ravel() for part in parts])


def apart(result: gd.tabulation.Tabulation) -> float:
    """Largest difference between regions and sums of counties, as a count; 0 without regions."""
    if ("age", "region") not in result.tables:
        return 0.0
    regions, counties = (result.tables["age", name] for name in ("region", "county"))
    sums = counties.T.groupby([name.partition("c")[0] for name in counties.columns]).sum().T
    return N * float(np.abs(sums[regions.columns] - regions).to_numpy().max())


def kept(mechanism: gd.mechanisms.Mechanism) -> Callable[..., gd.mechanisms.Mechanism]:
    """A rule that chooses this mechanism, whose set-up is then not repeated."""
    return lambda *_, **__: mechanism


def compute(config: Config, rng: np.random.Generator) -> ex.Row:
    """Predicted and measured errors of the possible cells, and what is wrong in the tables."""
    frame = records(schemas(config)[1], rng)
    row: ex.Row = {}
    # The schema with the declaration comes first, because it tells which cells are possible.
    for name, schema in zip(("declared", "plain"), reversed(schemas(config)), strict=True):
        asked = {"privacy": config.budget.privacy, "rng": rng}
        first = gd.release(frame, schema, "marginals:2", unbiased=True, **asked)
        if name == "declared":
            live = first.noise_std > 0
        row[f"noise_{name}"] = math.sqrt(float(np.mean(first.noise_std[live] ** 2)))
        exact, squares = truth(first, frame), []
        for _ in range(config.releases):
            found = gd.release(
                frame, schema, "marginals:2", mechanism=kept(first.mechanism), **asked
            )
            squares.append(float(np.mean((found.answers - exact)[live] ** 2)))
        row[f"error_{name}"] = math.sqrt(np.mean(squares))
        row[f"apart_{name}"] = apart(found)
        row[f"filled_{name}"] = int((N * found.answers[~live] > 0.5).sum())
        laplace = gd.release(
            frame,
            schema,
            "marginals:2",
            epsilon=1.0,
            mechanism=gd.mechanisms.Laplace,
            unbiased=True,
            rng=rng,
        )
        row[f"laplace_{name}"] = math.sqrt(float(np.mean(laplace.noise_std[live] ** 2)))
    row["impossible"] = int((~live).sum())
    return row


def by_theory(size: pd.Series) -> pd.Series:
    """The factor of Laplace noise for counties in regions."""
    return np.sqrt((42 * size + 8) / (21 * size + 26)) / 2


def claims(table: pd.DataFrame) -> ex.Claims:
    ratio = table.noise_declared / table.noise_plain
    name = "the declaration lowers the noise of the possible cells"
    measured = f"from {ratio.min():.2f} to {ratio.max():.2f} times the noise without"
    theory = "at most 0.97 in every setting"
    yield ex.Claim(name, ex.at_most(ratio.max(), 0.97), measured, theory, "JL-L14")
    nested = table[table.declared == Declared.NESTED]
    off = (nested.laplace_declared / nested.laplace_plain / by_theory(nested["size"]) - 1).abs()
    name = "Laplace noise for counties in regions changes by the factor of the formula"
    measured = f"off by {off.max():.1g} at most"
    theory = "((42 s + 8) / (21 s + 26))^(1/2) / 2"
    yield ex.Claim(name, ex.at_most(off.max(), 1e-9), measured, theory, "JL-L14")
    errors = table.error_declared / table.error_plain
    gain = float(np.exp(np.log(errors).mean()))
    name = "fitted tables err less on their possible cells"
    measured = f"{gain:.2f} times the error without, in the geometric mean of {len(table)} settings"
    yield ex.Claim(name, ex.at_most(gain, 0.95), measured, "at most 0.95", "X-MAXENT")
    yield ex.Claim(
        "impossible cells are empty, and some are not without the declaration",
        ex.each_case((table.filled_declared == 0).all() and table.filled_plain.sum() > 0),
        f"{table.filled_declared.sum()} and {table.filled_plain.sum()} of "
        f"{table.impossible.sum()} above half a record",
        "none with the declaration, at least one without",
        "GEN-2",
    )
    most = table.apart_declared.max()
    others = table[table.declared != Declared.SKIP].apart_plain.min()
    name = "regions are the sums of their counties, and are not without the declaration"
    measured = f"{most:.1g} of {N} records apart, and at least {others:.2g} without"
    theory = "equal up to rounding; at least 0.1 records apart"
    yield ex.Claim(name, ex.each_case(most < 1e-6 < 0.1 < others), measured, theory, "GEN-2")


LOOKS = Declared.looks()
THEORY = "Laplace, county in region"


def plot(table: pd.DataFrame) -> ex.Figure:
    titles = [r"noise, $\varepsilon = 1$", r"noise, $\rho = 1/2$", r"fitted, $\varepsilon = 1$"]
    figure, every = ex.panels(
        (7.2, 3.4), titles, "levels $s$ within a level", "error, over that without", sharey=True
    )
    for axes, budget, kind in zip(
        every, (Budget.PURE, Budget.RHO, Budget.PURE), ("noise", "noise", "error"), strict=True
    ):
        for declared in Declared:
            mine = table[(table.declared == declared) & (table.budget == budget)]
            mine = mine.sort_values("size")
            ratio = mine[f"{kind}_declared"] / mine[f"{kind}_plain"]
            ex.draw_points(axes, mine["size"], ratio, LOOKS[declared], declared)
        axes.set_xscale("log")
        ex.label_ticks(axes, sorted(table["size"].unique()))
        axes.set_ylim(0, 1.1)
        axes.axhline(1.0, color="0.6", linewidth=0.8)
    sizes = pd.Series(np.geomspace(table["size"].min(), table["size"].max(), 60))
    ex.draw_theory(every[0], sizes, by_theory(sizes), "C1", THEORY)
    ex.label_curves(every[2], [*Declared])
    return ex.headline(
        figure,
        "What cannot be needs no noise, and the rest needs less",
        f"All 2-way tables of 4 or 6 columns, {N} records; possible cells only. Dashed: {THEORY}.",
    )


QUICK = ex.Sweep(ex.product(Config, tuple(Declared), (2, 4), tuple(Budget), 3))
FULL = ex.Sweep(ex.product(Config, tuple(Declared), (2, 4, 8), tuple(Budget), 8))
