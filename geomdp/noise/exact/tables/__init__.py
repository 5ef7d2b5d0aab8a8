"""Uniform points of the moment body of tables: float64 refuses tries, balls evaluate the rest."""
