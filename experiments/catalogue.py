"""The scripts, by module name: what `list` shows and `reproduce` runs."""

SCRIPTS = (
    "experiments.jl_error_vs_n",
    "experiments.benchmarks.accuracy",
    "experiments.benchmarks.sparse",
)
