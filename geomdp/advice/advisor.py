"""The advisor: ranks mechanisms by predicted error before any record is seen."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from geomdp._validation import whole
from geomdp.advice.candidates import ADDITIVE, InapplicableError, Question, jl
from geomdp.mechanisms import AdditiveMechanism, Mechanism, Prediction, Projected
from geomdp.mechanisms.sensitivity import checked_adjacency, l1_sensitivity
from geomdp.privacy import ZCDP, Adjacency, ApproxDP, Exact, Privacy, PureDP
from geomdp.workloads import Workload, WorkloadSizeError

if TYPE_CHECKING:
    import pandas as pd

#: Predictions closer than this share are equal: projection mechanisms count a duality gap of a
#: millionth of the squared error on top of the error itself. So are those within this many
#: standard errors of each other, where one is estimated.
TIE, TIE_STANDARD_ERRORS = 1e-5, 3.0
#: Largest universe for which a projection is tried after every additive mechanism. For larger
#: ones, whose support function is slow, only after the best of them.
MAX_PROJECTED_UNIVERSE = 1 << 14


@dataclass(frozen=True)
class Built:
    """A candidate that applies, with its prediction.

    Parameters
    ----------
    name : str
        The mechanism in words.
    mechanism : Mechanism
        Built, with all geometry done.
    prediction : Prediction
        Its predicted error.
    seconds : float
        Set-up time.
    """

    name: str
    mechanism: Mechanism
    prediction: Prediction
    seconds: float

    @property
    def exact(self) -> bool:
        """Whether the sampler is exact."""
        return self.mechanism.guarantee.sampler == Exact()


@dataclass(frozen=True)
class Advice:
    """The best mechanism for a question, with the comparison that led to it.

    Parameters
    ----------
    best : Mechanism
        Built and ready to release.
    table : DataFrame
        One row per candidate, best first: mechanism, predicted_rmse (NaN where the candidate does
        not apply), kind, sampler, set-up seconds, why.
    reasons : list of str
        The choice in words.
    """

    best: Mechanism
    table: pd.DataFrame
    reasons: list[str]


def advise(
    workload: Workload,
    *,
    n: int,
    privacy: Privacy,
    exact_only: bool = False,
    adjacency: Adjacency = Adjacency.REPLACE_ONE,
) -> Advice:
    """Build every mechanism that applies and choose the one with the least predicted error.

    Candidates for pure differential privacy: Laplace, ball, cone, ellipsoid, K-norm, recursive and
    hierarchical noise and the matrix mechanism, each also followed by a projection, and JL with
    ceil(epsilon n) rows; otherwise Gaussian noise, isotropic or on the optimal strategy (matrix),
    with and without a projection. Predictions within a relative 1e-5 or three standard errors of
    the least are ties: the exact sampler wins, then the simpler mechanism.

    Parameters
    ----------
    workload : Workload
        m queries.
    n : int
        Number of records under replace-one; the declared public normaliser under add/remove.
    privacy : PureDP, ApproxDP or ZCDP
        Guarantee wanted.
    exact_only : bool
        Whether mechanisms with a heuristic sampler, which carry no guarantee, are left out.
    adjacency : Adjacency
        Neighbour relation.

    Returns
    -------
    Advice
        It depends on public arguments only, so taking it costs no privacy.

    Raises
    ------
    ValueError
        For a bad n, privacy or adjacency, or a constant workload.
    """
    if not isinstance(privacy, PureDP | ApproxDP | ZCDP):
        raise ValueError(f"privacy must be PureDP, ApproxDP or ZCDP, got {privacy!r}")
    adjacency = checked_adjacency(adjacency)
    question = Question(workload, whole(n, "n"), privacy, adjacency, exact_only)
    # A constant workload is refused here, not by every candidate in turn.
    l1_sensitivity(workload, adjacency)
    trials = _try_all(question)
    ranked = _rank(trials.built)
    return Advice(ranked[0].mechanism, _table(ranked, trials.refused), _reasons(ranked, question))


@dataclass
class Trials:
    """Candidates that apply to a question, in order of simplicity, and why others do not.

    Parameters
    ----------
    built : list of Built
        Those that apply.
    refused : dict of str to str
        Why not, by name.
    """

    built: list[Built] = field(default_factory=list)
    refused: dict[str, str] = field(default_factory=dict)

    def attempt(self, name: str, build: Callable[[], Mechanism]) -> None:
        """Build one candidate and take its prediction."""
        start = time.perf_counter()
        try:
            mechanism = build()
            prediction = mechanism.predicted_rmse
        except (InapplicableError, WorkloadSizeError) as reason:
            self.refused[name] = str(reason)
        else:
            seconds = time.perf_counter() - start
            self.built.append(Built(name, mechanism, prediction, seconds))


#: Name of the one candidate whose geometry depends on n.
JL_NAME = "JL(KNorm(exact=True))"


def try_for_every_n(question: Question) -> Trials:
    """Candidates whose geometry serves every n: additive mechanisms, as they are and projected."""
    trials = Trials()
    for name, build in ADDITIVE.items():
        trials.attempt(name, lambda build=build: build(question))  # type: ignore[misc]
    built, size = trials.built, question.workload.universe.size
    inner = built if size is None or size <= MAX_PROJECTED_UNIVERSE else _rank(built)[:1]
    for trial in list(inner):
        noisy = trial.mechanism
        assert isinstance(noisy, AdditiveMechanism)
        trials.attempt(f"Projected({trial.name})", lambda noisy=noisy: Projected(noisy))  # type: ignore[misc]
    return trials


def _try_all(question: Question) -> Trials:
    trials = try_for_every_n(question)
    trials.attempt(JL_NAME, lambda: jl(question))
    return trials


def _rank(built: list[Built]) -> list[Built]:
    """By prediction; among those tied for the first place the exact, then the simplest leads."""
    first = min((trial.prediction for trial in built), key=lambda prediction: prediction.value)
    tied = [trial for trial in built if _ties(trial.prediction, first)]
    # Stable: `built` is in order of simplicity.
    leader = min(tied, key=lambda trial: not trial.exact)
    rest = sorted(built, key=lambda trial: trial.prediction.value)
    return [leader, *(trial for trial in rest if trial is not leader)]


def _ties(prediction: Prediction, least: Prediction) -> bool:
    stderr = math.hypot(prediction.stderr, least.stderr)
    return prediction.value <= least.value * (1 + TIE) + TIE_STANDARD_ERRORS * stderr


def _table(ranked: list[Built], refused: dict[str, str]) -> pd.DataFrame:
    import pandas as pd

    columns = ["mechanism", "predicted_rmse", "kind", "sampler", "set-up seconds", "why"]
    rows: list[tuple[str, float, str, str, float, str]] = [
        (
            trial.name,
            trial.prediction.value,
            trial.prediction.kind.value,
            str(trial.mechanism.guarantee.sampler),
            trial.seconds,
            trial.prediction.source,
        )
        for trial in ranked
    ]
    rows += [(name, math.nan, "", "", math.nan, why) for name, why in refused.items()]
    return pd.DataFrame(rows, columns=columns)


def _reasons(ranked: list[Built], question: Question) -> list[str]:
    best = ranked[0]
    kinds = {
        "exact": "the same for every data set",
        "upper_bound": "an upper bound over all data sets",
        "prior": "simulated on a prior",
    }
    reasons = [
        f"{best.name} has the least predicted error, {best.prediction.value:.4g} per query "
        f"({kinds[best.prediction.kind.value]}), of {len(ranked)} mechanisms that apply."
    ]
    # The same noise projected is no other choice: its bound is that of the noise itself.
    own = f"Projected({best.name})"
    others = [trial for trial in ranked[1:] if trial.prediction.value > 0 and trial.name != own]
    if others:
        second = others[0]
        ratio = second.prediction.value / best.prediction.value
        reasons.append(f"Next is {second.name}, {ratio:.3g} times as large.")
    reasons.append(f"Its record will read: {best.mechanism.guarantee}.")
    if not best.exact:
        exact = next((trial for trial in ranked if trial.exact), None)
        if exact is not None:
            reasons.append(
                f"Its sampler carries no guarantee; the best exact one is {exact.name}, "
                f"{exact.prediction.value:.4g} (ask for exact_only)."
            )
    if not best.name.startswith("Projected") and question.workload.universe.size is not None:
        reasons.append(
            "Projected(best) never has a larger error, on any data of n records, at the price of "
            "a projection per release."
        )
    return reasons
