"""The commands `geomdp smooth`, and what they read."""
