"""Nikolov 2022: packing lower bounds, and the coarse mechanism for constant error."""

from experiments.theorems.theorem import Paper, Theorem

_P = Paper.NIKOLOV

NIKOLOV_BOUNDS = (
    Theorem(
        "JL-L6",
        _P,
        "Packing lower bound",
        r"Let $M$ data sets differ pairwise in at most $r$ records, with answers at least $4\alpha"
        r"\sqrt k$ apart. If $r<\frac1\varepsilon\ln(M-1)$, no $\varepsilon$-DP mechanism has error"
        r" at most $\alpha$ at this $n$.",
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
        r"For every $t\ge4\alpha$, up to rounding, $\mathrm{sc}_\varepsilon(Q,\alpha)\ge"
        r"\frac{t}{4\alpha}\left(\frac1\varepsilon\ln\left(N_{\mathrm{sep}}(Q(\mathcal X),"
        r"t\sqrt k B_2^k)-1\right)-1\right).$",
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
        r"For suitable ranges some bounded workload has $\mathrm{sc}_\varepsilon(Q,\alpha)\ge c\min"
        r"\left\{\frac{k}{\alpha\varepsilon},\frac{\sqrt{k\ln N}}{\alpha\varepsilon},"
        r"\frac{\ln N}{\alpha^2\varepsilon}\right\}$; random signs do, with packings of sets that"
        r" meet in at most half.",
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
        r"For width $\ell\ge2$ and $\alpha\le c_\ell$, $\mathrm{sc}_\varepsilon\ge c_\ell\min\left"
        r"\{"
        r"\frac{d^{(\ell+1)/2}}{\alpha\varepsilon},\frac{d}{\alpha^2\varepsilon}\right\}$; for"
        r" $\ell=1$ also with $\frac{d}{\alpha\varepsilon}$ in the minimum.",
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
        r"Take a maximal $\alpha\sqrt k$-separated subset $S$ of the answer vectors, round each"
        r" $Q(x)$ to the nearest point $\pi(x)\in S$ and answer $\pi$: rounding costs at most"
        r" $\alpha$ for every data set.",
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
        r"$\mathrm{sc}(M,Q,C\alpha)\le C\frac{w(\operatorname{conv}S)^2}{k\alpha^2\varepsilon}$.",
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
        r"$w(S)\le\sum_{j=1}^{J}\Delta2^{1-j}\sqrt{2\ln N_j}$ with $\Delta=\operatorname{diam}S$"
        r" and"
        r" $N_j$ the size of a maximal $\Delta2^{-j}$-separated subset.",
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
        r"$\mathrm{sc}(M,Q,C\alpha)\le C\frac{\operatorname{diam}Q(\mathcal X)}{\alpha\sqrt k}\,"
        r"\mathrm{sc}_\varepsilon(Q,\alpha)$ for the coarse mechanism $M$; for bounded queries the"
        r" factor is at most $C/\alpha$.",
        ("geomdp.bounds.instance_optimality", "geomdp.mechanisms.Coarse"),
        ("Theorem 4",),
        claims=("instance_optimality::JL-T4",),
        tests=(
            "tests/bounds/test_instance_optimality.py::test_chaining_bounds_the_width_and_packings_bound_the_chain",
            "tests/bounds/test_instance_optimality.py::test_a_segment_by_hand",
        ),
    ),
)
