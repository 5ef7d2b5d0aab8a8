"""Ideas that are not in the papers, and the costs of running experiments and of a release."""

from experiments.theorems.theorem import Paper, Theorem

_P = Paper.ADDITIONS

ADDITIONS = (
    Theorem(
        "X-OUT",
        _P,
        "Outer slab body",
        r"For any directions $z_1,\dots,z_F$, the slab body $\{y:|\langle z_j,y\rangle|\le"
        r" h_{K-K}(z_j)\ \forall j\}$ holds $K-K$. Its K-norm noise is therefore as private as"
        r" that of $K-K$, and only a support function is needed to build it.",
        ("geomdp.bodies.SlabBody", "geomdp.geometry.refine_slabs"),
        claims=("accuracy::X-OUT", "hit_and_run::JL-L14"),
        tests=("tests/geometry/test_slabs.py::test_slabs_hold_every_difference_of_neighbours",),
    ),
    Theorem(
        "X-RAY",
        _P,
        "Exact chords of polytopes by vertices",
        r"A dual simplex method, started from the last facet found, computes where a ray leaves"
        r" $\operatorname{conv}(\pm v_i)$ or $K-K$. Each pivot takes one pass over the vertices.",
        ("geomdp.bodies.ray_shooting.RayShooter", "geomdp.bodies.VPolytope"),
        claims=("geometry::X-RAY",),
        tests=("tests/bodies/test_ray_shooting.py::test_gauges_and_facets",),
    ),
    Theorem(
        "X-SIM",
        _P,
        "Difference body of a simplex",
        r"The difference body of a simplex $K$ in $m$ dimensions has"
        r" $\mathrm{vol}(K-K)=\binom{2m}{m}\mathrm{vol}(K)$ and an exact sampler of uniform"
        r" points. Its gauge is $\max\left(\sum y_+,\sum y_-\right)$ in barycentric coordinates"
        r" $y$, which sum to 0.",
        ("geomdp.bodies.SimplexDifference", "geomdp.bodies.Simplex"),
        claims=(
            "five_bodies::X-SIM",
            "accuracy_frontier::X-SIM",
        ),
        tests=(
            "tests/mechanisms/test_oracles.py::test_simplices_have_exact_noise_of_the_neighbour_body",
            "tests/bodies/test_simplex.py::test_difference_agrees_with_a_triangulation_of_all_pairs",
        ),
    ),
    Theorem(
        "X-CONE",
        _P,
        "Cone mechanism",
        r"Let $A$ and $B$ be independent with density $\propto e^{-\varepsilon a_{m+1}/2}$ on the"
        r" cone over $\{(q,1):q\in K_Q\}$. Add the first $m$ coordinates of $A-B$ to the sums"
        r" $nQ(X)$, and subtract its last coordinate times the centroid $c$ of $K_Q$. This is"
        r" $\varepsilon$-DP under replace-one and needs uniform points $U$ of $K_Q$ only. The"
        r" noise has $\mathbb E\|Z\|_2^2=\frac{8(m+1)(m+2)}{\varepsilon^2}\mathbb E\|U-c\|_2^2$.",
        (
            "geomdp.mechanisms.Cone",
            "geomdp.noise.ConeNoise",
            "geomdp.mechanisms.TightCone",
            "geomdp.noise.PairedNoise",
        ),
        claims=(
            "every_mechanism::X-CONE",
            "psd_box::X-CONE",
        ),
        tests=(
            "tests/mechanisms/test_cone.py::test_shifts_by_answers_stay_in_the_cone_over_the_elliptope",
            "tests/mechanisms/test_cone.py::test_covariance_of_draws",
        ),
    ),
    Theorem(
        "X-LKJ",
        _P,
        "Elliptope cone mechanism",
        r"Let $p=d+1$ and $m=\binom p2$. Cone noise over the elliptope of order $p$ answers all 1-"
        r" and 2-way parities of $d$ attributes with values $\pm1$, as sums over the records. It"
        r" is $\varepsilon$-DP under replace-one, has variance"
        r" $\frac{8(m+1)(m+2)}{(p+1)\varepsilon^2}$ for each parity, and its exact sampler takes"
        r" time polynomial in $d$.",
        ("geomdp.bodies.Elliptope", "geomdp.bodies.TableMoments", "geomdp.mechanisms.Cone"),
        claims=("accuracy::X-LKJ",),
        tests=("tests/mechanisms/test_cone.py::test_elliptope_variance",),
    ),
    Theorem(
        "X-PSDBOX",
        _P,
        "Second moments of records in a cube",
        r"For second moments of records in $[-1,1]^d$, the body $\{M\succeq0,M_{ii}\le1\}$ has an"
        r" exact sampler. If $R$ is uniform in the elliptope of order $d$, $u_i$ are uniform in"
        r" $[0,1]$ and all are independent, then $D^{1/2}RD^{1/2}$ with diagonal"
        r" $D_{ii}=u_i^{2/(d+1)}$ is uniform in the body.",
        ("geomdp.bodies.PsdBox", "geomdp.workloads.BoxSecondMoment"),
        claims=("psd_box::X-PSDBOX",),
        tests=(
            "tests/mechanisms/test_oracles.py::test_second_moments",
            "tests/bodies/test_psd_box.py::test_sampler_agrees_with_rejection_from_a_box",
        ),
    ),
    Theorem(
        "X-GF",
        _P,
        "Sixty-four signs per hash",
        r"One evaluation of a random polynomial of degree $r-1$ over $\mathrm{GF}(2^{64})$ gives"
        r" 64 signs, one for each of 64 rows of the projection matrix. The signs of all rows and"
        r" columns are $r$-wise independent.",
        ("geomdp.mechanisms.sparse_summary.HashedSigns",),
        claims=("sparse::X-GF",),
        tests=(
            "tests/mechanisms/hashing/test_signs.py::test_words_are_r_wise_independent_in_the_full_field",
            "tests/mechanisms/hashing/test_field.py::test_products_agree_with_galois",
        ),
    ),
    Theorem(
        "X-NUFFT",
        _P,
        "Smooth summary by a non-uniform FFT",
        r"A non-uniform FFT computes all $\sum_x\prod_i\cos(m_i\theta_i(x))$ with $m_i<t$ in time"
        r" $O\left(n\log^d\frac{1}{\mathrm{tol}}+t^d\log t\right)$, while direct sums take"
        r" $O(nt^d)$. Its numerical error is far below the noise.",
        ("geomdp.workloads.smooth.moment_transform", "geomdp.workloads.smooth.MomentTransform"),
        claims=("smooth::X-NUFFT",),
        tests=(
            "tests/workloads/smooth/test_moments.py::test_each_record_is_within_the_stated_error",
        ),
    ),
    Theorem(
        "X-MNP",
        _P,
        "Projection on a polytope by active sets",
        r"Wolfe's method with column generation projects $b$ on the hull of the vertices $v_i$,"
        r" the columns of $V$: it minimises $\frac12\|V\lambda-b\|_2^2$ over weights $\lambda$."
        r" Each result $y$ comes with the gap $\langle y-b,y\rangle-\min_i\langle y-b,v_i\rangle$,"
        r" which bounds its error.",
        ("geomdp.project", "geomdp.geometry.Projector"),
        claims=("geometry::X-MNP",),
        tests=("tests/geometry/test_projection.py::test_gap_bounds_the_true_error",),
    ),
    Theorem(
        "X-SPX",
        _P,
        "Uniform points of the spectraplex",
        r"Let $D=\frac{d(d+1)}{2}$, let $u$ be uniform in $[0,1]$, and let $W$ be a Wishart matrix"
        r" of order $d$ with $d+1$ degrees of freedom, independent of $u$. Then"
        r" $u^{1/D}\,W/\operatorname{tr}W$ is uniform in the spectraplex"
        r" $\{M\succeq0,\operatorname{tr}M\le1\}$.",
        ("geomdp.bodies.Spectraplex", "geomdp.sample_uniform"),
        claims=(
            "geometry::X-SPX",
            "exact_samplers::SAM-4",
        ),
        tests=("tests/bodies/test_spectral.py::test_moments_and_volumes_at_order_two",),
    ),
    Theorem(
        "X-LOCK",
        _P,
        "Chains in lockstep",
        r"Many hit-and-run chains in $\{x:Ax\le b\}$ move along the same coordinate at the same"
        r" time. Each chain keeps $Ax$, and a step adds a multiple of one column of $A$ to it.",
        ("geomdp.geometry.sampling.CoordinateHitAndRun", "geomdp.geometry.sampling.run_chains"),
        claims=(
            "geometry::X-LOCK",
            "hit_and_run::JL-L14",
        ),
        tests=(
            "tests/geometry/test_sampling_kernels.py::test_chains_in_lockstep_are_independent_of_each_other",
        ),
    ),
    Theorem(
        "X-GRID",
        _P,
        "Noise correctly rounded to a public grid",
        r"Let the noise be a computable function $F(\omega)$ of random bits $\omega$. The release"
        r" $\mathrm{round}_\gamma(S+F(\omega))$ rounds to multiples of $\gamma$, and $F$ is"
        r" evaluated with growing precision until every rounding is certain. The release is"
        r" post-processing of the mechanism in real arithmetic, so its guarantee also holds on a"
        r" computer.",
        ("geomdp.noise.exact.RoundedVector", "geomdp.noise.exact.public_grid"),
        claims=(
            "imperfect_noise::X-GRID",
            "exact::X-GRID",
        ),
        tests=(
            "tests/noise/exact/test_rounding.py::test_rounded_noise_is_the_rounding_of_the_value_at_400_bits",
        ),
    ),
    Theorem(
        "X-RES",
        _P,
        "Gaussian noise on the residuals of tables",
        r"Let $v_A$ be the weight of the residual of the set $A$ of columns in the total squared"
        r" error, and $p_A$ its weight in the privacy cost. Under add/remove, Gaussian noise of"
        r" variance $\sigma_A^2=\sqrt{p_A/v_A}\,\sum_B\sqrt{p_Bv_B}/(2\rho)$ on each residual"
        r" gives all tables under $\rho$-zCDP. No linear mechanism with Gaussian noise has a"
        r" smaller total squared error. It is fast for hundreds of columns. Under replace-one, the"
        r" variances are optimised for the largest cost over the sets of columns in which two"
        r" records can differ.",
        (
            "geomdp.mechanisms.ResidualGaussian",
            "geomdp.noise.ResidualNoise",
            "geomdp.mechanisms.strategies.residual_scales.best_scales",
        ),
        claims=("many_columns::X-RES",),
        tests=(
            "tests/mechanisms/test_residual_scales.py::test_oracle_of_the_formula_sheet",
            "tests/mechanisms/test_residual_scales.py::test_no_pair_of_records_costs_more",
            "tests/mechanisms/test_residual_scales.py::test_least_energy_by_an_independent_solver",
        ),
    ),
    Theorem(
        "LAB-1",
        _P,
        "What the laboratory costs",
        "No theorem. Each outcome of a sweep is on disk before the next outcome is requested. The"
        " database takes at most 2 KiB for a trivial cell, and a process is sent at most 1 KiB.",
        ("experiments.engine.run.run_sweep", "experiments.engine.store.Store"),
        tests=("tests/experiments/test_kills.py::test_twenty_kills_of_a_sweep",),
    ),
    Theorem(
        "LAB-2",
        _P,
        "What a release costs",
        "No theorem. On an idle machine whole commands end within 10 s. Counting, with every value"
        " checked, keeps at least 0.8 of the speed at which DuckDB groups the same rows.",
        ("geomdp.release", "geomdp.data.count_records"),
        tests=(
            "tests/data/test_counting.py::test_every_source_gives_the_counts_of_the_encoded_records",
        ),
    ),
)
