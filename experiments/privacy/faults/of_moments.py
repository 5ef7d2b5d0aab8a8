"""Faults of mechanisms for covariances, pairs of columns, smooth queries and sparse queries."""

from __future__ import annotations

from experiments.privacy.faults.fault import Fault

NOISES = ("tests/laws/test_noises.py",)

MOMENTS = (
    Fault(
        "Covariance: epsilon for both parts",
        "composition missing: moments and mean spend 2 epsilon",
        "mechanisms.second_moments.covariance:_shares",
        "PureDP(_rest(epsilon, share)), PureDP(share * epsilon)",
        "PureDP(epsilon), PureDP(epsilon)",
        ("tests/mechanisms/test_second_moment.py::test_shares_compose_to_the_whole",),
    ),
    Fault(
        "Covariance: the whole rho for the second moments",
        "composition missing under zCDP",
        "mechanisms.second_moments.covariance:_shares",
        "ZCDP(_rest(rho, share))",
        "ZCDP(rho)",
        ("tests/mechanisms/test_second_moment.py::test_shares_compose_to_the_whole",),
    ),
    Fault(
        "PairMarginals: records not scaled into the ball",
        "sums move d times as much as the noise covers",
        "mechanisms.second_moments.pair_marginals:PairMarginals.totals",
        "Totals(count, svec(total) / self.workload.d)",
        "Totals(count, svec(total))",
        ("tests/mechanisms/test_pair_marginals.py",),
    ),
    Fault(
        "smooth moments: one Gaussian draw for all",
        "differences of moments are exact",
        "mechanisms.smooth.noise:ScaledGaussian.sample",
        "rng.normal(0.0, self.deviations, (size, len(self.deviations)))",
        "rng.normal(0.0, 1.0, (size, 1)) * self.deviations",
        NOISES,
    ),
    Fault(
        "smooth moments: last moment without noise",
        "one moment is exact",
        "mechanisms.smooth.noise:ScaledGaussian.sample",
        "rng.normal(0.0, self.deviations, (size, len(self.deviations)))",
        "rng.normal(0.0, np.r_[self.deviations[:-1], 0.0], (size, len(self.deviations)))",
        NOISES,
    ),
    Fault(
        "smooth moments: half the Laplace scale",
        "epsilon is twice what is claimed",
        "mechanisms.smooth.noise:ScaledLaplace.sample",
        "rng.laplace(0.0, self.scales,",
        "rng.laplace(0.0, self.scales / 2,",
        NOISES,
    ),
    Fault(
        "smooth moments: weighted sensitivity halved",
        "noise is half of what two records can differ by",
        "mechanisms.smooth.noise:WeightedLaplace.sensitivity",
        "workload.weighted_l1_diameter(weights)",
        "workload.weighted_l1_diameter(weights) / 2",
        ("tests/mechanisms/test_smooth_noise.py",),
    ),
    Fault(
        "smooth moments: radius in place of the diameter",
        "Gaussian noise covers one record, not the exchange of two",
        "mechanisms.smooth.noise:UniformGaussian.calibrate",
        "workload.l2_diameter() if replace_one",
        "workload.l2_radius() if replace_one",
        ("tests/mechanisms/test_smooth_noise.py",),
    ),
    Fault(
        "smooth moments: numerical errors not covered",
        "noise is calibrated to the exact sums only",
        "mechanisms.smooth.smooth_summary:SmoothSummary.__init__",
        "privacy, adjacency, slack)",
        "privacy, adjacency)",
        ("tests/mechanisms/test_smooth_summary.py",),
    ),
    Fault(
        "sparse projection: sensitivity of one record",
        "replacing a record moves the projection by 2",
        "mechanisms.sparse.sparse_project:SparseProject.__init__",
        "2 if adjacency",
        "1 if adjacency",
        ("tests/mechanisms/test_sparse_project.py::test_noise_follows_the_adjacency",),
    ),
    Fault(
        "sparse projection: one draw for all rows",
        "differences of rows are exact",
        "mechanisms.sparse.row_noise:GaussianRows.draw",
        "rng.standard_normal(rows)",
        "np.full(rows, rng.standard_normal())",
        NOISES,
    ),
    Fault(
        "sparse projection: rows not composed",
        "every row spends all of epsilon",
        "mechanisms.sparse.row_noise:LaplaceRows.sigma",
        "shortcut_step_epsilon(_approximate(privacy), rows)",
        "shortcut_step_epsilon(_approximate(privacy), 1)",
        NOISES,
    ),
    Fault(
        "sparse projection: exact noise for one row",
        "rounded noise covers the change of one of T rows",
        "mechanisms.sparse.row_noise:GaussianRows.proved_scale",
        "rows * change**2",
        "change**2",
        NOISES,
    ),
    Fault(
        "sparse projection: exact noise of one part for all",
        "parts of the rows share their noise",
        "mechanisms.sparse.row_noise:RoundedRows.draw",
        "[np.array(self._part.draw()) for _ in range(0, self._rows, ROWS)]",
        "[np.array(self._part.draw())] * len(range(0, self._rows, ROWS))",
        NOISES,
    ),
)
