"""Real tables bundled with statsmodels (extra ``samples``), each with a declared public schema.

Every record was checked to fit the schema, which is allowed because these records are public.
"""

from __future__ import annotations

import importlib.util
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from geomdp.data.columns import BooleanColumn, CategoricalColumn, NumericColumn
from geomdp.data.schema import Schema

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True, repr=False)
class Sample:
    """A table of real records with its schema."""

    path: Path
    schema: Schema
    source: str

    @cached_property
    def frame(self) -> pd.DataFrame:
        """The records as published, one per row."""
        import pandas as pd

        return pd.read_csv(self.path)

    def __repr__(self) -> str:
        return f"Sample({len(self.frame)} records, {self.schema!r}, from {self.source})"


RAND_SCHEMA = Schema(
    (
        # Outpatient visits to a doctor in a year.
        NumericColumn("mdvis", (0, 1, 2, 3, 5, 10, 20, 100)),
        # ln(coinsurance rate in per cent + 1). The rates 0, 25, 50, 95 and 100 give 0, 3.26, 3.93,
        # 4.56 and 4.615; there is one rate in each bin.
        NumericColumn("lncoins", (0, 2, 3.6, 4.2, 4.6, 4.62)),
        # Individual deductible plan.
        BooleanColumn("idp"),
        # ln(max(1, yearly participation incentive in dollars)). The first bin means no incentive.
        NumericColumn("lpi", (0, 1, 4, 5, 6, 7, 8)),
        # ln(max(1, maximum expenditure / coinsurance rate)), where the rate is a fraction, not per
        # cent. The value is 0 under an individual deductible.
        NumericColumn("fmde", (0, 1, 5, 6, 7, 8, 9)),
        # Physical limitation: 0 or 1, or an estimated probability if it was not recorded.
        NumericColumn("physlm", (0, 0.5, 1)),
        # Index of chronic diseases.
        NumericColumn("disea", (0, 5, 10, 15, 20, 30, 60)),
        # Self-rated health is good, fair or poor. All three are false if health is excellent.
        BooleanColumn("hlthg"),
        BooleanColumn("hlthf"),
        BooleanColumn("hlthp"),
    )
)

FAIR_SCHEMA = Schema(
    (
        # 1 means very poor, and 5 means very good.
        CategoricalColumn("rate_marriage", ("1", "2", "3", "4", "5")),
        # Years, recorded as midpoints of five-year classes from "under 20" to "40 or over".
        NumericColumn("age", (15, 20, 25, 30, 35, 40, 45)),
        NumericColumn("yrs_married", (0, 1, 5, 8, 11, 15, 20, 30)),
        # Number of children; 5.5 means five or more.
        CategoricalColumn("children", ("0", "1", "2", "3", "4", "5.5")),
        # 1 means not at all religious, and 4 means strongly religious.
        CategoricalColumn("religious", ("1", "2", "3", "4")),
        # Years of schooling by degree: 9 means grade school, and 20 means an advanced degree.
        CategoricalColumn("educ", ("9", "12", "14", "16", "17", "20")),
        # Six classes of occupation, of the wife and of the husband.
        CategoricalColumn("occupation", ("1", "2", "3", "4", "5", "6")),
        CategoricalColumn("occupation_husb", ("1", "2", "3", "4", "5", "6")),
        # Fair's measure of time spent in affairs. The first bin means no affairs.
        NumericColumn("affairs", (0, 0.01, 1, 5, 20, 100)),
    )
)


def rand_health_insurance() -> Sample:
    """Visits to doctors in the RAND Health Insurance Experiment: 20,190 person-years, 10 columns.

    4 columns are boolean and 6 binned numbers. ``ImportError`` if statsmodels is not installed.

    References
    ----------
    Cameron-Trivedi 2005, *Microeconometrics*. The records are in the public domain.

    Examples
    --------
    >>> import geomdp as gd
    >>> sample = gd.data.rand_health_insurance()
    >>> sample.frame.shape
    (20190, 10)
    >>> sample.schema.column("idp").labels
    ('false', 'true')
    """
    source = "RAND Health Insurance Experiment, through statsmodels.datasets.randhie"
    return Sample(_file("randhie"), RAND_SCHEMA, source)


def fair_affairs() -> Sample:
    """Fair's survey of extramarital affairs among readers of a magazine: 6,366 women, 9 columns.

    6 columns are categorical and 3 binned numbers. ``ImportError`` if statsmodels is not installed.

    References
    ----------
    Fair 1978, *A theory of extramarital affairs*. Statsmodels contains the records by permission.

    Examples
    --------
    >>> import geomdp as gd
    >>> sample = gd.data.fair_affairs()
    >>> sample.frame.shape
    (6366, 9)
    >>> sample.schema.levels["children"]
    6
    """
    source = "Fair (1978), through statsmodels.datasets.fair"
    return Sample(_file("fair"), FAIR_SCHEMA, source)


def _file(name: str) -> Path:
    """The file of a table in statsmodels, found without the slow import of statsmodels."""
    package = importlib.util.find_spec("statsmodels")
    if package is None or package.origin is None:
        raise ImportError(
            'bundled samples need statsmodels, the extra "samples": pip install "geomdp[samples]"'
        )
    return Path(package.origin).parent / "datasets" / name / f"{name}.csv"
