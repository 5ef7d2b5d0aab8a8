"""Lesson 3. Noise shaped like the body: K-norm, cone and elliptope, and exact samplers."""

import marimo

app = marimo.App(width="medium", app_title="3. Noise shaped like the body")


@app.cell
def _():
    import functools
    import io

    import marimo as mo
    import numpy as np
    from drawing import log_log, md, panels, picture, slider
    from matplotlib.figure import Figure

    import geomdp as gd
    from geomdp.geometry import sampling

    return Figure, functools, gd, io, log_log, md, mo, np, panels, picture, sampling, slider


@app.cell
def _(gd, mo, np, sampling, slider):
    # The two queries of lesson 1, and symmetric bodies that contain K - K.
    polytope = gd.sensitivity_polytope(
        gd.workloads.Explicit(np.array([[0, 0, 1, 1], [0, 0, 0, 1]]))
    )
    difference = gd.difference_body(polytope)
    bodies = {
        "K - K": difference,
        "cross-polytope (Laplace)": gd.bodies.CrossPolytope(2, 2.0),
        "disc": gd.bodies.Ball(2, np.sqrt(2.0)),
    }
    noises = {
        name: gd.noise.KNormNoise(body, 1.0, sampling.ExactSampler(body))
        for name, body in bodies.items()
    }
    shown = mo.ui.multiselect(list(bodies), value=list(bodies)[:2], label="noise of")
    share = slider(0.1, 0.9, step=0.1, value=0.5, label="share of the noise inside")
    mo.md(r"""
    # 3. Noise shaped like the body

    Lesson 2 found a density for every symmetric body $B$ that contains $K - K$:
    $p(z) = c\,e^{-\varepsilon \lVert z \rVert_B}$. This lesson compares bodies, **draws** from
    the density, meets a second family that needs no difference body, and asks what a privacy
    proof may assume about the computer that draws.

    ## Laplace noise is the cross-polytope

    The cross-polytope $B = \Delta_1 B_1^m = \{z : \sum_i |z_i| \le \Delta_1\}$ gives

    $$p(z) = c\, e^{-\varepsilon \lVert z \rVert_1 / \Delta_1} =
    \prod_i \tfrac{\varepsilon}{2 \Delta_1} e^{-\varepsilon |z_i| / \Delta_1}:$$

    independent Laplace noise in every coordinate. So **the Laplace mechanism is the K-norm
    mechanism of one particular body**, the smallest cross-polytope around $K - K$. Any other
    body that contains $K - K$ is as private. Its volume and shape decide the error: in $d$
    dimensions Lemma 14 says

    $$E \lVert Z \rVert_2^2 = \frac{(d+1)(d+2)}{\varepsilon^2}\, E \lVert U \rVert_2^2,\qquad
    U \text{ uniform on } B.$$

    For unit balls $\varepsilon^2 E \lVert Z \rVert_2^2$ is $2d$ (cross-polytope), $d(d+1)$
    (ball) and $d(d+1)(d+2)/3$ (cube). Below are curves of equal density that enclose a given
    share of the noise.
    """)
    return bodies, difference, noises, polytope, share, shown


@app.cell
def _(difference, gd, mo, noises, panels, picture, share, shown):
    _colours = dict(zip(noises, ("#009E73", "#D55E00", "#0072B2"), strict=True))
    _figure, _ax = panels(5.4, 4.6)
    gd.plotting.draw(difference, _ax, colour="#555555", label="K - K")
    for _name in shown.value:
        gd.plotting.draw_noise(
            noises[_name],
            _ax,
            shares=(share.value,),
            colour=_colours[_name],
            label=f"noise of {_name}",
        )
    _ax.set(xlim=(-9, 9), ylim=(-9, 9))
    _ax.legend(loc="lower right", fontsize=8)
    _rows = "\n".join(
        f"| {name} | {noise.body.volume():.3f} | {noise.second_moment().value:.3f} |"
        for name, noise in noises.items()
    )
    _table = mo.md("| body | area | E of squared length |\n|---|---|---|\n" + _rows)
    _picture = picture(_figure, "curves of equal density of the noise around the difference body")
    _both = mo.hstack([_picture, _table], justify="start", align="center", gap=2)
    mo.vstack([shown, share, _both])
    return


