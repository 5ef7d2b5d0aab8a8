"""New bodies from old ones: images, products, intersections, differences."""
