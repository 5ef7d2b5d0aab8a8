"""The cone mechanism: exact noise from any body that holds the answers and can be sampled."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import scipy.sparse as sp

from geomdp._typing import FloatArray
from geomdp.bodies import (
    Box,
    Elliptope,
    PsdBox,
    Simplex,
    Spectraplex,
    TableMoments,
    sensitivity_polytope,
)
from geomdp.bodies.base import Body
from geomdp.mechanisms.additive_noise.pure import PureMechanism
from geomdp.mechanisms.additive_noise.real_records import RealRecords
from geomdp.mechanisms.additive_noise.units import ScaledAnswers, Units, is_upright_box
from geomdp.noise.cone import ConeNoise
from geomdp.noise.exact import noise_vector, wishart_difference
from geomdp.noise.exact.table_maps import cell_map
from geomdp.privacy import Adjacency
from geomdp.workloads import BoxSecondMoment, Workload
from geomdp.workloads.structure.sign_products import sign_products
from geomdp.workloads.structure.table_contrasts import table_contrasts


class Cone(PureMechanism):
    """Noise from the cone over a body that holds all answer vectors (X-CONE).

    M(X) = (sum of Q(x) + Z) / n, Z = T (r_1 (U_1 - a) - r_2 (U_2 - a)) with U_i uniform on a body
    C, r_i ~ Gamma(r + 1) with rate epsilon / 2 under replace-one and epsilon under add/remove, r
    the dimension of C; a is its centroid under replace-one, where the number of records is
    public, and 0 under add/remove. Where answers are c + T q with q in C, add/remove adds
    (r_1 - r_2) c to Z. C is

    * the elliptope of order d + 1 for all tables of at most two of d two-level columns, for
      `Marginals` with k <= 2, and of order d for `Parities` with k = 2: the products of signs lie
      in it and T maps them to the answers (X-LKJ);
    * the moment body of tables for all tables of at most two categorical columns
      (`TableMoments`, which is that elliptope where all columns have two levels);
    * {M psd, M_ii <= 1} for second moments of records in [-1, 1]^d (X-PSDBOX);
    * the sensitivity polytope itself where it has an exact sampler.

    Parameters and errors are those of `AdditiveMechanism`; `privacy` is a `PureDP`. A workload for
    which no body C is known is a ``ValueError``.

    Notes
    -----
    Privacy: for all neighbouring X, X' and measurable S,
    Pr[M(X) in S] <= e^epsilon Pr[M(X') in S], in real arithmetic. The vectors r_i (U_i, 1) have
    density proportional to e^(-rate t) on the cone over C, t the last coordinate; a shift by the
    lifted answer (q, 1) of one record multiplies it by at most e^rate because the cone shrinks.
    Replacing a record shifts one vector by its new and the other by its old answer, adding one
    shifts one vector only; M is a function of the shifted vectors and of what is public. The
    sampler is exact.

    Error: exactly sqrt(8 (r + 1)(r + 2) E||T (U - a)||^2 / m) / (epsilon n) per query under
    replace-one.

    References
    ----------
    Formula sheet X-CONE, X-LKJ, X-PSDBOX; for categorical columns see `TableMoments`.
    """

    def _prepare(self) -> None:
        lift = cone_lift(self.workload)
        if lift is None:
            raise ValueError(
                "workload must be tables of at most two columns, linear in pairwise sign products, "
                "or have a sensitivity polytope with an exact sampler (box, ball, simplex, "
                f"spectraplex), got {self.workload!r}"
            )
        self._lift = lift
        self.set_up()

    @cached_property
    def noise(self) -> ConeNoise:
        """Distribution of Z, on sums of answer vectors."""
        return self._noise_over(self._lift.body, self._lift.matrix, self._lift.constant)

    def _noise_over(
        self,
        body: Body,
        matrix: sp.csr_array | None = None,
        constant: FloatArray | None = None,
    ) -> ConeNoise:
        epsilon, origin = self.privacy.epsilon, np.zeros(body.dimension)
        if self.adjacency is Adjacency.REPLACE_ONE:
            # Where answers are mapped, T takes the centroid to 0.
            centre = body.centroid() if matrix is None else origin
            return ConeNoise(body, epsilon / 2, centre, matrix)
        # One record more also adds the constant c of the answers c + T q. Their number is not
        # public, so the noise of the lifted coordinate must cover it.
        return ConeNoise(body, epsilon, origin, matrix, constant)

    def _proved_as_computed(self) -> bool:
        # Floats hold the maps exactly: entries are +-2^-k for signs, whole coefficients on cells
        # for tables. Simplices and boxes need no map: answers are their vertices.
        body, matrix = self._lift.body, self._lift.matrix
        if isinstance(body, TableMoments) and matrix is not None:
            return cell_map(body.levels, matrix, self._lift.constant) is not None
        return isinstance(body, Elliptope | Simplex | Box)

    def _on_real_records(self) -> RealRecords | None:
        # These bodies hold x x^T for all records and have no parameter that is rounded. The centre
        # multiplies public noise only, so any number will do.
        noise, body = self.noise, self._lift.body
        if isinstance(body, Spectraplex):
            entries = wishart_difference(body.d, noise.rate, float(noise.centre[0]))
            return RealRecords(self.workload, noise_vector(noise), entries=entries)
        return RealRecords(self.workload, noise_vector(noise)) if isinstance(body, PsdBox) else None

    def _in_units(self, units: Units) -> ScaledAnswers | None:
        if is_upright_box(self._lift.body):
            box = Box(units.rows.min(axis=0), units.rows.max(axis=0))
            return units.with_noise(self._noise_over(box))
        body = sensitivity_polytope(units.workload)
        if not isinstance(body, Simplex | Box):
            return None
        return units.with_noise(self._noise_over(body))


@dataclass(frozen=True)
class Lift:
    """Answers as constant + T q with q in a body C that has an exact sampler."""

    #: C, with a centroid.
    body: Body
    #: T (m, k); None for the identity.
    matrix: sp.csr_array | None = None
    #: The constant (m,); None for 0.
    constant: FloatArray | None = None


def cone_lift(workload: Workload) -> Lift | None:
    """The body C of a workload and its map to the answers, where known."""
    signs = sign_products(workload)
    if signs is not None:
        return Lift(
            Elliptope(signs.order), signs.matrix, signs.constant if signs.constant.any() else None
        )
    contrasts = table_contrasts(workload)
    if contrasts is not None:
        return Lift(TableMoments(contrasts.levels), contrasts.matrix, contrasts.constant)
    if isinstance(workload, BoxSecondMoment):
        return Lift(PsdBox(workload.d))
    body = sensitivity_polytope(workload)
    if body.implements(Body.sample_uniform) and body.implements(Body.second_moment):
        return Lift(body)
    return None