@app.cell
def _(gd, md, slider):
    _makers = {
        "Laplace": gd.mechanisms.Laplace,
        "ball": gd.mechanisms.Ball,
        "K-norm of K - K": gd.mechanisms.KNorm,
    }
    sizes = (3, 5, 10, 20, 50, 100, 200)
    # At n = 1 and epsilon = 1; the error is proportional to 1 / (n epsilon).
    errors = {
        name: [
            make(gd.workloads.Prefixes(m), n=1, privacy=gd.PureDP(1.0)).predicted_rmse.value
            for m in sizes
        ]
        for name, make in _makers.items()
    }
    population = slider(
        steps=[100, 300, 1000, 3000, 10000], value=1000, label="number of records n"
    )
    loss = slider(0.1, 2.0, step=0.1, value=1.0, label="epsilon")
    md(r"""
    **Exercise 1.** Here $\Delta_1 = 2$. Check the second row of the table with the
    formula $2d$.

    **Exercise 2.** For a **histogram** ($m$ cells, each record in one of them) $K$ is
    the simplex with corners $e_1, \dots, e_m$. What is $\Delta_1$? How much smaller
    will the error of K-norm noise be?

    **Exercise 3.** Instead of replacing records, neighbours may **add or remove** one.
    By which vectors can the sums move then?

    **Answer 1.** $d = 2$ and scale 2: $2 \cdot 2 \cdot 2^2 = 16$.

    **Answer 2.** Replacing a record lowers one cell and raises another: $\Delta_1 = 2$ for
    every $m$. The corners $e_i - e_j$ of $K - K$ all have $\ell_1$ norm 2, so the
    cross-polytope touches them all and little can be gained: at $m = 50$ the root mean squared
    error falls from 2.83 to 2.76 only.

    **Answer 3.** By $Q(x)$ or $-Q(x)$: the body is the symmetric hull $\operatorname{conv}(K \cup
    -K)$, which lies inside of $K - K$ if $0 \in K$. Every $\varepsilon$ must say which neighbours
    it means.

    ## How much the shape matters in many dimensions

    **Prefix sums**: $q_j(x) = 1[x \le j]$ for $x \in \{1, \dots, m\}$, a cumulative
    distribution. The last answer is always 1. One record can move all others by 1, so
    $\Delta_1 = m - 1$ and $\Delta_2 = \sqrt{m - 1}$; but $K$ is a thin simplex.
    The error is known before any data is seen:
    """)
    return errors, loss, population, sizes


@app.cell
def _(errors, log_log, loss, np, picture, population, sizes):
    looks = (("s-", "#D55E00"), ("o-", "#0072B2"), ("^-", "#009E73"))
    _curves = {
        name: (np.array(values) / (population.value * loss.value), *look)
        for (name, values), look in zip(errors.items(), looks, strict=True)
    }
    _last = [values[-1] for values, *_ in _curves.values()]
    _figure, _ax = log_log(
        sizes,
        _curves,
        title=f"m = 200: Laplace {_last[0]:.3f}, ball {_last[1]:.3f}, K-norm {_last[2]:.3f}",
        xlabel="number of prefix sums m",
        ylabel="error per query (rmse)",
        ylim=(1e-5, 30),
    )
    _ax.axhline(0.1, color="grey", lw=0.8, ls=":")
    picture(_figure, "error per query by the number of prefix sums", population, loss)
    return (looks,)


