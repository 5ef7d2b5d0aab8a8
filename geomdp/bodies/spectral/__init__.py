"""Bodies of symmetric matrices defined by their eigenvalues, and exact samplers for them."""
