"""Public names for constants of Gaussian vectors and of the unit ball."""

from geomdp.bodies.gaussian_vectors import mean_gaussian_norm as mean_gaussian_norm
from geomdp.bodies.norm_balls.unit_ball import unit_ball_volume as unit_ball_volume
