"""Nikolov 2022: second moments, covariance, and the 2-way marginals that follow from them."""

from experiments.theorems.theorem import Paper, Theorem

_P = Paper.NIKOLOV

NIKOLOV_COVARIANCE = (
    Theorem(
        "JL-COV",
        _P,
        "The body of second moments",
        r"For records in the unit ball of $\mathbb R^d$, the second moments $\frac1n\sum xx^T$ lie"
        r" in $K=\{M\succeq0,\operatorname{tr}M\le1\}$, and every point of $K$ is a mixture of"
        r" such $xx^T$. $K$ has $h_K(G)=\max(\lambda_{\max}(G),0)$ for symmetric $G$ and"
        r" $w(K)\le\sqrt{2d}$, with a ratio that tends to 1. The gauge of $K-K$ is"
        r" $\max(\operatorname{tr}M_+,\operatorname{tr}M_-)$.",
        (
            "geomdp.bodies.Spectraplex",
            "geomdp.bodies.SpectraplexDifference",
            "geomdp.workloads.SecondMoment",
        ),
        correction="The proof bounds the width by 2 root d. The width is at most the square root"
        " of 2d, and asymptotically equal to it (DISC-1).",
        claims=("gaussian_widths::JL-COV",),
        tests=("tests/bodies/test_spectral.py::test_widths_of_the_sheet",),
    ),
    Theorem(
        "JL-L22",
        _P,
        "Second moments of the unit ball",
        r"For records in the unit ball of $\mathbb R^d$, an $\varepsilon$-DP mechanism estimates"
        r" the second moments $M(X)$ with $\mathbb E\|\hat M-M(X)\|_F\le\alpha$ if $n\ge"
        r" C\min\left\{\frac{d^{3/2}}{\alpha\varepsilon},\frac{d}{\alpha^2\varepsilon}\right\}$.",
        ("geomdp.mechanisms.SecondMoment", "geomdp.bounds.upper.second_moments"),
        ("Lemma 22",),
        claims=("covariance_error::JL-WIS",),
        tests=("tests/bounds/test_upper.py::test_sample_sizes_invert_their_errors",),
    ),
    Theorem(
        "JL-WIS",
        _P,
        "Wishart difference mechanism",
        r"Let $A$ and $B$ be independent Wishart matrices with $d+1$ degrees of freedom and scale"
        r" $\frac{1}{2\varepsilon'}$, $\varepsilon'=\frac{n\varepsilon}{2}$. The release"
        r" $M(X)+A-B$ is $\varepsilon$-DP under replace-one, with an exact sampler. Its projection"
        r" $\hat M$ on $K$ has $\mathbb E\|\hat"
        r" M-M(X)\|_F\le\min\left\{\frac{(d+1)\sqrt{2d}}{n\varepsilon},\sqrt{\frac{4d+3}{n"
        r"\varepsilon}}\right\}$.",
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
        r"Let $\Sigma$ be the covariance of a distribution on the unit ball of $\mathbb R^d$. An"
        r" $\varepsilon$-DP mechanism estimates it with $\mathbb"
        r" E\|\hat\Sigma-\Sigma\|_F\le\alpha$ from $n\ge"
        r" C\left(\frac{1}{\alpha^2}+\min\left\{\frac{d^{3/2}}{\alpha\varepsilon},\frac{d}{"
        r"\alpha^2\varepsilon}\right\}\right)$ independent records.",
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
        r"All 2-way marginals of $d$ attributes have $\mathrm{sc}_\varepsilon(Q,\alpha)"
        r"=O\left(\min\left\{\frac{d^{3/2}}{\alpha\varepsilon},\frac{d}{\alpha^2\varepsilon}"
        r"\right\}\right)$, by a mechanism that runs in polynomial time. It answers them from an"
        r" estimate $\hat M$ of the second moments $M$ of $x/\sqrt d$, with"
        r" $\mathrm{rms}\le\sqrt{\frac{d}{d-1}}\,\|\hat M-M\|_F$.",
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
