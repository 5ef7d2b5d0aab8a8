"""Lesson 2. What one record can change: K - K, the K-norm, and Laplace noise as K-norm noise."""

import marimo

app = marimo.App(width="medium", app_title="2. What one record can change")


@app.cell
def _():
    import marimo as mo
    import numpy as np
    from matplotlib.figure import Figure

    import geomdp as gd
    from geomdp.geometry.sampling import ExactSampler

    return ExactSampler, Figure, gd, mo, np


@app.cell
def _(gd, mo):
    _pictures = gd.plotting.SteadyPictures()

    def picture(figure, alt):
        """The figure as an image. Its axes stay in place when it is drawn again."""
        width = round(100 * figure.get_figwidth())
        return mo.image(_pictures.png(figure, alt), width=width, alt=alt)

    return (picture,)


@app.cell
def _(mo):
    mo.md(r"""
    # 2. What one record can change

    **Differential privacy** compares two data sets that differ in one record. The output of a
    mechanism $M$ must have nearly the same law on both:

    $$\Pr[M(X) \in S] \le e^{\varepsilon}\, \Pr[M(X') \in S] \quad\text{for all neighbours } X,
    X' \text{ and all sets } S.$$

    So the first question about a workload is: **by which vectors can one record move the
    answers?** If the record $x$ of $n$ records is replaced by $x'$,

    $$Q(X') - Q(X) = \frac1n \bigl(Q(x') - Q(x)\bigr) \in \frac1n (K - K), \qquad
    K - K = \{a - b : a, b \in K\}.$$

    The body $K - K$ is called the **difference body**. We keep the two queries of lesson 1:
    $q_1$ = "smokes" and $q_2$ = "smokes and is ill".
    """)
    return


@app.cell
def _(ExactSampler, gd, np):
    workload = gd.workloads.Explicit(np.array([[0, 0, 1, 1], [0, 0, 0, 1]]))
    kinds = ["healthy", "ill", "smokes", "smokes, ill"]
    corners = workload.evaluate(np.arange(4))
    polytope = gd.sensitivity_polytope(workload)
    difference = gd.difference_body(polytope)
    # Three symmetric bodies that contain K - K. Each is the smallest of its shape.
    _steps = (corners[:, None] - corners).reshape(-1, 2)
    _l1, _l2 = (float(np.linalg.norm(_steps, p, axis=1).max()) for p in (1, 2))
    bodies = {
        "K - K": difference,
        "cross-polytope (Laplace)": gd.bodies.CrossPolytope(2, _l1),
        "disc": gd.bodies.Ball(2, _l2),
    }
    noises = {
        name: gd.noise.KNormNoise(body, 1.0, ExactSampler(body)) for name, body in bodies.items()
    }
    return bodies, corners, difference, kinds, noises, polytope


@app.cell
def _(kinds, mo):
    old = mo.ui.dropdown(kinds, value="healthy", label="the record is")
    new = mo.ui.dropdown(kinds, value="smokes, ill", label="and becomes")
    records = mo.ui.slider(1, 10, value=4, label="number of records n", show_value=True)
    mo.vstack([mo.hstack([old, new], justify="start", gap=2), records])
    return new, old, records


@app.cell
def _(Figure, corners, difference, gd, kinds, new, np, old, picture, polytope, records):
    _step = corners[kinds.index(new.value)] - corners[kinds.index(old.value)]
    # The other n - 1 records take the four kinds in turn.
    _others = corners[np.arange(records.value - 1) % 4].sum(axis=0)
    _before = (_others + corners[kinds.index(old.value)]) / records.value
    _figure = Figure(figsize=(8.4, 4.0), layout="constrained")
    _left, _right = _figure.subplots(1, 2)
    gd.plotting.draw(polytope, _left)
    _left.annotate(
        "", _before + _step / records.value, _before, arrowprops={"arrowstyle": "->", "lw": 2}
    )
    _left.plot(*_before, "o", color="#D55E00")
    _left.set(xlim=(-0.15, 1.15), ylim=(-0.15, 1.15), title="answers move inside K")
    gd.plotting.draw(difference, _right, colour="#009E73")
    gd.plotting.draw(gd.bodies.Scaled(difference, 1 / records.value), _right, colour="#D55E00")
    _right.annotate("", _step / records.value, (0.0, 0.0), arrowprops={"arrowstyle": "->", "lw": 2})
    _right.set(
        xlim=(-1.2, 1.2), ylim=(-1.2, 1.2), title="the step lies in (K - K)/n, inside of K - K"
    )
    picture(_figure, "the step of the answers inside K and inside the difference body")
    return


