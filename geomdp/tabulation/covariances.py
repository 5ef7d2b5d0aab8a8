"""Private covariances of real columns in the units of the columns, and regression from them."""

from __future__ import annotations

import html
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from geomdp._numerics.linalg import unsvec
from geomdp._numerics.randomness import PUBLIC_SEED
from geomdp._typing import FloatArray, IntArray, RandomState
from geomdp._validation import probability
from geomdp.data import Schema, source_of
from geomdp.data.tallies import encode_source
from geomdp.mechanisms import Covariance, Prediction
from geomdp.mechanisms.covariance import refuse_private_count
from geomdp.noise.tails import public_blocks
from geomdp.privacy import Adjacency, Exact, Guarantee, Ledger, Privacy
from geomdp.tabulation.tabulate import number_of_records, require_budget
from geomdp.tabulation.tasks import chosen_columns
from geomdp.workloads import SecondMoment

if TYPE_CHECKING:
    import pandas as pd

    from geomdp.data.frames import Source
    from geomdp.tabulation.tabulate import Frame

#: Public draws of the noise for the standard errors and intervals of a regression. The coverage of
#: a 95% interval then has standard deviation (0.05 * 0.95 / 2000)^(1/2) = 0.5%.
DRAWS = 2000
#: Largest number of entries of matrices in a block of draws, 8 MiB of float64.
BLOCK_ENTRIES = 1 << 20
#: A regression is refused if noise changes the variance of a combination of predictors by more than
#: this share, for more than the share `RISK` of the draws: the first order in the noise, which
#: gives the standard errors, is then no good description.
SHARE, RISK = 0.5, 0.05


