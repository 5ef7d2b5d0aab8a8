"""The commands `geomdp smooth` and their inputs."""