@app.cell
def _(mo):
    mo.vstack(
        [
            mo.md(r"""
            **Exercise 1.** $K$ is a triangle with three corners. How many pairs (old, new) of
            different corners are there, and which of them give corners of $K - K$?

            **Exercise 2.** $K$ need not be symmetric, and here it is not. Why is $K - K$
            symmetric about 0 for every $K$?

            **Exercise 3.** The triangle has area $1/2$. What is the area of the hexagon? (For a
            simplex in $m$ dimensions the volume grows by the factor $\binom{2m}{m}$.)
            """),
            mo.accordion(
                {
                    "Answer 1": "Six ordered pairs, and all six differences are corners of the "
                    "hexagon. For a simplex this is always so. For a cube it is not: many pairs of "
                    "corners have the same difference.",
                    "Answer 2": "With $a - b$ it contains $b - a$: old and new change places.",
                    "Answer 3": r"$\binom{4}{2} \cdot \frac12 = 3$. For a body that is symmetric "
                    "to begin with, $K - K = 2K$, and the factor is only $2^m = 4$.",
                }
            ),
        ]
    )
    return


@app.cell
def _(mo):
    mo.md(r"""
    ## The norm that counts records

    A symmetric body is the unit ball of a norm, its **gauge**:

    $$\lVert v \rVert_{K-K} = \min\{t \ge 0 : v \in t\,(K - K)\}.$$

    In units of sums (answers times $n$) it has a plain meaning: $\lVert v \rVert_{K-K}$ is the
    least number of records that must be replaced to move the sums by $v$, if fractions of
    records may be replaced. Choose a vector $v$, and watch the body grow until it reaches $v$.
    """)
    return


@app.cell
def _(mo):
    angle = mo.ui.slider(0, 360, step=5, value=30, label="direction of v, degrees", show_value=True)
    length = mo.ui.slider(0.1, 3.0, step=0.1, value=2.0, label="length of v", show_value=True)
    mo.vstack([angle, length])
    return angle, length


@app.cell
def _(Figure, angle, bodies, difference, gd, length, mo, np, picture):
    _turn = np.deg2rad(angle.value)
    _v = length.value * np.array([np.cos(_turn), np.sin(_turn)])
    _gauges = {name: float(body.gauge(_v[None])[0]) for name, body in bodies.items()}
    _figure = Figure(figsize=(5.4, 4.6), layout="constrained")
    _ax = _figure.subplots()
    _grown = gd.bodies.Scaled(difference, max(_gauges["K - K"], 1e-3))
    gd.plotting.draw(_grown, _ax, colour="#009E73", alpha=0.1, label="t (K - K)")
    gd.plotting.draw(difference, _ax, colour="#009E73", label="K - K")
    _ax.annotate("", _v, (0.0, 0.0), arrowprops={"arrowstyle": "->", "lw": 2})
    _ax.set(xlim=(-3.3, 3.3), ylim=(-3.3, 3.3))
    _ax.set_title(f"v = ({_v[0]:.2f}, {_v[1]:.2f}) is reached at t = {_gauges['K - K']:.2f}")
    _ax.legend(loc="lower right")
    _table = "\n".join(f"| {name} | {value:.3f} |" for name, value in _gauges.items())
    mo.hstack(
        [
            picture(_figure, "a vector and the copy of the difference body that reaches it"),
            mo.md("| unit ball | norm of v |\n|---|---|\n" + _table),
        ],
        justify="start",
        align="center",
        gap=2,
    )
    return


@app.cell
def _(mo):
    mo.vstack(
        [
            mo.md(r"""
            **Exercise 4.** Two of the norms in the table are never above the first. Which two?
            How does this follow from the fact that their unit balls contain $K - K$?

            **Exercise 5.** Find a direction in which the disc is as good as $K - K$, and one in
            which it is worst.
            """),
            mo.accordion(
                {
                    "Answer 4": "Those of the cross-polytope and the disc. They contain $K - K$, "
                    "and a larger unit ball gives a smaller norm. Noise made from such a norm is "
                    "larger than necessary, and never too small.",
                    "Answer 5": r"At 45 degrees the disc touches the corner $(1, 1)$, and the "
                    r"norms agree. At 135 degrees the boundary of $K - K$ is nearest, at distance "
                    r"$1/\sqrt2$, while the disc has radius $\sqrt2$: a factor of 2.",
                }
            ),
        ]
    )
    return


@app.cell
def _(mo):
    mo.md(r"""
    ## From a norm to noise

    Let $B$ be any symmetric body that contains $K - K$, and add to the sums noise with density

    $$p(z) = c\, e^{-\varepsilon \lVert z \rVert_B}.$$

    If one record moves the sums by $v$, the densities of an output $z$ under the two data sets
    are $p(z)$ and $p(z - v)$, and by the triangle inequality

    $$\left|\ln \frac{p(z)}{p(z - v)}\right| = \varepsilon\,\bigl|\lVert z - v \rVert_B -
    \lVert z \rVert_B\bigr| \le \varepsilon \lVert v \rVert_B \le \varepsilon.$$

    That is the whole proof that the **K-norm mechanism** is $\varepsilon$-DP (Hardt and Talwar
    2010; Nikolov's Lemma 14). The picture shows the privacy loss $\ln p(z)/p(z-v)$ at every
    output $z$, for the corner $v = (1, 1)$. Red outputs speak for one data set, blue ones for
    the other. With a scale below 1 the noise is too small for its claim.
    """)
    return