@dataclass(frozen=True, eq=False, repr=False)
class CovarianceTable:
    """A private covariance matrix of real columns, and public values; `covariance` returns it.

    Parameters
    ----------
    frame : DataFrame
        The covariance matrix (d, d) in the units of the columns, with their names: psd, with a
        trace that records within the bounds can have.
    mean : Series
        The noisy mean (d,) of each column, in its units.
    guarantee, predicted_rmse : Guarantee, Prediction
        The guarantee of all parts together, and the error of an entry of svec of the matrix of the
        mapped columns; see `covariance`.
    mechanism : Covariance
        The mechanism, which knows the law of the noise.
    noisy : (d + m,) array
        The noisy mean and svec of the noisy second moments of the mapped columns.
    scales : (d,) array
        The units of each column that are one unit of its mapped column.

    Examples
    --------
    >>> import pandas as pd
    >>> import geomdp as gd
    >>> schema = gd.data.Schema.from_dict({"age": {"bounds": [0, 100]}, "pay": {"bounds": [0, 9]}})
    >>> frame = pd.DataFrame({"age": [20, 40] * 5000, "pay": [2, 4] * 5000})
    >>> found = gd.tabulation.covariance(frame, schema, privacy=gd.PureDP(1.0), rng=0)
    >>> found.mean.round(0).to_dict()
    {'age': 30.0, 'pay': 3.0}
    >>> found.noise_std.shape
    (2, 2)
    """

    frame: pd.DataFrame
    mean: pd.Series[float]
    guarantee: Guarantee
    predicted_rmse: Prediction
    mechanism: Covariance
    noisy: FloatArray
    scales: FloatArray

    def __repr__(self) -> str:
        return f"covariance of {len(self.frame)} columns: {self.guarantee}\n{self.frame}"

    def _repr_html_(self) -> str:
        heading = f"covariance of {len(self.frame)} columns: {self.guarantee}"
        return f"<p>{html.escape(heading)}</p>{self.frame.to_html()}"

    @property
    def mean_noise_std(self) -> pd.Series[float]:
        """Standard deviation of the noise on each mean (d,), in units of the columns."""
        import pandas as pd

        return pd.Series(self._noise_std[0] * self.scales, index=self.frame.columns)

    @property
    def noise_std(self) -> pd.DataFrame:
        """Standard deviation of the noise on each covariance (d, d) in units of the columns, before
        the matrix was made psd: to first order in the noise, from 2000 public draws of it.
        """
        import pandas as pd

        deviations, names = self._noise_std[1:], self.frame.columns
        return pd.DataFrame(
            deviations * np.outer(self.scales, self.scales), index=names, columns=names
        )

    @cached_property
    def _noise_std(self) -> FloatArray:
        """Deviations of the mean, and below of the covariances, of mapped columns: (1 + d, d)."""
        d = len(self.frame)
        squares = np.zeros((1 + d, d))
        for draws in _draws(self.mechanism):
            squares[0] += (draws[:, :d] ** 2).sum(axis=0)
            squares[1:] += (_changes(self.mechanism, self.noisy, draws) ** 2).sum(axis=0)
        return np.sqrt(squares / DRAWS)

    def regression(
        self, target: str, predictors: Sequence[str] | None = None, *, confidence: float = 0.95
    ) -> Regression:
        """Linear regression of one column on others, from this release alone.

        The coefficients are those of least squares for the noisy covariance matrix, before it was
        made psd. Standard errors and intervals contain the noise, to first order, and the variation
        of a sample of independent records with residuals of one variance.

        Parameters
        ----------
        target : str
            Name of the column to predict.
        predictors : sequence of str, optional
            Names of the columns to predict it from; by default all others.
        confidence : float
            Probability with which each interval contains the coefficient in the population, above 0
            and below 1.

        Raises
        ------
        ValueError
            If a name is not one of the columns, or is given twice, or there is no predictor; or if
            the noise is so large that predictors cannot be told apart; fewer predictors may do.

        Notes
        -----
        Let S be the covariance matrix of the predictors, s their covariances with the target, and
        b = S^-1 s. Noise E on the matrix changes b by S^-1 (E_s - E_S b) + O(||E||^2), and the mean
        mu with noise w is part of it by -(mu w^T + w mu^T). To the variance of the change, from
        2000 public draws, is added that of least squares, r^2 S^-1 / n, with the residual variance
        r^2. Cost: 2000 draws of the noise and products of d x d matrices.

        Examples
        --------
        >>> import numpy as np
        >>> import pandas as pd
        >>> import geomdp as gd
        >>> rng = np.random.default_rng(0)
        >>> age = rng.uniform(20, 60, 50_000)
        >>> frame = pd.DataFrame({"age": age, "pay": 20 + 0.5 * age + rng.uniform(-5, 5, 50_000)})
        >>> schema = gd.data.Schema.from_dict({name: {"bounds": [20, 60]} for name in frame})
        >>> found = gd.tabulation.covariance(frame, schema, privacy=gd.PureDP(1.0), rng=0)
        >>> row = found.regression("pay").frame.loc["age"]
        >>> bool(row["low"] < 0.5 < row["high"])
        True
        """
        import pandas as pd

        names = list(self.frame.columns)
        chosen = [name for name in names if name != target] if predictors is None else predictors
        unknown = [name for name in (target, *chosen) if name not in names]
        if unknown:
            raise ValueError(f"columns must be among {names}, got {unknown}")
        if not chosen or len({target, *chosen}) <= len(chosen):
            raise ValueError(
                f"predictors must be one or more different columns other than {target!r}, got "
                f"{list(chosen)}"
            )
        probability(confidence, "confidence")
        places = np.array([names.index(name) for name in (*chosen, target)])
        units = self.scales[places]
        means = self.mean.to_numpy()[places] / units
        fitted = _least_squares(self.mechanism, self.noisy, places, means, confidence)
        slopes = fitted * (units[-1] / np.append(units[:-1], 1.0))[:, None]
        rows = pd.DataFrame(
            {
                "coefficient": slopes[:, 0],
                "standard_error": np.hypot(slopes[:, 1], slopes[:, 2]),
                "noise_error": slopes[:, 1],
                "low": slopes[:, 0] - slopes[:, 3],
                "high": slopes[:, 0] + slopes[:, 3],
            },
            index=[*chosen, "(intercept)"],
        )
        return Regression(target, rows[:-1], rows.iloc[-1], self.guarantee)


