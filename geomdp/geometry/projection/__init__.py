"""Euclidean projection on convex bodies with a duality-gap certificate."""

from geomdp.geometry.projection.projector import Projector, project, project_image

__all__ = ["Projector", "project", "project_image"]
