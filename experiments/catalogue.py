"""The scripts, by module name: what `list` shows and `reproduce` runs."""

SCRIPTS = (
    "experiments.jl_error_vs_n",
    "experiments.recursive_noise",
    "experiments.covariance_error",
    "experiments.gaussian_widths",
    "experiments.relaxation_widths",
    "experiments.lower_worst_case",
    "experiments.lower_marginals",
    "experiments.sparse_vector",
    "experiments.update_bounds",
    "experiments.online_error",
    "experiments.conjunctions",
    "experiments.sparse_project",
    "experiments.smooth_error_vs_n",
    "experiments.bracket_table",
    "experiments.benchmarks.accuracy",
    "experiments.benchmarks.sparse",
    "experiments.benchmarks.geometry",
    "experiments.benchmarks.engine",
)