@app.cell
def _(gd, md, mo, noises, np, polytope, slider):
    planar = {
        "K-norm of K - K": noises["K - K"],
        "Laplace": gd.noise.LaplaceNoise(2, 2.0),
        "ball": noises["disc"],
        # Rate 1/2: to replace a record is to remove one and to add one.
        "cone over K": gd.noise.ConeNoise(polytope, 0.5, polytope.centroid()),
    }
    # One set of draws for each kind of noise; the slider only chooses how many are shown.
    clouds = {name: noise.sample(np.random.default_rng(2), 1000) for name, noise in planar.items()}
    law = mo.ui.dropdown(list(planar), value="K-norm of K - K", label="noise")
    amount = slider(steps=[1, 10, 30, 100, 300, 1000], value=300, label="draws")
    privacy = slider(0.2, 2.0, step=0.2, value=1.0, label="epsilon")
    md(r"""
    **Exercise 4.** Read off the slopes of the three curves, and derive the first two
    from $\Delta_1$ and $\Delta_2$. (The ball's error per query is
    $\sqrt{d + 1}\,\Delta_2 / (\varepsilon n)$ for $d$ queries if none of them has a
    constant answer; Nikolov's Lemma 15.)

    **Exercise 5.** At $n = 1000$ and $\varepsilon = 1$, how many prefix sums can each
    mechanism answer with error below 0.1?

    **Answer 4.** Laplace: $\sqrt2\,\Delta_1 / (\varepsilon n)$, slope 1. Ball: $d + 1 = m$ and
    $\Delta_2 = \sqrt{m - 1}$ give about $m$: slope 1 as well, with a smaller constant. K-norm:
    slope 1/2.

    **Answer 5.** Laplace about 70, the ball about 100, and the K-norm more than the 200 of the
    plot: its error there is 0.016.

    ## A uniform point and a random radius

    In $d$ dimensions K-norm noise is

    $$Z = R\,U, \qquad R \sim \mathrm{Gamma}(d + 1, 1/\varepsilon), \qquad U \text{ uniform on }
    B.$$

    Its gauge has the law $\lVert Z \rVert_B \sim \mathrm{Gamma}(d, 1/\varepsilon)$, with mean
    $d / \varepsilon$ whatever the body is. So *how far out* the noise goes, counted in copies
    of the body, is fixed. The body decides *where*.
    """)
    return amount, clouds, law, planar, privacy


@app.cell
def _(amount, clouds, difference, gd, law, np, panels, picture, planar, privacy):
    _draws = clouds[law.value] / privacy.value
    _figure, _left, _right = panels(8.8, 4.3, 2)
    gd.plotting.draw(difference, _left, colour="#009E73", label="K - K")
    _left.plot(
        *_draws[: amount.value].T, ".", ms=3, color="#D55E00", label="noise on the sums", zorder=0
    )
    _left.set(xlim=(-12, 12), ylim=(-12, 12))
    _left.set_title(f"rmse {np.sqrt(planar[law.value].variances().mean()) / privacy.value:.3f}")
    _left.legend(loc="upper left", fontsize=8)
    _gauges = difference.gauge(_draws[: amount.value])
    _bins = np.linspace(0, 12, 31)
    # Shares of all draws, also of those beyond the last bin.
    _look = {"histtype": "stepfilled", "color": "#0072B2", "alpha": 0.5}
    _right.hist(_gauges, _bins, weights=np.full(len(_gauges), 2.5 / len(_gauges)), **_look)
    _r = np.linspace(0, 12, 200)
    _gamma = privacy.value**2 * _r * np.exp(-privacy.value * _r)
    _right.plot(_r, _gamma, color="black", lw=1, label="Gamma(2, 1/epsilon)")
    _right.set(xlabel="gauge of the noise in K - K", xlim=(0, 12), ylim=(0, 0.9))
    _right.legend()
    _alt = "draws of the noise over the difference body, and their gauges"
    picture(_figure, _alt, law, amount, privacy)
    return


