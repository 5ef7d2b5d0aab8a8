"""Module names of all scripts. `list` shows the scripts and `reproduce` runs them in this order."""

import difflib
from collections.abc import Sequence

#: The scripts of each folder.
FOLDERS = {
    "error": (
        "lead", "jl_error_vs_n", "jl_rates", "recursive_noise", "jl_needed", "gaussian_projection",
        "coarse_net", "every_mechanism", "advised", "sample_complexity", "weaker_guarantees",
        "many_columns", "product_queries", "entropic_fits", "accuracy_frontier", "unequal_targets",
        "impossible_cells",
    ),
    "moments": ("covariance_error", "covariance_bounds", "covariance_joint", "psd_box"),
    "lower_bounds": (
        "volume_bounds", "lower_worst_case", "lower_marginals", "bracket_table",
        "instance_optimality",
    ),
    "geometry": (
        "five_bodies", "gaussian_widths", "jl_distortion", "image_widths", "hit_and_run",
        "exact_samplers", "relaxation_widths", "volume_radii",
    ),
    "privacy": (
        "privacy_loss", "composition", "corrections", "imperfect_noise", "planted_faults",
        "falsification", "audit_power",
    ),
    "mutants": ("mutants",),
    "interactive": (
        "sparse_vector", "update_bounds", "online_error", "iterative_construction",
        "stated_accuracies",
    ),
    "sparse": ("conjunctions", "sparse_project", "laplace_tails"),
    "smooth": ("smooth_error_vs_n", "smooth_table1", "smooth_projection", "jackson_rate"),
    "benchmarks": (
        "accuracy", "accuracy_table", "accuracy_covariance", "table_strategies", "sparse",
        "geometry", "engine", "exact", "smooth", "release", "large_files",
    ),
}  # fmt: skip
SCRIPTS = tuple(
    f"experiments.{folder}.{name}" for folder, names in FOLDERS.items() for name in names
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
