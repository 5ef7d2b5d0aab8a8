"""Convex bodies and their oracles."""

from geomdp.bodies.balls import Ball, CrossPolytope
from geomdp.bodies.block_elliptope import BlockElliptope
from geomdp.bodies.boxes import Box
from geomdp.bodies.containment import check_contains_neighbours
from geomdp.bodies.cvx_body import CvxBody
from geomdp.bodies.difference import difference_body, symmetric_hull
from geomdp.bodies.ellipsoids import Ellipsoid
from geomdp.bodies.elliptope import Elliptope
from geomdp.bodies.hpolytope import HPolytope
from geomdp.bodies.intersection import Intersection
from geomdp.bodies.linear_image import LinearImage
from geomdp.bodies.linear_programs import SolverError
from geomdp.bodies.lp_balls import LpBall
from geomdp.bodies.mapped_elliptope import MappedElliptope
from geomdp.bodies.moment_bodies import (
    cosine_moment_body,
    grid_moment_body,
    grid_moment_distance,
)
from geomdp.bodies.noise_bodies import NamedBody
from geomdp.bodies.oracles import (
    Body,
    Facets,
    Halfspace,
    HasExtremePoint,
    HasGauge,
    HasSupport,
    MissingOracle,
)
from geomdp.bodies.polar import Polar
from geomdp.bodies.products import Product
from geomdp.bodies.psd_box import PsdBox
from geomdp.bodies.relaxations import MomentRelaxation, moment_relaxation
from geomdp.bodies.sensitivity import (
    exact_noise_bodies,
    neighbour_body,
    sensitivity_polytope,
)
from geomdp.bodies.simplex import Simplex, SimplexDifference
from geomdp.bodies.slabs import SlabBody
from geomdp.bodies.spectral import Spectraplex
from geomdp.bodies.symmetric_spectral import NuclearBall, SpectraplexDifference
from geomdp.bodies.symmetrised import Difference, SymmetricHull
from geomdp.bodies.symmetrised_box import SymmetrisedBox
from geomdp.bodies.table_moments import TableMoments
from geomdp.bodies.transforms import Scaled, Shifted
from geomdp.bodies.triangulated import TriangulatedPolytope
from geomdp.bodies.vpolytope import VPolytope
from geomdp.bodies.workload_polytope import WorkloadPolytope

__all__ = [
    "Ball",
    "BlockElliptope",
    "Body",
    "Box",
    "CrossPolytope",
    "CvxBody",
    "Difference",
    "Ellipsoid",
    "Elliptope",
    "Facets",
    "HPolytope",
    "Halfspace",
    "HasExtremePoint",
    "HasGauge",
    "HasSupport",
    "Intersection",
    "LinearImage",
    "LpBall",
    "MappedElliptope",
    "MissingOracle",
    "MomentRelaxation",
    "NamedBody",
    "NuclearBall",
    "Polar",
    "Product",
    "PsdBox",
    "Scaled",
    "Shifted",
    "Simplex",
    "SimplexDifference",
    "SlabBody",
    "SolverError",
    "Spectraplex",
    "SpectraplexDifference",
    "SymmetricHull",
    "SymmetrisedBox",
    "TableMoments",
    "TriangulatedPolytope",
    "VPolytope",
    "WorkloadPolytope",
    "check_contains_neighbours",
    "cosine_moment_body",
    "difference_body",
    "exact_noise_bodies",
    "grid_moment_body",
    "grid_moment_distance",
    "moment_relaxation",
    "neighbour_body",
    "sensitivity_polytope",
    "symmetric_hull",
]
