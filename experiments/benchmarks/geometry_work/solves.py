"""Times of projections, membership tests and Gaussian widths: geomdp and other solvers (peers)."""

from __future__ import annotations

import functools
import math

import numpy as np

import geomdp as gd
from experiments.benchmarks.geometry_work.instances import (
    DIRECTIONS,
    GEOMDP,
    TARGETS,
    Array,
    Config,
    Work,
    draw_vertices,
    line,
    timed,
)
from experiments.benchmarks.peers.projections import (
    nearest_by_quadprog,
    nearest_by_scs,
    separator_by_linprog,
)
from experiments.engine.cells import Row
from geomdp.geometry import Projector

#: Relative gap asked of geomdp's projections.
GAP = 1e-12
#: Largest allowed distance to the answer of a solver that is exact up to rounding, in units of the
#: scale of the vertices. This distance is sqrt(GAP).
EXACT = 1e-6
#: Largest allowed distance, in the same unit, for SCS at its default tolerances.
LOOSE = 0.3
#: Largest number of vertices times dimension for which SCS is timed. With 20000 vertices in
#: dimension 500, one solve takes a minute.
SCS_ENTRIES = 10**7


def scale_of(vertices: Array) -> float:
    """Largest distance of a vertex from the mean.

    A relative gap is a gap divided by the square of this distance.
    """
    return float(np.linalg.norm(vertices - vertices.mean(axis=0), axis=1).max())


def draw_target(vertices: Array, work: Work, rng: np.random.Generator) -> Array:
    """A point about as far from the centre as the vertices, or a point just beyond the surface.

    For `Work.FULL_SUPPORT` bisection finds the surface in a random direction, and the target is
    about 0.1% farther from the centre than the surface. The nearest point is then a mixture of
    almost as many vertices as there are dimensions.
    """
    centre = vertices.mean(axis=0)
    direction = (vertices - centre).std(axis=0) * rng.standard_normal(vertices.shape[1])
    if work is not Work.FULL_SUPPORT:
        return centre + direction
    projector = Projector(gd.bodies.VPolytope(vertices))
    low, high = 0.0, 1.0
    while high - low > 1e-3 * high:
        middle = (low + high) / 2
        point = centre + middle * direction
        outside = (projector.nearest(point, tol=GAP).point != point).any()
        low, high = (low, middle) if outside else (middle, high)
    return centre + 1.001 * high * direction


def time_projection(config: Config, rng: np.random.Generator) -> list[Row]:
    """Seconds of `gd.project` on targets, and of the peers on the first of these targets.

    A call before the timing prepares the vertices, so this set-up is not in the seconds.
    """
    vertices = draw_vertices(config, rng)
    body, scale = gd.bodies.VPolytope(vertices), scale_of(vertices)
    targets = [draw_target(vertices, config.work, rng) for _ in range(config.operations)]
    gd.project(body, targets[0], tol=GAP)
    found = [timed(lambda t=target: gd.project(body, t, tol=GAP)) for target in targets]
    gap = max(result.gap for result, _ in found) / scale**2
    rows = [line(GEOMDP, [seconds for _, seconds in found], gap, GAP)]
    peers = {"quadprog, dual form": (nearest_by_quadprog, EXACT)}
    if vertices.size <= SCS_ENTRIES and config.work is Work.PROJECTION:
        peers["CVXPY with SCS"] = (nearest_by_scs, LOOSE)
    for method, (solve, allowed) in peers.items() if config.peer_operations else ():
        seconds, worst = [], 0.0
        for target, (result, _) in list(zip(targets, found, strict=True))[: config.peer_operations]:
            point, taken = timed(functools.partial(solve, vertices, target))
            seconds.append(taken)
            nearest = target if point is None else point
            worst = max(worst, float(np.linalg.norm(nearest - result.point)) / scale)
        rows.append(line(method, seconds, worst, allowed))
    return rows


