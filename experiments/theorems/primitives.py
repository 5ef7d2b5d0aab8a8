"""Statements that all papers use: privacy, basic noise, convex bodies and sampling."""

from experiments.theorems.theorem import Paper, Theorem

_P, _S = Paper.PRIMITIVES, Paper.SAMPLING

PRIMITIVES = (
    Theorem(
        "GEN-1",
        _P,
        "Neighbours",
        r"Replace-one with public $n$: a mean of values in $[a,b]$ moves by at most"
        r" $\frac{b-a}{n}$. Add/remove: counts move by one unit; $\varepsilon$-DP there is"
        r" $2\varepsilon$-DP for replace-one.",
        ("geomdp.Adjacency", "geomdp.privacy.convert_adjacency"),
        claims=("planted_faults::GEN-1", "many_columns::X-RES"),
        tests=(
            "tests/privacy/test_conversions.py::test_add_remove_to_replace_one_doubles_epsilon",
        ),
    ),
    Theorem(
        "GEN-2",
        _P,
        "Privacy, group privacy, composition",
        r"$\Pr[M(X)\in S]\le e^\varepsilon\Pr[M(X')\in S]+\delta$. At distance $r$ the factor is"
        r" $e^{\varepsilon r}$; composition adds budgets; a pure budget is"
        r" $\frac{\varepsilon^2}{2}$-zCDP, and $\rho$-zCDP is"
        r" $\left(\rho+2\sqrt{\rho\ln(1/\delta)},\delta\right)$-DP.",
        (
            "geomdp.PureDP",
            "geomdp.ApproxDP",
            "geomdp.ZCDP",
            "geomdp.privacy.group_privacy",
            "geomdp.privacy.basic_composition",
            "geomdp.privacy.pure_to_zcdp",
            "geomdp.privacy.zcdp_to_approx",
        ),
        ("Nikolov, Lemma 5", "Blum and Roth, Definition 2.6"),
        claims=(
            "privacy_loss::GEN-2",
            "audit_power::GEN-2",
        ),
        tests=(
            "tests/privacy/test_composition.py::test_pure_steps_add_up",
            "tests/privacy/test_composition.py::test_groups_of_groups",
        ),
    ),
    Theorem(
        "GEN-2a",
        _P,
        "Advanced composition",
        r"$T$ adaptive $(\varepsilon_0,\delta_0)$-DP steps are"
        r" $\left(\sqrt{2T\ln(1/\delta')}\,\varepsilon_0+T\varepsilon_0(e^{\varepsilon_0}-1),"
        r"T\delta_0+\delta'\right)$-DP.",
        ("geomdp.privacy.advanced_composition", "geomdp.privacy.largest_step_epsilon"),
        claims=("composition::GEN-2a",),
        tests=(
            "tests/privacy/test_composition.py::test_advanced_composition_oracle",
            "tests/privacy/test_composition.py::test_largest_step_is_the_last_float_that_fits",
        ),
    ),
    Theorem(
        "GEN-2b",
        _P,
        "Shortcut of advanced composition",
        r"$\varepsilon_0=\varepsilon/\sqrt{8T\ln(1/\delta')}$ gives $(\varepsilon,T\delta_0+"
        r"\delta')$, for $\varepsilon\le1$ and $\delta'\le\frac12$.",
        ("geomdp.privacy.shortcut_step_epsilon",),
        claims=("composition::GEN-2b",),
        tests=(
            "tests/privacy/test_composition.py::test_the_shortcut_is_safe_in_its_range_and_never_beats_the_solution",
        ),
    ),
    Theorem(
        "GEN-3",
        _P,
        "Laplace and exponential mechanisms",
        r"$f+\mathrm{Lap}(\Delta_1/\varepsilon)$ per coordinate is $\varepsilon$-DP, with"
        r" $\Pr[|Y|\ge tb]=e^{-t}$ and $\mathrm{Var}=2b^2$. Choosing $r$ with probability"
        r" $\propto e^{\varepsilon q(D,r)/(2\Delta_q)}$ is $\varepsilon$-DP and within"
        r" $\frac{2\Delta_q}{\varepsilon}\ln\frac{|R|}{\gamma}$ of the best with probability"
        r" $1-\gamma$.",
        (
            "geomdp.mechanisms.Laplace",
            "geomdp.noise.LaplaceNoise",
            "geomdp.privacy.laplace_scale",
            "geomdp.mechanisms.EnumeratedQueries",
        ),
        ("Blum and Roth, Definition 2.8", "Blum and Roth, Theorem 2.9"),
        claims=("privacy_loss::GEN-3",),
        tests=(
            "tests/laws/test_single_numbers.py::test_the_exponential_mechanism_has_its_law",
            "tests/noise/test_additive_noise.py::test_laplace_never_exceeds_epsilon_on_l1_sensitivity",
        ),
    ),
    Theorem(
        "GEN-4",
        _P,
        "Gauge, support function, width, volume radius",
        r"$\|z\|_K=\min\{t\ge0:z\in tK\}$; $h_K(g)=\sup_{y\in K}\langle g,y\rangle$;"
        r" $w(K)=\mathbb E\,h_K(g)$ with $w(K-K)=2w(K)$ and $\operatorname{diam}K\le\sqrt{2\pi}\,"
        r"w(K)$; $\mathrm{vr}(K)=(\mathrm{vol}K/\kappa_m)^{1/m}$.",
        (
            "geomdp.bodies.HasGauge",
            "geomdp.bodies.HasSupport",
            "geomdp.gaussian_width",
            "geomdp.volume",
            "geomdp.geometry.volume_radius",
        ),
        claims=("volume_radii::JL-URY",),
        tests=(
            "tests/geometry/test_width.py::test_closed_forms_agree_with_the_support_function",
            "tests/bodies/test_contracts.py::test_gauge_and_support_function_are_polar",
        ),
    ),
)

