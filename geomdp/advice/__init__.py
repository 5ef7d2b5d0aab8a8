"""Advice before any record is seen: which mechanism to use, and how many records any needs."""

from geomdp.advice.advisor import Advice, advise
from geomdp.advice.bracket import Bracket, sample_complexity_bracket

__all__ = ["Advice", "Bracket", "advise", "sample_complexity_bracket"]
