"""What do the bodies look like? Widths, volumes, samplers and maps."""
