"""Cone noise of the moment body of tables, cut by inequalities that all records satisfy."""

from __future__ import annotations

import itertools
from functools import cached_property

import numpy as np

from geomdp._numerics.seeds import PUBLIC_SEED
from geomdp._typing import FloatArray
from geomdp.bodies import TableMoments
from geomdp.cache import recalled
from geomdp.mechanisms.additive_noise.pure import PureMechanism
from geomdp.noise import ConeNoise, PairedNoise
from geomdp.noise.exact.table_maps import cell_map
from geomdp.privacy import Adjacency
from geomdp.workloads.structure.table_contrasts import table_contrasts

#: Share of the uncut body that is kept: a draw takes 100 tries, most refused early. Measured for 8
#: columns of 2 to 6 levels, the error is 0.951 of that of the uncut body at a share of 0.1, 0.928
#: at 0.01 and 0.920 at 0.001.
KEPT = 0.01
#: Public draws from which the limit is taken: 20 of them lie below it.
PILOT_DRAWS = 2048
#: Largest number of triples of events of three columns: 2^13 are checked in a fraction of a
#: millisecond. With more, the inequalities are seldom violated or cut little of a body of that
#: dimension.
MAX_TRIPLES = 1 << 13
#: Largest number of multiplications of a try, L^2 P with L events and P contrasts, for two columns
#: of 32 levels: a draw then takes 13 ms. At 100 levels it would take 0.4 s, minutes for all public
#: draws, and these would hold gigabytes.
MAX_WORK = 1 << 18


class TightCone(PureMechanism):
    """Noise from the moment body of tables, cut to a hundredth of its volume by rejection.

    Answers are c + T q with q in K, a body `TableMoments` cut by a limit on the total violation of
    cell and triangle inequalities, which records do not violate. The limit leaves about 1% of the
    volume, or more where it is 0; it is found by public draws. K is not cut where a draw would take
    long: with more than 2^13 triples of events of three columns, or columns of many levels (two of
    33). M(X) = (sum of Q(x) + Z) / n, where, with U_i uniform on K and r its dimension,

    * Z = R T (U_1 - U_2), R ~ Gamma(2 r + 1, 1 / epsilon) under replace-one;
    * Z = r_1 (T U_1 + c) - r_2 (T U_2 + c), r_i ~ Gamma(r + 1, 1 / epsilon) under add/remove.

    Parameters and errors are those of `AdditiveMechanism`; `privacy` is a `PureDP`. The workload
    must be `MarginalTables` or `Marginals` with k <= 2, or `Parities` with k = 2.

    Notes
    -----
    Privacy: for all neighbouring X, X' and measurable S,
    Pr[M(X) in S] <= e^epsilon Pr[M(X') in S], in real arithmetic: R (U_1, U_2, 1) has density
    proportional to e^(-epsilon t) on the cone over K x K, which holds (q, q', 1) for the points q,
    q' of any two records. Replacing one record by the other shifts it by such a vector. K is convex
    (see `TableMoments`), so its cone is closed under sums: a shifted point of the cone is in the
    cone, where the density is at most e^epsilon times less. Over a set that is not convex, a shift
    could leave the cone, and an output could have density 0 for one of two neighbours alone. Under
    add/remove see `Cone`. The sampler is exact, by rejection.

    Error: exactly (4 (2 r + 1)(r + 1) E ||T U||^2 / m)^(1/2) / (epsilon n) per query under
    replace-one, E ||T U||^2 from 1024 public draws. Measured against `Cone`, as a ratio of errors:
    0.868 for all pair tables of 10 binary columns, 0.926 of 8 columns of 2 to 6 levels.

    References
    ----------
    Deza-Laurent 1997 (triangle inequalities of the cut polytope); formula sheet X-CONE, X-LKJ.
    """

    def _prepare(self) -> None:
        super()._prepare()
        contrasts = table_contrasts(self.workload)
        if contrasts is None:
            raise ValueError(
                "workload must be linear in tables of two columns (MarginalTables or Marginals "
                f"with k <= 2, Parities with k = 2), got {self.workload!r}"
            )
        self._contrasts = contrasts

    @cached_property
    def noise(self) -> PairedNoise | ConeNoise:
        """Distribution of Z, on sums of answer vectors; set up on first use."""
        body, epsilon = tight_table_moments(self._contrasts.levels), self.privacy.epsilon
        matrix, constant = self._contrasts.matrix, self._contrasts.constant
        if self.adjacency is Adjacency.REPLACE_ONE:
            return PairedNoise(body, epsilon, matrix)
        return ConeNoise(body, epsilon, np.zeros(body.dimension), matrix, constant)

    def _proved_as_computed(self) -> bool:
        # The map has whole coefficients on cells, and records violate none of the inequalities.
        contrasts = self._contrasts
        return cell_map(contrasts.levels, contrasts.matrix, contrasts.constant) is not None


def tight_table_moments(levels: tuple[int, ...]) -> TableMoments:
    """The moment body of tables, cut to about `KEPT` of its volume or by all inequalities."""
    body = TableMoments(levels)
    # Of two levels one is the complement of the other and brings no new triangle.
    events = [count if count > 2 else 1 for count in levels]
    triples = sum(a * b * c for a, b, c in itertools.combinations(events, 3))
    work = sum(levels) ** 2 * (sum(levels) - len(levels))
    if triples > MAX_TRIPLES or work > MAX_WORK:
        return body

    def limit() -> FloatArray:
        found = body.sample_violations(PILOT_DRAWS, np.random.default_rng(PUBLIC_SEED))
        return np.asarray(np.quantile(found, KEPT))

    # Privacy holds with any limit from 0 on, so a wrong one in the cache costs accuracy at most.
    return TableMoments(levels, float(recalled("tight-limit", (levels,), (), limit, least=0.0)))
