"""The function that times each kind of work. An import of this module imports the peer packages."""

import functools
import math
from collections.abc import Callable
from dataclasses import replace

import numpy as np

import experiments.engine.tools as ex
import geomdp as gd
from experiments.benchmarks.geometry_work import instances
from experiments.benchmarks.geometry_work.instances import GEOMDP, Config, Work, line, timed
from experiments.benchmarks.peers import chords as walks
from experiments.benchmarks.peers import projections
from geomdp.bodies.sensitivity import WorkloadPolytope
from geomdp.bodies.symmetrised import SymmetricHull
from geomdp.geometry import Projector
from geomdp.geometry.sampling import HitAndRun, bulk_ess, run_chains
from geomdp.geometry.sampling.chains import measure_mixing
from geomdp.geometry.sampling.samplers import prepared_walk

#: Relative gap asked of geomdp's projections.
GAP = 1e-12
#: Largest allowed distance to the answer of a solver that is exact up to rounding, in units of the
#: scale of the vertices. This distance is sqrt(GAP).
EXACT = 1e-6
#: Largest allowed distance, in the same unit, for SCS at its default tolerances.
LOOSE = 0.3
#: Largest number of vertices times dimension for which SCS is timed. With 20000 vertices in
#: dimension 500, one solve takes a minute, thousands of times as long as with geomdp.
SCS_ENTRIES = 10**6


def scale_of(vertices: ex.FloatArray) -> float:
    """Largest distance of a vertex from the mean.

    A relative gap is a gap divided by the square of this distance.
    """
    return float(np.linalg.norm(vertices - vertices.mean(axis=0), axis=1).max())


def draw_target(vertices: ex.FloatArray, work: Work, rng: np.random.Generator) -> ex.FloatArray:
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


def time_projection(config: Config, rng: np.random.Generator) -> list[ex.Row]:
    """Seconds of `gd.project` on targets, and of the peers on the first of these targets."""
    vertices = instances.draw_vertices(config, rng)
    body, scale = gd.bodies.VPolytope(vertices), scale_of(vertices)
    targets = [draw_target(vertices, config.work, rng) for _ in range(config.operations)]
    gd.project(body, targets[0], tol=GAP)
    found = [timed(lambda t=target: gd.project(body, t, tol=GAP)) for target in targets]
    gap = max(result.gap for result, _ in found) / scale**2
    rows = [line(GEOMDP, [seconds for _, seconds in found], gap, GAP)]
    peers = {"quadprog, dual form": (projections.nearest_by_quadprog, EXACT)}
    if vertices.size <= SCS_ENTRIES and config.work is Work.PROJECTION:
        peers["CVXPY with SCS"] = (projections.nearest_by_scs, LOOSE)
    for method, (solve, allowed) in peers.items() if config.peer_operations else ():
        seconds, worst = [], 0.0
        for target, (result, _) in list(zip(targets, found, strict=True))[: config.peer_operations]:
            point, taken = timed(functools.partial(solve, vertices, target))
            seconds.append(taken)
            nearest = target if point is None else point
            worst = max(worst, float(np.linalg.norm(nearest - result.point)) / scale)
        rows.append(line(method, seconds, worst, allowed))
    return rows


