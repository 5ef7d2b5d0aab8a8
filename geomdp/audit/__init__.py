"""Statistical refutation of privacy claims: it can show a claim false, never true."""

from geomdp.audit.binomial import lower_bound, upper_bound
from geomdp.audit.refutation import AuditResult, audit, audit_event
from geomdp.audit.samplers import Event, Sampler, Score, fisher_score, repeat

__all__ = [
    "AuditResult",
    "Event",
    "Sampler",
    "Score",
    "audit",
    "audit_event",
    "fisher_score",
    "lower_bound",
    "repeat",
    "upper_bound",
]
