"""All planted faults by the part of the library they break, and by name."""

from __future__ import annotations

from experiments.privacy.faults.fault import Fault
from experiments.privacy.faults.of_additive_mechanisms import ADDITIVE
from experiments.privacy.faults.of_bounds import BOUNDS
from experiments.privacy.faults.of_exact_noise import EXACT_NOISE
from experiments.privacy.faults.of_few_queries import FEW_QUERIES
from experiments.privacy.faults.of_interactive_mechanisms import INTERACTIVE
from experiments.privacy.faults.of_moments import MOMENTS
from experiments.privacy.faults.of_noise import NOISE
from experiments.privacy.faults.of_privacy import PRIVACY
from experiments.privacy.faults.of_real_answers import REAL_ANSWERS
from experiments.privacy.faults.of_residuals import RESIDUALS

PARTS: dict[str, tuple[Fault, ...]] = {
    "noise": NOISE,
    "exact noise": (*EXACT_NOISE, *REAL_ANSWERS),
    "additive mechanisms": (*ADDITIVE, *FEW_QUERIES, *RESIDUALS, *MOMENTS),
    "interactive mechanisms": INTERACTIVE,
    "privacy": PRIVACY,
    "bounds": BOUNDS,
}
FAULTS: dict[str, Fault] = {fault.name: fault for part in PARTS.values() for fault in part}
