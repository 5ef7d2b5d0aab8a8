"""Cone noise of a body that contains the answers, and K-norm noise on moment matrices of signs."""

from __future__ import annotations

import functools
import itertools
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import scipy.sparse as sp

from geomdp._numerics.linalg import svec
from geomdp._numerics.randomness import PUBLIC_SEED
from geomdp._typing import FloatArray
from geomdp.bodies import (
    Elliptope,
    LinearImage,
    NuclearBall,
    PsdBox,
    Scaled,
    Simplex,
    SpectraplexDifference,
    TableMoments,
    sensitivity_polytope,
)
from geomdp.bodies.base import Body
from geomdp.bodies.spectral import difference_moments, nuclear_moments
from geomdp.mechanisms.additive_noise.base import PureMechanism
from geomdp.mechanisms.additive_noise.certify import Origin, cone_noise, knorm
from geomdp.mechanisms.additive_noise.sums import Change
from geomdp.noise import PairedNoise
from geomdp.noise.differences import ConeNoise
from geomdp.noise.knorm import MappedNoise, Part
from geomdp.privacy import Adjacency
from geomdp.workloads import BoxSecondMoment, Workload
from geomdp.workloads.structure import SignProducts, sign_products, table_contrasts


class Cone(PureMechanism):
    """Noise from the cone over a body that contains all answer vectors (X-CONE).

    Let C be a body such that the answers of every record are c + T q for a point q of C. Then
    Z = T (r_1 (U_1 - a) - r_2 (U_2 - a)). The U_i are uniform on C, and the r_i have the law
    Gamma(D + 1), where D is the dimension of C. Under replace-one, their rate is epsilon / 2, and a
    is the centroid of C. Under add/remove, the rate is epsilon, a is 0, and Z also has the term
    (r_1 - r_2) c. C is one of these:

    * An elliptope, the set of psd matrices R with R_ii = 1, which contains the matrices of products
      of signs (X-LKJ), for tables of at most two of d two-level columns and `Marginals` with k <= 2
      (of order d + 1), and `Parities` with k = 2 (of order d).
    * The moment body of tables (`TableMoments`), for all tables of at most two categorical columns.
    * {R psd, R_ii <= 1}, for second moments of records in [-1, 1]^d (X-PSDBOX).
    * The sensitivity polytope, if it has an exact sampler.

    Notation and parameters are those of `AdditiveMechanism`. ``ValueError`` if no C is known.

    Notes
    -----
    Privacy: epsilon-DP in real arithmetic. The vectors r_i (U_i, 1) have density proportional to
    e^(-rate t) on the cone over C, where t is the last coordinate. A shift by (q, 1), for the point
    q of a record, maps the cone into itself, so the shifted density is at most e^rate times the
    original. Adding a record shifts the first vector, removing one the second, and replacing one
    both, at a factor of e^(epsilon / 2) each. M is a function of the shifted vectors and of public
    values. The sampler is exact.

    Error: exactly sqrt(8 (D + 1)(D + 2) E||T (U - a)||^2 / m) / (epsilon n) per query under
    replace-one, where a is the centroid of C and U is uniform on C.

    References
    ----------
    Formula sheet X-CONE, X-LKJ, X-PSDBOX; for categorical columns see `TableMoments`.

    Examples
    --------
    >>> import geomdp as gd
    >>> workload = gd.workloads.Marginals(d=3, k=2)
    >>> print(gd.mechanisms.Cone(workload, n=1000, privacy=gd.PureDP(1.0)).predicted_rmse)
    rmse 0.004099
    """

    origin, at_once = Origin.FORMULA, True
    noise: ConeNoise

    def law(self, change: Change) -> ConeNoise:
        lift, epsilon = self._lift, self.privacy.epsilon
        rate = epsilon / 2 if change.adjacency is Adjacency.REPLACE_ONE else epsilon
        return cone_noise(lift.body, rate, change.adjacency, lift.matrix, lift.constant, lift.cells)

    @cached_property
    def _lift(self) -> Lift:
        lift = cone_lift(self.workload)
        if lift is None:
            raise ValueError(
                "workload must consist of tables of at most two columns, be linear in products of "
                "two signs, be a BoxSecondMoment, or have a sensitivity polytope with an exact "
                f"sampler (box, ball, simplex, spectraplex), got {self.workload!r}"
            )
        return lift

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

    @property
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


@dataclass(frozen=True)
class Lift:
    """The answers of a record as constant + T q, where q lies in a body C with an exact sampler."""

    body: Body
    #: T (m, coordinates of C), or None for the identity; and the constant (m,), or None for 0.
    matrix: sp.csr_array | None = None
    constant: FloatArray | None = None
    #: For tables, the same map in whole numbers (`TableContrasts.cells`).
    cells: sp.csr_array | None = None


