"""The public seed that most parts of the library share."""

from __future__ import annotations

#: Seed of most simulations, random starts and random maps that depend on public objects only
#: (bodies, workloads, n, epsilon). The fixed seed makes repeated calls give the same result. The
#: noise of a release never comes from this seed. The number is the name of the library in ASCII. It
#: is not 0, because users often draw data with seed 0, and random directions must not equal these
#: data.
PUBLIC_SEED = int.from_bytes(b"geomdp", "big")