@dataclass(frozen=True, eq=False, repr=False)
class Regression:
    """A linear regression from a private covariance, as `CovarianceTable.regression` returns it.

    Parameters
    ----------
    target : str
        The predicted column.
    frame : DataFrame
        One row for each predictor, in units of the target per unit of the predictor: coefficient,
        standard_error, the part noise_error of it that is due to the noise, and the interval from
        low to high.
    level : Series
        The same of the intercept, the prediction where all predictors are 0, from the noisy means.
    guarantee : Guarantee
        The guarantee of the release: regression is post-processing.

    Examples
    --------
    >>> import pandas as pd
    >>> import geomdp as gd
    >>> schema = gd.data.Schema.from_dict({"age": {"bounds": [0, 100]}, "pay": {"bounds": [0, 9]}})
    >>> frame = pd.DataFrame({"age": [20, 40, 60] * 5000, "pay": [2, 4, 6] * 5000})
    >>> found = gd.tabulation.covariance(frame, schema, privacy=gd.PureDP(9.0), rng=0)
    >>> found.regression("pay").frame["coefficient"].round(2).to_dict()
    {'age': 0.1}
    """

    target: str
    frame: pd.DataFrame
    level: pd.Series[float]
    guarantee: Guarantee

    @property
    def intercept(self) -> float:
        """The prediction where all predictors are 0."""
        return float(self.level["coefficient"])

    def __repr__(self) -> str:
        return (
            f"regression of {self.target}, intercept {self.intercept:.4g}: {self.guarantee}\n"
            f"{self.frame}"
        )

    def _repr_html_(self) -> str:
        heading = f"regression of {self.target}, intercept {self.intercept:.4g}: {self.guarantee}"
        return f"<p>{html.escape(heading)}</p>{self.frame.to_html()}"


def _least_squares(
    mechanism: Covariance, noisy: FloatArray, places: IntArray, means: FloatArray, confidence: float
) -> FloatArray:
    """Coefficient, deviation by noise, deviation by sampling and half-width: (predictors + 1, 4),
    of `places` (predictors, last the target) with `means` from the origin; last, the intercept.
    """
    d = mechanism.workload.d
    matrix = unsvec(noisy[d:]) - np.outer(noisy[:d], noisy[:d])
    matrix = matrix[places][:, places]
    parts = [
        (_changes(mechanism, noisy, draws)[:, places][:, :, places], draws[:, places])
        for draws in _draws(mechanism)
    ]
    moved, shifted = (np.concatenate(part) for part in zip(*parts, strict=True))
    values, vectors = np.linalg.eigh(matrix[:-1, :-1])
    if values[0] <= 0:
        _refuse(values[0])
    # W^T S W = I for the covariance matrix S of the predictors.
    white = vectors / np.sqrt(values)
    changes = np.linalg.eigvalsh(white.T @ moved[:, :-1, :-1] @ white)
    if np.mean(np.abs(changes).max(axis=1) > SHARE) > RISK:
        _refuse(values[0])
    inverse = white @ white.T
    slopes = inverse @ matrix[:-1, -1]
    by_noise = (moved[:, :-1, -1] - moved[:, :-1, :-1] @ slopes) @ inverse
    left = max(float(matrix[-1, -1] - slopes @ matrix[:-1, -1]), 0.0)
    variances = np.append(np.diag(inverse), 1 + means[:-1] @ inverse @ means[:-1])
    sampling = np.sqrt(left * variances / mechanism.n)
    # The intercept is the mean of the target minus the slopes times the means of the predictors.
    moved_level = shifted[:, -1] - shifted[:, :-1] @ slopes - by_noise @ means[:-1]
    by_noise = np.column_stack([by_noise, moved_level])
    slopes = np.append(slopes, means[-1] - slopes @ means[:-1])
    normal = np.random.default_rng([PUBLIC_SEED, 1]).standard_normal(by_noise.shape)
    half = np.quantile(np.abs(by_noise + sampling * normal), confidence, axis=0)
    return np.column_stack([slopes, by_noise.std(axis=0), sampling, half])


