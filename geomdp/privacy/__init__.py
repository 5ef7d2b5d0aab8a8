"""Privacy parameters, the records that carry them, composition and calibration."""

from geomdp.privacy.guarantees import (
    Adjacency,
    Approximate,
    ApproxDP,
    Exact,
    Guarantee,
    Heuristic,
    Privacy,
    PureDP,
    SamplerStatus,
    ZCDP,
)

__all__ = [
    "ZCDP",
    "Adjacency",
    "ApproxDP",
    "Approximate",
    "Exact",
    "Guarantee",
    "Heuristic",
    "Privacy",
    "PureDP",
    "SamplerStatus",
]
