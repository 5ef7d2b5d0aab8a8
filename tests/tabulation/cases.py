"""Records of three columns, and tables of columns with few levels, for several test files."""

import numpy as np
import pandas as pd

import geomdp as gd
from geomdp.data.schema import Table

SCHEMA = gd.data.Schema.from_dict(
    {"region": ["north", "south", "east"], "smoker": bool, "retired": bool}
)
N = 60
LEVELS = {"a": 2, "b": 3, "c": 4, "d": 2}


def frame_of(seed):
    rng = np.random.default_rng(seed)
    return pd.DataFrame(
        {
            "region": rng.choice(["north", "south", "east"], N),
            "smoker": rng.random(N) < 0.1,
            "retired": rng.random(N) < 0.3,
        }
    )


def tables_of(levels, crossed):
    """Tables of the named columns, with the labels 0, 1, ... for the levels."""
    return [
        Table(names, tuple(tuple(map(str, range(levels[n]))) for n in names)) for names in crossed
    ]
