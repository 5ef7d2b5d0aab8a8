"""Structure of workloads: symmetries, maps from signs and contrasts, transforms, diameters."""
