"""Structure that some workloads have: products of signs, contrasts of tables, symmetries."""
