"""Statements that the papers share: privacy, basic noise, convex bodies and sampling."""

from experiments.theorems.theorem import Paper, Theorem

_P, _S = Paper.PRIMITIVES, Paper.SAMPLING

PRIMITIVES = (
    Theorem(
        "GEN-1",
        _P,
        "Neighbours",
        r"Under replace-one, with public $n$, neighbours differ in one record, and a mean of"
        r" values in $[a,b]$ differs by at most $\frac{b-a}{n}$. Under add/remove, one neighbour"
        r" has one more record, and one count differs by 1. A mechanism that is $\varepsilon$-DP"
        r" for add/remove is $2\varepsilon$-DP for replace-one.",
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
        r"A mechanism $M$ is $(\varepsilon,\delta)$-DP if $\Pr[M(X)\in S]\le"
        r" e^\varepsilon\Pr[M(X')\in S]+\delta$ for all neighbours $X,X'$ and all events $S$. If"
        r" $M$ is $\varepsilon$-DP, data sets that differ in $r$ records give the factor"
        r" $e^{r\varepsilon}$. The budgets of composed mechanisms add up. An $\varepsilon$-DP"
        r" mechanism is $\frac{\varepsilon^2}{2}$-zCDP, and a $\rho$-zCDP mechanism is"
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
            "tests/privacy/test_rounded_up.py::test_a_cost_is_the_least_float_above_the_exact_one",
            "tests/privacy/test_composition.py::test_groups_of_groups",
        ),
    ),
    Theorem(
        "GEN-2a",
        _P,
        "Advanced composition",
        r"The composition of $T$ adaptive $(\varepsilon_0,\delta_0)$-DP steps is"
        r" $\left(\sqrt{2T\ln(1/\delta')}\,\varepsilon_0+T\varepsilon_0(e^{\varepsilon_0}-1),T"
        r"\delta_0+\delta'\right)$-DP for every $\delta'>0$.",
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
        r"Let $\varepsilon_0=\varepsilon/\sqrt{8T\ln(1/\delta')}$ with $\varepsilon\le1$ and"
        r" $\delta'\le\frac12$. The composition of $T$ adaptive $(\varepsilon_0,\delta_0)$-DP"
        r" steps is $(\varepsilon,T\delta_0+\delta')$-DP.",
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
        r"Let $f$ have $\ell_1$ sensitivity $\Delta_1$. Adding noise $Y\sim\mathrm{Lap}(b)$ with"
        r" $b=\Delta_1/\varepsilon$ to each coordinate is $\varepsilon$-DP; $\Pr[|Y|\ge"
        r" tb]=e^{-t}$ and $\mathrm{Var}\,Y=2b^2$. Let a score $q$ have sensitivity $\Delta_q$."
        r" Choosing $r\in R$ with probability $\propto e^{\varepsilon q(D,r)/(2\Delta_q)}$ is"
        r" $\varepsilon$-DP. With probability at least $1-\gamma$ its score is at most"
        r" $\frac{2\Delta_q}{\varepsilon}\ln\frac{|R|}{\gamma}$ below the best.",
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
        r"For a convex body $K\subset\mathbb R^m$, the gauge is $\|z\|_K=\min\{t\ge0:z\in tK\}$,"
        r" the support function is $h_K(g)=\sup_{y\in K}\langle g,y\rangle$, and the Gaussian"
        r" width is $w(K)=\mathbb E\,h_K(g)$ for a standard Gaussian vector $g$. The width has"
        r" $w(K-K)=2w(K)$ and $\operatorname{diam}K\le\sqrt{2\pi}\,w(K)$. The volume radius"
        r" $\mathrm{vr}(K)=(\mathrm{vol}K/\kappa_m)^{1/m}$ is the radius of the ball with the"
        r" volume of $K$, where $\kappa_m$ is the volume of the unit ball.",
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
        r"Suppose that adding the noise $Z$ is $\varepsilon$-DP. Adding noise within total"
        r" variation $\tau$ of $Z$ is then $\left(\varepsilon,(1+e^\varepsilon)\tau\right)$-DP.",
        ("geomdp.privacy.Approximate", "geomdp.privacy.Guarantee"),
        claims=("imperfect_noise::SAM-1",),
        tests=("tests/privacy/test_guarantees.py::test_an_approximate_sampler_costs_delta",),
    ),
    Theorem(
        "SAM-2",
        _S,
        "Pure privacy from a sampler",
        r"Suppose that adding the noise $Z$ is $\varepsilon$-DP. Adding noise whose density over"
        r" that of $Z$ lies in $[e^{-\tau},e^\tau]$ is then $(\varepsilon+2\tau)$-DP. A bound on"
        r" total variation alone does not give pure privacy.",
        ("geomdp.privacy.Approximate", "geomdp.privacy.Guarantee"),
        claims=("imperfect_noise::SAM-2",),
        tests=("tests/privacy/test_guarantees.py::test_an_approximate_sampler_costs_delta",),
    ),
    Theorem(
        "SAM-3",
        _S,
        "Markov chains without a proof",
        r"If noise comes from a Markov chain after finitely many steps, without a proved bound on"
        r" its error, it is heuristic: $\varepsilon$ is a target, and no privacy is claimed.",
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
        r"Uniform points are drawn exactly from $\ell_p$ balls, linear images of bodies with an"
        r" exact sampler, low-dimensional polytopes (by triangulation), simplices, spectraplexes"
        r" and elliptopes.",
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
        r"K-norm noise of any symmetric body $K'\supseteq\frac1n(K_Q-K_Q)$ is $\varepsilon$-DP."
        r" Widths, covariances and maps that are computed without the data cost no privacy.",
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
        "All statements are for real arithmetic. Noise computed in float64 breaks them in"
        " principle, and the privacy record of a release with such noise says so.",
        ("geomdp.privacy.Guarantee",),
        claims=("imperfect_noise::SAM-6",),
        tests=("tests/privacy/test_guarantees.py::test_the_record_is_json",),
    ),
)