def time_many_targets(config: Config, rng: np.random.Generator) -> list[Row]:
    """Seconds per target for 100 noisy copies of one true answer, together and one by one.

    The targets are like the releases of a mechanism in 100 trials: one mix of ten vertices plus
    Gaussian noise. The noise is about as long as the largest distance of a vertex from the mean.
    """
    vertices = draw_vertices(config, rng)
    body, scale = gd.bodies.VPolytope(vertices), scale_of(vertices)
    truth = rng.dirichlet(np.ones(10)) @ vertices[rng.integers(len(vertices), size=10)]
    noise = rng.standard_normal((TARGETS, config.dimension))
    targets = truth + scale / np.sqrt(config.dimension) * noise
    Projector(body).nearest_many(targets[:1], tol=GAP)
    together, seconds = timed(lambda: Projector(body).nearest_many(targets, tol=GAP))
    gap = max(result.gap for result in together) / scale**2
    rows = [line(GEOMDP, [seconds / TARGETS], gap, GAP)]
    solves = {
        "gd.project, one by one": lambda t: gd.project(body, t, tol=GAP).point,
        "quadprog, dual form": lambda t: nearest_by_quadprog(vertices, t),
    }
    for method, solve in solves.items():
        each, worst = [], 0.0
        for target, result in list(zip(targets, together, strict=True))[: config.peer_operations]:
            point, taken = timed(functools.partial(solve, target))
            each.append(taken)
            worst = max(worst, float(np.linalg.norm(point - result.point)) / scale)
        rows.append(line(method, each, worst, EXACT))
    return rows


def time_membership(config: Config, rng: np.random.Generator) -> list[Row]:
    """Seconds to decide whether a point is inside, and to separate it by a halfspace if not."""
    vertices = draw_vertices(config, rng)
    body = gd.bodies.VPolytope(vertices)
    centre, spread = vertices.mean(axis=0), (vertices - vertices.mean(axis=0)).std(axis=0)
    sizes = np.resize([0.1, 0.5, 1.0, 3.0], config.operations)
    points = centre + sizes[:, None] * spread * rng.standard_normal(
        (config.operations, config.dimension)
    )
    body.separate(points[0])
    found = [timed(lambda p=point: body.separate(p)) for point in points]
    violated = max(
        (float((vertices @ half.normal).max() - half.offset) for half, _ in found if half),
        default=0,
    )
    rows = [line(GEOMDP, [seconds for _, seconds in found], max(violated, 0.0), 1e-9)]
    inside = [half is None for half, _ in found]
    peers = {
        "linprog": lambda p: separator_by_linprog(vertices, p)[0] <= 1 + 1e-7,
        "quadprog, dual form": lambda p: nearest_by_quadprog(vertices, p) is None,
    }
    for method, holds in peers.items():
        answers = [timed(functools.partial(holds, p)) for p in points[: config.peer_operations]]
        wrong = sum(a != b for (a, _), b in zip(answers, inside, strict=False))
        rows.append(line(method, [seconds for _, seconds in answers], wrong, 0))
    return rows


def time_width(config: Config, rng: np.random.Generator) -> list[Row]:
    """Seconds per direction of the width estimate; the peer takes products with all vertices."""
    workload = gd.workloads.Marginals(config.dimension, 2)
    body = gd.bodies.WorkloadPolytope(workload)
    directions = rng.standard_normal((config.operations, workload.n_queries))
    gd.gaussian_width(body, rng=rng, samples=2)
    estimate, seconds = timed(lambda: gd.gaussian_width(body, rng=rng, samples=config.operations))
    # Certificate: the width divided by a bound on the width of any N points. The bound is
    # sqrt(2 ln N) times the largest length of a point.
    centred = math.sqrt(workload.n_queries) / 2  # answers are within 1/2 of (1/2, .., 1/2)
    most = centred * math.sqrt(2 * config.dimension * math.log(2))
    rows = [line(GEOMDP, [seconds / config.operations], estimate.value / most, 1)]
    if config.peer_operations:
        answers = gd.workloads.explicit_answers(workload).T.copy()
        each, worst = [], 0.0
        for start in range(0, config.peer_operations, DIRECTIONS):
            part = directions[start : start + DIRECTIONS]
            (low, high), taken = timed(lambda p=part: extremes(p @ answers))
            each.append(taken / len(part))
            worst = max(worst, float(np.abs(body.support(part) - high).max()))
            worst = max(worst, float(np.abs(body.support(-part) + low).max()))
        rows.append(line("dense product", each, worst, 1e-9 * workload.n_queries))
    return rows


def extremes(scores: Array) -> tuple[Array, Array]:
    """Smallest and largest number of each row."""
    return scores.min(axis=1), scores.max(axis=1)
