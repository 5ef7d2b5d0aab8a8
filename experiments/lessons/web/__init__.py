"""The lessons as static pages: what a page shows, and the scripts that draw its figures."""
