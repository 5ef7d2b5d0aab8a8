"""Whole-number noise by the K-norm mechanism, where K is a box."""

from __future__ import annotations

from functools import cached_property

from geomdp.mechanisms.few_queries.lattice import MAX_ANSWERS, listed_lattice
from geomdp.mechanisms.few_queries.lattice_mechanism import LatticeMechanism
from geomdp.mechanisms.few_queries.staircase import MOST_EPSILON
from geomdp.noise import LatticeBoxNoise
from geomdp.noise.few_queries.lattice_box import MOST_COORDINATES


class LatticeBox(LatticeMechanism):
    """Whole-number K-norm noise where K is a box, for few queries and a large epsilon.

    M(X) = (sum of Q(x) + Z) / n. Coordinate i of Z is a multiple of a whole number u_i, and
    Pr[Z = z] is proportional to exp(-epsilon k(z)), where k(z) is the largest of the
    ceil(|z_i| / w_i). Here w_i is the largest change of sum i between neighbours, and u_i is the
    greatest common divisor of all changes of sum i. If w_i is 0, Z_i is 0.

    Notation and parameters are those of `AdditiveMechanism`; `privacy` is a `PureDP`. The
    constructor also raises ``ValueError`` for more than 64 queries, for more than 2^22 answers
    (elements times queries), for an answer of modulus 2^52 or more, if the answers are not known to
    be whole numbers, or if D_1, or a sum over n records, can be 2^53 or more.

    Notes
    -----
    Privacy: epsilon-DP. Sums of neighbours differ by a possible value v of Z with |v_i| <= w_i for
    all i, and k(z + v) <= k(z) + 1. The sampler is exact, and a noisy sum is a whole number.

    Error: exact in closed form, see `LatticeBoxNoise`. For large epsilon up to 128 it falls like
    exp(-epsilon / 2); a larger epsilon gets the noise for epsilon = 128. If one record can change
    all m queries by one unit each, the error of `Geometric` falls like exp(-epsilon / (2 m)) only.
    The error of continuous K-norm noise falls like 1 / epsilon.

    References
    ----------
    Hardt-Talwar 2010 (K-norm noise); formula sheet JL-KN.

    Examples
    --------
    >>> import geomdp as gd
    >>> workload = gd.workloads.Marginals(3, 1)
    >>> for epsilon in (1.0, 10.0):
    ...     setting = {"n": 100, "privacy": gd.PureDP(epsilon)}
    ...     box = gd.mechanisms.LatticeBox(workload, **setting)
    ...     continuous = gd.mechanisms.KNorm(workload, **setting)
    ...     print(box.predicted_rmse, "/", continuous.predicted_rmse)
    rmse 0.02567 / rmse 0.02582
    rmse 0.0002858 / rmse 0.002582
    """

    def _prepare(self) -> None:
        queries = self.workload.n_queries
        if queries > MOST_COORDINATES:
            raise ValueError(
                f"workload must have 1 to {MOST_COORDINATES} queries for LatticeBox, got {queries}"
            )
        super()._prepare()
        lattice = listed_lattice(self.workload, self.adjacency)
        if lattice is None:
            raise ValueError(
                f"workload must have at most {MAX_ANSWERS} answers for LatticeBox, all below 2^52, "
                f"got {self.workload!r}"
            )
        self._lattice = lattice
        self.set_up()

    @cached_property
    def noise(self) -> LatticeBoxNoise:
        epsilon = min(self.privacy.epsilon, MOST_EPSILON)
        return LatticeBoxNoise(self._lattice.units, self._lattice.counts.tolist(), epsilon)

    @cached_property
    def grid(self) -> int:
        """0, because noise and sums are whole, and units and changes exact in float64."""
        return 0
