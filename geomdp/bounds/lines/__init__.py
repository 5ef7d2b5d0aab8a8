"""Lower bounds from one private estimation in each of several orthogonal directions."""
