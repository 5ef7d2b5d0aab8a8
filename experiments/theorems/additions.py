"""Ideas that are not in the papers, and the costs of running experiments and of a release."""

from experiments.theorems.theorem import Paper, Theorem

_P = Paper.ADDITIONS

ADDITIONS = (
    Theorem(
        "X-OUT",
        _P,
        "Outer slab body",
        r"$\{y:|\langle z_j,y\rangle|\le h_{K-K}(z_j)\ \forall j\}\supseteq K-K$ for any"
        r" directions:"
        r" its K-norm noise is as private, and needs a support function only.",
        ("geomdp.bodies.SlabBody", "geomdp.geometry.refine_slabs"),
        claims=("accuracy::X-OUT", "hit_and_run::JL-L14"),
        tests=("tests/geometry/test_slabs.py::test_slabs_hold_every_difference_of_neighbours",),
    ),
    Theorem(
        "X-RAY",
        _P,
        "Exact chords of polytopes by vertices",
        r"A warm dual simplex finds where a ray leaves $\operatorname{conv}(\pm v_i)$ or $K-K$: one"
        r" pass over the vertices per pivot.",
        ("geomdp.bodies.facets.ray_shooting.RayShooter", "geomdp.bodies.VPolytope"),
        claims=("geometry::X-RAY",),
        tests=("tests/bodies/test_ray_shooting.py::test_gauges_and_facets",),
    ),
    Theorem(
        "X-SIM",
        _P,
        "Difference body of a simplex",
        r"$\mathrm{vol}(K-K)=\binom{2m}{m}\mathrm{vol}(K)$, with exact uniform points and gauge"
        r" $\max\left(\sum y_+,\sum y_-\right)$ in barycentric coordinates.",
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
        r"$Z=A-B$ with $A,B$ of density $\propto e^{-\varepsilon a_{m+1}/2}$ on the cone over"
        r" $K_Q$: pure $\varepsilon$-DP for replace-one, from uniform points of $K_Q$ alone;"
        r" $\mathbb E\|Z\|^2=\frac{8(m+1)(m+2)}{\varepsilon^2}\mathbb E\|U-c\|^2$.",
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
            "tests/mechanisms/test_cone.py::test_density_ratio_on_the_simplex_cone_is_tight",
            "tests/mechanisms/test_cone.py::test_covariance_of_draws",
        ),
    ),
    Theorem(
        "X-LKJ",
        _P,
        "Elliptope cone mechanism",
        r"All 1- and 2-way parities of $\pm1$ attributes with noise of variance"
        r" $\frac{8(m+1)(m+2)}{(p+1)\varepsilon^2}$, $p=d+1$, $m=\binom p2$: exact, pure,"
        r" polynomial in $d$.",
        ("geomdp.bodies.Elliptope", "geomdp.bodies.TableMoments", "geomdp.mechanisms.Cone"),
        claims=("accuracy::X-LKJ",),
        tests=("tests/mechanisms/test_cone.py::test_elliptope_variance",),
    ),
    Theorem(
        "X-PSDBOX",
        _P,
        "Second moments of records in a cube",
        r"$\{M\succeq0,M_{ii}\le1\}$ has exact uniform points $D^{1/2}RD^{1/2}$, $R$ uniform in the"
        r" elliptope, $D_{ii}=u_i^{2/(d+1)}$.",
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
        r"A polynomial of degree $r-1$ over $\mathrm{GF}(2^{64})$ gives 64 rows of $r$-wise"
        r" independent signs per evaluation.",
        ("geomdp.mechanisms.sparse.hashing.signs.HashedSigns",),
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
        r"All $\sum_x\prod_i\cos(m_i\theta_i(x))$ in $O\left(n\log^d\frac{1}{\mathrm{tol}}+t^d\log"
        r" t"
        r"\right)$ instead of $O(nt^d)$, with an error far below the noise.",
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
        r"$\min\frac12\|V\lambda-b\|^2$ by Wolfe's method with column generation; each result has"
        r" its gap $\langle y-b,y\rangle-\min_i\langle y-b,v_i\rangle$.",
        ("geomdp.project", "geomdp.geometry.Projector"),
        claims=("geometry::X-MNP",),
        tests=("tests/geometry/test_projection.py::test_gap_bounds_the_true_error",),
    ),
    Theorem(
        "X-SPX",
        _P,
        "Uniform points of the spectraplex",
        r"$M=u^{1/D}\,W/\operatorname{tr}W$, $W$ Wishart with $d+1$ degrees of freedom,"
        r" $D=\frac{d(d+1)}{2}$.",
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
        r"Hit-and-run chains that step through the same coordinate together, with incremental"
        r" $Ax$.",
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
        r"$\mathrm{round}_\gamma(S+F(\omega))$, $F$ a computable function of random bits $\omega$,"
        r" evaluated in balls until each rounding is certain: post-processing of the ideal"
        r" mechanism, so its guarantee holds in finite arithmetic.",
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
        r"Noise of variance $\sigma_A^2=\sqrt{p_A/v_A}\,\sum_B\sqrt{p_Bv_B}/(2\rho)$ on the"
        r" residual of each set $A$ of columns gives all tables with the least error of linear"
        r" mechanisms with Gaussian noise, for hundreds of columns; under replace-one it is"
        r" optimised for the largest cost over the sets of columns in which two records differ.",
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
        r"No theorem: every cell of a sweep is on disk before the next is taken, for less than"
        r" 3 ms a cell; two processes keep an efficiency of at least 0.85 on cells of 50 ms.",
        ("experiments.engine.run.run_sweep", "experiments.engine.store.Store"),
        tests=("tests/experiments/test_kills.py::test_twenty_kills_of_a_sweep",),
    ),
    Theorem(
        "LAB-2",
        _P,
        "What a release costs",
        r"No theorem: whole commands end within 10 s, and counting with every value checked keeps"
        r" at least 0.8 of the speed of DuckDB's own grouping.",
        ("geomdp.release", "geomdp.data.count_records"),
        claims=("release::LAB-2",),
        tests=(
            "tests/data/test_counting.py::test_every_source_gives_the_counts_of_the_exact_reader",
        ),
    ),
)
