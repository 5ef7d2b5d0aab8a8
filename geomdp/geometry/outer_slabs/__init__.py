"""Search for slabs that contain a convex body and enclose it tightly."""
