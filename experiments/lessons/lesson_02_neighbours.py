"""Lesson 2. What one record can change: differential privacy, K - K and its norm."""

import marimo

app = marimo.App(width="medium", app_title="2. What one record can change")


@app.cell
def _():
    import marimo as mo
    import numpy as np
    from drawing import md, panels, picture, slider

    import geomdp as gd

    return gd, md, mo, np, panels, picture, slider


@app.cell
def _(gd, mo, np):
    workload = gd.workloads.Explicit(np.array([[0, 0, 1, 1], [0, 0, 0, 1]]))
    kinds = ["healthy", "ill", "smokes", "smokes, ill"]
    corners = workload.evaluate(np.arange(4))
    polytope = gd.sensitivity_polytope(workload)
    difference = gd.difference_body(polytope)
    # Symmetric bodies that contain K - K. Each is the smallest of its shape.
    _steps = (corners[:, None] - corners).reshape(-1, 2)
    _l1, _l2 = (float(np.linalg.norm(_steps, p, axis=1).max()) for p in (1, 2))
    bodies = {
        "K - K": difference,
        "cross-polytope (Laplace)": gd.bodies.CrossPolytope(2, _l1),
        "disc": gd.bodies.Ball(2, _l2),
    }
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
    return bodies, corners, difference, kinds, polytope


@app.cell
def _(kinds, mo, slider):
    old = mo.ui.dropdown(kinds, value="healthy", label="the record is")
    new = mo.ui.dropdown(kinds, value="smokes, ill", label="and becomes")
    records = slider(1, 10, value=4, label="number of records n")
    mo.vstack([mo.hstack([old, new], justify="start", gap=2), records])
    return new, old, records


@app.cell
def _(corners, difference, gd, kinds, new, np, old, panels, picture, polytope, records):
    _step = corners[kinds.index(new.value)] - corners[kinds.index(old.value)]
    # The other n - 1 records take the four kinds in turn.
    _others = corners[np.arange(records.value - 1) % 4].sum(axis=0)
    _before = (_others + corners[kinds.index(old.value)]) / records.value
    _figure, _left, _right = panels(8.4, 4.0, 2)
    gd.plotting.draw(polytope, _left)
    _left.annotate(
        "", _before + _step / records.value, _before, arrowprops={"arrowstyle": "->", "lw": 2}
    )
    _left.plot(*_before, "o", color="#D55E00")
    _left.set(xlim=(-0.15, 1.15), ylim=(-0.15, 1.15))
    _after = _before + _step / records.value
    _left.set_title(
        f"from ({_before[0]:.3f}, {_before[1]:.3f}) to ({_after[0]:.3f}, {_after[1]:.3f}) in K",
        fontsize=10,
    )
    gd.plotting.draw(difference, _right, colour="#009E73")
    gd.plotting.draw(gd.bodies.Scaled(difference, 1 / records.value), _right, colour="#D55E00")
    _right.annotate("", _step / records.value, (0.0, 0.0), arrowprops={"arrowstyle": "->", "lw": 2})
    _right.set(
        xlim=(-1.2, 1.2), ylim=(-1.2, 1.2), title="the step lies in (K - K)/n, inside of K - K"
    )
    picture(_figure, "the step of the answers inside K and inside the difference body")
    return


@app.cell
def _(md, slider):
    angle = slider(0, 360, step=5, value=30, label="direction of v, degrees")
    length = slider(0.1, 3.0, step=0.1, value=2.0, label="length of v")
    md(r"""
    **Exercise 1.** $K$ is a triangle with three corners. How many pairs (old, new) of
    different corners are there, and which of them give corners of $K - K$?

    **Exercise 2.** $K$ need not be symmetric, and here it is not. Why is $K - K$
    symmetric about 0 for every $K$?

    **Exercise 3.** The triangle has area $1/2$. What is the area of the hexagon? (For a
    simplex in $m$ dimensions the volume grows by the factor $\binom{2m}{m}$.)

    **Answer 1.** Six ordered pairs, and all six differences are corners of the hexagon. For a
    simplex this is always so. For a cube it is not: many pairs of corners have the same difference.

    **Answer 2.** With $a - b$ it contains $b - a$: old and new change places.

    **Answer 3.** $\binom{4}{2} \cdot \frac12 = 3$. For a body that is symmetric to begin with, $K -
    K = 2K$, and the factor is only $2^m = 4$.

    ## The norm that counts records

    A symmetric body is the unit ball of a norm, its **gauge**:

    $$\lVert v \rVert_{K-K} = \min\{t \ge 0 : v \in t\,(K - K)\}.$$

    In units of sums (answers times $n$) it has a plain meaning: $\lVert v \rVert_{K-K}$ is the
    least number of records that must be replaced to move the sums by $v$, if fractions of
    records may be replaced. Choose a vector $v$, and watch the body grow until it reaches $v$.
    """)
    return angle, length


