"""Sparse vector: Ligett's slides, and the variants of Dwork and Roth and of Lyu, Su and Li."""

from experiments.theorems.theorem import Paper, Theorem

_P = Paper.LIGETT

SPARSE_VECTOR = (
    Theorem(
        "SV-AT",
        _P,
        "AboveThreshold",
        r"$\hat T=T+\mathrm{Lap}(2/\varepsilon)$; say whether $f_i(D)+\mathrm{Lap}(4/\varepsilon)"
        r"\ge"
        r"\hat T$ and halt at the first that is: $\varepsilon$-DP for adaptive queries of"
        r" sensitivity 1, and tight. If only the last of $k$ queries can be near the threshold,"
        r" $\alpha=\frac{8(\ln k+\ln(2/\beta))}{\varepsilon}$.",
        ("geomdp.AboveThreshold", "geomdp.bounds.upper.above_threshold"),
        ("Algorithm 1", "Theorem 3.24"),
        correction="Monotone queries may use half the query noise (DISC-12).",
        claims=("sparse_vector::SV-AT",),
        tests=(
            "tests/mechanisms/test_sparse_vector.py::test_above_threshold_single_query_probability",
            "tests/mechanisms/test_sparse_vector.py::test_above_threshold_scales",
        ),
    ),
    Theorem(
        "SV-SP",
        _P,
        "Sparse",
        r"AboveThreshold restarted up to $c$ times with $\varepsilon'=\varepsilon/c$ or"
        r" $\varepsilon/\sqrt{8c\ln(1/\delta)}$: $\alpha=\frac{8c\left(\ln k+\ln\frac{2c}{\beta}"
        r"\right)}{\varepsilon}$ or $\frac{\sqrt{512c\ln(1/\delta)}\left(\ln k+\ln\frac{2c}{\beta}"
        r"\right)}{\varepsilon}$.",
        ("geomdp.Sparse", "geomdp.bounds.upper.sparse"),
        ("Theorem 3.26",),
        claims=("sparse_vector::SV-SP",),
        tests=(
            "tests/mechanisms/test_sparse_vector.py::test_sparse_scales",
            "tests/mechanisms/test_sparse_vector.py::test_sparse_accuracy_theorems",
        ),
    ),
    Theorem(
        "SV-NUM",
        _P,
        "NumericSparse",
        r"Sparse that also releases the values above the threshold. With the budget split"
        r" $\frac89:\frac19$, $\alpha=\frac{9c\left(\ln k+\ln\frac{4c}{\beta}\right)}{\varepsilon}$"
        r" for $\delta=0$ and $\frac{9\sqrt8\sqrt{c\ln(2/\delta)}\left(\ln k+\ln\frac{4c}{\beta}"
        r"\right)}{\varepsilon}$ for $\delta>0$, for every $k$.",
        (
            "geomdp.NumericSparse",
            "geomdp.mechanisms.PrintedNumericSparse",
            "geomdp.bounds.upper.numeric_sparse",
            "geomdp.bounds.upper.numeric_sparse_printed",
        ),
        ("Theorem 3.28",),
        correction="As printed, with factor root 512 + 1, it is false for few queries: at"
        " c = k = 10 it fails with probability 0.347 instead of 0.05 (DISC-11).",
        claims=("sparse_vector::SV-NUM",),
        tests=(
            "tests/mechanisms/test_sparse_vector.py::test_printed_numeric_theorem_fails_and_the_corrected_one_holds",
        ),
    ),
    Theorem(
        "SV-LSL",
        _P,
        "One threshold for all (Lyu, Su and Li)",
        r"Threshold noise $\mathrm{Lap}(1/\varepsilon_1)$ drawn once, query noise"
        r" $\mathrm{Lap}(2c/\varepsilon_2)$, $c$ positive answers: $(\varepsilon_1+"
        r"\varepsilon_2)$-DP; the best split is $\varepsilon_1:\varepsilon_2=1:(2c)^{2/3}$.",
        ("geomdp.Sparse", "geomdp.bounds.upper.sparse_kept"),
        claims=("sparse_vector::SV-LSL",),
        tests=(
            "tests/mechanisms/test_sparse_vector.py::test_kept_threshold_split_is_optimal_and_spends_epsilon",
        ),
    ),
)