def cone_lift(workload: Workload) -> Lift | None:
    """The body C of a workload and the map from C to the answers; None if no such C is known."""
    signs = sign_products(workload)
    if signs is not None:
        return Lift(
            Elliptope(signs.order), signs.matrix, signs.constant if signs.constant.any() else None
        )
    contrasts = table_contrasts(workload)
    if contrasts is not None:
        moments = TableMoments(contrasts.levels)
        return Lift(moments, contrasts.matrix, contrasts.constant, contrasts.cells)
    if isinstance(workload, BoxSecondMoment):
        return Lift(PsdBox(workload.d))
    body = sensitivity_polytope(workload)
    if not (body.implements(Body.sample_uniform) and body.implements(Body.second_moment)):
        return None
    if not isinstance(body, LinearImage):
        return Lift(body)
    axes = np.eye(body.dimension)
    same = body.breadth(axes) == 0
    if not same.any():
        return Lift(body)
    # Constant answers are left out of the body, as rounding could make their variance negative.
    varying = LinearImage(np.where(same[:, None], 0.0, body.matrix), body.body)
    return Lift(varying, constant=np.where(same, body.support(axes), 0.0))


# Cone noise of the moment body of tables, cut by inequalities.

#: Share of the volume of the uncut body that is kept. For 8 columns of 2 to 6 levels, the error,
#: divided by that with the uncut body, was 0.951 with 0.1, 0.928 with 0.01 and 0.920 with 0.001.
KEPT = 0.01
#: Number of public draws; the limit on violations is the quantile `KEPT` of theirs.
PILOT_DRAWS = 2048
#: The body is not cut for more triples of levels (see `TightCone`): a cut would help little.
MAX_TRIPLES = 1 << 13
#: If one try of rejection needs more multiplications than this, the body is not cut. The limit just
#: allows two columns of 32 levels each, where a draw takes 13 ms.
MAX_WORK = 1 << 18


class TightCone(PureMechanism):
    """Noise from the moment body of tables, cut to a hundredth of its volume by rejection.

    The answers of a record are c + T q with q in K. K is the body `TableMoments`, cut by a limit on
    the total violation of cell and triangle inequalities, which all records satisfy. The limit is
    the 1% quantile over public draws, so about 1% of the volume remains (more if it is 0). K is not
    cut if there are more than 2^13 triples of levels of three columns (a cut would help little), or
    if draws take long, as for two columns of 33 levels.

    Let U_1 and U_2 be uniform on K, and r the dimension of K. Gamma has a shape and a scale.

    * Under replace-one, Z = R T (U_1 - U_2) with R ~ Gamma(2 r + 1, 1 / epsilon).
    * Under add/remove, Z = r_1 (T U_1 + c) - r_2 (T U_2 + c) with r_i ~ Gamma(r + 1, 1 / epsilon).

    Notation and parameters are those of `AdditiveMechanism`. The workload must be `MarginalTables`
    or `Marginals` with k <= 2, or `Parities` with k = 2.

    Notes
    -----
    Privacy: epsilon-DP in real arithmetic. Under replace-one, R (U_1, U_2, 1) has density
    proportional to e^(-epsilon t) at (a, b, t) on the cone over K x K. Replacing a record shifts
    the noise by a vector (q, q', 1) of this cone. K is convex (see `TableMoments`), so such a shift
    maps the cone into itself, and multiplies the density at a point by at most e^epsilon. For
    add/remove see `Cone`. The sampler is exact, by rejection.

    Error: exactly (4 (2 r + 1)(r + 1) E ||T U||^2 / m)^(1/2) / (epsilon n) per query under
    replace-one, with E ||T U||^2 estimated from 1024 public draws if necessary.

    References
    ----------
    Deza-Laurent 1997 (triangle inequalities of the cut polytope); formula sheet X-CONE, X-LKJ.

    Examples
    --------
    >>> import geomdp as gd
    >>> workload = gd.workloads.Marginals(d=3, k=2)
    >>> tight = gd.mechanisms.TightCone(workload, n=1000, privacy=gd.PureDP(1.0))
    >>> round(tight.predicted_rmse.value, 4)
    0.0031
    """

    origin, whole_only = Origin.FORMULA, True

    def _prepare(self) -> None:
        super()._prepare()
        contrasts = table_contrasts(self.workload)
        if contrasts is None:
            raise ValueError(
                "workload must be linear in tables of two columns (MarginalTables or Marginals "
                f"with k <= 2, Parities with k = 2), got {self.workload!r}"
            )
        self._contrasts = contrasts

    def law(self, change: Change) -> PairedNoise | ConeNoise:
        body, epsilon = tight_table_moments(self._contrasts.levels), self.privacy.epsilon
        matrix, cells = self._contrasts.matrix, self._contrasts.cells
        if change.adjacency is Adjacency.REPLACE_ONE:
            return PairedNoise(body, epsilon, matrix, cells)
        return cone_noise(body, epsilon, change.adjacency, matrix, self._contrasts.constant, cells)


