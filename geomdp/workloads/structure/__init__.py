"""What is known of a workload in advance: symmetries, transforms, diameters."""
