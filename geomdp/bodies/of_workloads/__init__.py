"""The bodies of a workload: sensitivity polytope, neighbour body, relaxations."""
