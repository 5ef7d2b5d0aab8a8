"""Euclidean projection on convex bodies with a duality-gap certificate."""

from geomdp.geometry.projection.projector import Projector, listed_vertices, project, project_image

__all__ = ["Projector", "listed_vertices", "project", "project_image"]
