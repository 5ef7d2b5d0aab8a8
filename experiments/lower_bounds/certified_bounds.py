"""Checked certificates, exact slopes and curves of bounds, for the scripts on lower bounds."""

import tempfile
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pandas as pd

import experiments.engine.tools as ex
from geomdp import bounds
from geomdp.bounds.certificates import count_in_words

#: Mean l2 error. A mechanism of error at most alpha reveals the right one of several data sets,
#: separated by 2.25 alpha, with odds of at least 1/8 (`MeanL2`). For the large packings here, such
#: low odds suffice.
METRIC = bounds.MeanL2(separation=2.25)
#: Largest absolute value of a log-log slope, for ratios that are claimed not to grow.
SLOPE = 0.1
#: Label of the lower bound in the figures.
LOWER = "impossible below"
#: Column, label, colour and dashes of an upper bound.
Upper = tuple[str, str, str, tuple[float, ...]]


def confirmed_records(certificate: bounds.Certificate) -> int:
    """Number of records that a certificate excludes, as the checker computes it from the file."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "certificate.json"
        certificate.save(path)
        return bounds.check_certificate(path).records


def certified_columns(bound: bounds.Bound) -> ex.Row:
    """A certified lower bound, the records confirmed from its file, and its last packing."""
    certificate = bound.certificate
    assert isinstance(certificate, bounds.Certificate)
    rung = certificate.rungs[-1]
    assert rung.kind == "packing"
    return {
        "lower": bound.value,
        "checked": confirmed_records(certificate),
        "set_size": rung.constants["size"],
        "log_count": rung.constants["log_others"],
    }


def certificates_hold(table: pd.DataFrame) -> ex.Claim:
    """In every cell, the checker confirms the lower bound that the construction states."""
    same = int((table.checked == table.lower).sum())
    name = "every certificate is confirmed from its file"
    measured = f"{same} of {len(table)}, up to e^{table.log_count.max():.3g} data sets"
    return ex.Claim(name, ex.each_case(same == len(table)), measured, "all", "JL-L6, JL-L7")


def exact_slope(x: pd.Series, y: pd.Series) -> float:
    """Least-squares slope of ln y against ln x, both known without error."""
    return float(np.polyfit(np.log(x), np.log(y), 1)[0])


def draw_bounds(axes: ex.Axes, x: pd.Series, table: pd.DataFrame, upper: Sequence[Upper]) -> None:
    """Draw the lower bound, shade the region below it, and draw the upper bounds.

    An upper bound that is missing at some `x` is left out.
    """
    ordered = table.assign(x=x).sort_values("x")
    for column, label, colour, dashes in upper:
        if ordered[column].notna().all():
            ex.draw_theory(axes, ordered.x, ordered[column], colour, label, dashes)
    ex.draw_points(axes, ordered.x, ordered.lower, ex.Look("0.3", "o"), LOWER)
    ex.log_axes(axes)
    axes.set_ylim(bottom=ordered.lower.min() / 3)
    ex.draw_impossible(axes, ordered.x, ordered.lower)


def packing_in_words(bound: bounds.Bound) -> str:
    """The last step (rung) of a certificate in words: number and size of its data sets or lines."""
    if not isinstance(bound.certificate, bounds.Certificate):
        return "none"
    rung = bound.certificate.rungs[-1]
    numbers, copies = rung.constants, rung.constants["copies"]
    if rung.kind == "lines":
        steps = rung.lists["steps"]
        return f"{len(steps)} lines of {copies * steps.max()} replacements or fewer"
    if rung.kind == "query lines":
        count, length = len(rung.family.pairs), copies * numbers["steps"]
        return f"{count} lines of one query, of {length} replacements"
    if rung.kind == "elements":
        return f"{len(rung.family.elements)} elements, {copies} times each"
    assert rung.kind == "packing"
    return f"{count_in_words(numbers['log_others'])} sets of {numbers['size']} records"
