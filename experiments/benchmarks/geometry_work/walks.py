"""Chords, K-norm draws, effective samples and spectral draws, timed beside their peers."""

from __future__ import annotations

import functools
import math

import numpy as np

import geomdp as gd
from experiments.benchmarks.geometry_work.instances import (
    CHAINS,
    GEOMDP,
    LOCKSTEP,
    Array,
    Config,
    Work,
    draw_vertices,
    line,
    timed,
)
from experiments.benchmarks.peers.chords import (
    DUAL,
    PRIMAL,
    KeptColumns,
    KeptRows,
    chord_by_linprog,
)
from experiments.benchmarks.peers.matrix_chords import EigenvalueChords
from experiments.benchmarks.peers.samplers import PROPOSALS, hopsy_draws
from experiments.engine.cells import Row
from experiments.engine.statistics import LEVEL, quantile
from geomdp.geometry.sampling import HitAndRun, bulk_ess, measure_mixing, run_chains
from geomdp.geometry.sampling.chains import Mixing
from geomdp.geometry.sampling.samplers import Walk, prepared_walk

#: Number of steps before chords are timed. After them the points are near the boundary, as uniform
#: points are.
WARM_UP = 5
#: Largest allowed difference between the ends of a chord and the ends that a linear program with
#: tolerance 1e-9 finds, divided by the length of the shortest chord.
CHORD_TOLERANCE = 1e-7
#: Largest factor by which a random polytope is stretched along an axis, divided by the smallest.
STRETCH = 1000.0
#: Largest number of steps to measure the correlation time of hit-and-run on a matrix body.
MATRIX_STEPS = {Work.SPECTRAPLEX: 4096, Work.SPECTRAPLEX_DIFFERENCE: 128}
#: Number of steps of hit-and-run on a matrix body before its points are compared with our draws.
STEPS_APART = 64


def symmetric_hull(vertices: Array) -> gd.bodies.Body:
    """The body conv(+-v_i), where the v_i are the rows of `vertices`."""
    return gd.bodies.SymmetricHull(gd.bodies.VPolytope(vertices))


def time_chords(config: Config, rng: np.random.Generator) -> list[Row]:
    """Seconds to find both ends of one chord, at the points of a hit-and-run walk."""
    vertices = draw_vertices(config, rng)
    body = symmetric_hull(vertices)
    points, seconds = np.zeros((CHAINS, config.dimension)), []
    for step in range(WARM_UP + config.operations):
        before, directions = points, rng.standard_normal(points.shape)
        (low, high), taken = timed(lambda p=points, u=directions: body.chord(p, u))
        points = before + (low + (high - low) * rng.random(CHAINS))[:, None] * directions
        if step >= WARM_UP:
            seconds.append(taken / CHAINS)
    ends = before + high[:, None] * directions
    rows = [line(GEOMDP, seconds, np.abs(body.gauge(ends) - 1).max(), 1e-9)]
    if not config.peer_operations:
        return rows
    peers = {
        "linprog": lambda p, u: chord_by_linprog(vertices, p, u),
        "HiGHS columns, dual": KeptColumns(vertices, DUAL).chord,
        "HiGHS columns, primal": KeptColumns(vertices, PRIMAL).chord,
        "HiGHS rows, dual": KeptRows(vertices, DUAL).chord,
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


def time_draws(config: Config, rng: np.random.Generator) -> list[Row]:
    """Seconds of one effective K-norm draw: seconds of a hit-and-run step times correlation time.

    The time of a step is taken to be the time of its chord, for geomdp and for each peer. Peers
    find chords only. A walk with a peer's chords would mix in the same way.
    """
    body = symmetric_hull(draw_vertices(config, rng))
    walk = prepared_walk(body, rng)
    mixing = pilot(walk, 32, config.operations, rng)
    chords = time_chords(config, rng)
    for row in chords:
        row["seconds"] = float(row["seconds"] or 0) * mixing.correlation_time
        row["slowest"] = float(row["slowest"] or 0) * mixing.correlation_time
    return chords


def pilot(walk: Walk, chains: int, limit: int, rng: np.random.Generator) -> Mixing:
    """Correlation time of a walk from points spread over the body."""
    return measure_mixing(walk.kernel, walk.body, walk.starts(chains, rng), rng, limit=limit)


def facets(config: Config, rng: np.random.Generator) -> Array:
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


def time_effective_samples(config: Config, rng: np.random.Generator) -> list[Row]:
    """Seconds per effective sample of coordinate hit-and-run and of the walks of hopsy.

    Rounding and burn-in are not timed. The effective sample size is the smallest over the
    coordinates. One state is stored per sweep, which is m steps of hopsy in dimension m.
    """
    normals = facets(config, rng)
    body = gd.bodies.HPolytope(normals, np.ones(len(normals)))
    walk = prepared_walk(body, rng)
    start = run_chains(
        walk.kernel, walk.body, walk.starts(LOCKSTEP, rng), rng, draws=1, burn_in=40
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
    for method in PROPOSALS if config.peer_operations else ():
        states, taken = hopsy_draws(
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


def time_spectral_draws(config: Config, rng: np.random.Generator) -> list[Row]:
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
        walked = EigenvalueChords(body) if config.work is Work.SPECTRAPLEX else body
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


def difference_of_squares(states: Array, draws: Array) -> tuple[float, float]:
    """Difference of the mean squared norms, and the limit for chance, both relative to `draws`."""
    walked, drawn = (states**2).sum(axis=1), (draws**2).sum(axis=1)
    stderr = math.sqrt(walked.var(ddof=1) / len(walked) + drawn.var(ddof=1) / len(drawn))
    limit = quantile(LEVEL / 2, len(walked)) * stderr
    return abs(walked.mean() / drawn.mean() - 1), limit / drawn.mean()
