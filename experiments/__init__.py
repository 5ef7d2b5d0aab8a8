"""One script per figure, the engine that runs them, and benchmarks: python -m experiments."""

import os

# NumPy reads these variables when it is loaded. Each cell gets one thread: several cells may run at
# the same time, and the last digits of a sum depend on how many threads share it. Variables that
# the caller has set are kept.
for _name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS"):
    os.environ.setdefault(_name, "1")