@app.cell
def _(Figure, functools, gd, io, md, np, slider):
    elliptope = gd.bodies.Elliptope(3)
    # The four kinds of records: (x_1, x_2, x_1 x_2).
    corners = np.array([[a, b, a * b] for a in (-1.0, 1.0) for b in (-1.0, 1.0)])
    correlations = elliptope.sample_uniform(3000, np.random.default_rng(3))
    # The elliptope and the six edges between the four records are drawn once; the slider turns the
    # view.
    _figure = Figure(figsize=(4.4, 4.2))
    _space = _figure.add_axes((0.0, 0.0, 0.95, 1.0), projection="3d")
    gd.plotting.draw(elliptope, _space)
    for _one in range(4):
        for _other in range(_one):
            _edge = corners[[_one, _other]]
            _space.plot(*_edge.T, "o-", color="#D55E00", lw=1.5, ms=4, zorder=9)
    _space.set(xlabel="$x_1$", ylabel="$x_2$", zlabel="$x_1 x_2$")
    _space.set(xticks=(-1, 0, 1), yticks=(-1, 0, 1), zticks=(-1, 0, 1))
    _space.set_box_aspect((1, 1, 1), zoom=0.8)

    @functools.cache
    def solid(azimuth):
        """The elliptope seen from `azimuth` degrees, as a PNG."""
        _space.view_init(elev=20, azim=azimuth)
        file = io.BytesIO()
        _figure.savefig(file, dpi=150)
        return file.getvalue()

    angle = slider(0, 180, step=15, value=30, label="turn the solid")
    points = slider(steps=[0, 100, 300, 1000, 3000], value=300, label="uniform points")
    md(r"""
    **Exercise 6.** For which of the four kinds of noise does the histogram follow the
    curve, and why not for the others?

    **Exercise 7.** Derive $R \sim \mathrm{Gamma}(d + 1)$ from the density. (Hint: the
    set where $\lVert z \rVert_B \le t$ has volume $t^d \operatorname{vol} B$.)

    **Exercise 8.** Show $E \lVert Z \rVert_2^2 = (d+1)(d+2)\,E\lVert U \rVert_2^2 /
    \varepsilon^2$.

    **Answer 6.** Only for the K-norm of K - K. Laplace and ball noise follow the curve in the
    gauges of their own bodies. Cone noise has no such body.

    **Answer 7.** The gauge has density $\propto t^{d-1} e^{-\varepsilon t}$: Gamma($d$). A uniform
    point has gauge $V^{1/d}$ with $V$ uniform on $[0, 1]$, and Gamma($d + 1$) times $V^{1/d}$ is
    Gamma($d$).

    **Answer 8.** $E R^2 = (d+1)(d+2)/\varepsilon^2$ is the second moment of the Gamma law, and $R$
    and $U$ are independent.

    ## Cone noise: sampling K instead of K - K

    It can be hard to draw a uniform point of $K - K$ and easy to draw one of $K$. Lift the
    body to a **cone**: every record adds $(Q(x), 1)$ to the sum, and these vectors span

    $$C = \{r\,(y, 1) : y \in K,\ r \ge 0\}.$$

    Draw $A$ with density $\propto e^{-\varepsilon' a_{m+1}}$ on $C$ and add it to the sums.
    Adding one record shifts $A$ by a vector of $C$, and the shifted cone lies **inside** the
    old one. There the density grows by the factor $e^{\varepsilon'}$, and elsewhere it is 0
    now. So the new density is nowhere above $e^{\varepsilon'}$ times the old one. Subtracting a
    second, independent $B$ bounds the old density by the new one in the same way. With
    $\varepsilon' = \varepsilon/2$

    $$Z = A - B = r_1 (U_1, 1) - r_2 (U_2, 1), \qquad U_i \text{ uniform on } K,\quad r_i \sim
    \mathrm{Gamma}(m + 1, 2/\varepsilon)$$

    is $\varepsilon$-DP when one record is replaced. In the list above it is "cone over K".

    ### The elliptope: all pairs of many yes/no columns

    Write $d$ yes/no columns as signs and put a 1 in front: $z = (1, x_1, \dots, x_d)$. The
    matrix $z z^T$ holds all single columns and all products of two, and with them all tables of
    two columns. The hull of these $2^d$ matrices is too complicated to sample, but it lies in
    the
    **elliptope**

    $$\mathcal E_p = \{R \succeq 0,\ R_{ii} = 1\}, \qquad p = d + 1,$$

    the set of correlation matrices. There is an exact recipe for a uniform correlation matrix
    (the onion method of Ghosh and Henderson; Lewandowski, Kurowicka and Joe). For $d = 2$ the
    elliptope is the inflated tetrahedron of the picture; the four dots are the four kinds of
    records.
    """)
    return angle, corners, correlations, elliptope, points, solid


@app.cell
def _(angle, correlations, mo, np, panels, picture, points, solid):
    _figure, _flat = panels(4.4, 4.2)
    _flat.plot(*correlations[: points.value, :2].T, ".", ms=3, color="#0072B2")
    _flat.set(xlim=(-1.1, 1.1), ylim=(-1.1, 1.1), aspect="equal", xlabel="$x_1$", ylabel="$x_2$")
    _seen = correlations[: points.value].var() if points.value else np.nan
    _flat.set_title(f"variance of an entry {_seen:.3f}, theory 1/4")
    _turned = mo.image(solid(angle.value), width=440, alt="the elliptope of order 3")
    _picture = picture(_figure, "uniform points of the elliptope in two of its coordinates")
    mo.vstack([angle, points, mo.hstack([_turned, _picture], justify="start")])
    return


