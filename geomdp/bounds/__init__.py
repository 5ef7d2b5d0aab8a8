"""Upper and lower bounds on the number of records private mechanisms need."""

from geomdp.bounds.bound import Bound, Side
from geomdp.bounds.metrics import RMS, MeanL2, Metric, WorstCase

__all__ = ["RMS", "Bound", "MeanL2", "Metric", "Side", "WorstCase"]
