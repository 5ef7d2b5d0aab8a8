"""Nikolov 2022: sample complexity, random maps and the JL mechanism."""

from experiments.theorems.theorem import Paper, Theorem

_P = Paper.NIKOLOV

NIKOLOV = (
    Theorem(
        "JL-DEF",
        _P,
        "Sensitivity polytope and neighbours",
        r"The answers to all data sets lie in $K_Q=\operatorname{conv}\{Q(x):x\in\mathcal X\}$. If"
        r" one of $n$ records is replaced, $Q(X)$ moves by a vector of $\frac1n(K_Q-K_Q)$. The"
        r" sample complexity $\mathrm{sc}_\varepsilon(Q,\alpha)$ is the least $n$ at which some"
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
        r" $\mathrm{sc}_\varepsilon(Q,\alpha)\le"
        r" C\min\left\{\frac{k}{\alpha\varepsilon},\frac{\sqrt{k\ln"
        r" N}}{\alpha\varepsilon},\frac{\ln N}{\alpha^2\varepsilon}\right\}.$ Here and below, $C$"
        r" and $c$ are absolute constants.",
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
        r"For $k$ queries whose sensitivity polytope has Gaussian width $w(K_Q)$,"
        r" $\mathrm{sc}_\varepsilon(Q,\alpha)\le"
        r" C\min\left\{\frac{w(K_Q)}{\alpha\varepsilon},\frac{w(K_Q)^2}{k\alpha^2\varepsilon}"
        r"\right\}.$",
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
        r" $\mathrm{sc}_\varepsilon(Q,\alpha)\le"
        r" C_\ell\min\left\{\frac{d^\ell}{\alpha\varepsilon},\frac{d^{(\ell+1)/2}}{\alpha"
        r"\varepsilon},\frac{d}{\alpha^2\varepsilon}\right\}$. The first term can be the least"
        r" only for $\ell=1$.",
        ("geomdp.bounds.upper.monotone_marginals", "geomdp.workloads.Marginals"),
        ("Equation (2)",),
        claims=(
            "gaussian_widths::JL-MARG",
            "lower_marginals::JL-MARG",
        ),
        tests=("tests/bounds/test_upper.py::test_marginals_have_the_least_of_three_terms",),
    ),
    Theorem(
        "JL-D8",
        _P,
        "JL matrix",
        r"A JL matrix $A\in\mathbb R^{m\times k}$ has independent rows $A_i$ with $\mathbb E"
        r" A_iA_i^T=\frac1mI_k$ and $\|A_i\|_{\psi_2}\le\kappa/\sqrt m$. Examples are Gaussian"
        r" entries of variance $\frac1m$, random signs over $\sqrt m$, and random signs over"
        r" $\sqrt{qm}$ of which each is kept with probability $q$ and otherwise replaced by $0$."
        r" $A$ is drawn without the data and may be public.",
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
        r"For a JL matrix $A$ and every bounded set $S$, $\mathbb E\sup_{x,y\in"
        r" S}\left|\|A(x-y)\|_2-\|x-y\|_2\right|\le C\kappa^2\frac{w(S)}{\sqrt m}$. For Gaussian"
        r" $A$ the bound is $\left(4w(S)+(0.7072+\frac{1}{4\sqrt"
        r" m})\operatorname{diam}S\right)/\sqrt m\le6.5\,w(S)/\sqrt m$.",
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
        r"If $\|f(x)-f(y)\|\le\|x-y\|+\delta$ for all $x,y\in S$, then"
        r" $w(f(S))\le2w(S)+2\delta\sqrt m$ for $f:S\to\mathbb R^m$. The proof at its best scale"
        r" gives $\left(\sqrt{w(S)}+\sqrt{\delta\sqrt m}\right)^2$.",
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
        r"For a JL matrix $A$, $\mathbb E\,w(AS)\le C\kappa^2w(S)$. For Gaussian $A$ exactly"
        r" $\mathbb E\,w(AS)=\frac{\mu_m}{\sqrt m}w(S)\le w(S)$, where $\mu_m=\mathbb E\|g\|_2$"
        r" for a standard Gaussian vector $g\in\mathbb R^m$.",
        ("geomdp.jl_map", "geomdp.geometry.mean_gaussian_norm"),
        ("Lemma 12",),
        claims=("jl_distortion::JL-L12",),
        tests=("tests/geometry/test_jl.py::test_expected_width_of_the_image_is_exact",),
    ),
    Theorem(
        "JL-A1",
        _P,
        "JL mechanism",
        r"Draw a JL matrix $A$ without the data. Release $\hat y=AQ(X)+Z$ with noise for the body"
        r" $\frac1nA(K_Q-K_Q)$ of this $A$. Answer $\dot y=\operatorname{argmin}_{y\in"
        r" K_Q}\|Ay-\hat y\|_2$. Privacy does not depend on how well $A$ keeps distances.",
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
        r"The answers $\dot y$ of Algorithm 1 always have $\|A\dot y-AQ(X)\|_2\le\|Z\|_2$. Hence"
        r" $\frac{1}{\sqrt k}\mathbb E\|\dot y-Q(X)\|_2\le\frac{1}{\sqrt k}\mathbb"
        r" E\|Z\|_2+C\kappa^2\frac{w(K_Q)}{\sqrt{mk}}$.",
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
        r"The answers $\dot y$ of Algorithm 1 always have $\|A\dot y-AQ(X)\|_2^2\le"
        r" h_{AK_Q}(Z)-\langle Z,AQ(X)\rangle$. For noise of mean zero it follows that $\mathbb"
        r" E\|A\dot y-AQ(X)\|_2^2\le\mathbb E\,h_{AK_Q}(Z)$.",
        (
            "geomdp.mechanisms.Projected",
            "geomdp.mechanisms.projected.expected_support_bound",
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
        r"Let $\Delta_2$ be the largest $\ell_2$ distance of the answers on two neighbours."
        r" Gaussian noise with $\sigma=\Delta_2/\sqrt{2\rho}$ is $\rho$-zCDP. After projection on"
        r" $K_Q$, without a random map, its error is $\mathrm{rms}\le\sqrt{\sigma w(K_Q)/k}$. For"
        r" queries with values in $[-1,1]$ on $N$ elements, this is at most"
        r" $\left(\frac{2\sqrt{\ln N/\rho}}{n}\right)^{1/2}$.",
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
        r"With the noise of Lemma 16 in $m$ dimensions, the JL mechanism has"
        r" $\mathrm{err}\le\frac{C w(K_Q)}{\sqrt k}\left(\frac{1}{\sqrt m}+\frac{\sqrt"
        r" m}{\varepsilon n}\right)$. The bound is least at $m^*=\lceil\varepsilon n\rceil$, up to"
        r" a constant. With $m^*$ rows, $n\ge C\frac{w(K_Q)^2}{k\alpha^2\varepsilon}$ records"
        r" suffice for error $\alpha$.",
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
)
