"""Nikolov 2022, sections on K-norm noise: the ball, volume radii and the recursive noise."""

from experiments.theorems.theorem import Paper, Theorem

_P = Paper.NIKOLOV

NIKOLOV_NOISE = (
    Theorem(
        "JL-KN",
        _P,
        "K-norm distribution",
        r"The K-norm distribution of a symmetric convex body $K\subset\mathbb R^d$ has the density"
        r" $\nu_{K,\varepsilon}(z)"
        r"=\frac{\varepsilon^d}{d!\,\mathrm{vol}(K)}e^{-\varepsilon\|z\|_K}$. A draw is $Z=RU$"
        r" with independent $R\sim\mathrm{Gamma}(d+1,1/\varepsilon)$ and $U$ uniform in $K$, and"
        r" $\mathbb E\|Z\|_K=d/\varepsilon$.",
        ("geomdp.noise.KNormNoise", "geomdp.mechanisms.KNorm"),
        claims=("privacy_loss::JL-KN",),
        tests=(
            "tests/noise/test_additive_noise.py::test_gauge_of_knorm_noise_is_gamma",
            "tests/noise/test_additive_noise.py::test_density_ratio_integrates_to_one",
        ),
    ),
    Theorem(
        "JL-L14",
        _P,
        "K-norm mechanism",
        r"Let $K\supseteq\frac1n(K_Q-K_Q)$ be a symmetric convex body of dimension $d$, and let"
        r" $Z$ have the density $\nu_{K,\varepsilon}$. The release $Q(X)+Z$ is $\varepsilon$-DP,"
        r" and $\mathbb E\|Z\|_2^2=\frac{(d+1)(d+2)}{\varepsilon^2}\mathbb E\|U\|_2^2$ for $U$"
        r" uniform in $K$.",
        ("geomdp.mechanisms.KNorm", "geomdp.mechanisms.Laplace", "geomdp.noise.KNormNoise"),
        ("Lemma 14",),
        claims=(
            "privacy_loss::JL-L14",
            "jl_error_vs_n::JL-L14",
        ),
        tests=(
            "tests/noise/test_additive_noise.py::test_pure_noises_never_exceed_epsilon_on_their_body",
            "tests/noise/test_additive_noise.py::test_second_moment_in_closed_form",
        ),
    ),
    Theorem(
        "JL-L15",
        _P,
        "Ball mechanism",
        r"Let $\Delta=\max_{x,x'}\|Q(x)-Q(x')\|_2$ for $k$ queries. K-norm noise of the ball"
        r" $\frac{\Delta}{n}B_2^k$ is $\varepsilon$-DP. It has $\mathbb"
        r" E\|Z\|_2=\frac{k\Delta}{\varepsilon n}$ and the root mean square"
        r" $\frac{\sqrt{k+1}\,\Delta}{\varepsilon n}$ per query. This gives the first term of"
        r" Theorem 1.",
        ("geomdp.mechanisms.Ball", "geomdp.bounds.upper.ball_bounded"),
        ("Lemma 15",),
        claims=(
            "jl_error_vs_n::JL-L15",
            "covariance_error::JL-L15",
        ),
        tests=(
            "tests/mechanisms/test_oracles.py::test_ball_mean_norm",
            "tests/bounds/test_upper.py::test_ball_noise_reaches_its_closed_sample_size",
        ),
    ),
    Theorem(
        "JL-ELL",
        _P,
        "Optimal ellipsoidal noise",
        r"Let the ellipsoid $z^TS^{-1}z\le1$ in $m$ dimensions contain the neighbour body, the"
        r" hull of all changes of the answers between neighbours, with vertices $v_i$. The K-norm"
        r" noise of the ellipsoid is $\varepsilon$-DP, has an exact sampler and $\mathbb"
        r" E\|Z\|_2^2=\frac{(m+1)\operatorname{tr}S}{\varepsilon^2}$. The least possible"
        r" $\operatorname{tr}S$ is"
        r" $\max_{p}\left(\operatorname{tr}(\sum_ip_iv_iv_i^T)^{1/2}\right)^2$ over probability"
        r" weights $p$ on the vertices.",
        ("geomdp.mechanisms.Ellipsoid", "geomdp.bodies.Ellipsoid"),
        claims=("accuracy::JL-ELL",),
        tests=(
            "tests/mechanisms/test_oracles.py::test_ellipsoid_is_optimal_on_axis_parallel_boxes",
        ),
    ),
    Theorem(
        "JL-L16",
        _P,
        "Optimised K-norm mechanism",
        r"Recursive noise answers $k$ queries under $\varepsilon$-DP with $\mathrm{err}\le"
        r" C\frac{w(K_Q)}{\varepsilon n}$. For queries with values in $[-1,1]$ on $N$ elements,"
        r" this is at most $C\frac{\sqrt{k\ln N}}{\varepsilon n}$.",
        ("geomdp.mechanisms.Recursive", "geomdp.noise.RecursiveNoise"),
        ("Lemma 16",),
        claims=("recursive_noise::JL-L16", "jl_rates::JL-L16"),
        tests=(
            "tests/mechanisms/test_recursive.py::test_never_worse_than_the_k_norm_of_the_best_exact_body",
        ),
    ),
    Theorem(
        "JL-L17",
        _P,
        "Volume radii of projections fall",
        r"Let $\mathrm{vr}_i(K)=\max_{\dim V=i}\mathrm{vr}(\Pi_VK)$ be the largest volume radius"
        r" of a projection of $K$ on $i$ dimensions. For symmetric convex $K$ and $j\le i$,"
        r" $\mathrm{vr}_j(K)\ge\mathrm{vr}_i(K)$.",
        ("geomdp.bounds.volume_radii", "geomdp.geometry.volume_radius"),
        ("Lemma 17",),
        claims=("volume_radii::JL-L17",),
        tests=("tests/bounds/test_volume.py::test_radii_are_ordered_and_enclosed",),
    ),
    Theorem(
        "JL-VR",
        _P,
        "Volume lower bound",
        r"Let $F$ be the matrix of the queries on $N$ elements, and let a mechanism $M$ answer"
        r" them for all histograms $x$ of real counts, of any size. If $M$ is $\varepsilon$-DP"
        r" under add/remove, then $\sup_x\mathbb"
        r" E\|M(x)-Fx\|_2\ge\frac{1}{8e^2}\max_i\frac{i}{\varepsilon}\mathrm{vr}_i(FB_1^N)$. For"
        r" whole counts this can be false unless $\varepsilon$ is small. It says nothing about"
        r" replace-one at a fixed $n$.",
        ("geomdp.bounds.volume_bound", "geomdp.bounds.VolumeRadius"),
        claims=("volume_bounds::JL-VR",),
        tests=("tests/bounds/test_volume.py::test_no_mechanism_is_below_the_bound",),
    ),
    Theorem(
        "JL-L18",
        _P,
        "Decomposition into orthogonal subspaces",
        r"For a symmetric convex body $K\subset\mathbb R^k$ there are orthogonal subspaces"
        r" $V_1,V_2,\dots$ that span $\mathbb R^k$. Let $W_i$ be the orthogonal complement of"
        r" $V_1,\dots,V_{i-1}$, $D_i=\dim W_i$ and $j_i=\max(1,\lfloor D_i/2\rfloor)$. Then $\dim"
        r" V_i\ge\frac12D_i$, and there are bodies $K_i\supseteq\Pi_{V_i}K$ whose uniform points"
        r" $U_i$ have $\mathbb E\|U_i\|_2^2\le C\,\mathrm{vr}_{j_i}(K)^2$.",
        ("geomdp.noise.recursive.decompose", "geomdp.noise.RecursiveNoise"),
        ("Lemma 18",),
        claims=(
            "recursive_noise::JL-L18",
            "volume_bounds::JL-L18",
        ),
        tests=(
            "tests/noise/test_recursive_noise.py::test_box_of_four_sides",
            "tests/noise/test_recursive_noise.py::test_cube",
        ),
    ),
    Theorem(
        "JL-SPLIT",
        _P,
        "Best split of the budget",
        r"Let the noise of level $i$ have the mean squared length $A_i/\varepsilon_i^2$ at budget"
        r" $\varepsilon_i$. Under $\sum_i\varepsilon_i=\varepsilon$ the sum"
        r" $\sum_iA_i/\varepsilon_i^2$ is least for $\varepsilon_i\propto A_i^{1/3}$, where it is"
        r" $\frac{1}{\varepsilon^2}\left(\sum_jA_j^{1/3}\right)^3$. If the recursion stops at the"
        r" best level, its noise never errs more than K-norm noise.",
        ("geomdp.noise.RecursiveNoise", "geomdp.noise.recursive.stopped"),
        claims=("recursive_noise::JL-SPLIT",),
        tests=(
            "tests/noise/test_recursive_noise.py::test_the_split_is_the_best_one",
            "tests/noise/test_recursive_noise.py::test_stop_levels_of_sixteen_sides",
        ),
    ),
    Theorem(
        "JL-L19",
        _P,
        "Error of recursive noise by volume radii",
        r"Let $\bar K$ be a symmetric body that holds $K_Q-K_Q$. (The paper takes"
        r" $\operatorname{conv}(K_Q\cup-K_Q)$, after a shift of the answers that moves $0$ into"
        r" $K_Q$.) Let $D_i\le k2^{1-i}$ be the dimension left before level $i$, and"
        r" $j_i=\max(1,\lfloor D_i/2\rfloor)$. Recursive noise has"
        r" $\mathrm{err}\le\frac{C}{\varepsilon n\sqrt"
        r" k}\left(\sum_i\left(D_i\,\mathrm{vr}_{j_i}(\bar K)\right)^{2/3}\right)^{3/2}$.",
        ("geomdp.mechanisms.Recursive", "geomdp.noise.recursive.decompose"),
        ("Lemma 19",),
        claims=("recursive_noise::JL-L19",),
        tests=("tests/noise/test_recursive_noise.py::test_cube",),
    ),
    Theorem(
        "JL-URY",
        _P,
        "Urysohn's inequality",
        r"Every convex body $K\subset\mathbb R^k$ has $\mathrm{vr}(K)\le w(K)/\mu_k$, where"
        r" $\mu_k=\mathbb E\|g\|_2$ for a standard Gaussian vector $g\in\mathbb R^k$. Balls attain"
        r" equality.",
        ("geomdp.bounds.volume.urysohn", "geomdp.geometry.volume_radius"),
        ("Equation (13)",),
        claims=("volume_radii::JL-URY",),
        tests=(
            "tests/bounds/test_volume.py::test_urysohn_oracle",
            "tests/bounds/test_volume.py::test_urysohn_is_tight_for_balls",
        ),
    ),
    Theorem(
        "JL-L20",
        _P,
        "Volume radii against width",
        r"For every convex body $K\subset\mathbb R^k$ and $i\le k$,"
        r" $i\,\mathrm{vr}_i(K)\le\sqrt{i+1}\,w(K)$.",
        ("geomdp.bounds.volume_radii", "geomdp.bounds.volume.urysohn"),
        ("Lemma 20",),
        claims=("volume_radii::JL-L20",),
        tests=("tests/bounds/test_volume.py::test_urysohn_oracle",),
    ),
    Theorem(
        "JL-14",
        _P,
        "Width of bounded queries",
        r"For $k$ queries with values in $[-1,1]$ on $N$ elements, $w(K_Q)=\mathbb E\max_x\langle"
        r" g,Q(x)\rangle\le\sqrt{2k\ln N}$.",
        ("geomdp.gaussian_width",),
        ("Equation (14)",),
        claims=("gaussian_widths::JL-14",),
        tests=("tests/geometry/test_width.py::test_finite_maximum_bound_and_diameter_bound",),
    ),
)
