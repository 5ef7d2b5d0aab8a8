"""Bodies of symmetric matrices defined by eigenvalues, with exact samplers."""
