"""Same privacy, same accuracy, a fifth of the records: the first picture of the README.

Papers: Nikolov 2022 (arXiv 2208.07410), Lemmas 6 and 14; formula sheet JL-L6, JL-L14, X-CONE.

The queries are all 2-way tables of six yes/no columns, released with pure DP at epsilon = 1 under
replace-one. Three mechanisms are shown, each chosen by its predicted error alone, before any data:
Laplace noise on every cell; the best of the others that exist without this library (the matrix
mechanism and K-norm noise of a ball); and the best of ours, whose noise has the shape of the
sensitivity body. All have exact samplers.

Claims: measured errors agree with the predictions. For the same error, our noise needs at most a
fifth of the records that Laplace noise needs, and fewer than the best other mechanism. No
prediction is in the region that lower bounds exclude for every mechanism of this privacy.

Run time on one core: quick 6 s, full 1 minute.
"""

import enum

import numpy as np
import pandas as pd

import experiments.engine.tools as ex
from experiments.error import every_mechanism as every
from experiments.error.every_mechanism import Config, Problem, Quantity


class Role(enum.StrEnum):
    """What stands on a line of the picture."""

    LAPLACE = "Laplace noise"
    PEER = "best other mechanism"
    OURS = "noise shaped like the body"
    LIMIT = "impossible"


#: Mechanisms that exist without this library, besides Laplace noise.
PEERS = ("Matrix", "Ball")


def compute(config: Config, rng: np.random.Generator) -> list[ex.Row]:
    """Predicted and measured errors of the chosen mechanisms, and the largest excluded errors."""
    table = pd.DataFrame(every.compute(config, rng))
    exact = table[(table.quantity == Quantity.PREDICTED) & (table.kind == "exact")]
    chosen = {
        "Laplace": Role.LAPLACE,
        least(exact[exact.curve.isin(PEERS)]): Role.PEER,
        least(exact[~exact.curve.isin(["Laplace", *PEERS])]): Role.OURS,
    }
    limit = table[table.quantity == Quantity.EXCLUDED].groupby("n").rmse.max()
    rows: list[ex.Row] = [
        {"role": Role.LIMIT, "mechanism": "any", "n": n, "quantity": Quantity.EXCLUDED,
         "rmse": error, "stderr": 0.0}
        for n, error in limit.items()
    ]  # fmt: skip
    rows += [
        {"role": chosen[row.curve], "mechanism": row.curve, "n": row.n, "quantity": row.quantity,
         "rmse": row.rmse, "stderr": row.stderr}
        for row in table[table.curve.isin([*chosen])].itertuples()
    ]  # fmt: skip
    return rows


def least(predicted: pd.DataFrame) -> str:
    """The mechanism of least predicted error; errors of additive noise keep their order in n."""
    return str(predicted.loc[predicted.rmse.idxmin()].curve)


def predicted(table: pd.DataFrame, role: Role) -> pd.Series:
    """Predicted errors of a mechanism by n, or the largest excluded errors."""
    kind = Quantity.EXCLUDED if role is Role.LIMIT else Quantity.PREDICTED
    mine = table[(table.role == role) & (table.quantity == kind)]
    return mine.groupby("n").rmse.mean()


def records_needed(table: pd.DataFrame, role: Role, error: float) -> float:
    """Number of records at which additive noise, of error c / n, errs by `error`."""
    line = predicted(table, role)
    return float(line.iloc[0] * line.index[0]) / error


