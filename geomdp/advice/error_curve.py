"""Tables of error against the number of records: predicted, excluded and measured errors."""

from __future__ import annotations

import enum
import itertools
import math
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np

from geomdp._numerics.randomness import PUBLIC_SEED
from geomdp._typing import RandomState
from geomdp._validation import whole
from geomdp.advice.bracket import lower_bounds
from geomdp.advice.candidates import EXACT_NOISE, JL_NAME
from geomdp.advice.comparison import Built, try_for_every_n
from geomdp.advice.setting import THOROUGH, Setting
from geomdp.bounds import RMS
from geomdp.bounds.problem import Problem
from geomdp.mechanisms import JL, AdditiveMechanism, Mechanism
from geomdp.mechanisms.additive_noise.base import InexactSumsError
from geomdp.mechanisms.base import FixedDataset, l1_sensitivity, predict_on_prior
from geomdp.privacy import Adjacency, Exact, Privacy
from geomdp.privacy.definitions import check_privacy, checked_adjacency
from geomdp.workloads import Records, Workload

if TYPE_CHECKING:
    import pandas as pd


class Quantity(enum.StrEnum):
    """The quantity in a row of an error table.

    Examples
    --------
    >>> import geomdp as gd
    >>> [quantity.value for quantity in gd.advice.Quantity]
    ['predicted', 'excluded', 'measured, not private']
    """

    #: The error of a mechanism, predicted from public arguments alone.
    PREDICTED = "predicted"
    #: Every mechanism with the same guarantee has at least this error on some data set.
    EXCLUDED = "excluded"
    #: The error of a mechanism on data sets drawn from the records. It depends on the records.
    MEASURED = "measured, not private"


#: Name of the curve of excluded errors.
ANY = "any mechanism"
#: Lower bounds on the number of records are computed for this many errors, and this many per
#: decade; those for smaller errors follow by padding (see `_excluded`).
EXCLUDED_ERRORS, EXCLUDED_PER_DECADE = 7, 3
#: Excluded errors are stated at all `ns`, and at this many values of n per decade.
STATED_PER_DECADE = 12
#: Seed of the search for lower bounds, as in `sample_complexity_bracket`.
LOWER_SEED = 0
#: Errors are measured at up to `MEASURED_POINTS` of the `ns`, with so many releases for each n.
MEASURED_POINTS, MEASURED_RELEASES = 5, 20
#: A row of the table.
COLUMNS = ["n", "curve", "noise", "quantity", "rmse", "stderr", "kind", "sampler"]
_Row = tuple[int, str, str, str, float, float, str, str]


def error_table(
    workload: Workload,
    *,
    ns: Sequence[int],
    privacy: Privacy,
    exact_only: bool = False,
    adjacency: Adjacency = Adjacency.REPLACE_ONE,
    records: Records | None = None,
    rng: RandomState = 0,
) -> pd.DataFrame:
    """Errors of mechanisms against n, and errors that no mechanism can stay below.

    All errors are root mean squared errors per query. `geomdp.plotting.error_curve` draws the table
    and describes the parameters. If `records` are given, errors of mechanisms with an exact sampler
    are measured at up to five of the `ns`, each by 20 releases on one data set of n records, drawn
    from `records` with replacement.

    Returns
    -------
    DataFrame
        One row per point: n, curve, noise, quantity (see `Quantity`), rmse, stderr, kind (of a
        prediction), sampler. `curve` is the name of the mechanism, or ``any mechanism``. `noise` is
        this name without the step `Projected` or `Shrunk`. `rmse` is in the units of the answers,
        which are means. An error that is excluded at n is also excluded at all smaller n, and
        excluded errors are also stated at numbers of records between the `ns`.

    Raises
    ------
    ValueError
        If `ns`, privacy, adjacency or records are invalid, or if the sensitivity is 0: under
        replace-one if all records have the same answers, under add/remove if all answers are 0.

    Notes
    -----
    Predicted and excluded errors depend on public arguments only. No noise protects measured
    errors, and measuring spends no budget: measure on synthetic or public data.

    JL has dimension ceil(epsilon n). An excluded error is a lower bound on the largest root mean
    squared error over all data sets of n records, by packings (JL-L6, JL-L7), other proofs, and for
    larger n by padding data sets with copies of one record.

    Examples
    --------
    >>> import geomdp as gd
    >>> workload = gd.workloads.Histogram(3)
    >>> table = gd.advice.error_table(workload, ns=[100, 1000], privacy=gd.PureDP(1.0))
    >>> laplace = table[table["curve"] == "Laplace"]
    >>> laplace["n"].tolist(), laplace["rmse"].round(4).tolist()
    ([100, 1000], [0.0283, 0.0028])
    """
    import pandas as pd

    check_privacy(privacy)
    numbers = [whole(n, "ns") for n in ns]
    if len(numbers) < 2 or any(b <= a for a, b in itertools.pairwise(numbers)):
        raise ValueError(f"ns must be at least 2 increasing numbers of records, got {list(ns)!r}")
    if records is not None and workload.totals(records).count == 0:
        raise ValueError("records must hold at least 1 record, got 0")
    adjacency = checked_adjacency(adjacency)
    setting = Setting(workload, numbers[0], privacy, adjacency, exact_only, THOROUGH)
    l1_sensitivity(workload, adjacency)  # raises an error if the sensitivity is 0
    generator = np.random.default_rng(rng)
    trials = try_for_every_n(setting).built
    rows = []
    for name, noise, mechanism in _lines(trials, setting, numbers):
        prediction, sampler = mechanism.predicted_rmse, str(mechanism.guarantee.sampler)
        found = (prediction.value, prediction.stderr, prediction.kind.value, sampler)
        rows.append((mechanism.n, name, noise, Quantity.PREDICTED.value, *found))
    rows += _excluded(setting, numbers)
    if records is not None:
        last, count = len(numbers) - 1, min(len(numbers), MEASURED_POINTS)
        spread = sorted({round(i) for i in np.linspace(0, last, count)})
        some = [numbers[i] for i in spread]
        rows += _measured(trials, setting, some, records, generator)
    return pd.DataFrame(rows, columns=COLUMNS)


