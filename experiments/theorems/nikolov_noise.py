"""Nikolov 2022, sections on K-norm noise: the ball, volume radii and the recursive noise."""

from experiments.theorems.theorem import Paper, Theorem

_P = Paper.NIKOLOV

NIKOLOV_NOISE = (
    Theorem(
        "JL-KN",
        _P,
        "K-norm distribution",
        r"Density $\nu_{K,\varepsilon}(z)=\frac{\varepsilon^d}{d!\,\mathrm{vol}(K)}"
        r"e^{-\varepsilon\|z\|_K}$; $Z=RU$ with $R\sim\mathrm{Gamma}(d+1,1/\varepsilon)$ and $U$"
        r" uniform in $K$; $\mathbb E\|Z\|_K=d/\varepsilon$.",
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
        r"If $\frac1n(K_Q-K_Q)\subseteq K$ then $Q(X)+Z$, $Z\sim\nu_{K,\varepsilon}$, is"
        r" $\varepsilon$-DP and $\mathbb E\|Z\|_2^2=\frac{(d+1)(d+2)}{\varepsilon^2}"
        r"\mathbb E\|U\|_2^2$.",
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
        r"With $\Delta=\max_{x,x'}\|Q(x)-Q(x')\|_2$ and $K=\frac{\Delta}{n}B_2^k$, $\mathbb E\|Z"
        r"\|_2="
        r"\frac{k\Delta}{\varepsilon n}$ and $\mathrm{rms}=\frac{\sqrt{k+1}\,\Delta}"
        r"{\varepsilon n}$: the first term of Theorem 1.",
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
        r"Noise of an ellipsoid $z^TS^{-1}z\le1$ that holds the neighbour body has"
        r" $\mathbb E\|Z\|^2=\frac{(m+1)\operatorname{tr}S}{\varepsilon^2}$ and an exact sampler;"
        r" the best $S$ solves $\max_{p}\left(\operatorname{tr}(\sum_ip_iv_iv_i^T)^{1/2}\right)^2$"
        r" over weights of the vertices.",
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
        r"Recursive noise has $\mathrm{err}\le C\frac{w(K_Q)}{\varepsilon n}$, for bounded queries"
        r" at most $C\frac{\sqrt{k\ln N}}{\varepsilon n}$.",
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
        r"With $\mathrm{vr}_i(K)=\max_{\dim V=i}\mathrm{vr}(\Pi_VK)$, $\mathrm{vr}_j(K)\ge"
        r"\mathrm{vr}_i(K)$ for $j\le i$ and symmetric convex $K$.",
        ("geomdp.bounds.volume_radii", "geomdp.geometry.volume_radius"),
        ("Lemma 17",),
        claims=("volume_radii::JL-L17",),
        tests=("tests/bounds/test_volume.py::test_radii_are_ordered_and_enclosed",),
    ),
    Theorem(
        "JL-VR",
        _P,
        "Volume lower bound",
        r"For histograms of any size under add/remove, $\sup_x\mathbb E\|M(x)-Fx\|_2\ge"
        r"\frac{1}{8e^2}\max_i\frac{i}{\varepsilon}\mathrm{vr}_i(FB_1^N)$. It says nothing for"
        r" replace-one at finite $n$.",
        ("geomdp.bounds.volume_bound", "geomdp.bounds.VolumeRadius"),
        claims=("volume_bounds::JL-VR",),
        tests=("tests/bounds/test_volume.py::test_no_mechanism_is_below_the_bound",),
    ),
    Theorem(
        "JL-L18",
        _P,
        "Decomposition into orthogonal subspaces",
        r"There are orthogonal $V_1,V_2,\dots$ with $\dim V_i\ge\frac12\dim W_i$, $W_i$ what is"
        r" left"
        r" before $V_i$, and bodies $K_i\supseteq\Pi_{V_i}K$ whose uniform vector has"
        r" $\mathbb E\|U_i\|^2\le C\,\mathrm{vr}_{\lfloor D_i/2\rfloor}(K)^2$, $D_i=\dim W_i$.",
        ("geomdp.noise.decomposition.decompose", "geomdp.noise.RecursiveNoise"),
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
        r"$\min\left\{\sum_iA_i/\varepsilon_i^2:\sum_i\varepsilon_i=\varepsilon\right\}="
        r"\frac{1}{\varepsilon^2}\left(\sum_jA_j^{1/3}\right)^3$ at $\varepsilon_i\propto"
        r" A_i^{1/3}$; stopping at the best level never loses to plain K-norm noise.",
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
        r"$\mathrm{err}\le\frac{C}{\varepsilon n\sqrt k}\left(\sum_i\left(D_i\,\mathrm{vr}_{\lfloor"
        r" D_i/2\rfloor}(\bar K)\right)^{2/3}\right)^{3/2}$ with $D_i\le k2^{1-i}$.",
        ("geomdp.mechanisms.Recursive", "geomdp.noise.decomposition.decompose"),
        ("Lemma 19",),
        claims=("recursive_noise::JL-L19",),
        tests=("tests/noise/test_recursive_noise.py::test_cube",),
    ),
    Theorem(
        "JL-URY",
        _P,
        "Urysohn's inequality",
        r"$\mathrm{vr}(K)\le w(K)/\mu_k$, with equality for balls.",
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
        r"$i\,\mathrm{vr}_i(K)\le\sqrt{i+1}\,w(K)$.",
        ("geomdp.bounds.volume_radii", "geomdp.bounds.volume.urysohn"),
        ("Lemma 20",),
        claims=("volume_radii::JL-L20",),
        tests=("tests/bounds/test_volume.py::test_urysohn_oracle",),
    ),
    Theorem(
        "JL-14",
        _P,
        "Width of bounded queries",
        r"$w(K_Q)=\mathbb E\max_x\langle g,Q(x)\rangle\le\sqrt{2k\ln N}$ for queries with values in"
        r" $[-1,1]$.",
        ("geomdp.gaussian_width",),
        ("Equation (14)",),
        claims=("gaussian_widths::JL-14",),
        tests=("tests/geometry/test_width.py::test_finite_maximum_bound_and_diameter_bound",),
    ),
)