def claims(table: pd.DataFrame) -> ex.Claims:
    measured = table[table.quantity == Quantity.MEASURED]
    known = pd.Series({role: records_needed(table, role, 1.0) for role in [*Role][:3]})
    expected = measured.role.map(known) / measured.n
    off = ((measured.rmse - expected) / measured.stderr).abs()
    reach = ex.quantile(ex.LEVEL / (2 * len(off)), every.RELEASES)
    name = "measured errors agree with the predictions made before any data"
    found = f"{len(off)} errors, off by at most {off.max():.1f} standard errors"
    theory = f"within {reach:.1f} standard errors"
    yield ex.Claim(name, ex.at_most(off, reach), found, theory, "JL-L14, X-CONE")
    gain = known[Role.LAPLACE] / known[Role.OURS]
    name = "for the same error our noise needs at most a fifth of the records of Laplace noise"
    found = f"{gain:.2f} times fewer records"
    yield ex.Claim(name, ex.at_least(gain, 5), found, "at least 5 times", "X-CONE")
    gain = known[Role.PEER] / known[Role.OURS]
    name = "our noise needs fewer records than the best other mechanism"
    found = f"{gain:.2f} times fewer records than {', '.join(names(table, Role.PEER))}"
    yield ex.Claim(name, ex.above(gain, 1), found, "more than 1", "X-CONE")
    apart = (predicted(table, Role.OURS) / predicted(table, Role.LIMIT)).dropna()
    name = "no predicted error is in the region that is impossible for every mechanism"
    found = (
        f"{len(apart)} numbers of records, {apart.min():.1f} to {apart.max():.1f} times the limit"
    )
    yield ex.Claim(name, ex.at_least(apart, 1), found, "at least 1", "JL-L6")


def names(table: pd.DataFrame, role: Role) -> list[str]:
    """The mechanisms chosen for a role."""
    return sorted(set(table[table.role == role].mechanism))


LOOKS = {
    Role.LAPLACE: ex.Look("C1", "s"),
    Role.PEER: ex.Look(ex.GREY, "D", filled=False),
    Role.OURS: ex.Look("C0", "o"),
}
NAMES = {Role.PEER: "best other: matrix", Role.OURS: "shaped like the body"}
#: Error at which the arrow compares numbers of records.
ERROR = 0.01


def plot(table: pd.DataFrame) -> ex.Figure:
    figure = ex.Figure(figsize=(7.2, 4.6))
    axes = figure.subplots()
    measured = table[(table.quantity == Quantity.MEASURED) & table.n.between(120, 10_000)]
    for role, look in LOOKS.items():
        line, thin = predicted(table, role), role is Role.PEER
        axes.plot(
            line.index, line, color=look.colour, lw=1 if thin else 2.4, label=NAMES.get(role, role)
        )
        if not thin:
            errors = measured[measured.role == role].groupby("n").rmse.mean()
            axes.plot(errors.index, errors, look.marker, color=look.colour, ms=6)
    axes.set(xlabel="records in the table", ylabel="typical error of a published share")
    ex.log_axes(axes)
    axes.set(xlim=(100, 12_000), ylim=(3e-4, 0.5))
    axes.set_yticks([0.001, 0.01, 0.1], ["0.1%", "1%", "10%"])
    limit = predicted(table, Role.LIMIT)
    ex.draw_impossible(axes, limit.index, limit)
    words = "no mechanism with this\nprivacy can be here (proved)"
    ex.note(axes, (125, 7e-4), words, align="left")
    ours, theirs = (records_needed(table, role, ERROR) for role in (Role.OURS, Role.LAPLACE))
    arrow = {"arrowstyle": "-|>", "color": "0.15", "lw": 1.6, "shrinkA": 4, "shrinkB": 4}
    axes.annotate("", (ours, ERROR), (theirs, ERROR), arrowprops=arrow)
    words = f"{theirs / ours:.1f} times fewer"
    axes.text(1.25 * ours, 1.06 * ERROR, words, va="bottom", size=10, weight="bold")
    ex.label_curves(axes)
    return ex.headline(
        figure,
        "Same privacy, same accuracy, a fifth of the records",
        "All 2-way tables of six yes/no columns, 1-DP. Lines: predicted before any data; "
        "marks: measured.",
    )


QUICK = ex.Sweep((Config(Problem.TABLES, 6, 100, 10_000, 2),))
FULL = ex.Sweep((Config(Problem.TABLES, 6, 30, 100_000, 15),), trials=5)
