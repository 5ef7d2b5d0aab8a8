"""The cone mechanism: exact noise from a body that contains the answers and can be sampled."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import scipy.sparse as sp

from geomdp._typing import FloatArray
from geomdp.bodies import (
    Box,
    Elliptope,
    LinearImage,
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
from geomdp.noise.exact.tables.cell_maps import cell_map
from geomdp.privacy import Adjacency
from geomdp.workloads import BoxSecondMoment, Workload
from geomdp.workloads.structure.sign_products import sign_products
from geomdp.workloads.structure.table_contrasts import table_contrasts


class Cone(PureMechanism):
    """Noise from the cone over a body that contains all answer vectors (X-CONE).

    Let C be a body such that the answers of every record are c + T q for a point q of C. Then

        M(X) = (sum of Q(x) + Z) / n,    Z = T (r_1 (U_1 - a) - r_2 (U_2 - a)).

    The U_i are uniform on C, and the r_i have the law Gamma(D + 1), where D is the dimension of C.
    Under replace-one, the rate of the r_i is epsilon / 2. The number of records is public, so a can
    be the centroid of C. Under add/remove, the rate is epsilon, a is 0, and Z also has the term
    (r_1 - r_2) c. There are four choices of C:

    * An elliptope, the set of psd matrices R with R_ii = 1, which contains the matrices of products
      of signs (X-LKJ). Their order is d + 1 for all tables of at most two of d two-level columns,
      and for `Marginals` with k <= 2. The order is d for `Parities` with k = 2.
    * The moment body of tables (`TableMoments`), for all tables of at most two categorical columns.
      If all d columns have two levels, this body is a linear image of the elliptope of order d + 1.
    * {R psd, R_ii <= 1}, for second moments of records in [-1, 1]^d (X-PSDBOX).
    * The sensitivity polytope, if it has an exact sampler.

    Notation and parameters are those of `AdditiveMechanism`; `privacy` is a `PureDP`.
    ``ValueError`` if no body C is known.

    Notes
    -----
    Privacy: epsilon-DP in real arithmetic. The vectors r_i (U_i, 1) have density proportional to
    e^(-rate t) on the cone over C, where t is the last coordinate. Let q be the point of a record.
    A shift by (q, 1) maps the cone into itself, so the shifted density is at most e^rate times the
    original. If a record is replaced, the (q, 1) of the new record shifts the first vector, and
    that of the old record shifts the second. Each shift costs a factor of at most e^(epsilon / 2).
    Adding a record shifts only the first vector, and removing one only the second. M is a function
    of the shifted vectors and of public values. The sampler is exact.

    Error: exactly sqrt(8 (D + 1)(D + 2) E||T (U - a)||^2 / m) / (epsilon n) per query under
    replace-one, where a is the centroid of C and U is uniform on C.

    References
    ----------
    Formula sheet X-CONE, X-LKJ, X-PSDBOX; for categorical columns see `TableMoments`.

    Examples
    --------
    >>> import numpy as np
    >>> import geomdp as gd
    >>> workload = gd.workloads.Marginals(d=3, k=2)
    >>> mechanism = gd.mechanisms.Cone(workload, n=1000, privacy=gd.PureDP(1.0))
    >>> print(mechanism.predicted_rmse)
    rmse 0.004099
    >>> records = np.ones((1000, 3), dtype=int)
    >>> release = mechanism.release(records, rng=0)  # a simulation: the seed voids privacy
    >>> release.answers.round(3)
    array([0.998, 0.999, 0.999])
    """

    def _prepare(self) -> None:
        lift = cone_lift(self.workload)
        if lift is None:
            raise ValueError(
                "workload must consist of tables of at most two columns, be linear in products of "
                "two signs, be a BoxSecondMoment, or have a sensitivity polytope with an exact "
                f"sampler (box, ball, simplex, spectraplex), got {self.workload!r}"
            )
        self._lift = lift
        self.set_up()

    @cached_property
    def noise(self) -> ConeNoise:
        return self._noise_over(self._lift.body, self._lift.matrix, self._lift.constant)

    def _noise_over(
        self,
        body: Body,
        matrix: sp.csr_array | None = None,
        constant: FloatArray | None = None,
    ) -> ConeNoise:
        epsilon, origin = self.privacy.epsilon, np.zeros(body.dimension)
        if self.adjacency is Adjacency.REPLACE_ONE:
            # If there is a map T, it maps the centroid to 0, so no centre is needed.
            centre = body.centroid() if matrix is None else origin
            return ConeNoise(body, epsilon / 2, centre, matrix)
        # Each record adds c to the sum of the answers c + T q. The number of records is not public,
        # so Z needs the noise (r_1 - r_2) c on the sum of these constants.
        return ConeNoise(body, epsilon, origin, matrix, constant)

    @cached_property
    def _public(self) -> FloatArray | None:
        """Answers (m,) that are the same for all records, else NaN; public if n is public."""
        body, constant = self._lift.body, self._lift.constant
        if self.adjacency is Adjacency.ADD_REMOVE:
            return None
        if isinstance(body, Simplex):
            return np.where(body.constant, body.vertices[0], np.nan)
        if isinstance(body, LinearImage) and constant is not None:
            return np.where(body.matrix.any(axis=1), np.nan, constant)
        return None

    def set_up(self) -> None:
        super().set_up()
        _ = self._public

    @cached_property
    def answer_rounding(self) -> FloatArray:
        """As for every mechanism; 0 for means that are public."""
        rounding = super().answer_rounding
        return rounding if self._public is None else np.where(np.isnan(self._public), rounding, 0.0)

    def _restored(self, answers: FloatArray) -> FloatArray:
        # No noise hides the rounding of a public mean, so it is replaced by the exact number.
        restored = super()._restored(answers)
        if self._public is None:
            return restored
        return np.where(np.isnan(self._public), restored, self._public)

    def _proved_as_computed(self) -> bool:
        # For products of signs, the map is exact in float64, because its entries are +-2^-k. For
        # cells of tables, `cell_map` finds the exact rational map. Simplices and boxes need no map.
        body, matrix = self._lift.body, self._lift.matrix
        if isinstance(body, TableMoments) and matrix is not None:
            return cell_map(body.levels, matrix, self._lift.constant) is not None
        return isinstance(body, Elliptope | Simplex | Box)

    def _on_real_records(self) -> RealRecords | None:
        # `Spectraplex` and `PsdBox` contain x x^T for all records x. They have no parameter that
        # could be rounded. A rounded centre a is as private as the exact centre, because a occurs
        # in Z only as -(r_1 - r_2) T a. If a is not 0, the number of records is public. Then the
        # proof of privacy also holds if r_1 - r_2 is published.
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
    """The answers of a record as constant + T q, where q lies in a body C with an exact sampler."""

    #: C, with a centroid in closed form.
    body: Body
    #: T, with one row per query and one column per coordinate of C; None for the identity.
    matrix: sp.csr_array | None = None
    #: The constant (m,); None for 0.
    constant: FloatArray | None = None


def cone_lift(workload: Workload) -> Lift | None:
    """The body C of a workload and the map from C to the answers; None if no such C is known."""
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
    if not (body.implements(Body.sample_uniform) and body.implements(Body.second_moment)):
        return None
    return _without_constants(body) if isinstance(body, LinearImage) else Lift(body)


def _without_constants(body: LinearImage) -> Lift:
    """`body` without constant answers, as rounding could make their variance negative."""
    axes = np.eye(body.dimension)
    same = body.breadth(axes) == 0
    if not same.any():
        return Lift(body)
    varying = LinearImage(np.where(same[:, None], 0.0, body.matrix), body.body)
    return Lift(varying, constant=np.where(same, body.support(axes), 0.0))
