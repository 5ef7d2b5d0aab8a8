"""Constants of Gaussian vectors and of the unit ball, which closed forms of bodies need too."""

from geomdp.bodies.gaussian_vectors import mean_gaussian_norm as mean_gaussian_norm
from geomdp.bodies.norm_balls.unit_ball import unit_ball_volume as unit_ball_volume
