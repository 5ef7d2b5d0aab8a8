"""Workloads whose answers to one element are whole numbers, so that sums over records are exact."""

from __future__ import annotations

import functools

import numpy as np
import scipy.sparse as sp

from geomdp.workloads.base import Workload
from geomdp.workloads.boolean import Marginals, Parities
from geomdp.workloads.chosen_tables import ChosenTables
from geomdp.workloads.explicit import Explicit
from geomdp.workloads.finite import Histogram, Prefixes, Ranges
from geomdp.workloads.tables import MarginalTables


@functools.singledispatch
def has_whole_answers(workload: Workload) -> bool:
    """Whether Q(x) is whole for every element x, and `totals` adds whole numbers only.

    Sums below 2^53 are then exact in float64. False for workloads of which this is not known.
    """
    del workload
    return False


@has_whole_answers.register(Marginals)
@has_whole_answers.register(Parities)
@has_whole_answers.register(MarginalTables)
@has_whole_answers.register(Histogram)
@has_whole_answers.register(Prefixes)
@has_whole_answers.register(Ranges)
def _(workload: Workload) -> bool:
    del workload
    return True


@has_whole_answers.register
def _(workload: Explicit) -> bool:
    entries = sp.find(workload.matrix)[2]  # those that are not 0
    return bool((entries == np.rint(entries)).all())


@has_whole_answers.register
def _(workload: ChosenTables) -> bool:
    return bool((workload.table_weights == np.rint(workload.table_weights)).all())