@app.cell
def _(gd, mo, slider):
    columns = (2, 3, 5, 7, 10, 15, 20, 30, 50)
    _makers = {
        "Laplace": gd.mechanisms.Laplace,
        "ball": gd.mechanisms.Ball,
        "cone over the elliptope": gd.mechanisms.Cone,
    }
    pair_errors = {
        name: [
            make(gd.workloads.Marginals(d, 2), n=1, privacy=gd.PureDP(1.0)).predicted_rmse.value
            for d in columns
        ]
        for name, make in _makers.items()
    }
    people = slider(
        steps=[500, 1000, 2000, 5000, 10000, 50000], value=5000, label="number of records n"
    )
    budget = slider(0.1, 2.0, step=0.1, value=1.0, label="epsilon")
    mo.md(r"""
    An entry of a uniform correlation matrix has variance $1/(p + 1)$. So cone noise over the
    elliptope has, in each of its $m = p(p-1)/2$ entries,

    $$\operatorname{Var}(Z_{ij}) = \frac{8 (m + 1)(m + 2)}{(p + 1)\,\varepsilon^2} \approx
    \frac{2 d^3}{\varepsilon^2},$$

    and a cell of a table of two columns, $(1 \pm x_i \pm x_j \pm x_i x_j)/4$, has the error
    $\frac1{4n}\sqrt{3 \operatorname{Var}}$. Nikolov's Theorem 2 promises $d^{3/2}/(\varepsilon
    n)$ for these queries; this is the same rate with an explicit constant and an exact sampler.
    """)
    return budget, columns, pair_errors, people


@app.cell
def _(budget, columns, log_log, looks, np, pair_errors, people, picture):
    _curves = {
        name: (np.array(values) / (people.value * budget.value), *look)
        for (name, values), look in zip(pair_errors.items(), looks, strict=True)
    }
    _at_ten = _curves["cone over the elliptope"][0][columns.index(10)]
    _figure, _ax = log_log(
        columns,
        _curves,
        title=f"d = 10 on the elliptope: error {_at_ten:.5f}",
        xlabel="yes/no columns d",
        ylabel="error of a cell (rmse)",
        ylim=(1e-6, 50),
    )
    _ax.axhline(0.01, color="grey", lw=0.8, ls=":")
    _ax.set_xticks(columns, [str(d) for d in columns])
    picture(_figure, "error of a cell by the number of columns", people, budget)
    return


@app.cell
def _(gd, md, np, sampling, slider):
    lengths, times = [1, 3, 10, 30, 100], [1, 3, 10, 30, 100, 300]
    thin = slider(steps=lengths, value=30, label="length of the box : its height")
    steps = slider(steps=times, value=30, label="steps of the walk T")
    #: Number of bins of the long side, in which the ends of walks are counted.
    BINS = 20

    # For each position of the sliders: the box, a walk from a corner, and the share of 2000 walks
    # that end in each bin.
    walks = {}
    for _length in lengths:
        _box = gd.bodies.Box(np.array([-_length, -1.0]), np.array([_length, 1.0]))
        _corner = 0.99 * np.array([[-_length, -1.0]])
        _rng = np.random.default_rng(11)
        _kernel, _most = sampling.HitAndRun(), max(times)
        _one = sampling.run_chains(_kernel, _box, _corner, _rng, draws=_most).draws[0]
        _starts = np.repeat(_corner, 2000, axis=0)
        _many = sampling.run_chains(_kernel, _box, _starts, _rng, draws=_most).draws
        for _time in times:
            _counts = np.histogram(_many[:, _time - 1, 0], BINS, range=(-_length, _length))[0]
            walks[_length, _time] = _box, np.vstack([_corner, _one[:_time]]), _counts / 2000
    md(r"""
    **Exercise 9.** Compute the variance for $d = 2$ and $d = 10$ at $\varepsilon = 1$,
    and from the second the error of a cell at $n = 5000$.

    **Exercise 10.** What are the slopes of the Laplace curve and of the elliptope's?

    **Exercise 11.** The elliptope is larger than the hull of the records. Why does that
    not hurt the privacy, and what does it cost?

    **Answer 9.** $d = 2$: $m = 3$, $p = 3$: $8 \cdot 4 \cdot 5 / 4 = 40$. $d = 10$: $m = 55$, $p =
    11$: $8 \cdot 56 \cdot 57 / 12 = 2128$, and $\sqrt{3 \cdot 2128} / 20000 = 0.00399$.

    **Answer 10.** 2 for Laplace (its sensitivity is the number of pairs) and 3/2 for the elliptope.

    **Answer 11.** The proof needs only that every record's vector lies in the cone, and a larger
    cone contains them too. The noise is larger than it would be for the hull itself.

    ## Why a Markov chain is no proof

    For most bodies there is no recipe for a uniform point. The usual way out is a random walk,
    say **hit-and-run**: choose a random direction, move to a uniform point of the chord. Its
    law *converges* to the uniform one, but after $T$ steps it is at some distance, in total
    variation $\mathrm{tv}$. The mechanism that uses the walk is then

    $$\bigl(\varepsilon,\ (1 + e^{\varepsilon})\,\mathrm{tv}\bigr)\text{-DP}$$

    and not $\varepsilon$-DP. The walk below starts in a corner of a thin box. On the right are
    the ends of 2000 independent walks. In a square they are uniform after a few steps, in a
    thin box only after many, and **the picture of one walk does not show the difference**.
    """)
    return BINS, lengths, steps, thin, times, walks


