"""Known facts about every body that the library exports; contract tests run over this table.

To add a body, add one row to `BODIES`. `tests/bodies/test_contracts.py` fails for an exported body
that has no row, and for a row whose list of verbs is wrong.
"""

import itertools
import math
from collections.abc import Callable
from dataclasses import dataclass

import cvxpy as cp
import numpy as np

import geomdp.bodies as gb
from geomdp._numerics.linalg import svec
from geomdp._typing import FloatArray
from geomdp.bodies.sensitivity import WorkloadPolytope
from geomdp.bodies.symmetrised import SymmetricHull
from geomdp.workloads import Marginals, MarginalTables, Parities

#: Relative accuracy that a body of each kind promises.
CLOSED_FORM = 1e-10
LINEAR_PROGRAM = 5e-9
CONIC_PROGRAM = 1e-5

#: Verbs (methods of bodies). A row lists the verbs that its body implements.
VERBS = (
    "support", "gauge", "facets", "project", "sample_uniform", "second_moment", "volume",
    "vertex_list", "cvxpy_constraints",
)  # fmt: skip


@dataclass(frozen=True)
class BodyCase:
    """One body, and facts about this body."""

    name: str  # Test identifier
    build: Callable[[float], gb.Body]  # The body enlarged by the given factor about 0
    rank: int  # Dimension of the affine hull
    verbs: str  # The names in `VERBS` that the body implements
    tolerance: float = CLOSED_FORM  # Relative accuracy of the results
    #: At scale 1: volume in the affine hull, E ||U||^2 for U uniform in the body, Gaussian width.
    volume: float | None = None
    spread: float | None = None
    width: float | None = None
    membership: bool = True  # Whether the body has a test of membership

    def has(self, verb: str) -> bool:
        """Whether the row lists the verb."""
        return verb in self.verbs.split()


def cases_with(*verbs: str) -> list[BodyCase]:
    """Rows that have all the given verbs; "membership" is allowed as a verb."""
    return [
        case
        for case in BODIES
        if all(case.membership if verb == "membership" else case.has(verb) for verb in verbs)
    ]


def gaussian(*shape: int, seed: int = 0) -> FloatArray:
    """A fixed array of standard normal numbers."""
    return np.random.default_rng(seed).standard_normal(shape)


def cube(dimension: int) -> FloatArray:
    """The corners of [0, 1]^dimension."""
    return np.array(list(itertools.product((0.0, 1.0), repeat=dimension)))


def enlarged(body: gb.Body) -> Callable[[float], gb.Body]:
    """For a body of fixed size: the body itself at scale 1, and a `Scaled` body at others."""
    return lambda s: body if s == 1 else gb.Scaled(body, s)


#: Four affinely independent points around 0 in R^3, and three in R^5 whose plane misses 0.
AROUND_0 = np.vstack([np.eye(3), -np.ones(3)])
PLANE = gaussian(3, 5, seed=1) + 2
#: A 3 x 3 orthogonal matrix, a tall matrix of full column rank, and the corners of [-1, 1]^3.
TURN = np.linalg.qr(gaussian(3, 3, seed=2))[0]
TALL = gaussian(5, 3, seed=3)
SIGNS = 2 * cube(3) - 1
#: Half-spaces of a cube cut at a corner, and of a rectangle in R^3 with last coordinate 0.3.
CUT = (np.vstack([np.eye(3), -np.eye(3), np.ones((1, 3))]), np.array([1, 1, 1, 1, 1, 1, 1.5]))
FLAT = (np.vstack([np.eye(3), -np.eye(3)]), np.array([1, 2, 0.3, 1, 1, -0.3]))
SLABS = np.vstack([np.eye(3), gaussian(6, 3, seed=4)])
SLAB_WIDTHS = np.linspace(0.5, 2, 9)