def time_many_targets(config: Config, rng: np.random.Generator) -> list[ex.Row]:
    """Seconds per target for 100 noisy copies of one true answer, together and one by one.

    The targets are like the releases of a mechanism in 100 trials: one mix of ten vertices plus
    Gaussian noise. The noise is about as long as the largest distance of a vertex from the mean.
    """
    vertices = instances.draw_vertices(config, rng)
    body, scale = gd.bodies.VPolytope(vertices), scale_of(vertices)
    truth = rng.dirichlet(np.ones(10)) @ vertices[rng.integers(len(vertices), size=10)]
    noise = rng.standard_normal((instances.TARGETS, config.dimension))
    targets = truth + scale / np.sqrt(config.dimension) * noise
    Projector(body).nearest_many(targets[:1], tol=GAP)
    together, seconds = timed(lambda: Projector(body).nearest_many(targets, tol=GAP))
    gap = max(result.gap for result in together) / scale**2
    rows = [line(GEOMDP, [seconds / instances.TARGETS], gap, GAP)]
    solves = {
        "gd.project, one by one": lambda t: gd.project(body, t, tol=GAP).point,
        "quadprog, dual form": lambda t: projections.nearest_by_quadprog(vertices, t),
    }
    for method, solve in solves.items():
        each, worst = [], 0.0
        for target, result in list(zip(targets, together, strict=True))[: config.peer_operations]:
            point, taken = timed(functools.partial(solve, target))
            each.append(taken)
            worst = max(worst, float(np.linalg.norm(point - result.point)) / scale)
        rows.append(line(method, each, worst, EXACT))
    return rows


def time_membership(config: Config, rng: np.random.Generator) -> list[ex.Row]:
    """Seconds to decide whether a point is inside, and to separate it by a halfspace if not."""
    vertices = instances.draw_vertices(config, rng)
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
        "linprog": lambda p: projections.separator_by_linprog(vertices, p)[0] <= 1 + 1e-7,
        "quadprog, dual form": lambda p: projections.nearest_by_quadprog(vertices, p) is None,
    }
    for method, holds in peers.items():
        answers = [timed(functools.partial(holds, p)) for p in points[: config.peer_operations]]
        wrong = sum(a != b for (a, _), b in zip(answers, inside, strict=False))
        rows.append(line(method, [seconds for _, seconds in answers], wrong, 0))
    return rows


def time_width(config: Config, rng: np.random.Generator) -> list[ex.Row]:
    """Seconds per direction of the width estimate; the peer takes products with all vertices."""
    workload = gd.workloads.Marginals(config.dimension, 2)
    body = WorkloadPolytope(workload)
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
        for start in range(0, config.peer_operations, instances.DIRECTIONS):
            part = directions[start : start + instances.DIRECTIONS]
            (low, high), taken = timed(lambda p=part: extremes(p @ answers))
            each.append(taken / len(part))
            worst = max(worst, float(np.abs(body.support(part) - high).max()))
            worst = max(worst, float(np.abs(body.support(-part) + low).max()))
        rows.append(line("dense product", each, worst, 1e-9 * workload.n_queries))
    return rows


def extremes(scores: ex.FloatArray) -> tuple[ex.FloatArray, ex.FloatArray]:
    """Smallest and largest number of each row."""
    return scores.min(axis=1), scores.max(axis=1)


#: Number of steps whose chords are timed for `Work.DRAW`.
CHORDS = 10
#: Number of steps before chords are timed. After them the points are near the boundary, as uniform
#: points are.
WARM_UP = 5
#: Largest allowed difference between the ends of a chord and the ends that a linear program with
#: tolerance 1e-9 finds, divided by the length of the shortest chord.
CHORD_TOLERANCE = 1e-7
#: Largest factor by which a random polytope is stretched along an axis, divided by the smallest.
STRETCH = 1000.0
#: Largest number of steps to measure the correlation time of hit-and-run on a matrix body.
MATRIX_STEPS = {Work.SPECTRAPLEX: 1024, Work.SPECTRAPLEX_DIFFERENCE: 128}
#: Number of steps of hit-and-run on a matrix body before its points are compared with our draws.
STEPS_APART = 64


def symmetric_hull(vertices: ex.FloatArray) -> gd.bodies.Body:
    """The body conv(+-v_i), where the v_i are the rows of `vertices`."""
    return SymmetricHull(gd.bodies.VPolytope(vertices))


