"""Tables of a graphical model fitted to noisy tables, by mbi (private-pgm)."""

import warnings
from functools import cache
from types import ModuleType

import numpy as np
import numpy.typing as npt

from geomdp.workloads import MarginalTables

Array = npt.NDArray[np.float64]

#: Steps of mirror descent. On the tables compared, three times as many steps change the errors by
#: less than 2%.
STEPS = 100


@cache
def _mbi() -> ModuleType:
    """The module `mbi` in double precision; single precision stalls on large counts."""
    import jax

    jax.config.update("jax_enable_x64", True)
    with warnings.catch_warnings():
        # The warnings concern the cache of compiled programs, which does not matter here.
        warnings.simplefilter("ignore")
        import mbi

    return mbi


def fitted_tables(workload: MarginalTables, noisy: Array, n: int) -> Array:
    """Cells of all tables of a workload under a graphical model of n records, fitted to noisy ones.

    `noisy` (m,) and the result (m,) hold the cells divided by n. The model has a clique for every
    table, and all cliques have the same weight. The total n is public.
    """
    mbi = _mbi()
    names = [f"c{column}" for column in range(len(workload.levels))]
    tables = [tuple(names[i] for i in table) for table in workload.tables]
    measured = [
        mbi.LinearMeasurement(n * noisy[place], table, 1.0)
        for table, place in zip(tables, workload.slices, strict=True)
    ]
    domain = mbi.Domain(names, list(workload.levels))
    descent = mbi.estimation.MirrorDescent()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = descent.estimate(domain, measured, known_total=float(n), iters=STEPS)
    found = [np.asarray(model.project(list(table)).datavector()).ravel() for table in tables]
    return np.concatenate(found) / n
