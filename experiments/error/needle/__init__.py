"""The JL mechanism on a needle in a thin ball: the problem, and the claims of its figure."""
