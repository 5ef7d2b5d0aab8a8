"""Ten binary columns of the RAND health insurance sample: real records for figures."""

from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt

import geomdp as gd

#: Each column has two levels. The public cuts of the six numeric columns tell whether there is any
#: visit to a doctor, any coinsurance, any incentive, any expenditure limit, a physical limitation,
#: and an index of chronic diseases of ten or more.
SCHEMA = gd.data.Schema(
    (
        gd.data.NumericColumn("mdvis", (0, 1, 100)),
        gd.data.NumericColumn("lncoins", (0, 2, 4.62)),
        gd.data.BooleanColumn("idp"),
        gd.data.NumericColumn("lpi", (0, 1, 8)),
        gd.data.NumericColumn("fmde", (0, 1, 9)),
        gd.data.NumericColumn("physlm", (0, 0.5, 1)),
        gd.data.NumericColumn("disea", (0, 10, 60)),
        gd.data.BooleanColumn("hlthg"),
        gd.data.BooleanColumn("hlthf"),
        gd.data.BooleanColumn("hlthp"),
    )
)


@cache
def real_sample() -> npt.NDArray[Any]:
    """All records of the sample, encoded as an array of shape (20190, 10)."""
    frame = gd.data.rand_health_insurance().frame
    return np.concatenate([*gd.data.encode(frame, SCHEMA, SCHEMA.universe())])