def _lines(
    trials: list[Built], setting: Setting, numbers: list[int]
) -> Iterator[tuple[str, str, Mechanism]]:
    """Curve, noise and mechanism at each n where sums are exact; JL on K-norm noise in addition."""
    for trial in trials:
        for n in numbers:
            try:
                mechanism = trial.mechanism.with_n(n)
            except InexactSumsError:
                continue
            yield trial.name, trial.candidate.name, mechanism
    noise = next((trial.mechanism for trial in trials if trial.name == EXACT_NOISE), None)
    if not isinstance(noise, AdditiveMechanism) or setting.adjacency is Adjacency.ADD_REMOVE:
        return
    effective = setting.workload.affine_hull().dimension
    for n in numbers:
        rows = math.ceil(setting.pure.epsilon * n)  # by JL-T21
        if rows < effective:
            yield JL_NAME, JL_NAME, JL(noise.with_n(n), rows, rng=PUBLIC_SEED)


def _excluded(setting: Setting, numbers: list[int]) -> list[_Row]:
    """The largest error that is proved to be excluded, for each n."""
    # An error a that is excluded with v records is so with fewer. With n > v records, a v / n is
    # excluded: pad v records with copies of a fixed record, release, subtract the copies, and scale
    # by n / v. No error above `largest` is excluded: a mechanism that always releases the answers
    # of one fixed record has at most this error.
    workload, corners = setting.workload, []
    largest = workload.l2_diameter() / math.sqrt(workload.n_queries)
    if largest == 0:  # answers do not depend on the records, so no error is excluded
        return []
    for step in range(EXCLUDED_ERRORS):
        error = largest * 10 ** (-step / EXCLUDED_PER_DECADE)
        asked = Problem(None, error, RMS(), setting.adjacency, setting.privacy)
        bounds, _ = lower_bounds(workload, asked, LOWER_SEED)
        corners.append((error, bounds[0].records))
    decades = math.log10(numbers[-1] / numbers[0])
    between = np.geomspace(numbers[0], numbers[-1], 2 + int(STATED_PER_DECADE * decades))
    stated = sorted({*numbers, *(int(n) for n in between)})
    rows = []
    for n in stated:
        value = max(error * min(1.0, records / n) for error, records in corners)
        if value > 0:
            rows.append((n, ANY, ANY, Quantity.EXCLUDED.value, value, 0.0, "", ""))
    return rows


def _measured(
    trials: list[Built],
    setting: Setting,
    numbers: list[int],
    records: Records,
    rng: np.random.Generator,
) -> list[_Row]:
    rows: list[_Row] = []
    datasets = {}
    for n in numbers:
        chosen = rng.integers(len(records), size=n)
        drawn = records[chosen] if isinstance(records, np.ndarray) else records.iloc[chosen]
        datasets[n] = FixedDataset(drawn)
    for name, noise, mechanism in _lines(trials, setting, numbers):
        sampler = mechanism.guarantee.sampler
        if isinstance(sampler, Exact):
            found = predict_on_prior(mechanism, datasets[mechanism.n], MEASURED_RELEASES, rng)
            measured = (found.value, found.stderr, "", str(sampler))
            rows.append((mechanism.n, name, noise, Quantity.MEASURED.value, *measured))
    return rows
