"""Module names of all scripts. `list` shows the scripts and `reproduce` runs them in this order."""

import difflib
from collections.abc import Sequence

SCRIPTS = (
    "experiments.error.lead",
    "experiments.error.jl_error_vs_n",
    "experiments.error.jl_rates",
    "experiments.error.recursive_noise",
    "experiments.error.jl_needed",
    "experiments.error.gaussian_projection",
    "experiments.error.coarse_net",
    "experiments.error.every_mechanism",
    "experiments.error.advised",
    "experiments.error.sample_complexity",
    "experiments.error.weaker_guarantees",
    "experiments.error.many_columns",
    "experiments.error.product_queries",
    "experiments.error.entropic_fits",
    "experiments.error.accuracy_frontier",
    "experiments.error.unequal_targets",
    "experiments.error.impossible_cells",
    "experiments.moments.covariance_error",
    "experiments.moments.covariance_bounds",
    "experiments.moments.covariance_joint",
    "experiments.moments.psd_box",
    "experiments.lower_bounds.volume_bounds",
    "experiments.lower_bounds.lower_worst_case",
    "experiments.lower_bounds.lower_marginals",
    "experiments.lower_bounds.bracket_table",
    "experiments.lower_bounds.instance_optimality",
    "experiments.geometry.five_bodies",
    "experiments.geometry.gaussian_widths",
    "experiments.geometry.jl_distortion",
    "experiments.geometry.image_widths",
    "experiments.geometry.hit_and_run",
    "experiments.geometry.exact_samplers",
    "experiments.geometry.relaxation_widths",
    "experiments.geometry.volume_radii",
    "experiments.privacy.privacy_loss",
    "experiments.privacy.composition",
    "experiments.privacy.corrections",
    "experiments.privacy.imperfect_noise",
    "experiments.privacy.planted_faults",
    "experiments.privacy.falsification",
    "experiments.privacy.audit_power",
    "experiments.mutants.mutants",
    "experiments.interactive.sparse_vector",
    "experiments.interactive.update_bounds",
    "experiments.interactive.online_error",
    "experiments.interactive.iterative_construction",
    "experiments.interactive.stated_accuracies",
    "experiments.sparse.conjunctions",
    "experiments.sparse.sparse_project",
    "experiments.sparse.laplace_tails",
    "experiments.smooth.smooth_error_vs_n",
    "experiments.smooth.smooth_table1",
    "experiments.smooth.smooth_projection",
    "experiments.smooth.jackson_rate",
    "experiments.benchmarks.accuracy",
    "experiments.benchmarks.accuracy_table",
    "experiments.benchmarks.accuracy_covariance",
    "experiments.benchmarks.table_strategies",
    "experiments.benchmarks.sparse",
    "experiments.benchmarks.geometry",
    "experiments.benchmarks.engine",
    "experiments.benchmarks.exact",
    "experiments.benchmarks.smooth",
    "experiments.benchmarks.release",
    "experiments.benchmarks.large_files",
)


class UnknownScriptError(ValueError):
    """No script has this name; the message suggests similar names."""


def module_of(name: str, catalogue: Sequence[str]) -> str:
    """The module name in `catalogue` of the script with this short name; nothing is imported."""
    names = {module.rpartition(".")[2]: module for module in catalogue}
    if name in names:
        return names[name]
    # Names that contain the typed text come first, because people remember parts of names.
    near = [known for known in names if name.lower() in known]
    near += difflib.get_close_matches(name.lower(), names, n=3, cutoff=0.6)
    if not name or not near:
        raise UnknownScriptError(f"no script is called {name!r}; there are {', '.join(names)}")
    suggestions = " or ".join(dict.fromkeys(near))
    raise UnknownScriptError(f"no script is called {name!r}; did you mean {suggestions}?")
