"""The one public seed of the library."""

from __future__ import annotations

#: Seed of every simulation, random start and random map that depends on public objects alone
#: (bodies, workloads, n, epsilon), so that repeated calls give the same result. No release draws
#: from this stream. The number is the name of the library in ASCII and not 0, because users draw
#: data with seed 0, and directions equal to these data would not be generic.
PUBLIC_SEED = int.from_bytes(b"geomdp", "big")
