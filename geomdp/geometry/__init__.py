"""Computing with convex bodies: width, projection, volume, moments, sampling and JL maps."""

from geomdp.geometry.annealed_volume import annealed_volume
from geomdp.geometry.gaussian import mean_gaussian_norm, unit_ball_volume
from geomdp.geometry.isotropy import UniformMoments, covariance, isotropic_constant
from geomdp.geometry.jl import jl_map, rademacher_jl_map
from geomdp.geometry.moments import second_moment
from geomdp.geometry.projection import Projector, project, project_image
from geomdp.geometry.refinery import SlabRefinement
from geomdp.geometry.results import Diagnostics, Estimate, Projection, Samples
from geomdp.geometry.sampling import sample_uniform
from geomdp.geometry.slab_certificate import SlabCertificate, certify_slabs
from geomdp.geometry.slab_files import load_slabs, save_slabs
from geomdp.geometry.slabs import refine_slabs
from geomdp.geometry.volume import volume, volume_radius
from geomdp.geometry.width import gaussian_width
from geomdp.geometry.width_bounds import WidthBounds, gaussian_width_bounds

__all__ = [
    "Diagnostics",
    "Estimate",
    "Projection",
    "Projector",
    "Samples",
    "SlabCertificate",
    "SlabRefinement",
    "UniformMoments",
    "WidthBounds",
    "annealed_volume",
    "certify_slabs",
    "covariance",
    "gaussian_width",
    "gaussian_width_bounds",
    "isotropic_constant",
    "jl_map",
    "load_slabs",
    "mean_gaussian_norm",
    "project",
    "project_image",
    "rademacher_jl_map",
    "refine_slabs",
    "sample_uniform",
    "save_slabs",
    "second_moment",
    "unit_ball_volume",
    "volume",
    "volume_radius",
]
