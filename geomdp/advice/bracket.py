"""The bracket: lower and upper bounds on the number of records that the best mechanism needs."""

from __future__ import annotations

import html
import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from geomdp._typing import RandomState
from geomdp.advice.lower_side import lower_bounds
from geomdp.advice.upper_side import MOST_RECORDS, upper_bounds
from geomdp.bounds import Bound, Metric
from geomdp.bounds.certificates.problem import Problem
from geomdp.bounds.metrics import MEAN_L2
from geomdp.mechanisms.sensitivity import l1_sensitivity
from geomdp.privacy import Adjacency, Privacy
from geomdp.workloads import Workload

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True, repr=False)
class Bracket:
    """Lower and upper bound on the sample complexity sc of a workload: lower < sc <= upper.

    sc is the least n for which some mechanism with the guarantee, known or unknown, has error at
    most alpha on every data set of n records.

    Parameters
    ----------
    lower : Bound
        The largest lower bound. Its certificate lists packings (data sets with answers far apart),
        elements with answers far apart (`guessing_bound`), or data sets on lines, which together
        exclude every number of records up to the bound; None if no more than sc >= 1 is proved.
    upper : Bound
        The smallest upper bound. Its certificate is a mechanism that is built for this number of
        records; None if a constant answer is accurate enough.
    question : Problem
        Guarantee, target error, metric and neighbour relation.
    lower_candidates, upper_candidates : tuple of Bound
        All bounds that were proved, best first.
    refused : dict of str to str
        For every method of proof or mechanism that gives no bound here, the reason why.

    Examples
    --------
    >>> import geomdp as gd
    >>> bracket = gd.sample_complexity_bracket(gd.workloads.Histogram(4), epsilon=1.0, alpha=0.01)
    >>> print(bracket)
    98 < sc <= 184, 1-DP (replace-one) and mean l2 error per query at most 0.01 (ratio 1.86)
    >>> round(bracket.gap, 1)
    1.9
    >>> bracket.table.columns.tolist()
    ['side', 'records', 'statement', 'assumptions']
    """

    lower: Bound
    upper: Bound
    question: Problem
    lower_candidates: tuple[Bound, ...]
    upper_candidates: tuple[Bound, ...]
    refused: dict[str, str]

    @property
    def gap(self) -> float:
        """The largest sc that the bracket allows, divided by the smallest; at least 1."""
        return self.upper.records / (self.lower.records + 1)

    @property
    def table(self) -> pd.DataFrame:
        """One row per bound or failed method, with columns side, records, statement, assumptions.

        Lower bounds come first, then upper bounds, both from best to worst, and then the methods
        and mechanisms that give no bound, with the side "none".
        """
        from geomdp.advice.printed_table import PrintedTable

        rows = [
            (bound.side.value, bound.records, bound.statement, "; ".join(bound.assumptions))
            for bound in (*self.lower_candidates, *self.upper_candidates)
        ]
        rows += [("none", math.nan, f"{name}: {why}", "") for name, why in self.refused.items()]
        return PrintedTable(rows, columns=["side", "records", "statement", "assumptions"])

    def __repr__(self) -> str:
        return f"Bracket({self})"

    def _repr_html_(self) -> str:
        proved = self.table[self.table["side"] != "none"]
        records = [b.records_text for b in (*self.lower_candidates, *self.upper_candidates)]
        shown = proved[["side", "records", "statement"]].assign(records=records)
        return f"<p>{html.escape(str(self))}</p>" + shown.to_html(index=False)

    def __str__(self) -> str:
        low, high = self.lower.records_text, self.upper.records_text
        return f"{low} < sc <= {high}, {self.question} (ratio {self.gap:.3g})"


