"""The numbers of each lesson that the script of its page draws, from a run of its notebook."""

from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.spatial import ConvexHull

Values = dict[str, Any]
#: Directions in the plane, five degrees apart; none is the normal of an edge of a lesson's polygon.
ANGLES = np.deg2rad(np.arange(0, 360, 5) + 1)
CIRCLE = np.column_stack([np.cos(ANGLES), np.sin(ANGLES)])


def polygon(body: Any) -> np.ndarray:
    """The corners of a polygon, each once."""
    return np.unique(body.extreme_point(CIRCLE).round(9) + 0.0, axis=0)


def solid(corners: np.ndarray) -> Values:
    """Corners and faces of a convex solid; each face lists the places of its corners, in order."""
    hull = ConvexHull(corners)
    faces: dict[tuple[float, ...], set[int]] = {}
    for equation, triangle in zip(hull.equations, hull.simplices, strict=True):
        faces.setdefault(tuple(equation.round(6) + 0.0), set()).update(triangle.tolist())
    return {
        "corners": corners,
        "faces": [_around(corners, sorted(face), normal[:3]) for normal, face in faces.items()],
    }


def _around(corners: np.ndarray, face: list[int], normal: tuple[float, ...]) -> list[int]:
    """The corners of a face in their order around it."""
    away = corners[face] - corners[face].mean(axis=0)
    angles = np.arctan2(away @ np.cross(normal, away[0]), away @ away[0])
    return [face[i] for i in np.argsort(angles)]


def attack(values: Values) -> Values:
    return {"counts": values["counts"], "noise": values["unit_noise"]}


def body(values: Values) -> Values:
    solids = [solid(np.asarray(shape.vertices)) for shape in values["solids"].values()]
    return {"K": polygon(values["polytope"]), "solids": solids}


def neighbours(values: Values) -> Values:
    return {"KK": polygon(values["difference"])}


def noise(values: Values) -> Values:
    a, b = np.meshgrid(np.linspace(0, np.pi, 13), np.linspace(0, np.pi, 13))
    # Corners of a solid inside of the elliptope: the entries of a correlation matrix of order 3 are
    # cosines of three angles, and on the boundary the third is the sum or difference of the others.
    sides = [np.column_stack([np.cos(x).ravel() for x in (a, b, c)]) for c in (a + b, a - b)]
    corners = np.unique(np.vstack(sides).round(4), axis=0)
    lengths, times = values["lengths"], values["times"]
    return {
        "KK": polygon(values["difference"]),
        "table": [
            [values["noises"][name].body.volume(), values["noises"][name].second_moment().value]
            for name in values["bodies"]
        ],
        "sizes": values["sizes"],
        "errors": list(values["errors"].values()),
        "clouds": [cloud.round(3) for cloud in values["clouds"].values()],
        "rmse": [np.sqrt(law.variances().mean()) for law in values["planar"].values()],
        "elliptope": solid(corners),
        "corners": values["corners"],
        "points": values["correlations"][:, :2].round(3),
        "variances": [
            values["correlations"][:n].var() if n else None for n in values["points"].values
        ],
        "columns": values["columns"],
        "pairs": list(values["pair_errors"].values()),
        "paths": [values["walks"][length, times[-1]][1].round(3) for length in lengths],
        "shares": [[values["walks"][length, time][2] for time in times] for length in lengths],
    }


def width(values: Values) -> Values:
    planar = [
        None if name == "disc" else polygon(body) for name, body in values["plane_bodies"].items()
    ]
    dimensions, most = values["dimension"].values, values["draws"].values[-1]
    directions = [np.random.default_rng(1).normal(size=(most, m)) for m in dimensions]

    def seen(name: str, m: int, through_corner: bool) -> Values:
        """The radii of a cut and the corners of a shadow, every five degrees."""
        body, rows = values["outlines"](name, m, through_corner)
        around = CIRCLE @ rows
        return {
            "cut": (1 / body.gauge(around)).round(4),
            "shadow": (body.extreme_point(around) @ rows.T).round(4),
        }

    names = values["names"]
    return {
        "plane": planar,
        "reaches": [
            [values["body_of"](name, g.shape[1]).support(g).round(4) for g in directions]
            for name in names
        ],
        "known": [[values["width_of"](name, m) for m in dimensions] for name in names],
        "seen": [
            [[seen(name, m, corner) for corner in (False, True)] for m in values["high"].values]
            for name in names
        ],
    }


def projection(values: Values) -> Values:
    return {
        "gaussians": values["gaussians"],
        "sizes": values["sizes"],
        "measured": values["measured"],
        "sigma": values["sigma_one"],
        "width": values["width"],
    }


