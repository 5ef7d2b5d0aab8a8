"""One script per figure, the engine that runs them, and benchmarks: python -m experiments."""

import os

# Before NumPy is loaded: cells run beside each other, one thread each, and a sum that many threads
# share would depend on their number in its last digits. What the caller has set stays.
for _name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS"):
    os.environ.setdefault(_name, "1")
