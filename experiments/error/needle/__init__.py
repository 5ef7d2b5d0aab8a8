"""The JL mechanism on a needle in a thin ball: the problem, and what its figure claims."""