SAMPLING = (
    Theorem(
        "SAM-1",
        _S,
        "Approximate samplers",
        r"Noise within total variation $\tau$ of $\varepsilon$-DP noise is"
        r" $\left(\varepsilon,(1+e^\varepsilon)\tau\right)$-DP.",
        ("geomdp.privacy.Approximate", "geomdp.privacy.Guarantee"),
        claims=("imperfect_noise::SAM-1",),
        tests=("tests/privacy/test_guarantees.py::test_an_approximate_sampler_costs_delta",),
    ),
    Theorem(
        "SAM-2",
        _S,
        "Pure privacy from a sampler",
        r"A density ratio in $[e^{-\tau},e^\tau]$ gives $(\varepsilon+2\tau)$-DP; total variation"
        r" alone never gives pure privacy.",
        ("geomdp.privacy.Approximate", "geomdp.privacy.Guarantee"),
        claims=("imperfect_noise::SAM-2",),
        tests=("tests/privacy/test_guarantees.py::test_an_approximate_sampler_costs_delta",),
    ),
    Theorem(
        "SAM-3",
        _S,
        "Markov chains without a proof",
        r"Noise of a finite Markov chain with no proved bound is heuristic: $\varepsilon$ is a"
        r" target, and nothing is claimed.",
        ("geomdp.privacy.Heuristic", "geomdp.geometry.sampling.HitAndRun"),
        claims=("hit_and_run::SAM-3",),
        tests=(
            "tests/privacy/test_guarantees.py::test_a_heuristic_sampler_claims_nothing",
            "tests/geometry/test_slabs.py::test_noise_of_refined_slabs_is_heuristic",
        ),
    ),
    Theorem(
        "SAM-4",
        _S,
        "Exact samplers",
        r"Exact uniform points: $\ell_p$ balls, linear images, low-dimensional polytopes by"
        r" triangulation, simplices, spectraplex, elliptope.",
        (
            "geomdp.sample_uniform",
            "geomdp.bodies.LpBall",
            "geomdp.bodies.TriangulatedPolytope",
        ),
        claims=("exact_samplers::SAM-4",),
        tests=(
            "tests/geometry/test_sampling_kernels.py::test_uniform_points_stay_uniform",
            "tests/bodies/test_contracts.py::test_exact_samples_are_inside_with_the_stated_moments",
        ),
    ),
    Theorem(
        "SAM-5",
        _S,
        "Outer bodies are safe",
        r"Any symmetric $K'\supseteq\frac1n(K_Q-K_Q)$ keeps $\varepsilon$-DP; widths, covariances"
        r" and maps computed without the data cost nothing.",
        ("geomdp.bodies.check_contains_neighbours", "geomdp.bodies.neighbour_body"),
        claims=("five_bodies::JL-DEF", "privacy_loss::JL-L14"),
        tests=(
            "tests/bodies/test_sensitivity.py::test_exact_noise_bodies_hold_all_differences",
            "tests/bodies/test_containment.py::test_tight_bodies_pass_and_slightly_smaller_ones_fail",
        ),
    ),
    Theorem(
        "SAM-6",
        _S,
        "Real arithmetic",
        r"All statements are for real arithmetic; noise in float64 breaks them in principle, and"
        r" every record says so.",
        ("geomdp.privacy.Guarantee",),
        claims=("imperfect_noise::SAM-6",),
        tests=("tests/privacy/test_guarantees.py::test_the_record_is_json",),
    ),
)
