"""One script per figure, the engine that runs the scripts, and benchmarks.

Run ``python -m experiments`` to see the commands.
"""

import os

# The libraries of linear algebra behind NumPy, and Numba, read these variables when they are
# loaded. Each cell (one configuration and one trial) computes in one thread, because several cells
# may run at the same time and the last digits of a sum depend on the number of threads. Variables
# that the caller has set are kept.
for _name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS"):
    os.environ.setdefault(_name, "1")