def jl(values: Values) -> Values:
    gd, corners, queries = values["gd"], values["corners"], values["queries"]
    pairs = slice(None, None, 5)

    def images(rows: int, seed: int) -> Values:
        image = corners @ gd.jl_map(rows, queries, rng=seed).T
        after = np.linalg.norm(image[values["first"]] - image[values["second"]], axis=1)
        return {"images": after[pairs].round(2), "worst": np.abs(after - values["lengths"]).max()}

    def shadow(seed: int) -> Values:
        rows = np.linalg.qr(gd.jl_map(2, queries, rng=seed).T)[0].T
        outline = values["polytope"].extreme_point(CIRCLE @ rows) @ rows.T
        return {"outline": outline.round(3), "corners": (corners @ rows.T).round(3)}

    seeds = values["seed"].values
    return {
        "width": values["width"],
        "lengths": values["lengths"][pairs].round(2),
        "after": [[images(rows, seed) for rows in values["rows"].values] for seed in seeds],
        "shadows": [shadow(seed) for seed in seeds],
        "measured": list(values["measured"].values()),
        "zero": list(values["zero"].values()),
        "tried": values["tried"],
    }


def lower_bounds(values: Values) -> Values:
    lines, steps, losses = values["lines"], values["steps"], values["losses"]
    return {
        "steps": steps,
        "one": losses.index(1.0),
        "risks": [[lines[loss, t].risk for t in steps] for loss in losses],
        "priors": [[lines[loss, t].prior for t in steps] for loss in losses],
    }


def sparse_vector(values: Values) -> Values:
    scales = values["above_scales"]

    def unit_noise(seed: int) -> list[float]:
        """Draws of scale 1: that of the threshold, and those of the queries."""
        rng = np.random.default_rng(seed)
        return [rng.laplace(), *rng.laplace(size=values["asked"])]

    return {
        "counts": values["low_counts"],
        "scales": [scales.threshold, scales.query],
        "noise": [unit_noise(seed) for seed in values["draw"].values],
        "lengths": values["lengths"],
        "worst": list(values["worst"].values()),
        "cutoffs": values["cutoffs"],
        "failures": [values["failures"][name] for name in ("printed", "corrected")],
        "accuracies": [values["accuracies"][name] for name in ("printed", "corrected")],
        "shares": values["shares"],
        "guesses": np.round(values["guesses"], 5),
        "gaps": values["gaps"],
        "allowed": values["allowed"],
        "sizes": values["sizes"],
        "promised": [
            [values["promised"][name, count] for name in ("1-DP", "(1, 1e-6)-DP")]
            for count in values["class_sizes"]
        ],
    }


def smooth(values: Values) -> Values:
    x = np.linspace(-1, 1, 101)[:, None]
    bandwidths, degrees, fitted = values["bandwidths"], values["degrees"], values["fitted"]

    def fits(bandwidth: float, degree: int) -> list[Values]:
        return [
            {"values": fit(x).ravel().round(4), "error": fit.approximation_error}
            for fit in fitted[bandwidth, degree]
        ]

    def answers(epsilon: float, bandwidth: float) -> Values:
        release, rows = values["summaries"][epsilon], values["asked"][bandwidth]
        return {"answers": rows @ release.moments, "std": np.sqrt(rows**2 @ release.noise_std**2)}

    return {
        "solid": solid(np.asarray(values["solid"].vertices)),
        "fits": [[fits(h, t) for t in degrees] for h in bandwidths],
        "library": list(values["library"].values()),
        "degrees": degrees,
        "near": [[fitted[h, t][0].approximation_error for t in degrees] for h in bandwidths],
        "noise": [
            [[values["noise_errors"][name, h, t] for t in degrees] for h in bandwidths]
            for name in ("same noise", "weighted noise")
        ],
        "centres": values["centres"],
        "answers": [[answers(e, h) for h in bandwidths] for e in values["epsilons"]],
        "true": list(values["true_answers"].values()),
    }


def release(values: Values) -> Values:
    truths, labels = values["truths"], values["labels"]

    def shadow(cells: tuple[int, int]) -> Values:
        rows = np.zeros((2, len(values["truth"])))
        rows[[0, 1], cells] = 1
        return {
            "outline": (values["body"].extreme_point(CIRCLE @ rows) @ rows.T).round(4),
            "truth": rows @ values["truth"],
            "labels": [labels[cell] for cell in cells],
        }

    def intervals(people: int, spent: float) -> Values:
        released, truth = values["releases"][people, spent], truths[people]
        ranges = [released.interval(level) for level in values["confidence"].values]
        return {
            "released": released.answers[:12],
            "truth": truth[:12],
            "error": np.sqrt(np.mean((released.answers - truth) ** 2)),
            "predicted": released.predicted_rmse.value,
            "held": [((low <= truth) & (truth <= high)).sum() for low, high in ranges],
            "ranges": [[low[:12], high[:12]] for low, high in ranges],
        }

    return {
        "shadows": [shadow(cells) for cells in values["shown"].values],
        "mechanisms": values["alone"]["mechanism"].tolist(),
        "errors": values["alone"]["predicted_rmse"].to_numpy(float),
        "labels": labels[:12],
        "releases": [[intervals(n, e) for e in values["epsilons"]] for n in values["sizes"]],
    }


#: For each lesson the numbers of its page, from the values that its notebook defines.
NUMBERS: dict[str, Callable[[Values], Values]] = {
    each.__name__: each
    for each in (
        *(attack, body, neighbours, noise, width, projection, jl, lower_bounds, sparse_vector),
        *(smooth, release),
    )
}
