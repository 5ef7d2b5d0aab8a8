"""The advisor: ranks mechanisms by predicted error before any record is seen."""

from __future__ import annotations

import html
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from geomdp._validation import whole
from geomdp.advice.comparison.order import try_all
from geomdp.advice.comparison.ranking import ready_to_release
from geomdp.advice.comparison.simulated_fit import with_fit
from geomdp.advice.comparison.table import COLUMNS, Row, comparison_rows
from geomdp.advice.reasons import reasons
from geomdp.advice.setting import DEFAULT_EFFORT, Budget, Setting
from geomdp.mechanisms import Mechanism
from geomdp.mechanisms.sensitivity import l1_sensitivity
from geomdp.privacy import ZCDP, Adjacency, ApproxDP, Privacy, PureDP
from geomdp.privacy.definitions import checked_adjacency
from geomdp.workloads import Workload

if TYPE_CHECKING:
    import pandas as pd


#: A notebook shows this many reasons, and these columns of the table.
REASONS_SHOWN, SHOWN = 3, ("mechanism", "predicted_rmse", "kind", "sampler")


@dataclass(frozen=True, repr=False)
class Advice:
    """The best mechanism for a setting, with the comparison that led to it.

    Parameters
    ----------
    best : Mechanism
        The best mechanism, built and ready to release.
    rows : tuple of tuples
        The rows of `table`.
    reasons : list of str
        Sentences that give the reasons for the choice.
    flag : str
        Name of the best mechanism on the command line.
    asked : PureDP, ApproxDP or ZCDP
        The guarantee that was asked for. The guarantee of `best` is this one, or pure privacy that
        implies it.

    Examples
    --------
    >>> import geomdp as gd
    >>> advice = gd.advise(gd.workloads.Prefixes(8), n=1000, privacy=gd.PureDP(1.0))
    >>> advice.flag
    'projected-knorm-exact'
    >>> print(advice.reasons[0].partition(",")[0])
    Projected(KNorm(exact=True)) has the least predicted error
    >>> advice.table.columns.tolist()
    ['mechanism', 'predicted_rmse', 'kind', 'simulated_rmse', 'sampler', 'set-up seconds', 'why']
    """

    best: Mechanism
    rows: tuple[Row, ...]
    reasons: list[str]
    flag: str
    asked: Privacy

    @cached_property
    def table(self) -> pd.DataFrame:
        """One row per candidate, best first.

        Columns: mechanism, predicted_rmse, kind (of prediction), simulated_rmse, sampler, set-up
        seconds, why. simulated_rmse is the error on uniform data in simulated releases, and NaN if
        the mechanism was not simulated. The last column gives the source of the prediction; if none
        was made, predicted_rmse is NaN and the last column gives the reason.
        """
        from geomdp.advice.printed_table import PrintedTable  # pandas: a slow import

        return PrintedTable(list(self.rows), columns=[*COLUMNS])

    def __repr__(self) -> str:
        return f"Advice({self.reasons[0]})"

    def _repr_html_(self) -> str:
        said = "".join(f"<p>{html.escape(reason)}</p>" for reason in self.reasons[:REASONS_SHOWN])
        rows = self.table[self.table["predicted_rmse"].notna()]
        return said + rows[list(SHOWN)].to_html(index=False, float_format="{:.4g}".format)


