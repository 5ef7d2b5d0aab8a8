"""Bodies of positive semidefinite matrices, and bodies given to a conic solver."""
