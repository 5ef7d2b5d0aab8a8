"""Names and texts as SQL writes them."""

from __future__ import annotations


def quoted_name(name: str) -> str:
    """`name` as a SQL identifier."""
    return '"' + name.replace('"', '""') + '"'


def quoted_text(text: str) -> str:
    """`text` as a SQL string."""
    return "'" + text.replace("'", "''") + "'"