@functools.lru_cache(maxsize=32)
def tight_table_moments(levels: tuple[int, ...]) -> TableMoments:
    """`TableMoments`, cut to about the share `KEPT` of its volume (or uncut; see `TightCone`)."""
    body = TableMoments(levels)
    # Of the two levels of a column, only one adds triangle inequalities.
    events = [count if count > 2 else 1 for count in levels]
    triples = sum(a * b * c for a, b, c in itertools.combinations(events, 3))
    work = sum(levels) ** 2 * (sum(levels) - len(levels))
    if triples > MAX_TRIPLES or work > MAX_WORK:
        return body
    found = body.sample_violations(PILOT_DRAWS, np.random.default_rng(PUBLIC_SEED))
    return TableMoments(levels, float(np.quantile(found, KEPT)))


# K-norm noise on moment matrices of signs.


class Spectral(PureMechanism):
    """K-norm noise on the sum of the matrices s s^T of sign vectors s, mapped to the answers.

    As for `Cone`, a record determines a sign vector s in {-1, 1}^p. The answers of the record are
    c + T(products s_i s_j) with a linear map T. M(X) = (sum of Q(x) + T Z) / n, where Z is a
    symmetric matrix (p, p) with density proportional to exp(-epsilon ||Z||_K).

    * Under replace-one, K is p times {A : tr A_+ <= 1, tr A_- <= 1}, with the positive part A_+ and
      the negative part A_- of the symmetric matrix A.
    * Under add/remove, K is p times the nuclear-norm ball. The number of records is private. It is
      the trace of the sum of s s^T, divided by p, so T adds c / p times the noisy trace.

    Notation and parameters are those of `AdditiveMechanism`. The workload must be linear in
    pairwise products of signs: `MarginalTables` of two-level columns with k <= 2, `Marginals` with
    k <= 2, and `Parities` with k = 2.

    Notes
    -----
    Privacy: epsilon-DP in real arithmetic. s s^T is psd with trace p, so the positive and the
    negative part of s s^T - s' s'^T have trace at most p. The sums of s s^T for neighbours differ
    by an element of K, so the sum plus Z is epsilon-DP (JL-L14). The sampler is exact.

    Error: exactly p ((D + 1)(D + 2) E ||T U||^2 / m)^(1/2) / (epsilon n) per query, where U is
    uniform on K / p and D = p (p + 1) / 2. It is below the error of `Cone` from p = 22. Coupling
    from the past draws Z, in milliseconds at p = 10 and seconds at p = 100.

    References
    ----------
    d'Orsi-Novikov 2025 (arXiv 2510.26717), noise of spectral norms; formula sheet JL-COV, JL-L14,
    X-LKJ.

    Examples
    --------
    >>> import geomdp as gd
    >>> workload = gd.workloads.Marginals(d=3, k=2)
    >>> print(gd.mechanisms.Spectral(workload, n=1000, privacy=gd.PureDP(1.0)).predicted_rmse)
    rmse 0.004693
    """

    def _prepare(self) -> None:
        super()._prepare()
        products = sign_products(self.workload)
        if products is None:
            raise ValueError(
                f"workload must be linear in pairwise sign products, got {self.workload!r}"
            )
        self._products = products

    def law(self, change: Change) -> MappedNoise:
        p = self._products.order
        matrix = _on_matrices(self._products, change.adjacency)
        if change.adjacency is Adjacency.REPLACE_ONE:
            body, moments = Scaled(SpectraplexDifference(p), float(p)), difference_moments(p)
        else:
            body, moments = Scaled(NuclearBall(p), float(p)), nuclear_moments(p)
        inner = knorm(body, self.privacy.epsilon)
        # As the law of U is invariant under rotations, u = svec(U) and t = svec(identity) have
        # E u u^T = a (I - t t^T / p) + b t t^T / p with two numbers a and b.
        dimension = p * (p + 1) // 2
        b = moments.squared_trace / p
        a = (moments.squares - b) / (dimension - 1)
        along = float(((matrix @ svec(np.eye(p))) ** 2).sum()) / p
        whole_square = float(matrix.multiply(matrix).sum())
        factor = (p / self.privacy.epsilon) ** 2 * (dimension + 1) * (dimension + 2)
        energy = factor * (a * (whole_square - along) + b * along)
        return MappedNoise([Part(inner, matrix, energy)])


def _on_matrices(products: SignProducts, adjacency: Adjacency) -> sp.csr_array:
    """T (m, D): maps svec(sum of s s^T), with off-diagonals times sqrt(2), to sums of answers."""
    p = products.order
    rows, columns = np.triu_indices(p)
    # The rows of off-diagonal entries, which undo the factor sqrt(2) of svec.
    above = sp.csr_array(sp.diags_array(np.full(len(rows), np.sqrt(0.5))))[rows != columns]
    matrix = sp.csr_array(products.matrix @ above)
    if adjacency is Adjacency.ADD_REMOVE and products.constant.any():
        count = sp.csr_array(svec(np.eye(p))[None] / p)
        matrix = sp.csr_array(matrix + sp.csr_array(products.constant[:, None]) @ count)
    return matrix