def time_chords(config: Config, rng: np.random.Generator) -> list[ex.Row]:
    """Seconds to find both ends of one chord, at the points of a hit-and-run walk."""
    vertices = instances.draw_vertices(config, rng)
    body = symmetric_hull(vertices)
    points, seconds = np.zeros((instances.CHAINS, config.dimension)), []
    for step in range(WARM_UP + config.operations):
        before, directions = points, rng.standard_normal(points.shape)
        (low, high), taken = timed(lambda p=points, u=directions: body.chord(p, u))
        points = before + (low + (high - low) * rng.random(instances.CHAINS))[:, None] * directions
        if step >= WARM_UP:
            seconds.append(taken / instances.CHAINS)
    ends = before + high[:, None] * directions
    rows = [line(GEOMDP, seconds, np.abs(body.gauge(ends) - 1).max(), 1e-9)]
    if not config.peer_operations:
        return rows
    peers = {
        "linprog": lambda p, u: walks.chord_by_linprog(vertices, p, u),
        "HiGHS columns, dual": walks.KeptColumns(vertices, walks.DUAL).chord,
        "HiGHS columns, primal": walks.KeptColumns(vertices, walks.PRIMAL).chord,
        "HiGHS rows, dual": walks.KeptRows(vertices, walks.DUAL).chord,
    }
    for method, chord in peers.items():
        chord(before[-1], directions[-1])  # builds and warms the model
        taken, worst = [], 0.0
        for k in range(config.peer_operations):
            ends_there, spent = timed(functools.partial(chord, before[k], directions[k]))
            taken.append(spent)
            worst = max(worst, float(np.abs(ends_there - np.array([low[k], high[k]])).max()))
        rows.append(line(method, taken, worst / float((high - low).min()), CHORD_TOLERANCE))
    return rows


def time_draws(config: Config, rng: np.random.Generator) -> list[ex.Row]:
    """Seconds of one effective K-norm draw: seconds of a hit-and-run step times correlation time.

    The time of a step is taken to be the time of its chord, for geomdp and for each peer. Peers
    find chords only. A walk with a peer's chords would mix in the same way.
    """
    body = symmetric_hull(instances.draw_vertices(config, rng))
    walk = prepared_walk(body, rng)
    starts = walk.starts(32, rng)
    mixing = measure_mixing(walk.kernel, walk.body, starts, rng, limit=config.operations)
    chords = time_chords(replace(config, operations=CHORDS), rng)
    for row in chords:
        row["seconds"] = float(row["seconds"] or 0) * mixing.correlation_time
        row["slowest"] = float(row["slowest"] or 0) * mixing.correlation_time
    return chords


def facets(config: Config, rng: np.random.Generator) -> ex.FloatArray:
    """Facet normals (N, m) of a polytope {x : <a, x> <= 1 for every normal a}."""
    if config.work is Work.BOX:
        axes = np.eye(config.dimension)
        return np.vstack([axes, -axes])
    normals = rng.standard_normal((config.count, config.dimension))
    normals /= np.linalg.norm(normals, axis=1, keepdims=True)
    if config.work is Work.POLYTOPE:
        return normals
    turn = np.linalg.qr(rng.standard_normal((config.dimension, config.dimension)))[0]
    return normals @ turn * np.geomspace(1, STRETCH, config.dimension) @ turn.T


def time_effective_samples(config: Config, rng: np.random.Generator) -> list[ex.Row]:
    """Seconds per effective sample of coordinate hit-and-run and of the walks of hopsy."""
    normals = facets(config, rng)
    body = gd.bodies.HPolytope(normals, np.ones(len(normals)))
    walk = prepared_walk(body, rng)
    start = run_chains(
        walk.kernel, walk.body, walk.starts(instances.LOCKSTEP, rng), rng, draws=1, burn_in=40
    ).last
    run, seconds = timed(
        lambda: run_chains(walk.kernel, walk.body, start, rng, draws=config.operations)
    )
    draws = walk.embed(run.draws)
    outside = (draws @ normals.T).max() - 1
    rows = [line(GEOMDP, [seconds / float(bulk_ess(draws).min())], max(outside, 0), 1e-9)]
    # The root mean square length of the states must be the same for geomdp and for each peer, up to
    # the errors of the chains.
    spread = float(np.sqrt((draws**2).sum(axis=2).mean()))
    for method in walks.PROPOSALS if config.peer_operations else ():
        states, taken = walks.hopsy_draws(
            normals,
            np.ones(len(normals)),
            method,
            config.peer_operations,
            config.dimension,
            rounded=config.work is Work.STRETCHED,
        )
        ess = bulk_ess(states)
        other = float(np.sqrt((states**2).sum(axis=2).mean()))
        allowed = 10 / math.sqrt(float(ess.min()))
        rows.append(line(method, [taken / float(ess.min())], abs(other / spread - 1), allowed))
    return rows


