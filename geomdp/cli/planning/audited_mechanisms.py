"""Build and audit one mechanism, or give the reason why it is left out of an audit."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from geomdp.advice.setting import Setting
    from geomdp.audit import AuditResult, Learner
    from geomdp.mechanisms import Mechanism

#: Largest number of processor seconds for one output of a mechanism. Without --mechanism, slower
#: mechanisms are left out: with the default number of trials, each of the others then draws for 5 s
#: at most. A pilot run estimates the time.
MOST_SECONDS = 0.0025
#: Number of outputs that the pilot run draws.
PILOT = 32


class Audited(NamedTuple):
    """A mechanism with the result of the audit, or with the reason why there was no audit."""

    flag: str
    result: AuditResult | None
    seconds: float
    why: str = ""


def built_candidate(flag: str, setting: Setting, named: bool) -> Mechanism | Audited:
    """The mechanism, or the reason why it is left out.

    If the user `named` the mechanism, the reason is raised as ``ValueError``.
    """
    from geomdp.advice.candidates import CANDIDATES
    from geomdp.advice.setting import InapplicableError
    from geomdp.cli.mechanism_flags import build_mechanism
    from geomdp.privacy import Exact

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
    except InapplicableError as error:
        return Audited(flag, None, 0.0, str(error))
    if setting.exact_only and not isinstance(built.guarantee.sampler, Exact):
        return Audited(flag, None, 0.0, f"its sampler is {built.guarantee.sampler}")
    return built


def affordable(flag: str, mechanism: Mechanism) -> Mechanism | Audited:
    """The mechanism, or the reason that drawing an output takes over `MOST_SECONDS`."""
    import numpy as np

    from geomdp.mechanisms import AdditiveMechanism

    rng = np.random.default_rng(0)
    mechanism.set_up()
    if isinstance(mechanism, AdditiveMechanism):
        noise = mechanism.noise

        def pilot() -> None:
            noise.sample(rng, PILOT)

    else:
        sums = mechanism.totals(mechanism.workload.universe.sample(mechanism.n, rng)).sums

        def pilot() -> None:
            for _ in range(PILOT):
                mechanism.privatise(sums, rng)

    pilot()  # The first call also compiles functions, so it is not timed.
    # Processor time, because other work on the machine must not decide what is audited.
    begun = time.process_time()
    pilot()
    seconds = (time.process_time() - begun) / PILOT
    if seconds <= MOST_SECONDS:
        return mechanism
    return Audited(
        flag,
        None,
        0.0,
        f"an output takes {1000 * seconds:.1f} ms: to audit it, add --mechanism {flag}",
    )


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