def sample_complexity_bracket(
    workload: Workload,
    epsilon: float | None = None,
    alpha: float | None = None,
    metric: Metric = MEAN_L2,
    adjacency: Adjacency = Adjacency.REPLACE_ONE,
    rng: RandomState = 0,
    *,
    privacy: Privacy | None = None,
) -> Bracket:
    """Certified lower and upper bounds on the sample complexity of a workload.

    The lower bound comes from packings of data sets (JL-L6, JL-L7), found by a search and, for
    `Marginals`, also from known constructions, from the average error over elements with answers
    far apart (`geomdp.bounds.guessing_bound`), and from data sets on orthogonal lines
    (`geomdp.bounds.orthogonal_lines_bound`). For the largest error over the queries, it also comes
    from lines along single queries (`geomdp.bounds.query_lines_bound`). Under zCDP and
    (epsilon, delta)-DP, orthogonal lines are the only argument. The upper bound comes from the
    mechanisms of this library that have an exact sampler and a proved error, which means the
    largest error over all data sets of n records. Mechanisms whose pure privacy implies the
    guarantee are included.

    Parameters
    ----------
    workload : Workload
        k queries, on a universe of any size.
    epsilon : float, optional
        Privacy loss of pure differential privacy, above 0. Give either `epsilon` or `privacy`.
    alpha : float
        Target error per query, above 0; required.
    metric : MeanL2, RMS or WorstCase
        How the error is measured.
    adjacency : Adjacency
        Neighbour relation. Under add/remove, sums are divided by a declared n. The error must be at
        most alpha on data sets of exactly n records, and may be larger on others.
    rng : Generator, int or None
        Randomness of the search for packings. Other seeds can find other bounds, all proved.
    privacy : PureDP, ApproxDP or ZCDP, optional
        The guarantee, instead of `epsilon`.

    Raises
    ------
    ValueError
        If a parameter is out of range, or if neighbours always have the same sums of answers. Also
        if every mechanism needs more than 2^53 records, because alpha is small.

    Notes
    -----
    Volume bounds are not used, because they bound the largest error over data sets of all sizes
    (JL-VR). Mechanisms with a Markov chain as sampler are not used, nor are averages over a random
    map or simulations on random data sets, which prove nothing. A mean over the noise may be
    replaced by an upper confidence limit from public draws, which the assumptions then state.

    References
    ----------
    Nikolov 2022, Lemmas 6 and 7; formula sheet JL-DEF, JL-L6, JL-L7.

    Examples
    --------
    How many records does the best 1-DP mechanism need for an error of 0.01 per cell of a histogram?

    >>> import geomdp as gd
    >>> workload = gd.workloads.Histogram(4)
    >>> bracket = gd.sample_complexity_bracket(workload, epsilon=1.0, alpha=0.01)
    >>> bracket.lower.records < bracket.upper.records
    True
    >>> mechanism = bracket.upper.certificate
    >>> mechanism.n == bracket.upper.records
    True

    The same question for 0.5-zCDP, a weaker guarantee that every 1-DP mechanism has:

    >>> print(gd.sample_complexity_bracket(workload, alpha=0.01, privacy=gd.ZCDP(0.5)))
    59 < sc <= 123, 0.5-zCDP (replace-one) and mean l2 error per query at most 0.01 (ratio 2.05)
    """
    if alpha is None:
        raise ValueError("alpha must be a finite number above 0, got None")
    question = Problem(epsilon, alpha, metric, adjacency, privacy)
    # If neighbours always have the same sums, raise the error here. Otherwise every method of proof
    # would raise it.
    l1_sensitivity(workload, adjacency)
    below, no_packing = lower_bounds(workload, question, rng)
    above, no_mechanism = upper_bounds(
        workload,
        privacy=question.guarantee,
        alpha=question.alpha,
        metric=metric,
        adjacency=adjacency,
    )
    if not above:
        raise ValueError(
            f"alpha must be larger, got {alpha!r}: every mechanism needs more than "
            f"{MOST_RECORDS} records"
        )
    return Bracket(
        lower=below[0],
        upper=above[0],
        question=question,
        lower_candidates=tuple(below),
        upper_candidates=tuple(above),
        refused=no_packing | no_mechanism,
    )
