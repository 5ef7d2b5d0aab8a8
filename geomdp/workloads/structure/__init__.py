"""Structure that a workload may have: products of signs, contrasts of tables, symmetries."""
