"""Build and audit one mechanism, or give the reason why it is left out of an audit."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from geomdp.advice.setting import Setting
    from geomdp.audit import AuditResult, Learner
    from geomdp.mechanisms import Mechanism
    from geomdp.workloads import Workload

#: Without --mechanism and --all, the audits together may take about this number of seconds. Their
#: work is counted, not timed, so the speed of the machine does not decide what is audited.
SECONDS = 20.0
#: Operations of learning scores, divided by those of one matrix product of the draws with
#: themselves: principal axes, two covariances and a classifier. Measured for 699 queries.
LEARNING = 4


class Audited(NamedTuple):
    """A mechanism with the result of the audit, or with the reason why there was no audit."""

    flag: str
    result: AuditResult | None
    seconds: float
    why: str = ""


def built_candidate(flag: str, setting: Setting, named: bool) -> Mechanism | Audited:
    """The mechanism, or why it is left out, as ``ValueError`` if the user `named` it."""
    from geomdp.advice.candidates import CANDIDATES
    from geomdp.advice.setting import InapplicableError
    from geomdp.bodies import MissingOracle
    from geomdp.cli.mechanism_flags import build_mechanism
    from geomdp.privacy import Exact
    from geomdp.workloads import WorkloadSizeError

    if named:
        return build_mechanism(flag, setting)
    row = next(row for row in CANDIDATES if row.flag == flag)
    if row.is_stronger(setting):
        return Audited(
            flag,
            None,
            0.0,
            f"it has the stronger guarantee {setting.pure}: audit it with --epsilon",
        )
    try:
        built = row.built(setting)
    except (InapplicableError, WorkloadSizeError, MissingOracle) as error:
        return Audited(flag, None, 0.0, str(error))
    if setting.exact_only and not isinstance(built.guarantee.sampler, Exact):
        return Audited(flag, None, 0.0, f"its sampler is {built.guarantee.sampler}")
    return built


class Allowance:
    """The work that the audits of several mechanisms may still take, in the units of `Budget`."""

    def __init__(self) -> None:
        from geomdp.advice.setting import Budget

        self.whole = self.left = Budget.of_seconds(SECONDS).work

    def spent_on(self, flag: str, mechanism: Mechanism, trials: int) -> Mechanism | Audited:
        """The mechanism, whose audit is then paid for, or the reason why it is left out.

        The first audit may take twice the allowance, because fewer audits than one are none.
        """
        from geomdp.mechanisms import AdditiveMechanism

        more = f"to audit it, add --mechanism {flag}, or --all"
        if not isinstance(mechanism, AdditiveMechanism):
            return Audited(flag, None, 0.0, f"each of its outputs takes a full run: {more}")
        work = noise_audit_work(mechanism.workload, trials)
        if work > (2 * self.whole if self.left == self.whole else self.left):
            seconds = work / self.whole * SECONDS
            return Audited(flag, None, 0.0, f"its audit takes about {seconds:.2g} s: {more}")
        self.left -= work
        return mechanism


def noise_audit_work(workload: Workload, trials: int) -> float:
    """Operations of `audit_noise`, in the units of `Budget`, from the sizes of the workload."""
    from geomdp.advice.costs import PRODUCT_SPEED, breadth_work
    from geomdp.audit.additive import CHANGES
    from geomdp.audit.neighbours import MOST_AXES, STARTS, STEPS

    m = workload.n_queries
    directions = (STEPS + 1) * (3 * min(m, MOST_AXES) + 2 * STARTS)
    products = (CHANGES + 1) * LEARNING * 2.0 * trials * m * min(m, trials)
    return directions * breadth_work(workload) + products / PRODUCT_SPEED


def audited_mechanism(
    flag: str,
    mechanism: Mechanism,
    trials: int,
    level: float,
    seed: int | None,
    learners: Sequence[Learner],
) -> Audited:
    """The mechanism with the result of its audit, which draws outputs from the seed `seed`."""
    from geomdp.audit import audit_mechanism

    begun = time.perf_counter()
    result = audit_mechanism(
        mechanism, trials=trials, without_density=learners, level=level, rng=seed
    )
    return Audited(flag, result, time.perf_counter() - begun)