ROUND = "support gauge project sample_uniform second_moment volume cvxpy_constraints"
NO_GAUGE, NO_PROJECTION = ROUND.replace("gauge ", ""), ROUND.replace("project ", "")
SPECTRAL, FACETED = f"{ROUND} facets", f"{NO_PROJECTION} facets"
LP_BALL = "support gauge facets sample_uniform second_moment volume cvxpy_constraints"
SOLID = "support sample_uniform second_moment volume vertex_list cvxpy_constraints"
LISTED = "support vertex_list cvxpy_constraints"

MU_3 = math.sqrt(2) * math.gamma(2) / math.gamma(1.5)  # mean norm of a Gaussian in R^3 (GEN-4)
#: Gaussian width of a segment of length 1 (GEN-4). Spectral bodies of order 1 are segments
#: (JL-COV).
SEGMENT = 1 / math.sqrt(2 * math.pi)

BODIES: tuple[BodyCase, ...] = (
    BodyCase("ball", lambda s: gb.Ball(3, s), 3, ROUND, volume=4 * math.pi / 3, spread=3 / 5,
             width=MU_3),
    BodyCase("segment as a ball", lambda s: gb.Ball(1, 2 * s), 1, ROUND, volume=4, spread=4 / 3),
    BodyCase("cross-polytope", lambda s: gb.CrossPolytope(4, s), 4, ROUND, volume=2 / 3,
             spread=8 / 30),
    # The volume is (2 Gamma(4/3))^3 / Gamma(2). The spread is 3 E U_1^2, whose formula has the
    # factors Gamma(3/p) and Gamma(2), both 1 for p = 3.
    BodyCase("l_3 ball", lambda s: gb.LpBall(3, 3, s), 3, LP_BALL,
             volume=8 * math.gamma(4 / 3) ** 3, spread=3 / (math.gamma(1 / 3) * math.gamma(8 / 3))),
    BodyCase("l_1.5 ball", lambda s: gb.LpBall(1.5, 4, 2 * s), 4, LP_BALL),
    BodyCase("l_1 ball as an l_p ball", lambda s: gb.LpBall(1, 4, s), 4, LP_BALL, volume=2 / 3,
             spread=8 / 30),
    BodyCase("unit cube", lambda s: gb.Box(np.zeros(3), np.full(3, s)), 3, NO_GAUGE, volume=1,
             spread=1, width=3 * SEGMENT),
    BodyCase("lopsided box", lambda s: gb.Box([-s, -2 * s], [3 * s, s]), 2, ROUND, volume=12),
    BodyCase("symmetric box", lambda s: gb.Box.centred(s * np.arange(1, 5)), 4, ROUND, spread=10),
    BodyCase("flat box", lambda s: gb.Box([-s, 0, -s], [s, 0, 2 * s]), 2, ROUND, volume=6),
    BodyCase("ellipsoid", lambda s: gb.Ellipsoid(s * gaussian(3, 3)), 3, NO_PROJECTION),
    BodyCase("flat ellipsoid", lambda s: gb.Ellipsoid(s * TALL), 3, NO_PROJECTION),
    BodyCase("point as an ellipsoid", lambda s: gb.Ellipsoid(np.zeros((2, 1))), 0, NO_PROJECTION,
             volume=1, spread=0, width=0),
    BodyCase(
        "product",
        lambda s: gb.Product([gb.Box([-s], [2 * s]), gb.Ball(2, s), gb.CrossPolytope(2, 3 * s)]),
        5,
        ROUND,
        volume=3 * math.pi * 18,
    ),
    BodyCase("product of lopsided boxes",
             lambda s: gb.Product([gb.Box([0, s], [2 * s, 2 * s]), gb.Simplex(s * cube(2)[:3])]), 4,
             "support sample_uniform second_moment volume cvxpy_constraints", volume=1),
    BodyCase("simplex around 0", lambda s: gb.Simplex(s * AROUND_0), 3, SOLID + " gauge facets",
             volume=4 / 6),
    # The vertices are reversed, because a simplex with vertices np.eye(4) also has `project`.
    BodyCase("standard simplex", lambda s: gb.Simplex(s * np.eye(4)[::-1]), 3, SOLID, volume=2 / 6,
             spread=0.4),
    BodyCase("unit simplices, projected by sorting",
             enlarged(gb.Product([gb.Simplex(np.eye(3)), gb.Simplex(np.eye(1)),
                                  gb.Simplex(np.eye(4))])), 5, NO_GAUGE),
    BodyCase("triangle in space", lambda s: gb.Simplex(s * PLANE), 2, SOLID),
    BodyCase("point as a simplex", lambda s: gb.Simplex(s * np.ones((1, 2))), 0, SOLID, spread=2),
    BodyCase("simplex difference", lambda s: gb.SimplexDifference(s * AROUND_0), 3, FACETED,
             volume=20 * 4 / 6),
    BodyCase("standard simplex difference", lambda s: gb.SimplexDifference(s * np.eye(5)), 4,
             FACETED, volume=70 * math.sqrt(5) / 24, spread=4 * 4 * 9 / (5 * 36)),
    BodyCase("Gaussian polytope", lambda s: gb.VPolytope(s * gaussian(30, 4)), 4,
             LISTED + " gauge facets", LINEAR_PROGRAM),
    BodyCase("0/1 cube with repeated corners",
             lambda s: gb.VPolytope(s * np.vstack([cube(4), cube(4), np.full((1, 4), 0.5)])), 4,
             LISTED, LINEAR_PROGRAM, width=4 * SEGMENT),
    BodyCase("sign cube by vertices", lambda s: gb.VPolytope(s * SIGNS), 3,
             LISTED + " gauge facets", LINEAR_PROGRAM, width=6 * SEGMENT),
    BodyCase("flat polytope off 0", lambda s: gb.VPolytope(s * (cube(3) @ TALL.T + 3)), 3, LISTED,
             LINEAR_PROGRAM),
    BodyCase("flat polytope around 0", lambda s: gb.VPolytope(s * (SIGNS @ TALL.T)), 3,
             LISTED + " gauge facets", LINEAR_PROGRAM),
    BodyCase("segment by vertices", lambda s: gb.VPolytope(s * PLANE[:2]), 1, LISTED,
             LINEAR_PROGRAM),
    BodyCase("point by vertices", lambda s: gb.VPolytope(s * PLANE[:1]), 0, LISTED, LINEAR_PROGRAM),
    BodyCase("cut cube", lambda s: gb.HPolytope(CUT[0], s * CUT[1]), 3,
             "support gauge facets cvxpy_constraints", LINEAR_PROGRAM),
    BodyCase("rectangle in space", lambda s: gb.HPolytope(FLAT[0], s * FLAT[1]), 2,
             "support cvxpy_constraints", 5e-9),
    BodyCase("slabs", lambda s: gb.SlabBody(SLABS, s * SLAB_WIDTHS), 3,
             "support gauge facets cvxpy_constraints", LINEAR_PROGRAM),
    BodyCase("triangulated sign cube", lambda s: gb.TriangulatedPolytope(s * SIGNS), 3,
             SOLID + " gauge facets", volume=8, spread=1, width=6 * SEGMENT),
    BodyCase("triangulated flat", lambda s: gb.TriangulatedPolytope(s * (cube(3) @ TALL.T + 3)), 3,
             SOLID),
    BodyCase("triangulated segment",
             lambda s: gb.TriangulatedPolytope(s * np.array([[-1.0, 0], [1, 0], [0.5, 0]])), 1,
             SOLID + " gauge facets", volume=2, spread=1 / 3),
    BodyCase("spectraplex of order 1", enlarged(gb.Spectraplex(1)), 1, NO_GAUGE, volume=1,
             spread=1 / 3, width=SEGMENT),
    BodyCase("spectraplex of order 3", enlarged(gb.Spectraplex(3)), 6, NO_GAUGE),
    BodyCase("spectraplex difference", enlarged(gb.SpectraplexDifference(3)), 6, SPECTRAL),
    BodyCase("spectraplex difference of order 1", enlarged(gb.SpectraplexDifference(1)), 1,
             SPECTRAL, volume=2, spread=1 / 3, width=2 * SEGMENT),
    BodyCase("nuclear ball", enlarged(gb.NuclearBall(3)), 6, SPECTRAL),
    BodyCase("nuclear ball of order 2", enlarged(gb.NuclearBall(2)), 3, SPECTRAL,
             volume=math.pi / math.sqrt(2), spread=5 / 12),
    BodyCase("spectraplex difference of order 2", enlarged(gb.SpectraplexDifference(2)), 3,
             SPECTRAL, volume=7 * math.pi / (3 * math.sqrt(2)), spread=109 / 140),
    BodyCase("elliptope", enlarged(gb.Elliptope(3)), 3,
             "support gauge facets project sample_uniform second_moment volume cvxpy_constraints",
             tolerance=2e-9, volume=math.pi**2 / 2, spread=3 / 4),
    # The elliptope of order 3 has volume pi^2 / 2 and entries of variance 1/4. Here two
    # coordinates are divided by sqrt(2), and one by 2.
    BodyCase("moments of tables", enlarged(gb.TableMoments([2, 2])), 3,
             "sample_uniform second_moment volume", volume=math.pi**2 / 8, spread=5 / 16),
    BodyCase("moments of tables, cut", enlarged(gb.TableMoments([3, 2], violation=0.0)), 5,
             "sample_uniform"),
    BodyCase("relaxed 2-way marginals", enlarged(gb.moment_relaxation(Marginals(3, 2))), 3,
             "support", CONIC_PROGRAM, membership=False),
    BodyCase("relaxed tables", enlarged(gb.moment_relaxation(MarginalTables([2, 2], 2))), 3,
             "support project cvxpy_constraints", tolerance=2e-9),
    BodyCase("relaxed 3-way parities", enlarged(gb.moment_relaxation(Parities(4, 3))), 4, "support",
             CONIC_PROGRAM, membership=False),
    # The volume is 2^(6/4) vol(E_3) (2/4)^3. The spread is the sum of three E M_ii^2 = 4/8 and
    # three E 2 M_ij^2 = 2 a^2 / 4, where a = E M_ii = 4/6.
    BodyCase("psd box", enlarged(gb.PsdBox(3)), 6,
             "sample_uniform second_moment volume cvxpy_constraints",
             volume=2**1.5 * math.pi**2 / 2 / 8, spread=3 * 4 / 8 + 3 * 2 * (4 / 6) ** 2 / 4),
    BodyCase("psd box of order 1", enlarged(gb.PsdBox(1)), 1,
             "sample_uniform second_moment volume cvxpy_constraints", volume=1, spread=1 / 3),
    BodyCase("turned and stretched cube",
             lambda s: gb.LinearImage(2 * s * TURN, gb.Box.centred(np.ones(3))), 3, ROUND,
             volume=64, spread=4, width=12 * SEGMENT),
    BodyCase("image of a simplex", lambda s: gb.LinearImage(s * TALL, gb.Simplex(AROUND_0)), 3,
             SOLID + " gauge facets"),
    BodyCase("image one-to-one on a flat body only",
             lambda s: gb.LinearImage(s * np.eye(3, 4), gb.Simplex(np.eye(4))), 3, SOLID,
             volume=1 / 6),
    BodyCase("shadow of a polytope",
             lambda s: gb.LinearImage(s * gaussian(2, 4, seed=7), gb.VPolytope(gaussian(30, 4))), 2,
             "support vertex_list cvxpy_constraints", membership=False),
    BodyCase("scaled", lambda s: gb.Scaled(gb.CrossPolytope(3), 2 * s), 3, ROUND, volume=64 / 6,
             spread=1.2),
    BodyCase("scaled flat polytope", lambda s: gb.Scaled(gb.VPolytope(SIGNS @ TALL.T), 3 * s), 3,
             LISTED + " gauge facets", LINEAR_PROGRAM),
    BodyCase("difference of a Gaussian polytope",
             lambda s: gb.Difference(gb.VPolytope(s * gaussian(12, 3))), 3,
             "support gauge facets cvxpy_constraints", LINEAR_PROGRAM),
    BodyCase("difference of a flat polytope off 0",
             lambda s: gb.Difference(gb.VPolytope(s * (cube(3) @ TALL.T + 3))), 3,
             "support gauge facets cvxpy_constraints", LINEAR_PROGRAM),
    BodyCase("difference known by extreme points",
             enlarged(gb.Difference(WorkloadPolytope(Parities(4, 2)))), 6, "support",
             LINEAR_PROGRAM),
    BodyCase("symmetric hull of a polytope off 0",
             lambda s: SymmetricHull(gb.VPolytope(s * (cube(3) @ TALL.T + 3))), 4,
             LISTED + " gauge facets", LINEAR_PROGRAM),
    BodyCase("symmetric hull of a cube",
             lambda s: SymmetricHull(gb.Box(np.zeros(3), np.full(3, s))), 3, "support",
             LINEAR_PROGRAM),
    BodyCase("symmetrised box", lambda s: gb.SymmetrisedBox(s * np.array([1.0, 2, 0.5])), 3,
             FACETED, volume=4, spread=(1 + 4 + 0.25) / 4),
    BodyCase("workload polytope", enlarged(WorkloadPolytope(MarginalTables([2, 3, 2], 2))), 9,
             "support", LINEAR_PROGRAM),
    BodyCase("ball cut by a cube and slabs",
             lambda s: gb.Intersection([gb.Ball(3, 1.2 * s), gb.Box.centred(s * np.ones(3)),
                                        gb.SlabBody(SLABS, s * SLAB_WIDTHS)]), 3,
             "gauge cvxpy_constraints", LINEAR_PROGRAM),
    BodyCase("lopsided box cut by a triangle",
             lambda s: gb.Intersection(
                 [gb.Box([-s, -s], [2 * s, s]),
                  gb.Simplex(s * np.array([[0, 0], [3, 1], [3, -1.0]]))]), 2,
             "cvxpy_constraints"),
    BodyCase("user's conic body",
             lambda s: gb.CvxBody(3, lambda x: [cp.norm(x, 2) <= s, cp.norm1(x) <= 1.5 * s]), 3,
             "support gauge project cvxpy_constraints", CONIC_PROGRAM),
    BodyCase("user's flat conic body",
             lambda s: gb.CvxBody(3, lambda x: [cp.norm(x, 2) <= s, cp.sum(x) == s]), 2,
             "support project cvxpy_constraints", CONIC_PROGRAM),
    BodyCase("user's spectraplex",
             lambda s: gb.CvxBody(3, lambda x: spectraplex_constraints(x, s), solver=cp.SCS), 3,
             "support gauge project cvxpy_constraints", CONIC_PROGRAM),
)  # fmt: skip


def spectraplex_constraints(variable: cp.Variable, scale: float) -> list[cp.Constraint]:
    """The spectraplex of order 2 enlarged by `scale`, written by hand in svec coordinates."""
    matrix = cp.Variable((2, 2), PSD=True)
    units = np.array([[[1, 0], [0, 0]], [[0, 1], [1, 0]], [[0, 0], [0, 1]]], dtype=float)
    rows = [cp.trace(matrix @ unit) / np.linalg.norm(unit) for unit in units]
    assert np.allclose(svec(units).max(axis=1), np.linalg.norm(units, axis=(1, 2)))
    return [cp.hstack(rows) == variable, cp.trace(matrix) <= scale]
