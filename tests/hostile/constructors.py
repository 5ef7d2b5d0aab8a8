"""Good arguments for public constructors and formulas, and the kinds of values that they take.

`NOT_BUILT` says which public classes have no row, and why.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Self

import cvxpy as cp
import numpy as np
import scipy.sparse as sp

import geomdp as gd
from geomdp import advice, audit, bodies, bounds, data, geometry, mechanisms, noise, privacy
from geomdp import workloads as wl
from geomdp.audit.scores import fisher_score
from geomdp.bodies.cvx_body import cosine_moment_body
from geomdp.geometry import sampling
from geomdp.mechanisms import strategies
from geomdp.mechanisms.strategies.design import LaplaceCells
from geomdp.mechanisms.strategies.histograms import PIdentity, SoftBins
from geomdp.mechanisms.strategies.tables import WeightedMarginals
from geomdp.noise.knorm import Part
from geomdp.noise.recursive import stopped
from geomdp.privacy.definitions import analytic_gaussian_scale, gaussian_delta
from geomdp.workloads import smooth

#: Kinds of arguments, each with the type of good values and the names of arguments of this kind: a
#: real number above 0, one above 0 and below 1, a whole number of at least 1, a finite array, and
#: an object of a class of this library. Constructors refuse all values that are not of the kind.
KINDS: dict[str, tuple[type, str]] = {
    "positive": (
        float,
        "alpha bandwidth density epsilon exponent factor limit radius rate rho scale sensitivity "
        "separation smoothness tolerance width",
    ),
    "share": (float, "beta delta slack_delta tv"),
    "whole": (
        int,
        "N cutoff d datasets degree dimension draws elements k m n order pool prime queries size "
        "smoothness sparsity steps sweeps",
    ),
    "array": (
        np.ndarray,
        "amplitudes basis candidates centre centres coefficients datasets directions exponents "
        "frequencies generators high low lower matrix normals offsets phases root truths upper "
        "values vertices weights widths",
    ),
    "object": (
        object,
        "adjacency body bodies budget cells days inner metric noise privacy sampler scales side "
        "workload",
    ),
}


@dataclass(frozen=True)
class Constructor:
    """A callable, good keyword arguments, and the kinds of those that have one."""

    build: Callable[..., Any]
    good: dict[str, Any]
    kinds: dict[str, str]

    @property
    def name(self) -> str:
        """The name of the callable after that of its package, such as ``bodies.Ball``."""
        return f"{self.build.__module__.split('.')[1]}.{self.build.__name__}"

    def also(self, **kinds: str) -> Self:
        """The row with the kinds of other arguments."""
        return replace(self, kinds=self.kinds | kinds)

    def free(self, *names: str) -> Self:
        """The row without the kinds of some arguments, which take more than their kind."""
        kept = {name: kind for name, kind in self.kinds.items() if name not in names}
        return replace(self, kinds=kept)


def of(build: Callable[..., Any], /, **good: Any) -> Constructor:
    """A row of the table; the name and the type of an argument say its kind."""
    kinds = {
        name: kind
        for name, value in good.items()
        for kind, (kept, names) in KINDS.items()
        if name in names.split() and isinstance(value, kept)
    }
    return Constructor(build, good, kinds)


PURE, CONCENTRATED, APPROXIMATE = gd.PureDP(1.0), gd.ZCDP(0.5), gd.ApproxDP(1.0, 1e-6)
REPLACE = gd.Adjacency.REPLACE_ONE
TRIANGLE = np.array([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0]])
BALL, SQUARE = bodies.Ball(2), bodies.Box.centred([1.0, 1.0])
CUBE, TABLES, MOMENTS = wl.Marginals(3, 1), wl.MarginalTables([2, 3], 1), wl.SecondMoment(2)
COLUMNS: dict[str, Any] = {"columns": {"a": 2, "b": 3}, "tables": [("a",), ("b",)]}
LAPLACE = mechanisms.Laplace(CUBE, n=10, privacy=PURE)
DRAW = noise.LaplaceNoise(2, 1.0)
LEVELS = stopped(
    noise.decompose(bodies.Box.centred([1.0, 2.0]), noise.Variant.PROJECTED, exact=True)
)
SCALES = gd.AboveThreshold(0.0, privacy=PURE).scales
CELLS = LaplaceCells()
CODE = np.eye(3, dtype=np.int64)
PLAIN: dict[str, Any] = {"n": 10, "privacy": PURE, "adjacency": REPLACE}
STREAM: dict[str, Any] = {"threshold": 0.0, "privacy": PURE, "adjacency": REPLACE}
GAUSSIAN: dict[str, Any] = PLAIN | {"privacy": CONCENTRATED}

RECORDS = [
    of(gd.PureDP, epsilon=1.0),
    of(gd.ApproxDP, epsilon=1.0, delta=1e-6),
    of(gd.ZCDP, rho=0.5),
    of(privacy.group_privacy, privacy=PURE, size=2),
    of(privacy.member_privacy, privacy=PURE, size=2),
    of(privacy.advanced_composition, step=PURE, steps=3, slack_delta=1e-6),
    of(privacy.largest_step_epsilon, total=APPROXIMATE, steps=3),
    of(privacy.shortcut_step_epsilon, total=APPROXIMATE, steps=3),
    of(privacy.zcdp_to_approx, privacy=CONCENTRATED, delta=1e-6),
    of(privacy.laplace_scale, sensitivity=1.0, privacy=PURE),
    of(analytic_gaussian_scale, sensitivity=1.0, privacy=APPROXIMATE),
    of(gaussian_delta, sensitivity=1.0, scale=3.0, epsilon=1.0),
    of(privacy.Approximate, tv=0.5, source="a theorem"),
    of(privacy.Heuristic, reason="a chain"),
    of(privacy.Guarantee, privacy=PURE, adjacency=REPLACE, sampler=privacy.Exact(),
       arithmetic="none", seeded=False),
    of(gd.Ledger, budget=PURE, adjacency=REPLACE),  # the tests of ledgers cover `path`
    of(data.BooleanColumn, name="a", missing=False),
    of(data.CategoricalColumn, name="a", categories=("x", "y"), other=False, missing=False),
    of(data.NumericColumn, name="a", edges=(0.0, 1.0, 2.0), missing=False),
    of(data.DateColumn, name="a", days=("2024-01-01", "2024-12-31"), by="month", order="ymd",
       missing=False),
    of(data.SkippedColumn, name="a", reason="an identifier"),
    of(data.CsvFormat, separator=";", encoding="latin-1"),
    of(data.RealColumn, name="a", bounds=(0.0, 1.0), clip=False),
    of(data.Schema, columns=(data.BooleanColumn("a"),)).also(columns="object"),
    of(data.Query, sql="select 1", database=None),
]  # fmt: skip
NOISES = [
    of(noise.LaplaceNoise, dimension=3, scale=1.0),
    of(noise.GaussianNoise, basis=np.eye(2), scale=1.0),
    of(noise.KNormNoise, body=BALL, epsilon=1.0, sampler=sampling.ExactSampler(BALL)),
    of(noise.ConeNoise, body=bodies.Simplex(np.eye(2)), rate=1.0, centre=np.zeros(2),
       matrix=sp.csr_array(np.eye(2)), constant=np.zeros(2)),
    of(noise.PairedNoise, body=SQUARE, epsilon=1.0,
       matrix=sp.csr_array(np.eye(2))).also(matrix="object"),
    of(noise.RecursiveNoise, levels=LEVELS[-1], epsilon=1.0).also(levels="object"),
    of(Part, noise=DRAW, matrix=np.eye(2), energy=1.0).also(matrix="object"),
    of(audit.SparseVectorLaw, truths=np.zeros(2), scales=SCALES, cutoff=1),
    of(audit.Learner, name="a score", learn=fisher_score),
    of(audit.Pair, name="a pair", sample_a=DRAW.sample, sample_b=DRAW.sample,
       learners=audit.Pair("a pair", DRAW.sample, DRAW.sample).learners),
]  # fmt: skip
BODIES = [
    of(bodies.Ball, dimension=2, radius=1.0),
    of(bodies.CrossPolytope, dimension=2, radius=1.0),
    of(bodies.LpBall, dimension=2, radius=1.0, exponent=3.0),
    of(bodies.Box, lower=-np.ones(2), upper=np.ones(2)),
    of(bodies.SymmetrisedBox, upper=np.ones(2)),
    of(bodies.Ellipsoid, root=np.eye(2)),
    of(bodies.CvxBody, dimension=2, build=lambda x: [cp.norm(x) <= 1], solver=None),
    of(bodies.Elliptope, order=3),
    of(bodies.PsdBox, d=2),
    of(bodies.TableMoments, levels=[2, 3], violation=1.0),
    of(bodies.Spectraplex, d=3),
    of(bodies.SpectraplexDifference, d=3),
    of(bodies.NuclearBall, d=3),
    of(bodies.Scaled, body=BALL, factor=2.0),
    of(bodies.LinearImage, matrix=np.eye(2), body=BALL),
    of(bodies.Intersection, bodies=[BALL, bodies.Ball(2, 2.0)]),
    of(bodies.Product, bodies=[BALL, BALL]),
    of(bodies.Difference, body=BALL),
    of(bodies.HPolytope, normals=np.vstack([np.eye(2), -np.eye(2)]), offsets=np.ones(4)),
    of(bodies.Simplex, vertices=TRIANGLE),
    of(bodies.SimplexDifference, vertices=TRIANGLE),
    of(bodies.SlabBody, directions=np.eye(2), widths=np.ones(2)),
    of(bodies.TriangulatedPolytope, vertices=TRIANGLE),
    of(bodies.VPolytope, vertices=TRIANGLE),
    of(geometry.Projector, body=BALL, matrix=np.eye(2)).free("matrix"),
    of(geometry.SparseMap, density=0.5),
    of(sampling.ExactSampler, body=BALL),
    of(sampling.CoordinateHitAndRun, sweeps=1),
]
WORKLOADS = [
    of(wl.Marginals, d=4, k=2),
    of(wl.Parities, d=4, k=2),
    of(wl.Prefixes, N=4),
    of(wl.Ranges, N=4),
    of(wl.Histogram, N=4),
    of(wl.SecondMoment, d=3),
    of(wl.BoxSecondMoment, d=3),
    of(wl.Means, d=3),
    of(wl.MarginalTables, columns=[2, 3], k=1),
    of(wl.ChosenTables, **COLUMNS, weights=[1.0, 2.0]),
    of(wl.ProductQueries, **COLUMNS, queries={"b": wl.Prefixes(3)}, weights=[1.0, 2.0]),
    of(wl.Explicit, matrix=np.eye(3)),
    of(wl.RandomSigns, m=3, N=4, rng=0),
    of(wl.LinearMap, workload=CUBE, matrix=np.ones((1, 3))),
    of(wl.DenseQuery, values=np.ones(3)),
    of(wl.SparseQuery, support=(0, 1), values=np.ones(2)),
    of(wl.SparseQueries, queries=[wl.SparseQuery((0, 1), np.ones(2))]).also(queries="object"),
    of(wl.BooleanCube, d=3),
    of(wl.CategoricalProduct, columns=[2, 3]),
    of(wl.SymmetricCube, d=3),
    of(wl.UnitBall, d=3),
    of(wl.SmoothQueries, d=1, degree=4, tolerance=1e-9),
    of(smooth.GaussianMixture, centres=np.zeros((1, 2)), weights=np.ones(1), bandwidth=0.5),
    of(smooth.Jackson, smoothness=2),
    of(smooth.Logistic, weights=np.ones(2), bias=0.0),
    of(smooth.Polynomial, exponents=np.ones((1, 2)), coefficients=np.ones(1)),
    of(smooth.Shrinkage, noise_std=np.ones(3), n=5, decay=1.0),
    of(smooth.SoftRange, low=-np.ones(2), high=np.ones(2), width=0.5),
    of(smooth.StatedSmoothness, function=lambda x: x[:, 0], d=1, smoothness=2, bound=1.0),
    of(smooth.Waves, frequencies=np.ones((1, 2)), amplitudes=np.ones(1), phases=np.zeros(1)),
]
#: Mechanisms that are built from any workload, a number of records and a guarantee alone.
OF_WORKLOADS = (
    mechanisms.Laplace, mechanisms.Ball, mechanisms.Ellipsoid, mechanisms.KNorm, mechanisms.Cone,
    mechanisms.TightCone, mechanisms.Spectral, mechanisms.Matrix, mechanisms.Hierarchical,
    mechanisms.Recursive, mechanisms.ReportNoisyMax, mechanisms.PermuteAndFlip,
    mechanisms.ExponentialMechanism, mechanisms.Geometric, mechanisms.LatticeBox,
)  # fmt: skip
MECHANISMS = [
    *(of(kind, workload=CUBE, **PLAIN) for kind in OF_WORKLOADS),
    of(mechanisms.Gaussian, workload=CUBE, **GAUSSIAN),
    of(mechanisms.Staircase, workload=wl.Explicit([[0.0, 1.0]]), **PLAIN),
    of(mechanisms.SecondMoment, workload=MOMENTS, **PLAIN),
    of(mechanisms.Covariance, workload=MOMENTS, **PLAIN),
    of(mechanisms.ResidualGaussian, workload=TABLES, **GAUSSIAN),
    of(mechanisms.PairMarginals, workload=wl.Marginals(4, 2), **PLAIN),
    of(gd.SmoothSummary, **PLAIN | {"n": 1000}, d=1, smoothness=2, degree=3).free("degree"),
    of(gd.SparseProject, **GAUSSIAN, sparsity=2, queries=3, rows=64, beta=0.1),
    of(gd.AboveThreshold, **STREAM, sensitivity=1.0),
    of(gd.Sparse, **STREAM, sensitivity=1.0, cutoff=2),
    of(gd.NumericSparse, **STREAM, cutoff=2),
    of(mechanisms.PrintedNumericSparse, **STREAM | {"privacy": APPROXIMATE}, cutoff=2,
       sensitivity=1.0),
    of(gd.OnlineConstruction, rule=mechanisms.SparseMultiplicativeWeights(1),
       **PLAIN | {"n": 10**6}, queries=5, beta=0.1),
    of(gd.IterativeConstruction, rule=mechanisms.MultiplicativeWeights(4),
       distinguisher=mechanisms.AllParities(2), **PLAIN | {"n": 10**7}, beta=0.1),
    of(mechanisms.MultiplicativeWeights, size=4),
    of(mechanisms.SparseMultiplicativeWeights, sparsity=2),
    of(mechanisms.Perceptron, size=4),
    of(mechanisms.Median, candidates=np.eye(3), fineness=1.0),
    of(mechanisms.AllParities, d=3),
    of(mechanisms.EnumeratedQueries,
       queries=[wl.DenseQuery(np.array([0.0, 1.0]))]).also(queries="object"),
    of(mechanisms.Coarse, inner=LAPLACE, radius=0.1),
    of(mechanisms.Fitted, inner=LAPLACE),
    of(mechanisms.Projected, inner=LAPLACE, draws=8),
    of(mechanisms.Shrunk, inner=mechanisms.Laplace(wl.Histogram(3), **PLAIN)),
    of(mechanisms.JL, inner=LAPLACE, dimension=2, rng=0),
    of(mechanisms.WeightedLaplace, smoothness=2.0),
    of(mechanisms.MomentProjection, deviations=np.array([0.0, 1.0, 1.0]),
       body=cosine_moment_body(np.ones(3))),
    of(mechanisms.Prediction, value=1.0, kind=mechanisms.PredictionKind.EXACT, source="why",
       stderr=0.0),
    of(PIdentity, rows=2),
    of(SoftBins, bins=2, cells=CELLS),
    of(strategies.Tree, cells=CELLS),
    of(WeightedMarginals, cells=CELLS),
]  # fmt: skip
BOUNDS = [
    *(of(kind, limit=0.1, over=["a", "b"])
      for kind in (advice.RootMeanSquare, advice.HalfWidth, advice.LargestError)),
    *(of(kind, separation=4.0) for kind in (bounds.MeanL2, bounds.RMS, bounds.WorstCase)),
    of(bounds.Bound, value=3.5, side=bounds.Side.LOWER, statement="a statement", assumptions=()),
    of(bounds.Problem, epsilon=1.0, alpha=0.1, metric=bounds.MeanL2(), adjacency=REPLACE),
    of(bounds.Effort, elements=8, pool=4, datasets=4, exchanges=2),
    of(bounds.LinearCode, generators=CODE),
    of(bounds.ReedSolomon, prime=13, length=4, degree=2).free("degree"),
    of(bounds.Packing, workload=wl.Histogram(3), elements=np.arange(3),
       datasets=np.arange(3)[:, None], origin="listed"),
]  # fmt: skip

#: All rows by name.
CONSTRUCTORS = {
    row.name: row for row in [*RECORDS, *NOISES, *BODIES, *WORKLOADS, *MECHANISMS, *BOUNDS]
}

#: Public classes that callers do not construct themselves, each with the reason. Abstract classes,
#: protocols, enumerations, errors and classes without arguments need no row.
NOT_BUILT = {
    **dict.fromkeys((
        "advice.Advice", "advice.Bracket", "advice.Impossible", "advice.LeastBudget",
        "audit.AuditResult", "bodies.Halfspace", "bounds.ConfidentAnswers", "bounds.Line",
        "geometry.Estimate", "geometry.Projection", "mechanisms.Answer", "mechanisms.Release",
        "tabulation.CovarianceTable", "tabulation.Regression", "tabulation.Tabulation",
    ), "a result that the library returns"),
    **dict.fromkeys((
        "advice.Plan", "bounds.Certificate", "mechanisms.SmoothRelease", "mechanisms.SparseSummary",
    ), "a result; its files are hostile input, see test_files"),
}  # fmt: skip