def _draws(mechanism: Covariance) -> Iterator[FloatArray]:
    """2000 public draws of the noise on mean and second moments, in blocks."""
    rows = max(1, BLOCK_ENTRIES // mechanism.workload.d**2)
    return public_blocks(mechanism.noise_draws, DRAWS, rows)


def _changes(mechanism: Covariance, noisy: FloatArray, draws: FloatArray) -> FloatArray:
    """Changes (b, d, d) of the covariance of mapped columns by draws (b, d + m) of the noise."""
    d = mechanism.workload.d
    crossed = draws[:, :d, None] * noisy[:d]
    return np.asarray(unsvec(draws[:, d:]) - crossed - np.swapaxes(crossed, 1, 2))


def _refuse(least: float) -> None:
    raise ValueError(
        "the noise is too large to tell the predictors apart: the least variance of a combination "
        f"of mapped predictors is {least:.2g}; choose fewer predictors, or release with more "
        "budget or records"
    )


def covariance(
    records: Frame | str | os.PathLike[str] | Source,
    schema: Schema,
    *,
    privacy: Privacy,
    n: int | None = None,
    adjacency: Adjacency = Adjacency.REPLACE_ONE,
    columns: Sequence[str] | None = None,
    ledger: Ledger | None = None,
    rng: RandomState = None,
) -> CovarianceTable:
    """Private covariance matrix of real columns with public bounds.

    The d columns with bounds [low, high] are mapped to [-1, 1] and divided by sqrt(d), so that
    records lie in the unit ball of R^d. `geomdp.mechanisms.Covariance` releases their covariance
    matrix, which is scaled back to the units of the columns. The errors are those of `release`, and
    ``ValueError`` under add/remove, and if a column is not real.

    Parameters
    ----------
    records, schema : DataFrame, Table, path or Source; Schema
        One record per row, and the columns with their bounds; see `release`.
    privacy : PureDP, ZCDP or ApproxDP
        The guarantee to give.
    n, adjacency : int, Adjacency, optional
        As for `release`; the number of records must be public.
    columns : sequence of str, optional
        Names of real columns; by default all real columns of the schema.
    ledger, rng : Ledger, random state
        As for `release`.

    Examples
    --------
    A seed makes this a simulation, which has no guarantee:

    >>> import numpy as np
    >>> import pandas as pd
    >>> import geomdp as gd
    >>> x = np.random.default_rng(0).uniform(0, 100, 20_000)
    >>> frame = pd.DataFrame({"a": x, "b": 100 - x})
    >>> schema = gd.data.Schema.from_dict({name: {"bounds": [0, 100]} for name in frame})
    >>> result = gd.tabulation.covariance(frame, schema, privacy=gd.PureDP(2.0), rng=0)
    >>> result.frame.round(-1)
           a      b
    a  830.0 -830.0
    b -830.0  830.0
    """
    import pandas as pd

    names = tuple(chosen_columns(schema, columns, real=True))
    chosen = schema.select(names)
    refuse_private_count(adjacency)
    require_budget(ledger, Guarantee(privacy, adjacency, Exact()), chosen.caveat, rng, "Covariance")
    workload = SecondMoment(len(names))
    chunks = list(encode_source(source_of(records), chosen.confirm(), workload.universe))
    n = number_of_records(n, adjacency, sum(map(len, chunks)))
    mechanism = Covariance(workload, n=n, privacy=privacy, adjacency=adjacency)
    released = mechanism.release(chunks, rng=rng, ledger=ledger)
    bounds = np.array([column.bounds for column in chosen.real_columns])
    # A mapped coordinate is (value - middle of the bounds) / (half of their distance * sqrt(d)).
    scales = (bounds[:, 1] - bounds[:, 0]) / 2 * np.sqrt(len(names))
    matrix = workload.matrix(released.answers) * np.outer(scales, scales)
    noisy = released.noisy
    assert noisy is not None
    means = bounds.mean(axis=1) + scales * noisy[: len(names)]
    return CovarianceTable(
        pd.DataFrame(matrix, index=list(names), columns=list(names)),
        pd.Series(means, index=list(names)),
        released.guarantee.without_claim(chosen.caveat),
        released.predicted_rmse,
        mechanism,
        noisy,
        scales,
    )
