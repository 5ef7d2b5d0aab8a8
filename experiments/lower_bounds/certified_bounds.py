"""What scripts on lower bounds share: certificates checked from their files, and exact slopes."""

from __future__ import annotations

import tempfile
from pathlib import Path

import numpy as np
import pandas as pd

from experiments.engine.claims import Claim
from geomdp import bounds


def confirmed_records(certificate: bounds.Certificate) -> int:
    """Records excluded according to the independent checker, from a file of the certificate."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "certificate.json"
        certificate.save(path)
        return bounds.check_certificate(path).records


def certificates_hold(table: pd.DataFrame) -> Claim:
    """The checker finds what the construction says, in every cell."""
    same = int((table.checked == table.lower).sum())
    return Claim(
        "every certificate is confirmed from its file",
        same == len(table),
        f"{same} of {len(table)}, up to e^{table.log_count.max():.3g} data sets",
        "all",
        "JL-L6, JL-L7",
    )


def exact_slope(x: pd.Series, y: pd.Series) -> float:
    """Least-squares slope of ln y in ln x, both known without error."""
    return float(np.polyfit(np.log(x), np.log(y), 1)[0])