@app.cell
def _(BINS, gd, np, panels, picture, steps, thin, walks):
    _box, _path, _shares = walks[thin.value, steps.value]
    _tv = np.abs(_shares - 1 / BINS).sum() / 2  # total variation distance from uniform, by bins
    _figure, _left, _right = panels(8.8, 3.6, 2)
    gd.plotting.draw(_box, _left, label="body")
    gd.plotting.draw_path(_path, _left, label="one walk")
    _left.set_aspect("auto")
    _left.set(title=f"one walk of {steps.value} steps", xlabel="long side", ylabel="short side")
    _edges = np.linspace(-thin.value, thin.value, BINS + 1)
    _right.stairs(_shares, _edges, fill=True, color="#0072B2", alpha=0.6)
    _right.axhline(1 / BINS, color="#D55E00", label="uniform")
    _right.set(xlabel="long side", ylabel="share of 2000 walks")
    _right.set_title(
        f"measured tv {_tv:.3f}, delta at epsilon = 1: {min(1.0, (1 + np.e) * _tv):.3f}"
    )
    _right.title.set_fontsize(10)
    _right.legend()
    picture(_figure, "one walk in the box, and where 2000 walks end", thin, steps)
    return


@app.cell
def _(md):
    md(r"""
    **Exercise 12.** At length 1 : 1, how many steps until the measured tv stops falling?
    Is it then 0?

    **Exercise 13.** How does the number of steps grow with the length? Try 10, 30, 100.

    **Exercise 14.** A colleague ran two walks, saw the same histogram in both, and
    claims $\varepsilon$-DP. What is wrong?

    **Exercise 15.** Which three ways out does this lesson offer?

    **Answer 12.** About ten. It is not 0 but some 0.04: 2000 draws in 20 bins are never exactly
    equal. A measurement cannot show 0, and a $\delta$ of 0.15 would be absurd; only a proof gives a
    small bound.

    **Answer 13.** In proportion to it: the measured tv is about the same at 10 steps and length 10,
    at 30 and 30, and at 100 and 100. Only a direction within an angle of about 1 / length of the
    long side takes the walk far. Rounding the body first (a linear map) repairs this example but is
    no proof either.

    **Answer 14.** Two walks from the same corner can agree because both have not left it. And even
    a true agreement in a histogram says nothing about sets with probability below $1/2000$, which
    is where $\delta$ lives. The library calls such noise *heuristic* and never prints
    $\varepsilon$-DP without that word.

    **Answer 15.** Take a body with an exact sampler that contains $K - K$ (ball, ellipsoid,
    cross-polytope, box); take cone noise over a body with an exact sampler (simplex, elliptope,
    spectraplex); or use an exact form of $K - K$ itself, as for the simplex or after a
    triangulation.

    *Next: how large is a body?*
    """)
    return


if __name__ == "__main__":
    app.run()
