"""The command `covariance`: private means, covariances and regressions of real columns."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import geomdp as gd
from geomdp.cli import display, flags
from geomdp.cli.display import check_together, naming_flags, working
from geomdp.cli.flags import options, real
from geomdp.cli.outputs import (
    Columns,
    OutputFiles,
    Payment,
    left_in,
    paid_files,
    record_room,
    warn_of_formulas,
)
from geomdp.cli.release import check_confidence, privacy_record

if TYPE_CHECKING:
    from geomdp.tabulation import CovarianceTable, Regression

_option = options("""
Columns:
--columns A,B,...  Columns of kind real; by default all of the schema.
--regress NAME  Also predict this column from the others by linear regression, at no further cost.
Result:
--out FILE  File for the means and covariances (.csv or .parquet), one row per column. The privacy
    record is written beside it, with the ending .privacy.json.
--confidence C  Probability with which each interval of --regress contains the true coefficient.
""")


def covariance(
    data: flags.Data = None,
    *,
    sql: flags.Sql = None,
    database: flags.Database = None,
    schema: flags.SchemaFile = None,
    n: flags.Count = None,
    columns: Annotated[str | None, _option("--columns A,B,...")] = None,
    regress: Annotated[str | None, _option("--regress NAME")] = None,
    confidence: Annotated[float, _option("--confidence C", real)] = 0.95,
    epsilon: flags.Epsilon = None,
    delta: flags.Delta = None,
    rho: flags.Rho = None,
    epsilon_above_10: flags.Above10 = False,
    ledger: flags.LedgerFile = None,
    budget: flags.Budget = None,
    out: Annotated[Path, _option("--out FILE")],
    seed: flags.Seed = None,
    force: flags.Force = False,
) -> None:
    """Release private means and covariances of real columns of DATA, and regressions from them."""
    relation, files, payment = gd.Adjacency.REPLACE_ONE, OutputFiles(out), Payment(ledger, budget)
    privacy, _ = check_together(
        lambda: flags.parse_released(epsilon, delta, rho, epsilon_above_10 or seed is not None),
        lambda: flags.check_whole("--seed", seed, minimum=0),
        lambda: flags.check_whole("--n", n, minimum=1),
        lambda: check_confidence(confidence),
        lambda: payment.check(provable=seed is None),
        lambda: files.check(force, inputs=(data, schema, ledger)),
    )
    # Imported here: these modules import most of the library, and refusals should come at once.
    from geomdp.cli.inputs import record_source, warn_of
    from geomdp.tabulation.tasks import chosen_columns

    names = None if columns is None else flags.split_columns(columns)
    source = record_source(names, data, None, schema, False, sql, database)
    with naming_flags("columns"):
        chosen = list(chosen_columns(source.schema, names, real=True))
    if regress is not None and (regress not in chosen or len(chosen) < 2):
        raise ValueError(f"--regress must be one of two or more columns {chosen}, got {regress!r}")
    declared = source.schema.select(chosen)
    warn_of(declared.caveat)
    rest = record_room(declared)
    claim = gd.privacy.Guarantee(privacy, relation, gd.privacy.Exact(), withdrawn=declared.caveat)
    with (
        paid_files(
            {files.record: rest, files.answers: rest + 64 * (len(chosen) + 2) ** 2}
        ) as write,
        payment.opened(claim, "Covariance") as account,
        working("reading records"),
        naming_flags("n"),
    ):
        released = gd.tabulation.covariance(
            source.table, declared, privacy=privacy, n=n, ledger=account, rng=seed
        )
        found, missing = _regression(released, regress, confidence)
        own: dict[str, object] = {
            "predicted_rmse": released.predicted_rmse.to_dict(),
            "mechanism": {"name": type(released.mechanism).__name__},
            "columns": chosen,
            "regression": None if found is None else _stated(found, confidence),
            "seed": seed,
        }
        number = released.mechanism.n
        record = privacy_record(
            released.guarantee, privacy, own, declared, source.origin, number, n
        )
        table = _columns(released)
        charged = payment.charged(released.guarantee)
        text = json.dumps(record, indent=2, ensure_ascii=False) + "\n"
        write(files.contents(table, text), charged)
        left = left_in(account)
    warn_of_formulas(table, files.answers)
    with display.printing(f"{charged}, and the covariances are in {files.answers}"):
        rows = [
            ("records", f"{number} ({'counted' if n is None else 'declared'}), {source.name}"),
            ("columns", ", ".join(chosen)),
            ("rmse", f"{display.in_words(released.predicted_rmse)}, for columns in the unit ball"),
            ("privacy", str(released.guarantee)),
            ("written to", f"{files.answers}, covariances in the units of the columns"),
            ("record", str(files.record)),
        ]
        display.print_rows([*rows, *left])
        if found is not None:
            _print_regression(found, confidence)
        if missing:
            display.warn(f"no regression of {regress}: {missing}")


def _regression(
    released: CovarianceTable, target: str | None, confidence: float
) -> tuple[Regression | None, str]:
    """The regression of `target`, or the reason why there is none although it was asked for."""
    if target is None:
        return None, ""
    try:
        return released.regression(target, confidence=confidence), ""
    except ValueError as error:
        # The release is paid, so its covariances are written all the same.
        return None, str(error)


def _columns(released: CovarianceTable) -> Columns:
    """The columns of the file: names, means and covariances, each with the size of its noise."""
    matrix, noise = released.frame, released.noise_std
    return {
        "column": list(matrix.columns),
        "mean": released.mean.to_numpy(),
        "noise_std of the mean": released.mean_noise_std.to_numpy(),
        **{f"covariance with {name}": matrix[name].to_numpy() for name in matrix.columns},
        **{f"noise_std with {name}": noise[name].to_numpy() for name in matrix.columns},
    }


def _stated(found: Regression, confidence: float) -> dict[str, object]:
    return {
        "target": found.target,
        "intercept": found.level.to_dict(),
        "confidence": confidence,
        "coefficients": found.frame.to_dict("index"),
    }


def _print_regression(found: Regression, confidence: float) -> None:
    print(f"\n{found.target} = intercept + the sum of coefficient * column:")
    display.print_table(
        [
            "column",
            "coefficient",
            "standard error",
            "of it noise",
            f"{100 * confidence:g}% interval",
        ],
        [
            (
                str(name),
                *(f"{row[key]:.4g}" for key in ("coefficient", "standard_error", "noise_error")),
                f"{row['low']:.4g} to {row['high']:.4g}",
            )
            for name, row in [*found.frame.iterrows(), ("(intercept)", found.level)]
        ],
    )
