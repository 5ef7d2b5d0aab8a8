"""Structure of some workloads: products of signs, residuals and contrasts, symmetries."""
