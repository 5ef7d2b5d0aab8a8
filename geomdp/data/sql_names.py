"""Quoting of names and texts in SQL."""

from __future__ import annotations


def quoted_name(name: str) -> str:
    """`name` as a quoted SQL identifier."""
    return '"' + name.replace('"', '""') + '"'


def quoted_text(text: str) -> str:
    """`text` as a quoted SQL string."""
    return "'" + text.replace("'", "''") + "'"