def time_spectral_draws(config: Config, rng: np.random.Generator) -> list[ex.Row]:
    """Seconds per uniform draw; for the peer, hit-and-run, seconds per effective sample.

    The peer walks on the same body. It finds chords by eigenvalues on the spectraplex and by
    bisection on the difference body. It starts from uniform points, so it needs no burn-in. The
    walk may be too slow to converge in `MATRIX_STEPS` steps. Its measured correlation time is then
    probably too short, which favours the peer. Its points stay uniform, so the mean of their
    squared norms must agree with the mean for our draws.
    """
    body: gd.bodies.Body = gd.bodies.Spectraplex(config.dimension)
    if config.work is Work.SPECTRAPLEX_DIFFERENCE:
        body = gd.bodies.SpectraplexDifference(config.dimension)
    gd.sample_uniform(body, 1, rng=rng)
    samples, seconds = timed(lambda: gd.sample_uniform(body, config.operations, rng=rng))
    outside = np.count_nonzero(~body.contains(samples.points[:32]))
    rows = [line(GEOMDP, [seconds / config.operations], outside, 0)]
    if config.peer_operations:
        walked = walks.EigenvalueChords(body) if config.work is Work.SPECTRAPLEX else body
        chains, kernel = config.peer_operations, HitAndRun()
        starts, limit = samples.points[:chains], MATRIX_STEPS[config.work]
        mixing = measure_mixing(kernel, walked, starts, rng, limit=limit)
        _, step = timed(lambda: kernel.step(rng, walked, starts))
        states = starts
        for _ in range(STEPS_APART):
            states = kernel.step(rng, walked, states)
        apart, allowed = difference_of_squares(states, samples.points[chains:])
        seconds_per_draw = step / chains * mixing.correlation_time
        rows.append(line("hit-and-run", [seconds_per_draw], apart, allowed))
    return rows


def difference_of_squares(states: ex.FloatArray, draws: ex.FloatArray) -> tuple[float, float]:
    """Difference of the mean squared norms, and the limit for chance, both relative to `draws`."""
    walked, drawn = (states**2).sum(axis=1), (draws**2).sum(axis=1)
    stderr = math.sqrt(walked.var(ddof=1) / len(walked) + drawn.var(ddof=1) / len(drawn))
    limit = ex.quantile(ex.LEVEL / 2, len(walked)) * stderr
    return abs(walked.mean() / drawn.mean() - 1), limit / drawn.mean()


TIMERS: dict[Work, Callable[[Config, np.random.Generator], list[ex.Row]]] = {
    Work.CHORD: time_chords,
    Work.DRAW: time_draws,
    **dict.fromkeys((Work.BOX, Work.POLYTOPE, Work.STRETCHED), time_effective_samples),
    **dict.fromkeys((Work.SPECTRAPLEX, Work.SPECTRAPLEX_DIFFERENCE), time_spectral_draws),
    **dict.fromkeys((Work.PROJECTION, Work.FULL_SUPPORT, Work.LARGE), time_projection),
    Work.MANY: time_many_targets,
    Work.MEMBERSHIP: time_membership,
    Work.WIDTH: time_width,
}
