"""Nikolov 2022: sample complexity, random maps, the JL mechanism and covariance."""

from experiments.theorems.theorem import Paper, Theorem

_P = Paper.NIKOLOV

NIKOLOV = (
    Theorem(
        "JL-DEF",
        _P,
        "Sensitivity polytope and neighbours",
        r"$K_Q=\operatorname{conv}\{Q(x):x\in\mathcal X\}$ holds every answer $Q(X)$. Replacing one"
        r" of $n$ records moves it by a vector of $\frac1n(K_Q-K_Q)$. The sample complexity"
        r" $\mathrm{sc}_\varepsilon(Q,\alpha)$ is the least $n$ at which some"
        r" $\varepsilon$-DP mechanism has error at most $\alpha$.",
        (
            "geomdp.sensitivity_polytope",
            "geomdp.difference_body",
            "geomdp.sample_complexity_bracket",
        ),
        claims=(
            "bracket_table::JL-DEF",
            "five_bodies::JL-DEF",
        ),
        tests=(
            "tests/bodies/test_sensitivity.py::test_sensitivity_polytopes_are_hulls_of_all_answers",
            "tests/bodies/test_sensitivity.py::test_neighbour_bodies_are_hulls_of_all_differences",
        ),
    ),
    Theorem(
        "JL-T1",
        _P,
        "Sample complexity of bounded queries",
        r"For $k$ queries with values in $[-1,1]$ on $N$ elements,"
        r" $\mathrm{sc}_\varepsilon(Q,\alpha)\le C\min\left\{\frac{k}{\alpha\varepsilon},"
        r"\frac{\sqrt{k\ln N}}{\alpha\varepsilon},\frac{\ln N}{\alpha^2\varepsilon}\right\}.$",
        ("geomdp.bounds.upper.bounded_queries", "geomdp.bounds.upper.ball_bounded"),
        ("Theorem 1",),
        claims=(
            "jl_error_vs_n::JL-T1",
            "sample_complexity::JL-T1",
            "lower_worst_case::JL-T1",
        ),
        tests=(
            "tests/bounds/test_upper.py::test_theorem_1_is_theorem_2_at_the_width_of_bounded_queries",
        ),
    ),
    Theorem(
        "JL-T2",
        _P,
        "Sample complexity from the Gaussian width",
        r"$\mathrm{sc}_\varepsilon(Q,\alpha)\le C\min\left\{\frac{w(K_Q)}{\alpha\varepsilon},"
        r"\frac{w(K_Q)^2}{k\alpha^2\varepsilon}\right\}.$",
        ("geomdp.bounds.upper.from_width", "geomdp.gaussian_width"),
        ("Theorem 2",),
        claims=("bracket_table::JL-T2", "jl_rates::JL-T2"),
        tests=(
            "tests/bounds/test_upper.py::test_theorem_1_is_theorem_2_at_the_width_of_bounded_queries",
        ),
    ),
    Theorem(
        "JL-MARG",
        _P,
        "Marginals",
        r"For all $k=\binom{d}{\ell}$ marginals of constant width $\ell$ on $\{0,1\}^d$,"
        r" $\mathrm{sc}_\varepsilon\le C_\ell\min\left\{\frac{d^\ell}{\alpha\varepsilon},"
        r"\frac{d^{(\ell+1)/2}}{\alpha\varepsilon},\frac{d}{\alpha^2\varepsilon}\right\}$; the"
        r" first"
        r" term is the least only for $\ell=1$.",
        ("geomdp.bounds.upper.monotone_marginals", "geomdp.workloads.Marginals"),
        ("Equation (2)",),
        claims=(
            "gaussian_widths::JL-MARG",
            "lower_marginals::JL-MARG",
        ),
        tests=("tests/bounds/test_upper.py::test_one_way_marginals",),
    ),
    Theorem(
        "JL-D8",
        _P,
        "JL matrix",
        r"$A\in\mathbb R^{m\times k}$ with independent rows, $\mathbb E A_iA_i^T=\frac1mI_k$ and"
        r" $\|A_i\|_{\psi_2}\le\kappa/\sqrt m$: Gaussian entries of variance $\frac1m$, random"
        r" signs over $\sqrt m$, or signs over $\sqrt{qm}$ of which a share $q$ is kept. It is"
        r" drawn without the data and may be public.",
        (
            "geomdp.jl_map",
            "geomdp.geometry.rademacher_jl_map",
            "geomdp.geometry.sparse_jl_map",
            "geomdp.geometry.JLLaw",
        ),
        ("Definition 8",),
        claims=("jl_distortion::JL-T9", "jl_rates::JL-D8"),
        tests=(
            "tests/geometry/test_jl.py::test_rows_are_isotropic_and_independent",
            "tests/geometry/test_jl.py::test_gaussian_entries_have_variance_one_over_k",
            "tests/geometry/test_jl.py::test_sign_entries_have_one_modulus",
        ),
    ),
    Theorem(
        "JL-T9",
        _P,
        "Additive distortion of a random map",
        r"$\mathbb E\sup_{x,y\in S}\left|\|A(x-y)\|_2-\|x-y\|_2\right|\le C\kappa^2\frac{w(S)}"
        r"{\sqrt m}$. For Gaussian $A$ the bound is"
        r" $\left(4w(S)+(0.7072+\frac{1}{4\sqrt m})\operatorname{diam}S\right)/\sqrt m"
        r"\le6.5\,w(S)/\sqrt m$.",
        ("geomdp.jl_map", "geomdp.geometry.rademacher_jl_map"),
        ("Theorem 9",),
        claims=("jl_distortion::JL-T9",),
        tests=("tests/geometry/test_jl.py::test_distortion_stays_below_its_bound",),
    ),
    Theorem(
        "JL-L10",
        _P,
        "Width under contractions",
        r"If $f:S\to\mathbb R^m$ is 1-Lipschitz then $w(f(S))\le w(S)$.",
        ("geomdp.gaussian_width", "geomdp.bounds.upper.near_contraction_width"),
        ("Lemma 10",),
        claims=("image_widths::JL-L10",),
        tests=(
            "tests/geometry/test_width.py::test_contractions_do_not_widen",
            "tests/geometry/test_width.py::test_isometries_keep_the_width",
        ),
    ),
    Theorem(
        "JL-L11",
        _P,
        "Width under near contractions",
        r"If $\|f(x)-f(y)\|\le\|x-y\|+\delta$ on $S$ then $w(f(S))\le2w(S)+2\delta\sqrt m$; the"
        r" best separation gives $\left(\sqrt{w(S)}+\sqrt{\delta\sqrt m}\right)^2$.",
        ("geomdp.bounds.upper.near_contraction_width", "geomdp.gaussian_width"),
        ("Lemma 11",),
        claims=("image_widths::JL-L11",),
        tests=(
            "tests/bounds/test_upper.py::test_widths_under_near_contractions",
            "tests/geometry/test_width.py"
            "::test_near_contractions_widen_by_at_most_the_stated_amount",
        ),
    ),
    Theorem(
        "JL-L12",
        _P,
        "Width after a random map",
        r"$\mathbb E\,w(AS)\le C\kappa^2w(S)$. For Gaussian $A$ exactly $\mathbb E\,w(AS)="
        r"\frac{\mu_m}{\sqrt m}w(S)\le w(S)$ with $\mu_m=\mathbb E\|g_m\|_2$.",
        ("geomdp.jl_map", "geomdp.geometry.mean_gaussian_norm"),
        ("Lemma 12",),
        claims=("jl_distortion::JL-L12",),
        tests=("tests/geometry/test_jl.py::test_expected_width_of_the_image_is_exact",),
    ),
    Theorem(
        "JL-A1",
        _P,
        "JL mechanism",
        r"Draw a JL matrix $A$ without the data; release $\hat y=AQ(X)+Z$ with noise for the body"
        r" $\frac1nA(K_Q-K_Q)$ of this $A$; answer $\dot y=\operatorname{argmin}_{y\in K_Q}\|Ay-"
        r"\hat y\|_2$."
        r" Privacy never rests on the distortion of $A$.",
        (
            "geomdp.mechanisms.JL",
            "geomdp.mechanisms.Projected",
            "geomdp.geometry.Projector",
        ),
        ("Algorithm 1",),
        claims=("jl_error_vs_n::JL-L13", "jl_rates::JL-T21"),
        tests=(
            "tests/mechanisms/test_oracles.py::test_jl_noise_fits_the_mapped_body_of_every_law",
            "tests/mechanisms/test_oracles.py::test_jl_prediction_is_the_stated_sum",
            "tests/geometry/test_projection.py::test_error_of_the_jl_mechanism_is_bounded_by_its_noise",
        ),
    ),
    Theorem(
        "JL-L13",
        _P,
        "Error of the JL mechanism",
        r"Always $\|A\dot y-AQ(X)\|_2\le\|Z\|_2$, so $\mathrm{err}^2\le\frac{1}{\sqrt k}"
        r"\mathbb E\|Z\|_2+C\kappa^2\frac{w(K_Q)}{\sqrt{mk}}$.",
        ("geomdp.mechanisms.JL", "geomdp.bounds.upper.jl_mechanism_error"),
        ("Lemma 13",),
        claims=("jl_error_vs_n::JL-L13", "jl_rates::JL-L13"),
        tests=(
            "tests/mechanisms/test_oracles.py::test_projection_inequalities_hold_without_exception",
        ),
    ),
    Theorem(
        "JL-L13b",
        _P,
        "Error of projection, dual form",
        r"$\|A\dot y-AQ(X)\|_2^2\le h_{AK_Q}(Z)-\langle Z,AQ(X)\rangle$; for noise of mean zero"
        r" $\mathbb E\|A\dot y-AQ(X)\|_2^2\le\mathbb E\,h_{AK_Q}(Z)$.",
        (
            "geomdp.mechanisms.Projected",
            "geomdp.mechanisms.post_processed.support_bound.expected_support_bound",
        ),
        claims=(
            "jl_error_vs_n::JL-L13b",
            "gaussian_projection::JL-L13b",
            "jl_needed::JL-L13b",
        ),
        tests=(
            "tests/mechanisms/test_oracles.py::test_projection_inequalities_hold_without_exception",
        ),
    ),
    Theorem(
        "JL-GAUSS",
        _P,
        "Projection with Gaussian noise",
        r"With $\sigma=\Delta_2/\sqrt{2\rho}$ and projection on $K_Q$, $\mathrm{rms}\le"
        r"\sqrt{\sigma w(K_Q)/k}\le\left(\frac{2\sqrt{\ln N/\rho}}{n}\right)^{1/2}$ under"
        r" $\rho$-zCDP, without a random map.",
        ("geomdp.mechanisms.Gaussian", "geomdp.bounds.upper.gaussian_projection"),
        claims=("gaussian_projection::JL-GAUSS",),
        tests=(
            "tests/mechanisms/test_oracles.py::test_gaussian_projection_bound",
            "tests/bounds/test_upper.py::test_gaussian_projection_oracle",
        ),
    ),
    Theorem(
        "JL-T21",
        _P,
        "Pure-DP JL mechanism",
        r"With the noise of Lemma 16 in $m$ dimensions, $\mathrm{err}\le\frac{C w(K_Q)}{\sqrt k}"
        r"\left(\frac{1}{\sqrt m}+\frac{\sqrt m}{\varepsilon n}\right)$, least at"
        r" $m^*=\lceil\varepsilon n\rceil$, where $n\ge C\frac{w(K_Q)^2}{k\alpha^2\varepsilon}$"
        r" suffices.",
        (
            "geomdp.mechanisms.JL",
            "geomdp.mechanisms.AutoDimension",
            "geomdp.bounds.upper.jl_mechanism_rows",
            "geomdp.bounds.upper.jl_mechanism_error",
        ),
        ("Theorem 21",),
        claims=("jl_needed::JL-T21", "jl_rates::JL-T21"),
        tests=("tests/bounds/test_upper.py::test_jl_rows_balance_the_two_terms",),
    ),
    Theorem(
        "JL-COV",
        _P,
        "The body of second moments",
        r"For records in the unit ball $K=\{M\succeq0,\operatorname{tr}M\le1\}$, $h_K(G)="
        r"\max(\lambda_{\max}(G),0)$ and $w(K)\le\sqrt{2d}$ with ratio tending to 1; the gauge of"
        r" $K-K$ is $\max(\operatorname{tr}M_+,\operatorname{tr}M_-)$.",
        (
            "geomdp.bodies.Spectraplex",
            "geomdp.bodies.SpectraplexDifference",
            "geomdp.workloads.SecondMoment",
        ),
        correction="The width tends to the square root of 2d, not 2 root d (DISC-1).",
        claims=("gaussian_widths::JL-COV",),
        tests=("tests/bodies/test_spectral.py::test_widths_of_the_sheet",),
    ),
    Theorem(
        "JL-L22",
        _P,
        "Second moments of the unit ball",
        r"An $\varepsilon$-DP mechanism has $\mathbb E\|\hat M-M(X)\|_F\le\alpha$ once"
        r" $n\ge C\min\left\{\frac{d^{3/2}}{\alpha\varepsilon},\frac{d}{\alpha^2\varepsilon}"
        r"\right\}$.",
        ("geomdp.mechanisms.SecondMoment", "geomdp.bounds.upper.second_moments"),
        ("Lemma 22",),
        claims=("covariance_error::JL-WIS",),
        tests=("tests/bounds/test_upper.py::test_sample_sizes_invert_their_errors",),
    ),
    Theorem(
        "JL-WIS",
        _P,
        "Wishart difference mechanism",
        r"$Z=A-B$ with Wishart $A,B$ of $d+1$ degrees of freedom and scale"
        r" $\frac{1}{2\varepsilon'}$, $\varepsilon'=\frac{n\varepsilon}{2}$, is exactly"
        r" $\varepsilon$-DP; after projection $\mathbb E\|\hat M-M\|_F\le\min\left\{"
        r"\frac{(d+1)\sqrt{2d}}{n\varepsilon},\sqrt{\frac{4d+3}{n\varepsilon}}\right\}$.",
        ("geomdp.mechanisms.SecondMoment", "geomdp.bounds.upper.second_moment_error"),
        claims=(
            "covariance_error::JL-WIS",
            "accuracy_covariance::JL-WIS",
        ),
        tests=(
            "tests/mechanisms/test_second_moment.py::test_wishart_energy",
            "tests/mechanisms/test_second_moment.py::test_bounds_hold_for_every_data_set",
        ),
    ),
    Theorem(
        "JL-T3",
        _P,
        "Covariance estimation",
        r"$n\ge C\left(\frac{1}{\alpha^2}+\min\left\{\frac{d^{3/2}}{\alpha\varepsilon},"
        r"\frac{d}{\alpha^2\varepsilon}\right\}\right)$ records of a distribution on the unit ball"
        r" suffice for $\mathbb E\|\hat\Sigma-\Sigma\|_F\le\alpha$.",
        ("geomdp.mechanisms.Covariance", "geomdp.bounds.upper.covariance_error"),
        ("Theorem 3",),
        claims=("covariance_error::JL-T3", "covariance_bounds::JL-T3"),
        tests=(
            "tests/mechanisms/test_second_moment.py::test_explicit_bound_of_theorem_3",
            "tests/mechanisms/test_second_moment.py::test_population_bound_holds",
        ),
    ),
    Theorem(
        "JL-T23",
        _P,
        "Two-way marginals in polynomial time",
        r"$\mathrm{sc}=O\left(\min\left\{\frac{d^{3/2}}{\alpha\varepsilon},\frac{d}{\alpha^2"
        r"\varepsilon}\right\}\right)$ for all 2-way marginals, from the second moment of"
        r" $x/\sqrt d$: $\mathrm{rms}\le\sqrt{\frac{d}{d-1}}\,\|\hat M-M\|_F$.",
        (
            "geomdp.mechanisms.PairMarginals",
            "geomdp.bounds.upper.two_way_marginals",
            "geomdp.bounds.upper.two_way_marginals_error",
        ),
        ("Theorem 23",),
        claims=("lower_marginals::JL-T23", "covariance_bounds::JL-T23"),
        tests=(
            "tests/mechanisms/test_pair_marginals.py::test_bound_is_the_explicit_one",
            "tests/bounds/test_upper.py::test_two_way_marginals_through_the_covariance_body",
        ),
    ),
)
