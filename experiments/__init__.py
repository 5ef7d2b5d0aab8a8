"""One script per figure, the engine that runs them, and benchmarks: python -m experiments."""
