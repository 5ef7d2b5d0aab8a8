"""What every other package may use: linear algebra, bisection, the public seed."""