def advise(
    workload: Workload,
    *,
    n: int,
    privacy: Privacy,
    exact_only: bool = False,
    adjacency: Adjacency = Adjacency.REPLACE_ONE,
    effort: float = DEFAULT_EFFORT,
) -> Advice:
    """Find the mechanism with the least predicted error for a workload.

    The candidates for pure differential privacy are:

    * Laplace, geometric, staircase, ball, cone, tight-cone, spectral, ellipsoid, K-norm,
      lattice-box, recursive and hierarchical noise and the matrix mechanism, each alone and with a
      projection on the attainable answers afterwards;
    * the noise with the least prediction, followed by shrinking (`Shrunk`);
    * `JL`, a random map to fewer dimensions, with the best number of dimensions;
    * noise on answers that are rounded to a few points (`Coarse`);
    * the mechanisms `SecondMoment` and `PairMarginals`, for the workloads they are made for.

    For other guarantees, Gaussian noise is tried, too: isotropic, on the optimal strategy
    (`Matrix`) and on the residuals of tables (`ResidualGaussian`). The mechanisms for pure privacy
    stay candidates, with the largest epsilon that implies the guarantee asked: epsilon-DP implies
    (epsilon, delta)-DP and (epsilon^2 / 2)-zCDP. A release of such a mechanism states epsilon-DP.
    They are left out if the error of the best Gaussian noise proves that they cannot be better, and
    for tables of many columns, where their set-ups take long.

    The candidate with the least prediction wins. Others tie with it if their predictions exceed it
    by at most a relative 1e-5 plus three standard errors. Among candidates that tie, an exact
    sampler decides first, then correct rounding of the noise in unseeded releases, then simplicity.
    If the winner is noise alone, the noise with its projection is advised, unless the projection is
    left out; if several noises tie, the one with the least bound after its projection. On data sets
    of n records, a projection increases the error at most by rounding, which matters if the error
    is below 1e-6 of the diameter of the answers. It can lower the error even if the prediction, an
    upper bound over all data sets, stays the same. Shrinking is advised only if it lowers the
    prediction by more than 1%.

    One choice is made by simulation. A fit (`Fitted`) replaces the noisy answers by the attainable
    answers nearest to them in the norm of the noise. Its proved bound is up to twice the bound of a
    projection, although its real error is mostly smaller. If the winner projects or shrinks noise
    with an exact sampler, and the noise is at least 5% of the diameter of the answers, the fit of
    the same noise is simulated on three public data sets of n records, with a public fixed seed:
    uniform data, ten elements, and copies of one element. It is advised if its error is lower by at
    least 1% on uniform data, and larger by at most 5% (to allow for chance) on the two others. The
    predicted error remains the proved bound of the advised mechanism. On other data the fit can err
    more: for tables of independent columns, up to 4% more was measured.

    The table has a row for every candidate that was considered. If no prediction was made, the row
    gives the reason, for example: the candidate does not apply, cannot make a release, cannot be
    the best by a lower bound, or would take more than 1 GiB of memory or longer than `effort`.
    Costs are computed from the sizes of the workload. So the advice does not depend on the speed of
    the machine. It depends on public arguments only, and costs no privacy.

    Parameters
    ----------
    workload : Workload
        m queries.
    n : int
        Number of records. Under add/remove, the declared public number by which sums are divided.
    privacy : PureDP, ApproxDP or ZCDP
        The guarantee that the mechanism must have. The mechanism may have a stronger guarantee.
    exact_only : bool
        Whether mechanisms with a heuristic sampler, which have no guarantee, are left out.
    adjacency : Adjacency
        Neighbour relation.
    effort : float
        Limit on predicted work in seconds, above 0. It applies to the set-up and prediction of each
        candidate, and to one projection.

    Raises
    ------
    ValueError
        If n, privacy, adjacency or effort is invalid, if neighbours always have the same sums of
        answers, or if every mechanism is left out.

    Examples
    --------
    >>> import geomdp as gd
    >>> advice = gd.advise(gd.workloads.Prefixes(8), n=1000, privacy=gd.PureDP(1.0))
    >>> advice.best
    Projected(KNorm(Prefixes(N=8); 8 queries; n=1000; 1-DP, replace-one))
    >>> round(advice.best.predicted_rmse.value, 3)
    0.003
    """
    if not isinstance(privacy, PureDP | ApproxDP | ZCDP):
        raise ValueError(f"privacy must be PureDP, ApproxDP or ZCDP, got {privacy!r}")
    adjacency = checked_adjacency(adjacency)
    budget = Budget.of_seconds(effort)
    return advise_on(Setting(workload, whole(n, "n"), privacy, adjacency, exact_only, budget))


def advise_on(setting: Setting) -> Advice:
    # If neighbours always have the same sums, raise the error here. Otherwise every candidate would
    # raise it.
    l1_sensitivity(setting.workload, setting.adjacency)
    trials = try_all(setting)
    ranked = ready_to_release(trials)
    if not ranked:
        why = "; ".join(f"{name}: {reason}" for name, reason in trials.refused.items())
        raise ValueError(
            f"workload must be one that some mechanism can answer under {setting.privacy} "
            f"({setting.adjacency.value}); every mechanism was left out: {why}"
        )
    ranked = with_fit(ranked, trials)
    said = reasons(ranked, trials)
    first = ranked[0]
    flag = (first.step.prefix if first.step else "") + first.candidate.flag
    rows = comparison_rows(ranked, trials.refused)
    return Advice(first.mechanism, rows, said, flag, setting.privacy)
