"""Faults of mechanisms for covariances, pairs of columns, smooth queries and sparse queries."""

from __future__ import annotations

from experiments.privacy.faults.fault import Fault

NOISES = ("tests/laws/test_noises.py",)

MOMENTS = (
    Fault(
        "Covariance: each of two parts spends all of epsilon",
        "moments and mean together spend 2 epsilon",
        "mechanisms.covariance:_shares",
        "PureDP(_rest(epsilon, share)), PureDP(share * epsilon)",
        "PureDP(epsilon), PureDP(epsilon)",
        ("tests/mechanisms/test_second_moment.py::test_shares_compose_to_the_whole",),
    ),
    Fault(
        "Covariance: the whole rho for the second moments",
        "moments and mean together spend more than rho",
        "mechanisms.covariance:_shares",
        "ZCDP(_rest(rho, share))",
        "ZCDP(rho)",
        ("tests/mechanisms/test_second_moment.py::test_shares_compose_to_the_whole",),
    ),
    Fault(
        "PairMarginals: records not scaled into the ball",
        "one record changes the sums by d times as much as the noise covers",
        "mechanisms.second_moment:PairMarginals.totals",
        "Totals(count, svec(total) / self.workload.d)",
        "Totals(count, svec(total))",
        ("tests/mechanisms/test_pair_marginals.py",),
    ),
    Fault(
        "smooth moments: one Gaussian draw for all",
        "differences of moments have no noise",
        "mechanisms.smooth_noise:ScaledGaussian.sample",
        "rng.normal(0.0, self.deviations, (size, len(self.deviations)))",
        "rng.normal(0.0, 1.0, (size, 1)) * self.deviations",
        NOISES,
    ),
    Fault(
        "smooth moments: last moment without noise",
        "one moment has no noise",
        "mechanisms.smooth_noise:ScaledGaussian.sample",
        "rng.normal(0.0, self.deviations, (size, len(self.deviations)))",
        "rng.normal(0.0, np.r_[self.deviations[:-1], 0.0], (size, len(self.deviations)))",
        NOISES,
    ),
    Fault(
        "smooth moments: half the Laplace scale",
        "epsilon is twice what is claimed",
        "mechanisms.smooth_noise:ScaledLaplace.sample",
        "rng.laplace(0.0, self.scales,",
        "rng.laplace(0.0, self.scales / 2,",
        NOISES,
    ),
    Fault(
        "smooth moments: weighted sensitivity halved",
        "the noise covers half of the largest difference between two records",
        "mechanisms.smooth_noise:WeightedLaplace.sensitivity",
        "workload.weighted_l1_diameter(weights)",
        "workload.weighted_l1_diameter(weights) / 2",
        ("tests/mechanisms/test_smooth_noise.py",),
    ),
    Fault(
        "smooth moments: radius in place of the diameter",
        "Gaussian noise covers adding a record, but not replacing one",
        "mechanisms.smooth_noise:UniformGaussian.calibrate",
        "workload.l2_diameter() if replace_one",
        "workload.l2_radius() if replace_one",
        ("tests/mechanisms/test_smooth_noise.py",),
    ),
    Fault(
        "smooth moments: noise ignores numerical errors",
        "computed sums of neighbours can differ by more than the noise covers",
        "mechanisms.smooth_summary:SmoothSummary.__init__",
        "privacy, adjacency, slack)",
        "privacy, adjacency)",
        ("tests/mechanisms/test_smooth_summary.py",),
    ),
    Fault(
        "sparse projection: sensitivity to adding a record",
        "replacing a record moves the projection by 2",
        "mechanisms.sparse_project:SparseProject.__init__",
        "2 if adjacency",
        "1 if adjacency",
        ("tests/mechanisms/test_sparse_project.py::test_noise_follows_the_adjacency",),
    ),
    Fault(
        "sparse projection: one draw for all rows",
        "differences of rows have no noise",
        "mechanisms.sparse_project:GaussianRows.draw",
        "rng.standard_normal(rows)",
        "np.full(rows, rng.standard_normal())",
        NOISES,
    ),
    Fault(
        "sparse projection: rows not composed",
        "every row spends all of epsilon",
        "mechanisms.sparse_project:LaplaceRows.sigma",
        "shortcut_step_epsilon(_approximate(privacy), rows)",
        "shortcut_step_epsilon(_approximate(privacy), 1)",
        NOISES,
    ),
    Fault(
        "sparse projection: exact noise for one row",
        "exact noise covers the change of one row, but T rows change",
        "mechanisms.sparse_project:GaussianRows.proved_scale",
        "rows * change**2",
        "change**2",
        NOISES,
    ),
    Fault(
        "sparse projection: exact noise of one part for all",
        "parts of the rows share their noise",
        "mechanisms.sparse_project:RoundedRows.draw",
        "[np.array(self._part.draw()) for _ in range(0, self._rows, ROWS)]",
        "[np.array(self._part.draw())] * len(range(0, self._rows, ROWS))",
        NOISES,
    ),
)
