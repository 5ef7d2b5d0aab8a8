"""Constructors of convex bodies, and of projectors, random maps and samplers."""

from __future__ import annotations

import cvxpy as cp
import numpy as np

from geomdp import bodies, geometry
from geomdp.geometry import sampling
from tests.hostile.constructors.row import Constructor, of

TRIANGLE = np.array([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0]])
BALL = bodies.Ball(2)

BODIES: dict[str, Constructor] = {
    "bodies.Ball": of(bodies.Ball, "dimension:whole radius:positive", dimension=2, radius=1.0),
    "CrossPolytope": of(
        bodies.CrossPolytope, "dimension:whole radius:positive", dimension=2, radius=1.0
    ),
    "LpBall": of(
        bodies.LpBall,
        "dimension:whole radius:positive exponent:positive",
        dimension=2,
        radius=1.0,
        exponent=3.0,
    ),
    "Box": of(bodies.Box, "lower:vector upper:vector", lower=-np.ones(2), upper=np.ones(2)),
    "SymmetrisedBox": of(bodies.SymmetrisedBox, "upper:vector", upper=np.ones(2)),
    "bodies.Ellipsoid": of(bodies.Ellipsoid, "root:matrix", root=np.eye(2)),
    "CvxBody": of(
        bodies.CvxBody,
        "dimension:whole",
        dimension=2,
        build=lambda variable: [cp.norm(variable) <= 1],
        solver=None,
    ),
    "Elliptope": of(bodies.Elliptope, "order:whole", order=3),
    "PsdBox": of(bodies.PsdBox, "d:whole", d=2),
    "TableMoments": of(bodies.TableMoments, levels=[2, 3], violation=1.0),
    "Spectraplex": of(bodies.Spectraplex, "d:whole", d=3),
    "SpectraplexDifference": of(bodies.SpectraplexDifference, "d:whole", d=3),
    "NuclearBall": of(bodies.NuclearBall, "d:whole", d=3),
    "Scaled": of(bodies.Scaled, "body:object factor:positive", body=BALL, factor=2.0),
    "LinearImage": of(bodies.LinearImage, "matrix:matrix body:object", matrix=np.eye(2), body=BALL),
    "Intersection": of(bodies.Intersection, "bodies:object", bodies=[BALL, bodies.Ball(2, 2.0)]),
    "Product": of(bodies.Product, "bodies:object", bodies=[BALL, BALL]),
    "Difference": of(bodies.Difference, "body:object", body=BALL),
    "HPolytope": of(
        bodies.HPolytope,
        "normals:matrix offsets:vector",
        normals=np.vstack([np.eye(2), -np.eye(2)]),
        offsets=np.ones(4),
    ),
    "Simplex": of(bodies.Simplex, "vertices:matrix", vertices=TRIANGLE),
    "SimplexDifference": of(bodies.SimplexDifference, "vertices:matrix", vertices=TRIANGLE),
    "SlabBody": of(
        bodies.SlabBody, "directions:matrix widths:vector", directions=np.eye(2), widths=np.ones(2)
    ),
    "TriangulatedPolytope": of(bodies.TriangulatedPolytope, "vertices:matrix", vertices=TRIANGLE),
    "VPolytope": of(bodies.VPolytope, "vertices:matrix", vertices=TRIANGLE),
    "Projector": of(geometry.Projector, "body:object", body=BALL, matrix=np.eye(2)),
    "SparseMap": of(geometry.SparseMap, "density:positive", density=0.5),
    "ExactSampler": of(sampling.ExactSampler, "body:object", body=BALL),
    "CoordinateHitAndRun": of(sampling.CoordinateHitAndRun, "sweeps:whole", sweeps=1),
}
