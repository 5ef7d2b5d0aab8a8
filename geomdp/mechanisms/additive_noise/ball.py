"""The ball mechanism: K-norm noise of a Euclidean ball."""

from __future__ import annotations

from functools import cached_property

import numpy as np

from geomdp._numerics.linalg import AffineHull
from geomdp._typing import FloatArray
from geomdp.bodies import Ellipsoid as EllipsoidBody
from geomdp.geometry.sampling.samplers import ExactSampler
from geomdp.mechanisms.additive_noise.certified_rows import SLACK, CertifiedRows, certified_rows
from geomdp.mechanisms.additive_noise.pure import PureMechanism
from geomdp.mechanisms.additive_noise.real_records import RealRecords, enlarged_ellipsoid
from geomdp.mechanisms.additive_noise.units import ScaledAnswers, Units
from geomdp.mechanisms.sensitivity import answer_hull, l2_sensitivity
from geomdp.noise import KNormNoise


class Ball(PureMechanism):
    """K-norm noise of an l2 ball in the subspace of the differences between neighbours.

    M(X) = (sum of Q(x) + Z) / n, where Z has density proportional to exp(-epsilon ||z||_2 / D_2) on
    the public subspace. Notation and parameters: see `AdditiveMechanism`. `privacy` is a `PureDP`.

    Notes
    -----
    Privacy: epsilon-DP in real arithmetic, as for `KNorm` with a ball of radius D_2. Exact sampler.

    Error: exactly D_2 sqrt(r (r + 1) / m) / (epsilon n) per query.

    References
    ----------
    Nikolov 2022, Lemma 15; formula sheet JL-L15, JL-KN.

    Examples
    --------
    >>> import numpy as np
    >>> import geomdp as gd
    >>> workload = gd.workloads.Prefixes(4)
    >>> mechanism = gd.mechanisms.Ball(workload, n=100, privacy=gd.PureDP(1.0))
    >>> print(mechanism.predicted_rmse)
    rmse 0.03
    >>> records = np.repeat(np.arange(4), 25)
    >>> workload.answers(records)
    array([0.25, 0.5 , 0.75, 1.  ])
    >>> release = mechanism.release(records, rng=0)  # a simulation: the seed voids privacy
    >>> release.answers.round(3)
    array([0.3  , 0.508, 0.708, 1.   ])
    >>> print(release.guarantee)
    seeded: no privacy claim
    """

    _span: AffineHull

    def _prepare(self) -> None:
        self._radius = l2_sensitivity(self.workload, self.adjacency)
        self._span = answer_hull(self.workload, self.adjacency)

    @cached_property
    def noise(self) -> KNormNoise:
        return self._noise_of(self._root)

    @property
    def _root(self) -> FloatArray:
        return self._radius * self._span.basis

    def _noise_of(self, root: FloatArray) -> KNormNoise:
        body = EllipsoidBody(root)
        return KNormNoise(body, self.privacy.epsilon, ExactSampler(body))

    @cached_property
    def _rows(self) -> CertifiedRows | None:
        return certified_rows(self.workload, self._root, self.adjacency, self._noise_of)

    def _on_real_records(self) -> RealRecords:
        # The answers on real records span R^m, so the basis is the identity. If the radius is not a
        # whole number, it is a rounded square root, and the slack covers the rounding.
        slack = 0.0 if self._radius.is_integer() else SLACK
        root = self._radius * np.eye(self.workload.n_queries)
        return enlarged_ellipsoid(self.workload, root, self._noise_of, slack)

    def _in_units(self, units: Units) -> ScaledAnswers | None:
        root = self._root * units.factor
        rows = certified_rows(units.workload, root, self.adjacency, self._noise_of)
        return units.with_rows(rows)
