"""The strategies that are tried for a workload, and the best of them."""

from __future__ import annotations

from collections.abc import Sequence

from geomdp._validation import require_type
from geomdp.mechanisms.base import checked_workload
from geomdp.mechanisms.strategies.design import (
    CellNoise,
    Design,
    LaplaceCells,
    SimplexCells,
    Strategy,
)
from geomdp.mechanisms.strategies.histograms import (
    MAX_LISTED,
    MAX_OPTIMISED,
    Haar,
    PIdentity,
    SoftBins,
    Tree,
)
from geomdp.mechanisms.strategies.tables import WeightedMarginals, WeightedSigns
from geomdp.privacy import Adjacency
from geomdp.workloads import MarginalTables, SparseQueries, Workload
from geomdp.workloads.base import MAX_ENTRIES, WorkloadSizeError
from geomdp.workloads.structure import sign_products
from geomdp.workloads.tables import TableQueries

#: Largest universe for which a p-identity strategy is tried by default. The search for a universe
#: of this size takes two seconds on one core.
MAX_QUICK = 1 << 8


def laplace_strategies(workload: Workload) -> list[Strategy]:
    """Strategies with Laplace noise that apply to `workload`, simplest first."""
    return _strategies(workload, LaplaceCells())


def hierarchical_strategies(workload: Workload) -> list[Strategy]:
    """Strategies that apply to `workload`, with the K-norm noise of `SimplexCells`."""
    return _strategies(workload, SimplexCells())


def _strategies(workload: Workload, cells: CellNoise) -> list[Strategy]:
    workload = enumerable(workload)
    laplace = isinstance(cells, LaplaceCells)
    found: list[Strategy] = []
    if isinstance(workload, TableQueries):
        found.append(WeightedMarginals(cells))
    if laplace and sign_products(workload) is not None:
        found.append(WeightedSigns())
    if isinstance(workload, MarginalTables):
        # `WeightedMarginals` already tries the histogram, the table of all columns, if it has at
        # most 2^20 cells.
        return found
    if _listed(workload, MAX_LISTED):
        found.append(Tree(cells))
        if laplace:
            found.append(Haar())
    if _listed(workload, MAX_OPTIMISED):
        found.append(SoftBins(cells=cells))
    if laplace and _listed(workload, MAX_QUICK):
        found.append(PIdentity())
    return found


def _listed(workload: Workload, largest: int) -> bool:
    size = workload.universe.size
    return size is not None and 2 <= size <= largest and size * workload.n_queries <= MAX_ENTRIES


def best_design(strategies: Sequence[Strategy], workload: Workload, adjacency: Adjacency) -> Design:
    """The design with the least energy E ||noise||_2^2 of all designs that determine all answers.

    ``ValueError`` if none does; ``WorkloadSizeError`` if the workload is too large for all.
    """
    workload = enumerable(workload)
    designs, refusals = [], ["no strategy is known for it"]
    for strategy in strategies:
        require_type(strategy, Strategy, "strategies")
        try:
            designs.append(strategy.design(workload, adjacency))
        except WorkloadSizeError as error:
            refusals.append(str(error))
    if not designs:
        raise WorkloadSizeError(f"workload has no strategy: {refusals[-1]}, got {workload!r}")
    *better, last = sorted(designs, key=lambda design: design.energy)
    # If answers differ by many orders of magnitude, a design can lose the smallest answers to
    # rounding. Then the next best design is tried.
    for design in better:
        try:
            design.check_answers()
        except ValueError:
            continue
        return design
    last.check_answers()
    return last


def enumerable(workload: Workload) -> Workload:
    """Return `workload`; sparse queries become queries on a finite universe."""
    checked_workload(workload)
    return workload.explicit if isinstance(workload, SparseQueries) else workload
