"""The one public seed of the library."""

from __future__ import annotations

#: Seed of every simulation, random start and random map that depends on public objects alone
#: (bodies, workloads, n, epsilon): the same question gets the same answer, and no release shares
#: its stream. The name in ASCII; an unusual number, because directions equal to data that a user
#: drew with seed 0 would not be generic.
PUBLIC_SEED = int.from_bytes(b"geomdp", "big")