@app.cell
def _(bodies, mo):
    ball = mo.ui.dropdown(list(bodies), value="K - K", label="body B")
    epsilon = mo.ui.slider(0.2, 2.0, step=0.2, value=1.0, label="claimed epsilon", show_value=True)
    scale = mo.ui.slider(0.5, 1.5, step=0.1, value=1.0, label="scale of the noise", show_value=True)
    mo.vstack([ball, epsilon, scale])
    return ball, epsilon, scale


@app.cell
def _(bodies, np):
    # The norms on the grid do not depend on the sliders, so they are computed once.
    axis = np.linspace(-3, 4, 141)
    _grid = np.stack(np.meshgrid(axis, axis), axis=-1).reshape(-1, 2)
    _v = np.array([1.0, 1.0])
    losses = {
        name: (body.gauge(_grid - _v) - body.gauge(_grid)).reshape(len(axis), len(axis))
        for name, body in bodies.items()
    }
    return axis, losses


@app.cell
def _(Figure, axis, ball, difference, epsilon, gd, losses, np, picture, scale):
    _loss = losses[ball.value] * epsilon.value / scale.value
    _worst = float(np.abs(_loss).max())
    _holds = _worst <= epsilon.value * (1 + 1e-9)
    _figure = Figure(figsize=(6.2, 4.6), layout="constrained")
    _ax = _figure.subplots()
    _image = _ax.pcolormesh(axis, axis, _loss, cmap="RdBu_r", vmin=-3, vmax=3, rasterized=True)
    gd.plotting.draw(difference, _ax, colour="black", alpha=0.0)
    _ax.annotate("", (1.0, 1.0), (0.0, 0.0), arrowprops={"arrowstyle": "->", "lw": 2})
    _ax.set(xlim=(-3, 4), ylim=(-3, 4))
    _ax.set_title(
        f"largest loss {_worst:.2f}: the claim {epsilon.value:g} "
        f"{'holds' if _holds else 'is WRONG'}",
        color="black" if _holds else "#D55E00",
    )
    _figure.colorbar(_image, ax=_ax, label="privacy loss", shrink=0.9)
    picture(_figure, "the privacy loss at every output")
    return


@app.cell
def _(mo):
    mo.vstack(
        [
            mo.md(r"""
            **Exercise 6.** Choose the cross-polytope. Why is the loss constant on large
            regions?

            **Exercise 7.** At scale 0.5 the claim fails. For which claim is that noise right?

            **Exercise 8.** Two people leave the data set and two others join. What becomes of
            the bound $e^{\varepsilon}$?
            """),
            mo.accordion(
                {
                    "Answer 6": r"$\lVert z \rVert_B$ is linear on the cone over each face. Where "
                    r"$z$ and $z - v$ lie in the cone over one face with normal $u$, the loss is "
                    r"$-\varepsilon \langle u, v \rangle$, whatever $z$ is.",
                    "Answer 7": r"For $2 \varepsilon$: it is the noise of the body $B / 2$, in "
                    "whose norm $v$ has length 2.",
                    "Answer 8": r"The sums move by $v + v'$, whose norm is at most 2, so the bound "
                    r"is $e^{2\varepsilon}$. For $r$ records it is $e^{r\varepsilon}$ (group "
                    "privacy); lesson 7 turns this into lower bounds.",
                }
            ),
        ]
    )
    return


