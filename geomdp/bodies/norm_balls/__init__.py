"""Balls of norms: l_p balls, boxes, ellipsoids, and hulls made from them."""
