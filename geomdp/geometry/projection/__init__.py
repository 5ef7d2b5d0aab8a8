"""Euclidean projection on convex bodies with a duality-gap certificate."""

from geomdp.geometry.projection.one_target import project, project_image
from geomdp.geometry.projection.projector import Projector

__all__ = ["Projector", "project", "project_image"]
