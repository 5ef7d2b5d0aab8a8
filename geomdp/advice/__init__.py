"""Advice on which mechanism to use, before any record is seen."""

from geomdp.advice.advisor import Advice, advise

__all__ = ["Advice", "advise"]
