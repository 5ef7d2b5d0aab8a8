"""Operations on bodies: images, products, intersections, differences."""
