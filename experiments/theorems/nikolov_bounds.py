"""Nikolov 2022: packing lower bounds, and the coarse mechanism for constant error."""

from experiments.theorems.theorem import Paper, Theorem

_P = Paper.NIKOLOV

NIKOLOV_BOUNDS = (
    Theorem(
        "JL-L6",
        _P,
        "Packing lower bound",
        r"Let $M$ data sets differ pairwise in at most $r$ records, and let their answers be at"
        r" least $4\alpha\sqrt k$ apart in $\ell_2$ distance. If $r<\frac1\varepsilon\ln(M-1)$, no"
        r" $\varepsilon$-DP mechanism has error at most $\alpha$ at this $n$.",
        (
            "geomdp.bounds.Packing",
            "geomdp.bounds.certify",
            "geomdp.bounds.check_certificate",
            "geomdp.bounds.packing_search",
        ),
        ("Lemma 6",),
        claims=(
            "lower_worst_case::JL-L6",
            "bracket_table::JL-L6",
        ),
        tests=(
            "tests/bounds/test_packing.py::test_the_hamming_code_excludes_three_records",
            "tests/bounds/test_packing.py::test_every_number_of_records_up_to_the_bound_is_excluded",
        ),
    ),
    Theorem(
        "JL-L7",
        _P,
        "Lower bound from the separation number",
        r"Let $N_{\mathrm{sep}}(t)$ be the largest number of elements whose answers $Q(x)$ are"
        r" pairwise at least $t\sqrt k$ apart. For every $t\ge4\alpha$, up to rounding to whole"
        r" records,"
        r" $\mathrm{sc}_\varepsilon(Q,\alpha)\ge\frac{t}{4\alpha}\left(\frac1\varepsilon\ln"
        r"\left(N_{\mathrm{sep}}(t)-1\right)-1\right).$",
        (
            "geomdp.bounds.single_elements",
            "geomdp.bounds.greedy_separated",
            "geomdp.bounds.exact_separated",
        ),
        ("Lemma 7",),
        claims=(
            "instance_optimality::JL-L7",
            "bracket_table::JL-L7",
        ),
        tests=(
            "tests/bounds/test_instance_optimality.py::test_the_packing_at_one_scale_is_lemma_7",
        ),
    ),
    Theorem(
        "JL-T24",
        _P,
        "Theorem 1 is tight in the worst case",
        r"In suitable ranges of $k$, $N$ and $\alpha$, some workload with values in $[-1,1]$ has"
        r" $\mathrm{sc}_\varepsilon(Q,\alpha)\ge"
        r" c\min\left\{\frac{k}{\alpha\varepsilon},\frac{\sqrt{k\ln"
        r" N}}{\alpha\varepsilon},\frac{\ln N}{\alpha^2\varepsilon}\right\}$. Random sign queries"
        r" have this property with high probability. The proof packs data sets on sets of"
        r" elements, any two of which share at most half of their elements.",
        (
            "geomdp.bounds.random_sign_bound",
            "geomdp.bounds.RandomSignSets",
            "geomdp.bounds.ReedSolomonSets",
        ),
        ("Theorem 24",),
        claims=("lower_worst_case::JL-T24",),
        tests=(
            "tests/bounds/test_constructions.py::test_listed_random_sign_sets_are_separated_as_the_union_bound_says",
        ),
    ),
    Theorem(
        "JL-T25",
        _P,
        "Lower bound for marginals",
        r"For all marginals of constant width $\ell\ge1$ and $\alpha\le c_\ell$,"
        r" $\mathrm{sc}_\varepsilon(Q,\alpha)\ge"
        r" c_\ell\min\left\{\frac{d^{(\ell+1)/2}}{\alpha\varepsilon},\frac{d}{\alpha^2"
        r"\varepsilon}\right\}$. For $\ell=1$ this is $\frac{c_1d}{\alpha\varepsilon}$.",
        ("geomdp.bounds.marginal_bound", "geomdp.bounds.MarginalBlocks"),
        ("Theorem 25",),
        claims=("lower_marginals::JL-T25",),
        tests=(
            "tests/bounds/test_constructions.py::test_listed_marginal_blocks_are_separated",
            "tests/bounds/test_constructions.py::test_projected_identity_of_the_sheet",
        ),
    ),
    Theorem(
        "JL-A2",
        _P,
        "Coarse mechanism",
        r"Take a maximal subset $S$ of the answer vectors $Q(x)$ whose points are pairwise at"
        r" least $\alpha\sqrt k$ apart. Replace each $Q(x)$ by the nearest point of $S$, and"
        r" answer these rounded queries with the JL mechanism. Rounding moves the answers by at"
        r" most $\alpha$ per query (root mean square), for every data set.",
        ("geomdp.mechanisms.Coarse", "geomdp.workloads.Coarsened"),
        ("Algorithm 2",),
        claims=("coarse_net::JL-A2",),
        tests=(
            "tests/mechanisms/test_coarse.py::test_net_is_separated_and_maximal",
            "tests/mechanisms/test_coarse.py::test_error_stays_below_the_sum_of_both_terms",
        ),
    ),
    Theorem(
        "JL-L26",
        _P,
        "Sample complexity of the coarse mechanism",
        r"Let $M$ be the coarse mechanism with the net $S$ of Algorithm 2. It has error at most"
        r" $C\alpha$ from $\mathrm{sc}(M,Q,C\alpha)\le"
        r" C\frac{w(\operatorname{conv}S)^2}{k\alpha^2\varepsilon}$ records on.",
        ("geomdp.mechanisms.Coarse", "geomdp.bounds.instance_optimality"),
        ("Lemma 26",),
        claims=("coarse_net::JL-L26",),
        tests=(
            "tests/mechanisms/test_coarse.py::test_gains_where_records_are_few_and_loses_where_they_are_many",
        ),
    ),
    Theorem(
        "JL-L27",
        _P,
        "Width of a net by chaining",
        r"Let $\Delta=\operatorname{diam}S$ for a finite set $S$, and let $N_j$ be the size of a"
        r" maximal subset whose points are pairwise at least $\Delta2^{-j}$ apart. If all points"
        r" of $S$ are at least $\Delta2^{-J}$ apart, then"
        r" $w(S)\le\sum_{j=1}^{J}\Delta2^{1-j}\sqrt{2\ln N_j}$.",
        ("geomdp.bounds.instance_optimality", "geomdp.bounds.InstanceOptimality"),
        ("Lemma 27",),
        claims=(
            "coarse_net::JL-L27",
            "instance_optimality::JL-L27",
        ),
        tests=(
            "tests/bounds/test_instance_optimality.py::test_chaining_bounds_the_width_and_packings_bound_the_chain",
        ),
    ),
    Theorem(
        "JL-T4",
        _P,
        "Instance optimality for constant error",
        r"The coarse mechanism $M$ has $\mathrm{sc}(M,Q,C\alpha)\le"
        r" C\frac{\operatorname{diam}Q(\mathcal X)}{\alpha\sqrt"
        r" k}\,\mathrm{sc}_\varepsilon(Q,\alpha)$: it needs at most that multiple of the records"
        r" that the best mechanism needs. For queries with values in $[-1,1]$ the factor is at"
        r" most $C/\alpha$.",
        ("geomdp.bounds.instance_optimality", "geomdp.mechanisms.Coarse"),
        ("Theorem 4",),
        claims=("instance_optimality::JL-T4",),
        tests=(
            "tests/bounds/test_instance_optimality.py::test_chaining_bounds_the_width_and_packings_bound_the_chain",
            "tests/bounds/test_instance_optimality.py::test_a_segment_by_hand",
        ),
    ),
)
