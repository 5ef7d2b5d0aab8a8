"""Wang, Fan, Zhang and Wang 2013: smooth queries from noisy Chebyshev moments."""

from experiments.theorems.theorem import Paper, Theorem

_P = Paper.WANG

SMOOTH = (
    Theorem(
        "SM-A1",
        _P,
        "Summary",
        r"Release $S_m=\frac1n\sum_x\prod_i\cos(m_i\arccos x_i)$, $m\in\{0,\dots,t-1\}^d$,"
        r" $t\approx n^{1/(2d+K)}$, with noise $\mathrm{Lap}\left(\frac{S(t,d)}{n\varepsilon}"
        r"\right)$ on all but $m=0$, $S(t,d)=\max_{x,y}\|S_m(x)-S_m(y)\|_1=t^{d-1}\left(t-"
        r"\min_\theta\sum_{m<t}\cos m\theta\right)\le2(t^d-1)$: $\varepsilon$-DP under"
        r" replace-one.",
        ("geomdp.SmoothSummary", "geomdp.mechanisms.UniformLaplace"),
        ("Algorithm 1",),
        correction="The printed scale t^d / (n epsilon) is about half of this and too small for"
        " replace-one once t is 3 or more: up to 1.217 epsilon is lost (DISC-15). The code uses"
        " the largest l1 distance of moments, t^(d-1) S(t, 1), in place of 2 (t^d - 1).",
        claims=("corrections::SM-A1",),
        tests=(
            "tests/mechanisms/test_smooth_noise.py::test_audit_refutes_the_printed_scale_and_not_the_corrected_one",
            "tests/workloads/smooth/test_smooth_queries.py::test_table_of_l1_diameters",
        ),
    ),
    Theorem(
        "SM-A2",
        _P,
        "Evaluation",
        r"For $g_f(\theta)=f(\cos\theta_1,\dots,\cos\theta_d)$ take coefficients $c_m$ of an even"
        r" trigonometric polynomial near $g_f$ and answer $\langle c,\hat S\rangle$.",
        (
            "geomdp.mechanisms.SmoothRelease",
            "geomdp.workloads.smooth.approximate",
            "geomdp.workloads.smooth.Truncation",
        ),
        ("Algorithm 2",),
        correction="The degree per variable is at most t - 1 (DISC-16).",
        claims=("smooth_error_vs_n::SM-A2",),
        tests=(
            "tests/workloads/smooth/test_evaluation.py::test_polynomials_are_answered_exactly_without_noise",
            "tests/workloads/smooth/test_evaluation.py::test_proved_bounds_hold_and_estimates_are_seen",
        ),
    ),
    Theorem(
        "SM-JK",
        _P,
        "Jackson operator",
        r"A multiplier on Chebyshev coefficients: $c_m=\gamma_m\prod_i\lambda_{m_i}$, $\lambda_n="
        r"\sum_{k=1}^{K+1}(-1)^{k+1}\binom{K+1}{k}\rho_{kn}$, $\rho_l$ the Fourier coefficients of"
        r" $\left(\frac{\sin(t's/2)}{\sin(s/2)}\right)^{2r}$, $r=\left\lceil\frac{K+3}{2}"
        r"\right\rceil$.",
        ("geomdp.workloads.smooth.Jackson", "geomdp.workloads.smooth.jackson_multiplier"),
        claims=(
            "jackson_rate::SM-JK",
            "smooth_error_vs_n::SM-JK",
            "smooth_table1::SM-JK",
        ),
        tests=(
            "tests/workloads/smooth/test_jackson.py::test_multiplier_is_the_operator_by_direct_quadrature",
        ),
    ),
    Theorem(
        "SM-T3.1",
        _P,
        "Accuracy and time",
        r"$\varepsilon$-DP; with probability $1-\beta$ all queries of $C_B^K$ err by"
        r" $O\left(n^{-K/(2d+K)}\max(1,\frac1\varepsilon)\right)$; the summary takes"
        r" $O\left(n^{(3d+K)/(2d+K)}\right)$, an answer"
        r" $\tilde O\left(n^{(d+2+2d/K)/(2d+K)}\right)$.",
        ("geomdp.bounds.upper.smooth_accuracy", "geomdp.mechanisms.TheoremDegree"),
        ("Theorem 3.1",),
        correction="Printed with 1 / epsilon; for large epsilon the approximation stays (DISC-17)."
        " With the Jackson operator the rate in n begins late: for one variable at 3 10^4, 10^9"
        " and 10^18 records for K = 1, 2 and 4.",
        claims=(
            "jackson_rate::SM-T3.1",
            "smooth_error_vs_n::SM-T3.1",
            "corrections::SM-T3.1",
        ),
        tests=("tests/bounds/test_upper.py::test_smooth_rates",),
    ),
    Theorem(
        "SM-T3.2",
        _P,
        "Approximation with small coefficients",
        r"For $f\in C_B^K$ there is an even trigonometric polynomial of degree below $\lceil c"
        r"\gamma^{-1/K}\rceil$ per variable within $\gamma$ of $g_f$, all of whose coefficients are"
        r" at most $M(d,K,B)$.",
        ("geomdp.workloads.smooth.approximate", "geomdp.workloads.smooth.Jackson"),
        ("Theorem 3.2",),
        claims=("jackson_rate::SM-T3.2",),
        tests=(
            "tests/workloads/smooth/test_evaluation.py::test_jackson_coefficients_are_bounded",
            "tests/workloads/smooth/test_evaluation.py::test_jackson_error_is_of_order_t_to_the_minus_k",
        ),
    ),
    Theorem(
        "SM-TAB",
        _P,
        "Table 1",
        r"$K=1$: error $n^{-1/(2d+1)}$, summary $n^{3/2}$, answer $n^{3/2+1/(4d+2)}$."
        r" $K=2d$: $n^{-1/2}$, $n^{5/4}$, $n^{1/4+3/(4d)}$. $d/K=\epsilon_0\ll1$:"
        r" $n^{-(1-2\epsilon_0)}$, $n^{1+\epsilon_0}$, $n^{\epsilon_0(1+3/d)}$.",
        ("geomdp.bounds.upper.smooth_accuracy", "geomdp.SmoothSummary"),
        ("Table 1",),
        claims=("smooth_table1::SM-TAB",),
        tests=("tests/bounds/test_upper.py::test_smooth_rates",),
    ),
    Theorem(
        "SM-X1",
        Paper.ADDITIONS,
        "Weighted noise for smooth queries",
        r"Laplace scales $b_m=\frac{2}{n\varepsilon}\|m\|^{2K/3}\sum_l\|l\|^{-2K/3}$ are"
        r" $\varepsilon$-DP and give error about $(n\varepsilon)^{-\min(1,K/(1.5d))}$ up to"
        r" logarithms (hypothesis).",
        ("geomdp.mechanisms.WeightedLaplace", "geomdp.mechanisms.LeastPredictedError"),
        claims=("smooth_error_vs_n::SM-X1",),
        tests=(
            "tests/mechanisms/test_smooth_noise.py::test_weighted_scales_follow_the_formula_sheet_and_are_below_its_constant",
            "tests/mechanisms/test_smooth_noise.py::test_weighted_noise_is_the_best_for_its_class",
        ),
    ),
)
