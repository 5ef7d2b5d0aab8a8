"""Whether a noise body given by the user covers all differences of neighbours."""

from __future__ import annotations

from functools import singledispatch

import numpy as np

from geomdp._typing import FloatArray
from geomdp.bodies import Box, HPolytope, SlabBody, neighbour_body
from geomdp.bodies.oracles import MEMBERSHIP_TOLERANCE, Body
from geomdp.privacy import Adjacency
from geomdp.workloads import Workload, explicit_answers

#: Most differences of neighbours whose gauge is taken one by one.
MAX_GAUGES = 1 << 20
#: Differences handed to the gauge at a time.
BATCH_ROWS = 4096


def check_containment(body: Body, workload: Workload, adjacency: Adjacency) -> None:
    """Raise unless `body` is proved to hold every difference of sums of neighbours.

    By facets where the body lists them: the neighbour body D lies in {y : <a_j, y> <= b_j} if and
    only if h_D(a_j) <= b_j. Otherwise by the gauge of every difference: Q(x) - Q(x') for
    replace-one, Q(x) for add/remove, of a finite universe. Both allow a relative 1e-9 for rounding.

    Parameters
    ----------
    body : Body
        Symmetric body in R^m, in units of sums.
    workload : Workload
        m queries.
    adjacency : Adjacency
        Neighbour relation.

    Raises
    ------
    ValueError
        If the body is not symmetric, lives in another dimension, leaves out a difference, or
        offers no way to prove that it does not.
    """
    if body.dimension != workload.n_queries:
        raise ValueError(
            f"body must be in dimension {workload.n_queries}, the number of queries, got {body!r}"
        )
    if not body.symmetric:
        raise ValueError(f"body must be symmetric, got {body!r}")
    inequalities = facet_inequalities(body)
    if inequalities is None:
        largest = _largest_gauge(body, workload, adjacency)
    else:
        normals, offsets = inequalities
        reach = neighbour_body(workload, adjacency).support(normals)
        largest = float((reach / offsets).max())
    if largest > 1 + MEMBERSHIP_TOLERANCE:
        raise ValueError(
            "body must hold every difference of sums of neighbours, got one with gauge "
            f"{largest:.9g} in {body!r}"
        )


@singledispatch
def facet_inequalities(body: Body) -> tuple[FloatArray, FloatArray] | None:
    """Normals (F, m) and offsets (F,) with body = {y : normals @ y <= offsets}, where listed."""
    del body
    return None


@facet_inequalities.register
def _(body: SlabBody) -> tuple[FloatArray, FloatArray] | None:
    return np.vstack([body.directions, -body.directions]), np.tile(body.widths, 2)


@facet_inequalities.register
def _(body: HPolytope) -> tuple[FloatArray, FloatArray] | None:
    return body.normals, body.offsets


@facet_inequalities.register
def _(body: Box) -> tuple[FloatArray, FloatArray] | None:
    axes = np.eye(body.dimension)
    return np.vstack([axes, -axes]), np.concatenate([body.upper, -body.lower])


def _largest_gauge(body: Body, workload: Workload, adjacency: Adjacency) -> float:
    """Largest gauge in `body` of a difference of sums of neighbours, one by one."""
    size = workload.universe.size
    replace_one = adjacency is Adjacency.REPLACE_ONE
    differences = None if size is None else size * (size - 1) // 2 if replace_one else size
    if differences is None or differences > MAX_GAUGES:
        many = "infinitely many" if differences is None else str(differences)
        raise ValueError(
            f"body must list its facets (SlabBody, HPolytope, Box) where neighbours differ in more "
            f"than {MAX_GAUGES} ways, got {body!r} and {many} differences"
        )
    if not body.implements("gauge"):
        raise ValueError(f"body must list its facets or have a gauge, got {body!r}")
    answers = explicit_answers(workload)
    if not replace_one:
        return _batched_gauge(body, answers)
    return max(
        (_batched_gauge(body, answers[i + 1 :] - answers[i]) for i in range(len(answers) - 1)),
        default=0.0,
    )


def _batched_gauge(body: Body, points: FloatArray) -> float:
    return max(
        float(body.gauge(points[start : start + BATCH_ROWS]).max())
        for start in range(0, len(points), BATCH_ROWS)
    )
