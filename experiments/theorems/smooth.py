"""Wang, Fan, Zhang and Wang 2013: smooth queries from noisy Chebyshev moments."""

from experiments.theorems.theorem import Paper, Theorem

_P = Paper.WANG

SMOOTH = (
    Theorem(
        "SM-A1",
        _P,
        "Summary",
        r"The summary of $n$ records in $[-1,1]^d$ consists of the moments"
        r" $S_m=\frac1n\sum_x\prod_i\cos(m_i\arccos x_i)$, $m\in\{0,\dots,t-1\}^d$, with $t\approx"
        r" n^{1/(2d+K)}$. The moment $S_0=1$ is public, and all others get independent noise"
        r" $\mathrm{Lap}\left(\frac{S(t,d)}{n\varepsilon}\right)$. Here"
        r" $S(t,d)=t^{d-1}\left(t-\min_\theta\sum_{m<t}\cos m\theta\right)\le2(t^d-1)$ is the"
        r" largest $\ell_1$ distance between the moments of two records. The summary is"
        r" $\varepsilon$-DP under replace-one.",
        ("geomdp.SmoothSummary", "geomdp.mechanisms.UniformLaplace"),
        ("Algorithm 1",),
        correction="The printed scale t^d / (n epsilon) is too small for replace-one if t is 3 or"
        " more: the privacy loss then exceeds epsilon, by a factor that rises from 1.042 at t = 3"
        " to 1.217 for large t (DISC-15).",
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
        r"To answer a query $f$, let $g_f(\theta)=f(\cos\theta_1,\dots,\cos\theta_d)$. Approximate"
        r" $g_f$ by an even trigonometric polynomial with coefficients $c_m$, and answer $\langle"
        r" c,\hat S\rangle$ from the noisy moments $\hat S$.",
        (
            "geomdp.mechanisms.SmoothRelease",
            "geomdp.workloads.smooth.approximate",
            "geomdp.workloads.smooth.Truncation",
        ),
        ("Algorithm 2",),
        correction="The degree in each variable is at most t - 1, not t, because the summary has"
        " no moments of degree t (DISC-16).",
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
        r"The Jackson operator approximates $g_f$ by the polynomial with coefficients"
        r" $c_m=\gamma_m\prod_i\lambda_{m_i}$, where $\gamma_m$ are the Chebyshev coefficients of"
        r" $f$ and $\lambda_n=\sum_{k=1}^{K+1}(-1)^{k+1}\binom{K+1}{k}\rho_{kn}$. The $\rho_l$ are"
        r" the Fourier coefficients of $\left(\frac{\sin(t's/2)}{\sin(s/2)}\right)^{2r}$, divided"
        r" such that $\rho_0=1$, with $r=\left\lceil\frac{K+3}{2}\right\rceil$ and"
        r" $t'=\left\lfloor\frac{t-1}{r}\right\rfloor+1$.",
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
        r"Let $C_B^K$ be the functions on $[-1,1]^d$ whose partial derivatives of order at most"
        r" $K$ are at most $B$ in absolute value. The mechanism is $\varepsilon$-DP. With"
        r" probability at least $1-\beta$, for $\beta\ge10e^{-n^{d/(2d+K)}/5}$, it answers all"
        r" queries of $C_B^K$ with errors of"
        r" $O\left(n^{-K/(2d+K)}\max(1,\frac1\varepsilon)\right)$. The summary takes time"
        r" $O\left(n^{(3d+K)/(2d+K)}\right)$, and an answer takes time $\tilde"
        r" O\left(n^{(d+2+2d/K)/(2d+K)}\right)$.",
        ("geomdp.bounds.upper.smooth_accuracy", "geomdp.mechanisms.TheoremDegree"),
        ("Theorem 3.1",),
        correction="Printed with 1 / epsilon in place of max(1, 1 / epsilon). This is false for"
        " large epsilon, because the error of the approximation does not depend on epsilon"
        " (DISC-17). With the Jackson operator, the error falls at the stated rate only from a"
        " large n on: for one variable from 3 10^4, 10^9 and 10^18 records for K = 1, 2 and 4.",
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
        r"For every $f\in C_B^K$ and $\gamma>0$, some even trigonometric polynomial of degree"
        r" below $\lceil c\gamma^{-1/K}\rceil$ in each variable differs from $g_f$ by at most"
        r" $\gamma$ everywhere. Its coefficients are at most $M(d,K,B)$ in absolute value.",
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
        r"Theorem 3.1 in three cases, up to constants and logarithms. For $K=1$ the error is"
        r" $n^{-1/(2d+1)}$, the summary takes time at most $n^{3/2}$ and an answer"
        r" $n^{3/2+1/(4d+2)}$. For $K=2d$ these are $n^{-1/2}$, $n^{5/4}$ and $n^{1/4+3/(4d)}$."
        r" For $d/K=\epsilon_0\ll1$ they are nearly $n^{-(1-2\epsilon_0)}$, $n^{1+\epsilon_0}$ and"
        r" $n^{\epsilon_0(1+3/d)}$.",
        ("geomdp.bounds.upper.smooth_accuracy", "geomdp.SmoothSummary"),
        ("Table 1",),
        claims=("smooth_table1::SM-TAB",),
        tests=("tests/bounds/test_upper.py::test_smooth_rates",),
    ),
    Theorem(
        "SM-X1",
        Paper.ADDITIONS,
        "Weighted noise for smooth queries",
        r"Give the moment $m\ne0$ Laplace noise of scale"
        r" $b_m=\frac{2}{n\varepsilon}\|m\|^{2K/3}\sum_{l\ne0}\|l\|^{-2K/3}$, and release $m=0$"
        r" exactly. This is $\varepsilon$-DP under replace-one. A hypothesis, not a theorem: the"
        r" error is about $(n\varepsilon)^{-\min(1,K/(1.5d))}$ up to logarithms.",
        ("geomdp.mechanisms.WeightedLaplace", "geomdp.mechanisms.LeastPredictedError"),
        claims=("smooth_error_vs_n::SM-X1",),
        tests=(
            "tests/mechanisms/test_smooth_noise.py::test_weighted_scales_follow_the_formula_sheet_and_are_below_its_constant",
            "tests/mechanisms/test_smooth_noise.py::test_weighted_noise_is_the_best_for_its_class",
        ),
    ),
)
