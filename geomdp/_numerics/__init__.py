"""Basic tools for all other packages: linear algebra, bisection, the public seed."""
