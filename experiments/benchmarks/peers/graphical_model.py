"""Tables of a graphical model fitted to noisy tables, by mbi (private-pgm)."""

import itertools
import math
import warnings
from collections.abc import Iterator, Sequence
from functools import cache
from types import ModuleType

import numpy as np
import numpy.typing as npt

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


def fitted_tables(levels: Sequence[int], k: int, noisy: Array, n: int) -> Array:
    """Cells of all k-way tables under a graphical model of n records, fitted to noisy cells.

    `noisy` (m,) and the result (m,) hold the cells divided by n. Tables are in lexicographic order,
    and cells in row-major order. The model has a clique for every table, and all cliques have the
    same weight. The total n is public.
    """
    mbi = _mbi()
    names = [f"c{column}" for column in range(len(levels))]
    measured = [
        mbi.LinearMeasurement(n * noisy[place], tuple(names[i] for i in table), 1.0)
        for table, place in _places(levels, k)
    ]
    domain = mbi.Domain(names, list(levels))
    descent = mbi.estimation.MirrorDescent()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = descent.estimate(domain, measured, known_total=float(n), iters=STEPS)
    found = [
        np.asarray(model.project([names[i] for i in table]).datavector()).ravel()
        for table, _ in _places(levels, k)
    ]
    return np.concatenate(found) / n


def _places(levels: Sequence[int], k: int) -> Iterator[tuple[tuple[int, ...], slice]]:
    """Each table with the place of its cells among all answers."""
    start = 0
    for table in itertools.combinations(range(len(levels)), k):
        cells = math.prod(levels[i] for i in table)
        yield table, slice(start, start + cells)
        start += cells
