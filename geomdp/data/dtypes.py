"""Columns declared by the types of a pandas or polars DataFrame. No values are read."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from geomdp.data.columns import BooleanColumn, CategoricalColumn, DiscreteColumn, as_text
from geomdp.data.frames import is_polars

if TYPE_CHECKING:
    import pandas as pd
    import polars as pl


def columns_of_dtypes(
    frame: pd.DataFrame | pl.DataFrame, missing: Sequence[str]
) -> tuple[DiscreteColumn, ...]:
    """The declaration of each column of `frame`, as `Schema.from_dtypes` describes."""
    names = list(frame.columns)
    if not all(isinstance(name, str) for name in names):
        raise ValueError(f"columns must have texts as names, got {names!r}")
    if isinstance(missing, str) or not set(missing) <= set(names):
        raise ValueError(f"missing must list columns of the frame, {names}, got {missing!r}")
    types = list(frame.schema.values()) if is_polars(frame) else list(frame.dtypes)
    return tuple(
        _column(name, dtype, name in missing) for name, dtype in zip(names, types, strict=True)
    )


def _column(name: str, dtype: Any, missing: bool) -> DiscreteColumn:
    kind = str(dtype)
    if kind in ("bool", "boolean", "Boolean"):
        return BooleanColumn(name, missing=missing)
    # Categorical types of both libraries have the attribute `categories`. For the type Categorical
    # of polars, the categories come from the records, so this type is refused.
    categories = getattr(dtype, "categories", None)
    if categories is None or kind.startswith("Categorical"):
        raise ValueError(
            f"column {name!r} of type {kind} declares no categories: make it boolean, "
            "categorical (pandas) or Enum (polars) with publicly known categories, or declare it "
            "with Schema.from_dict"
        )
    if len(categories) == 0:
        raise ValueError(f"column {name!r} must declare at least 1 category, got 0")
    return CategoricalColumn(
        name, tuple(as_text(category) for category in categories), missing=missing
    )