@app.cell
def _(angle, bodies, difference, gd, length, mo, np, panels, picture):
    _turn = np.deg2rad(angle.value)
    _v = length.value * np.array([np.cos(_turn), np.sin(_turn)])
    _gauges = {name: float(body.gauge(_v[None])[0]) for name, body in bodies.items()}
    _figure, _ax = panels(5.4, 4.6)
    _grown = gd.bodies.Scaled(difference, max(_gauges["K - K"], 1e-3))
    gd.plotting.draw(_grown, _ax, colour="#009E73", alpha=0.1, label="t (K - K)")
    gd.plotting.draw(difference, _ax, colour="#009E73", label="K - K")
    _ax.annotate("", _v, (0.0, 0.0), arrowprops={"arrowstyle": "->", "lw": 2})
    _ax.set(xlim=(-3.3, 3.3), ylim=(-3.3, 3.3))
    _ax.set_title(f"v = ({_v[0]:.3f}, {_v[1]:.3f}) is reached at t = {_gauges['K - K']:.3f}")
    _ax.legend(loc="lower right")
    _rows = "\n".join(f"| {name} | {value:.3f} |" for name, value in _gauges.items())
    _table = mo.md("| unit ball | norm of v |\n|---|---|\n" + _rows)
    _picture = picture(_figure, "a vector and the copy of the difference body that reaches it")
    _both = mo.hstack([_picture, _table], justify="start", align="center", gap=2)
    mo.vstack([angle, length, _both])
    return


@app.cell
def _(bodies, md, mo, np, slider):
    # The norms on the grid do not depend on the sliders, so they are computed once.
    axis = np.linspace(-3, 4, 141)
    _grid = np.stack(np.meshgrid(axis, axis), axis=-1).reshape(-1, 2)
    _v = np.array([1.0, 1.0])
    losses = {
        name: (body.gauge(_grid - _v) - body.gauge(_grid)).reshape(len(axis), len(axis))
        for name, body in bodies.items()
    }
    ball = mo.ui.dropdown(list(bodies), value="K - K", label="body B")
    epsilon = slider(0.2, 2.0, step=0.2, value=1.0, label="claimed epsilon")
    scale = slider(0.5, 1.5, step=0.1, value=1.0, label="scale of the noise")
    md(r"""
    **Exercise 4.** Two of the norms in the table are never above the first. Which two?
    How does this follow from the fact that their unit balls contain $K - K$?

    **Exercise 5.** Find a direction in which the disc is as good as $K - K$, and one in
    which it is worst.

    **Answer 4.** Those of the cross-polytope and the disc. They contain $K - K$, and a larger unit
    ball gives a smaller norm. Noise made from such a norm is larger than necessary, and never too
    small.

    **Answer 5.** At 45 degrees the disc touches the corner $(1, 1)$, and the norms agree. At 135
    degrees the boundary of $K - K$ is nearest, at distance $1/\sqrt2$, while the disc has radius
    $\sqrt2$: a factor of 2.

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
    return axis, ball, epsilon, losses, scale


@app.cell
def _(axis, ball, difference, epsilon, gd, losses, np, panels, picture, scale):
    _loss = losses[ball.value] * epsilon.value / scale.value
    _worst = float(np.abs(_loss).max())
    _holds = _worst <= epsilon.value * (1 + 1e-9)
    _figure, _ax = panels(6.2, 4.6)
    _image = _ax.pcolormesh(axis, axis, _loss, cmap="RdBu_r", vmin=-3, vmax=3, rasterized=True)
    gd.plotting.draw(difference, _ax, colour="black", alpha=0.0)
    _ax.annotate("", (1.0, 1.0), (0.0, 0.0), arrowprops={"arrowstyle": "->", "lw": 2})
    _ax.set(xlim=(-3, 4), ylim=(-3, 4))
    _ax.set_title(
        f"largest loss {_worst:.3f}: the claim {epsilon.value:g} "
        f"{'holds' if _holds else 'is WRONG'}",
        color="black" if _holds else "#D55E00",
    )
    _figure.colorbar(_image, ax=_ax, label="privacy loss", shrink=0.9)
    picture(_figure, "the privacy loss at every output", ball, epsilon, scale)
    return


@app.cell
def _(md):
    md(r"""
    **Exercise 6.** Choose the cross-polytope. Why is the loss constant on large
    regions?

    **Exercise 7.** At scale 0.5 the claim fails. For which claim is that noise right?

    **Exercise 8.** Two people leave the data set and two others join. What becomes of
    the bound $e^{\varepsilon}$?

    **Answer 6.** $\lVert z \rVert_B$ is linear on the cone over each face. Where $z$ and $z - v$
    lie in the cone over one face with normal $u$, the loss is $-\varepsilon \langle u, v \rangle$,
    whatever $z$ is.

    **Answer 7.** For $2 \varepsilon$: it is the noise of the body $B / 2$, in whose norm $v$ has
    length 2.

    **Answer 8.** The sums move by $v + v'$, whose norm is at most 2, so the bound is
    $e^{2\varepsilon}$. For $r$ records it is $e^{r\varepsilon}$ (group privacy); lesson 7 turns
    this into lower bounds.

    *Next: noise shaped like the body.*
    """)
    return


if __name__ == "__main__":
    app.run()
