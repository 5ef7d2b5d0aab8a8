"""Advice before any record is seen: which mechanism to use, and how many records any needs."""

from geomdp.advice.advisor import Advice, advise
from geomdp.advice.bracket import Bracket, sample_complexity_bracket
from geomdp.advice.error_curve import Quantity, error_table

__all__ = [
    "Advice",
    "Bracket",
    "Quantity",
    "advise",
    "error_table",
    "sample_complexity_bracket",
]