@app.cell
def _(mo):
    mo.md(r"""
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
    return


@app.cell
def _(bodies, mo):
    shown = mo.ui.multiselect(list(bodies), value=list(bodies)[:2], label="noise of")
    share = mo.ui.slider(
        0.1, 0.9, step=0.1, value=0.5, label="share of the noise inside", show_value=True
    )
    mo.vstack([shown, share])
    return share, shown


@app.cell
def _(Figure, difference, gd, mo, noises, picture, share, shown):
    _colours = dict(zip(noises, ("#009E73", "#D55E00", "#0072B2"), strict=True))
    _figure = Figure(figsize=(5.4, 4.6), layout="constrained")
    _ax = _figure.subplots()
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
        f"| {name} | {body.volume():.2f} | {noise.second_moment().value:.2f} |"
        for (name, noise), body in zip(
            noises.items(), (noise.body for noise in noises.values()), strict=True
        )
    )
    mo.hstack(
        [
            picture(_figure, "curves of equal density of the noise around the difference body"),
            mo.md("| body | area | E of squared length |\n|---|---|---|\n" + _rows),
        ],
        justify="start",
        align="center",
        gap=2,
    )
    return


@app.cell
def _(mo):
    mo.vstack(
        [
            mo.md(r"""
            **Exercise 9.** Here $\Delta_1 = 2$. Check the second row of the table with the
            formula $2d$.

            **Exercise 10.** For a **histogram** ($m$ cells, each record in one of them) $K$ is
            the simplex with corners $e_1, \dots, e_m$. What is $\Delta_1$? How much smaller
            will the error of K-norm noise be?

            **Exercise 11.** Instead of replacing records, neighbours may **add or remove** one.
            By which vectors can the sums move then?
            """),
            mo.accordion(
                {
                    "Answer 9": r"$d = 2$ and scale 2: $2 \cdot 2 \cdot 2^2 = 16$.",
                    "Answer 10": r"Replacing a record lowers one cell and raises another: "
                    r"$\Delta_1 = 2$ for every $m$. The corners $e_i - e_j$ of $K - K$ all have "
                    r"$\ell_1$ norm 2, so the cross-polytope touches them all and little can be "
                    "gained: at $m = 50$ the root mean squared error falls from 2.83 to 2.76 only.",
                    "Answer 11": r"By $Q(x)$ or $-Q(x)$: the body is the symmetric hull "
                    r"$\operatorname{conv}(K \cup -K)$, which lies inside of $K - K$ if "
                    r"$0 \in K$. Every $\varepsilon$ must say which neighbours it means.",
                }
            ),
        ]
    )
    return


@app.cell
def _(mo):
    mo.md(r"""
    ## How much the shape matters in many dimensions

    **Prefix sums**: $q_j(x) = 1[x \le j]$ for $x \in \{1, \dots, m\}$, a cumulative
    distribution. The last answer is always 1. One record can move all others by 1, so
    $\Delta_1 = m - 1$ and $\Delta_2 = \sqrt{m - 1}$; but $K$ is a thin simplex.
    The error is known before any data is seen:
    """)
    return


@app.cell
def _(gd):
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
    return errors, sizes


@app.cell
def _(mo):
    population = mo.ui.slider(
        steps=[100, 300, 1000, 3000, 10000],
        value=1000,
        label="number of records n",
        show_value=True,
    )
    loss = mo.ui.slider(0.1, 2.0, step=0.1, value=1.0, label="epsilon", show_value=True)
    mo.vstack([population, loss])
    return loss, population


@app.cell
def _(Figure, errors, gd, loss, np, picture, population, sizes):
    _figure = Figure(figsize=(6.0, 4.2), layout="constrained")
    _ax = _figure.subplots()
    _looks = (("#D55E00", "s"), ("#0072B2", "o"), ("#009E73", "^"))
    for (_name, _values), (_colour, _marker) in zip(errors.items(), _looks, strict=True):
        _scaled = np.array(_values) / (population.value * loss.value)
        _ax.loglog(sizes, _scaled, marker=_marker, color=_colour, label=_name)
    _ax.axhline(0.1, color="grey", lw=0.8, ls=":")
    _ax.set(xlabel="number of prefix sums m", ylabel="error per query (rmse)", ylim=(1e-5, 30))
    _ax.minorticks_off()  # minor ticks would double the drawing time
    _ax.xaxis.set_major_formatter(gd.plotting.power_of_ten)
    _ax.yaxis.set_major_formatter(gd.plotting.power_of_ten)
    _ax.legend()
    picture(_figure, "error per query by the number of prefix sums")
    return


@app.cell
def _(mo):
    mo.vstack(
        [
            mo.md(r"""
            **Exercise 12.** Read off the slopes of the three curves, and derive the first two
            from $\Delta_1$ and $\Delta_2$. (The ball's error per query is
            $\sqrt{d + 1}\,\Delta_2 / (\varepsilon n)$ for $d$ queries if none of them has a
            constant answer; Nikolov's Lemma 15.)

            **Exercise 13.** At $n = 1000$ and $\varepsilon = 1$, how many prefix sums can each
            mechanism answer with error below 0.1?
            """),
            mo.accordion(
                {
                    "Answer 12": r"Laplace: $\sqrt2\,\Delta_1 / (\varepsilon n)$, slope 1. Ball: "
                    r"$d + 1 = m$ and $\Delta_2 = \sqrt{m - 1}$ give about $m$: slope 1 as "
                    "well, with a smaller constant. K-norm: slope 1/2.",
                    "Answer 13": "Laplace about 70, the ball about 100, and the K-norm more than "
                    "the 200 of the plot: its error there is 0.016.",
                }
            ),
            mo.md("*Next: how large is a body?*"),
        ]
    )
    return


if __name__ == "__main__":
    app.run()
