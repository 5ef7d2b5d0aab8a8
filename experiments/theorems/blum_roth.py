"""Blum and Roth 2011: interactive release by database updates, and sparse projection."""

from experiments.theorems.theorem import Paper, Theorem

_P = Paper.BLUM_ROTH

BLUM_ROTH = (
    Theorem(
        "BR-ACC",
        _P,
        "Accuracy",
        r"$(\alpha,\beta)$-accurate: with probability at least $1-\beta$ all answered queries err"
        r" by"
        r" at most $\alpha$.",
        ("geomdp.bounds.upper.online_accuracy",),
        ("Definition 2.3", "Definition 2.4"),
        claims=(
            "online_error::BR-ACC",
            "sparse_project::BR-PROJ",
        ),
        tests=("tests/mechanisms/test_sparse_project.py::test_accuracy_theorem",),
    ),
    Theorem(
        "BR-T2.10",
        _P,
        "Composition",
        r"$T$ adaptive steps that are $\varepsilon_0$-DP with $\varepsilon_0=\frac{\varepsilon}"
        r"{\sqrt{8T\ln(1/\delta)}}$ are together $(\varepsilon,\delta)$-DP, for $\varepsilon\le1$"
        r" and $\delta\le\frac12$.",
        ("geomdp.privacy.shortcut_step_epsilon", "geomdp.privacy.largest_step_epsilon"),
        ("Theorem 2.10",),
        correction="Printed for all epsilon and delta below 1. By exact composition it is false at"
        " epsilon = 1 for delta above 0.997, and not proved from 0.709 on (DISC-5).",
        claims=("composition::BR-T2.10",),
        tests=(
            "tests/privacy/test_composition.py::test_the_shortcut_is_safe_in_its_range_and_never_beats_the_solution",
            "tests/privacy/test_composition.py::test_the_shortcut_is_refused_where_it_is_wrong",
        ),
    ),
    Theorem(
        "BR-IDC",
        _P,
        "Iterative database construction",
        r"An update rule $U$ is a $B(\alpha)$-IDC if every sequence of queries on which its"
        r" hypothesis is off by at least $\alpha$, updated with answers off by less than $\alpha$,"
        r" has length at most $\lfloor B(\alpha)\rfloor$.",
        (
            "geomdp.mechanisms.interactive.updates.UpdateRule",
            "geomdp.mechanisms.interactive.updates.Hypothesis",
        ),
        ("Definition 3.1", "Definition 3.2"),
        claims=(
            "update_bounds::BR-MW",
            "update_bounds::BR-SMW",
            "update_bounds::BR-FK",
            "update_bounds::BR-MED",
        ),
        tests=(
            "tests/mechanisms/test_updates.py::test_multiplicative_weights_potential_and_bound",
        ),
    ),
    Theorem(
        "BR-T3.3",
        _P,
        "Interactive mechanism from an IDC",
        r"$(\varepsilon,\delta)$-DP and $(\alpha,\beta)$-accurate for $k$ adaptive queries with"
        r" $\alpha=\frac{3000\sqrt{B(\alpha)}\ln(4/\delta)\ln(k/\beta)}{\varepsilon n}$.",
        ("geomdp.bounds.upper.online_accuracy", "geomdp.OnlineConstruction"),
        ("Theorem 3.3",),
        correction="Run as the construction with explicit constants below: 76.4 in place of 3000.",
        claims=("stated_accuracies::BR-T3.3",),
        tests=("tests/bounds/test_upper.py::test_online_theorem_and_the_construction_here",),
    ),
    Theorem(
        "BR-OIC",
        _P,
        "Online construction, fully specified",
        r"Answer from the hypothesis unless NumericSparse, with threshold $2\alpha_0$, finds it"
        r" off;"
        r" then release and update. All answers are within $3\alpha_0$ with probability"
        r" $1-\beta$, $\alpha_0=\frac{9\sqrt8\sqrt{c\ln(2/\delta)}\left(\ln2k+\ln\frac{4c}{\beta}"
        r"\right)}{\varepsilon n}$, $c=\lfloor B(\alpha_0)\rfloor$.",
        ("geomdp.OnlineConstruction", "geomdp._numerics.bisection.smallest_accuracy"),
        correction="Algorithm 11 of Dwork and Roth with 36 in place of 32 (DISC-21).",
        claims=("online_error::BR-OIC",),
        tests=(
            "tests/mechanisms/test_online_iterative.py::test_solved_accuracy_is_the_smallest",
            "tests/mechanisms/test_online_iterative.py::test_online_accuracy_update_bound_and_replay",
        ),
    ),
    Theorem(
        "BR-MW",
        _P,
        "Multiplicative weights",
        r"Weights times $e^{-\eta r(x)}$, $\eta=\alpha/2$, with $r=f$ or $1-f$ by the sign of the"
        r" error: $B(\alpha)=4\ln M/\alpha^2$ on $M$ elements.",
        ("geomdp.mechanisms.MultiplicativeWeights",),
        claims=("update_bounds::BR-MW",),
        tests=(
            "tests/mechanisms/test_updates.py::test_multiplicative_weights_potential_and_bound",
        ),
    ),
    Theorem(
        "BR-FK",
        _P,
        "Perceptron (Frieze and Kannan)",
        r"$x\leftarrow x\mp\frac{\alpha}{M}f$ from $x=0$: $B(\alpha)=\|\hat D\|_2^2M/\alpha^2\le"
        r" M/\alpha^2$. Only the public bound $\|\hat D\|_2\le1$ is used.",
        ("geomdp.mechanisms.Perceptron",),
        claims=("update_bounds::BR-FK",),
        tests=("tests/mechanisms/test_updates.py::test_perceptron_potential_and_bound",),
    ),
    Theorem(
        "BR-MED",
        _P,
        "Median",
        r"Keep a net $\mathcal N$ of candidate data sets, answer with the median, delete the wrong"
        r" half: $B(\alpha)=\log_2|\mathcal N|$, for a net strictly finer than $\alpha$.",
        (
            "geomdp.mechanisms.Median",
            "geomdp.mechanisms.interactive.updates.net",
            "geomdp.mechanisms.interactive.updates.net_size",
        ),
        correction="The net must be strictly finer than alpha (DISC-20).",
        claims=("update_bounds::BR-MED",),
        tests=(
            "tests/mechanisms/test_updates.py::test_median_halves_and_stays_within_its_bound",
            "tests/mechanisms/test_updates.py::test_median_says_when_its_net_is_too_coarse",
        ),
    ),
    Theorem(
        "BR-SMW",
        _P,
        "Sparse multiplicative weights",
        r"With $s$ slots, the least $s$ with $\frac{s}{\ln s+1}\ge\frac{4m}{\alpha^2}$, assigned as"
        r" elements are first mentioned, $m$-sparse queries need $B(\alpha)=\frac{4(\ln s+1)}"
        r"{\alpha^2}$ updates on any universe, and the slots never run out. The potential lies in"
        r" $[-\frac1e,\ln s]$ and falls by $\frac{\alpha^2}{4}$ with each update.",
        ("geomdp.SparseMultiplicativeWeights", "geomdp.workloads.SparseQuery"),
        ("Definition 3.4", "Algorithm 1", "Theorem 3.5", "Claim 3.6", "Lemma 3.7"),
        correction="The potential uses the table after the last update and can be negative"
        " (DISC-9).",
        claims=("update_bounds::BR-SMW",),
        tests=(
            "tests/mechanisms/test_updates.py::test_sparse_weights_slots_and_bound",
            "tests/mechanisms/test_updates.py::test_sparse_weights_potential_drops_with_the_final_table",
        ),
    ),
    Theorem(
        "BR-T3.8",
        _P,
        "Interactive release of sparse queries",
        r"$\alpha=O\left(\frac{(\ln m)^{1/4}\left(\ln\frac4\delta\ln\frac k\beta\right)^{1/2}}"
        r"{(\varepsilon n)^{1/2}}\right)$ for $k$ adaptive $m$-sparse queries, whatever the"
        r" universe.",
        ("geomdp.OnlineConstruction", "geomdp.bounds.upper.online_accuracy"),
        ("Theorem 3.8", "Theorem 1.1"),
        correction="ln m hides ln(1 / alpha): the slots are about m / alpha^2 (DISC-8).",
        claims=("online_error::BR-T3.8",),
        tests=("tests/bounds/test_upper.py::test_online_theorem_and_the_construction_here",),
    ),
    Theorem(
        "BR-CONJ",
        _P,
        "Conjunctions on d - k literals",
        r"$Q_S(x)=\prod_{i\in S}x_i$, $|S|=d-k$, is $2^k$-sparse. Interactive: $n\gtrsim"
        r"\frac{k^{1.5}"
        r"\ln(1/\delta)\ln(d/\beta)}{\varepsilon\alpha^2}$ in time $\tilde O((2d)^k/\alpha^2)$."
        r" By projection with $k=\log_2n$: $\alpha=\tilde O\left(\frac{(\ln n\ln d+\ln\frac1\beta)"
        r"\sqrt{\ln(1/\delta)}}{\varepsilon\sqrt n}\right)$.",
        ("geomdp.workloads.conjunctions", "geomdp.workloads.conjunction"),
        ("Definition 3.9", "Corollary 3.11", "Definition 4.10", "Corollary 4.12"),
        claims=("conjunctions::BR-CONJ",),
        tests=("tests/workloads/test_single_query.py::test_all_conjunctions",),
    ),
    Theorem(
        "BR-JL",
        _P,
        "Johnson-Lindenstrauss with limited independence",
        r"Signs over $\sqrt T$ that are $r$-wise independent, $T\ge4\cdot64^2\varsigma^{-2}"
        r"\ln(1/\tau)$, $r\ge2\ln(1/\tau)$: $\left|\|Ax\|^2-\|x\|^2\right|<\varsigma\|x\|^2$ with"
        r" probability $1-\tau$, and inner products are kept to $\frac\varsigma2(\|x\|^2+\|y"
        r"\|^2)$.",
        (
            "geomdp.mechanisms.sparse.hashing.signs.HashedSigns",
            "geomdp.bounds.upper.independence",
        ),
        ("Theorem 4.1", "Corollary 4.2"),
        claims=("sparse_project::BR-JL",),
        tests=("tests/mechanisms/test_sparse_project.py::test_johnson_lindenstrauss_lemma",),
    ),
    Theorem(
        "BR-PROJ",
        _P,
        "SparseProject",
        r"Release $Au+\mathrm{Lap}\left(\sqrt{8\ln(1/\delta)}/\varepsilon\right)^T$ and the key of"
        r" the hash; answer $\frac1n\langle AQ,\hat u\rangle$. It is $(\varepsilon,\delta)$-DP"
        r" under"
        r" add/remove; replace-one doubles the noise. Gaussian noise needs a scale that does not"
        r" depend on $T$.",
        ("geomdp.SparseProject", "geomdp.mechanisms.SparseSummary"),
        ("Definition 4.3", "Algorithm 2", "Theorem 4.5"),
        correction="n is declared public (DISC-6); the box's T is too large by 2 root m (DISC-2).",
        claims=("sparse_project::BR-PROJ",),
        tests=(
            "tests/mechanisms/test_sparse_project.py::test_answers_are_unbiased_with_the_stated_noise",
            "tests/mechanisms/test_sparse_project.py::test_noise_follows_the_adjacency",
        ),
    ),
    Theorem(
        "BR-L4.6",
        _P,
        "Projected queries are flat",
        r"With probability $1-\beta$ all $|\hat Q_i|\le\left(\frac{kT}{2\beta}\right)^{1/r}"
        r"\frac{2\sqrt{mr}}{\sqrt T}$, $r$ even; with $r=2\log_2\frac{kT}{2\beta}$ at most"
        r" $4\sqrt{m\log_2\frac{kT}{2\beta}/T}$.",
        ("geomdp.bounds.upper.coefficient_bound",),
        ("Lemma 4.6", "Corollary 4.7"),
        correction="The logarithm of Corollary 4.7 has base 2 (DISC-4).",
        claims=("corrections::BR-L4.6",),
        tests=("tests/mechanisms/test_sparse_project.py::test_projected_queries_are_flat",),
    ),
    Theorem(
        "BR-L4.8",
        _P,
        "Tail of sums of Laplace variables",
        r"For $Y=\sum_iq_iY_i$, $Y_i\sim\mathrm{Lap}(b)$, $|q_i|\le B$: $\Pr[|Y|\ge B\alpha]\le"
        r" e^{-\alpha^2/(6Tb^2)}$ if $\alpha\le Tb$, else $e^{-\alpha/(6b)}$.",
        ("geomdp.bounds.upper.laplace_sum_tail",),
        ("Lemma 4.8",),
        claims=("laplace_tails::BR-L4.8",),
        tests=("tests/mechanisms/test_sparse_project.py::test_laplace_sums_have_the_stated_tail",),
    ),
    Theorem(
        "BR-T4.9",
        _P,
        "Accuracy of SparseProject",
        r"With probability $1-\beta$ all $k$ queries err by at most $\frac1n\left(\sqrt m+"
        r"\frac{16\sqrt3}{\varepsilon}\sqrt{m\ln\frac{4k}{\beta}\ln\frac1\delta\left(\log_2"
        r"\frac{2k}{\beta}+\log_2T\right)}\right)$.",
        ("geomdp.bounds.upper.paper_accuracy",),
        ("Theorem 4.9", "Theorem 1.2"),
        claims=(
            "sparse_project::BR-T4.9",
            "conjunctions::BR-T4.9",
        ),
        tests=(
            "tests/mechanisms/test_sparse_project.py::test_accuracy_theorem",
            "tests/mechanisms/test_sparse_project.py::test_accuracy_constant",
        ),
    ),
)
