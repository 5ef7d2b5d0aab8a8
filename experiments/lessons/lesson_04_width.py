"""Lesson 4. How large is a body: support function, Gaussian width, high-dimensional pictures."""

import marimo

app = marimo.App(width="medium", app_title="4. How large is a body?")


@app.cell
def _():
    import functools

    import marimo as mo
    import numpy as np
    from drawing import log_log, md, panels, picture, slider

    import geomdp as gd

    return functools, gd, log_log, md, mo, np, panels, picture, slider


@app.cell
def _(gd, mo, np, slider):
    _angles = np.deg2rad([80, 150, 215, 330])
    plane_bodies = {
        "a quadrangle": gd.bodies.VPolytope(
            np.array([1.6, 0.8, 1.0, 1.2])[:, None]
            * np.column_stack([np.cos(_angles), np.sin(_angles)])
        ),
        "triangle of lesson 1": gd.bodies.VPolytope(np.array([[0.0, 0], [1, 0], [1, 1]])),
        "disc": gd.bodies.Ball(2),
        "square": gd.bodies.Box(-np.ones(2), np.ones(2)),
    }
    seen = mo.ui.dropdown(list(plane_bodies), value="a quadrangle", label="body K")
    turn = slider(0, 360, step=5, value=25, label="direction u, degrees")
    mo.md(r"""
    # 4. How large is a body?

    The error of private answers depends on how large the sensitivity polytope $K$ is. But large
    in which sense? Volume, diameter and number of corners all mislead in many dimensions. This
    lesson builds the measure that the theorems use, the **Gaussian width**, from the **support
    function** of the body:

    $$h_K(u) = \max_{y \in K} \langle u, y \rangle.$$

    For a unit vector $u$ it says how far the body reaches in that direction. The **breadth**
    $h_K(u) + h_K(-u)$ is the distance between the two parallel planes that touch the body from
    both sides.
    """)
    return plane_bodies, seen, turn


@app.cell
def _(gd, np, panels, picture, plane_bodies, seen, turn):
    _body = plane_bodies[seen.value]
    _u = np.array([np.cos(np.deg2rad(turn.value)), np.sin(np.deg2rad(turn.value))])
    _ahead, _behind = _body.support(np.array([_u, -_u]))
    _around = np.deg2rad(np.arange(361))
    _circle = np.column_stack([np.cos(_around), np.sin(_around)])
    _figure, _left, _right = panels(8.6, 4.1, 2)
    gd.plotting.draw(_body, _left)
    for _reach, _sign in ((_ahead, 1.0), (_behind, -1.0)):
        gd.plotting.draw_hyperplane(gd.bodies.Halfspace(_sign * _u, float(_reach)), _left)
    _left.annotate("", _u, (0.0, 0.0), arrowprops={"arrowstyle": "->", "lw": 2, "color": "#D55E00"})
    _left.plot(*_body.extreme_point(_u[None])[0], "o", color="#D55E00")
    _left.set(xlim=(-2.2, 2.2), ylim=(-2.2, 2.2), title=f"h(u) = {_ahead:.3f}")
    _reaches = _body.support(_circle)
    _right.plot(np.rad2deg(_around), _reaches, label="h(u)")
    _right.plot(np.rad2deg(_around), _reaches + _body.support(-_circle), label="breadth", ls="--")
    _right.axvline(turn.value, color="#D55E00", lw=1)
    _right.set(xlabel="direction, degrees", ylim=(-1, 3.8), xticks=range(0, 361, 90))
    _right.set_title(f"breadth(u) = {_ahead + _behind:.3f}")
    _right.legend(loc="lower right")
    _alt = "a body with its two supporting lines, and its support function by direction"
    picture(_figure, _alt, seen, turn)
    return


@app.cell
def _(functools, gd, md, mo, np, slider):
    def body_of(name, m):
        """One of the bodies of this lesson in m dimensions."""
        if name == "ball":
            return gd.bodies.Ball(m)
        if name == "cube":
            return gd.bodies.Box(-np.ones(m), np.ones(m))
        return gd.bodies.CrossPolytope(m)

    @functools.cache
    def width_of(name, m):
        """The Gaussian width of one of the bodies of this lesson."""
        return gd.gaussian_width(body_of(name, m), rng=0).value

    names = ["ball", "cube", "cross-polytope"]
    which = mo.ui.dropdown(names, value="cross-polytope", label="body")
    dimension = slider(steps=[2, 5, 10, 20, 50, 100, 200], value=20, label="dimension m")
    draws = slider(steps=[10, 30, 100, 300, 1000], value=300, label="directions g")
    md(r"""
    **Exercise 1.** For the triangle, $h(u) = 0$ in a whole range of directions. Why?

    **Exercise 2.** At which directions does the curve $h(u)$ have a kink, and what
    does the touching point do there?

    **Exercise 3.** Which of these change when $K$ is shifted: $h_K(u)$, the breadth,
    the mean of $h_K(u)$ over all directions?

    **Answer 1.** The origin is a corner of the triangle, and for those directions it is the corner
    farthest along $u$.

    **Answer 2.** At the normal of an edge. There the touching point jumps from one end of the edge
    to the other.

    **Answer 3.** Only $h_K(u)$ itself: it grows by $\langle u, v \rangle$, which is odd in $u$, so
    it cancels in the breadth and in the mean.

    ## Gaussian width: the support function in a random direction

    $$w(K) = E\, h_K(g) = E \max_{y \in K} \langle g, y \rangle, \qquad g \sim N(0, I).$$

    Since $g$ and $-g$ have the same law, $w(K)$ is half of the mean breadth times the mean
    length of $g$, which is about $\sqrt m$. Each $h_K(g)$ is one maximum over records. A few
    hundred of them are enough, because $h_K(g)$ hardly varies in many dimensions. Some widths
    are known exactly:

    | body in $\mathbb R^m$ | $w(K)$ | at $m = 10$ |
    |---|---|---|
    | ball of radius 1 | $\mu_m = \sqrt2\,\Gamma(\frac{m+1}2)/\Gamma(\frac m2)$ | 3.084 |
    | cube $[-1, 1]^m$ | $m\sqrt{2/\pi}$ | 7.979 |
    | cube $[0, 1]^m$ | $m/\sqrt{2\pi}$ | 3.989 |
    | cross-polytope | $E \max_i \lvert g_i \rvert \le \sqrt{2 \ln 2m}$ | 1.881 |
    | segment of length 1 | $1/\sqrt{2\pi}$ | 0.399 |
    """)
    return body_of, dimension, draws, names, which, width_of


@app.cell
def _(body_of, dimension, draws, gd, np, panels, picture, which, width_of):
    _body = body_of(which.value, dimension.value)
    _g = np.random.default_rng(1).normal(size=(draws.value, dimension.value))
    _values = _body.support(_g)
    _count = np.arange(1, draws.value + 1)
    _running = np.cumsum(_values) / _count
    _error = _values.std() / np.sqrt(_count)
    _known = width_of(which.value, dimension.value)
    _figure, _left, _right = panels(8.6, 3.6, 2)
    _left.hist(_values, bins=30, histtype="stepfilled", color="#0072B2", alpha=0.6)
    _left.axvline(_known, color="#D55E00")
    _left.set(xlabel="h(g) of one direction", ylabel="directions", xlim=(0, None))
    _left.set_title(f"spread / mean = {_values.std() / _values.mean():.3f}")
    _right.plot(_count, _running, label="mean so far")
    _right.fill_between(_count, _running - 2 * _error, _running + 2 * _error, alpha=0.25)
    _right.axhline(_known, color="#D55E00", label=f"w(K) = {_known:.3f}")
    _right.set(xlabel="directions", xscale="log", ylim=(0.6 * _known, 1.4 * _known))
    _right.minorticks_off()
    _right.xaxis.set_major_formatter(gd.plotting.power_of_ten)
    _right.legend(loc="lower right")
    _alt = "the support function in random directions, and its mean so far"
    picture(_figure, _alt, which, dimension, draws)
    return


@app.cell
def _(body_of, functools, gd, md, mo, names, np, slider, width_of):
    @functools.cache
    def outlines(name, m, through_corner):
        """A body as wide as the unit ball, and an orthonormal basis (2, m) of the plane."""
        body = body_of(name, m)
        to_one = gd.geometry.mean_gaussian_norm(m) / width_of(name, m)
        directions = np.random.default_rng(5).normal(size=(2, m))
        if through_corner:
            directions[0] = body.extreme_point(directions[:1])[0]
        basis = np.linalg.qr(directions.T)[0].T
        return gd.bodies.Scaled(body, to_one), basis

    pictured = mo.ui.dropdown(names, value="cross-polytope", label="body")
    high = slider(steps=[2, 3, 5, 10, 20, 50, 100, 200], value=50, label="dimension m")
    plane = mo.ui.radio(
        ["two random directions", "a corner and a random direction"],
        value="two random directions",
        label="plane",
    )
    md(r"""
    **Exercise 4.** The ball of radius 1 and the cross-polytope both have diameter 2.
    Compare their widths at $m = 200$. Which one is "really" small?

    **Exercise 5.** What are $w(K - K)$, $w(2K)$ and $w(\operatorname{conv} S)$ in terms
    of $w(K)$ and $w(S)$?

    **Exercise 6.** Show $w(K) \le \max_i \lVert v_i \rVert_2 \sqrt{2 \ln N}$ for the
    hull of $N$ points $v_i$.

    **Answer 4.** The ball has $w \approx \sqrt m = 14.1$, the cross-polytope about 3. The
    cross-polytope reaches as far, but in $2m$ directions only, which a random direction never comes
    near.

    **Answer 5.** $2 w(K)$, $2 w(K)$ and $w(S)$: a maximum of a linear function over a hull is
    attained in $S$.

    **Answer 6.** For every $t > 0$: $e^{t\,E\max} \le E \sum_i e^{t \langle g, v_i \rangle} \le N
    e^{t^2 r^2 / 2}$ with $r = \max \lVert v_i \rVert$. Take logarithms, divide by $t$ and put $t =
    \sqrt{2 \ln N} / r$.

    ## What a body in many dimensions looks like

    A picture on paper has two dimensions, so we **cut** the body with a plane or take its
    **shadow** in a plane. Take a cube, a cross-polytope or a ball, scaled so that all have
    $w(K) = \mu_m$, the width of the ball. The plane is spanned by

    * two random directions: what a *typical* direction sees, or
    * a corner of the body and a random direction: where the *exceptions* are.

    As $m$ grows, a typical cut or shadow becomes **round** (Dvoretzky's theorem). The
    cross-polytope is a small ball with a spike to each corner, and the spikes are so thin that
    a random plane misses them all. V. Milman draws bodies in this way: a round core and a few
    long arms.
    """)
    return high, outlines, pictured, plane


@app.cell
def _(gd, high, mo, np, outlines, panels, picture, pictured, plane):
    _body, _rows = outlines(pictured.value, high.value, plane.value.startswith("a corner"))
    _figure, _left, _right = panels(8.6, 4.4, 2)
    gd.plotting.draw_slice(_body, np.zeros(high.value), _rows, _left, colour="#0072B2")
    gd.plotting.draw_shadow(_body, _rows, _right, colour="#009E73")
    for _ax, _title in (
        (_left, f"cut of the {pictured.value}, m = {high.value}"),
        (_right, "its shadow"),
    ):
        gd.plotting.draw(gd.bodies.Ball(2), _ax, colour="#777777", alpha=0.0)
        _reach = 1.15 * max(abs(bound) for bound in (*_ax.dataLim.min, *_ax.dataLim.max, 1.3))
        _ax.set(xlim=(-_reach, _reach), ylim=(-_reach, _reach))
        _ax.set_title(_title)
    mo.vstack(
        [
            pictured,
            high,
            plane,
            mo.vstack(
                [
                    picture(_figure, "a cut and a shadow of the body"),
                    mo.md("The grey circle is the unit ball, which has the same width."),
                ]
            ),
        ]
    )
    return


@app.cell
def _(md, slider):
    accuracy = slider(steps=[0.01, 0.02, 0.05, 0.1, 0.2], value=0.05, label="error alpha")
    log_size = slider(3, 60, value=20, label="universe: N = 2 to the")
    md(r"""
    **Exercise 7.** For the cross-polytope and "a corner and a random direction": how
    long is the spike at $m = 200$, and how thick is the core?

    **Exercise 8.** The shadow of a body in a random plane is close to a disc. What is
    its radius, in terms of $w(K)$? Check it with the cube.

    **Exercise 9.** And the cut? Its radius is governed by the *polar* body. Look at the
    cross-polytope: is the cut as large as the shadow?

    **Answer 7.** The corner lies at $\mu_m / w(B_1) \approx 14.1 / 2.97 \approx 4.8$, and the core
    has a radius of about $4.8 \sqrt{\pi / (2m)} \approx 0.43$. All but a vanishing share of
    directions see only the core.

    **Answer 8.** In a random unit direction $u = g / \lVert g \rVert$ the shadow reaches $h_K(u)
    \approx w(K) / \sqrt m$. With $w(K) = \mu_m$ that is 1, the grey circle. The shadow of the cube
    is round already at moderate $m$, that of the cross-polytope only at large $m$.

    **Answer 9.** No. The shadow shows how far the body reaches somewhere above a point of the
    plane; the cut shows only what lies in the plane. The cut of the cross-polytope is a disc of
    radius 0.43 and its shadow one of radius 1.

    ## Why width and not diameter: how many records do I need?

    For $k$ bounded queries ($|q_i(x)| \le 1$) on a universe of $N$ elements, Nikolov's theorems
    bound the number of records at which a private mechanism has error $\alpha$ per query:

    $$n \;\lesssim\; \min\left\{\frac{k}{\alpha \varepsilon},\;
    \frac{w(K)}{\alpha \varepsilon},\; \frac{w(K)^2}{k\, \alpha^2 \varepsilon}\right\}
    \;\le\; \min\left\{\frac{k}{\alpha \varepsilon},\; \frac{\sqrt{k \ln N}}{\alpha
    \varepsilon},\; \frac{\ln N}{\alpha^2 \varepsilon}\right\}$$

    up to a constant. The third term does not depend on the number of queries at all. Move the
    sliders and see which term is the smallest.
    """)
    return accuracy, log_size


@app.cell
def _(accuracy, log_log, log_size, np, picture):
    _k = np.logspace(0, 6, 121)
    _log_n = log_size.value * np.log(2)
    _alpha = accuracy.value
    _terms = {
        r"$k / \alpha$": (_k / _alpha, "-", "#0072B2"),
        r"$\sqrt{k\,\ln N} / \alpha$": (np.sqrt(_k * _log_n) / _alpha, "-", "#E69F00"),
        r"$\ln N / \alpha^2$": (np.full_like(_k, _log_n / _alpha**2), "-", "#CC79A7"),
    }
    _title = f"the terms cross at k = {_log_n:.0f} and k = {_log_n / _alpha**2:,.0f}"
    _labels = {"xlabel": "number of queries k", "ylabel": "records, at epsilon = 1"}
    _figure, _ = log_log(_k, _terms, least=True, title=_title, ylim=(3, 3e7), **_labels)
    _alt = "three bounds on the number of records, by the number of queries"
    picture(_figure, _alt, accuracy, log_size)
    return


@app.cell
def _(gd, mo, np):
    # Widths of workloads, to compare with sqrt(2 k ln N). All answers lie in [-1, 1].
    _signs = np.random.default_rng(7).choice([-1.0, 1.0], size=(64, 256))
    _workloads = {
        "64 random signs, N = 256": (gd.workloads.Explicit(_signs), 256),
        "pairs of 8 attributes (marginals)": (gd.workloads.Marginals(8, 2), 2**8),
        "pairs of 8 signs (parities)": (gd.workloads.Parities(8, 2), 2**8),
        "64 prefix sums": (gd.workloads.Prefixes(64), 64),
        "64 cells (histogram)": (gd.workloads.Histogram(64), 64),
    }
    widths = [
        (
            name,
            workload.n_queries,
            gd.gaussian_width(gd.sensitivity_polytope(workload), rng=0).value,
            np.sqrt(2 * workload.n_queries * np.log(size)),
        )
        for name, (workload, size) in _workloads.items()
    ]
    _rows = "\n".join(
        f"| {name} | {k} | {width:.2f} | {bound:.1f} |" for name, k, width, bound in widths
    )
    mo.md(
        "The width itself is often far below its bound for bounded queries:\n\n"
        "| workload | k | w(K) | bound $\\sqrt{2 k \\ln N}$ |\n|---|---|---|---|\n" + _rows
    )
    return (widths,)


@app.cell
def _(md):
    md(r"""
    **Exercise 10.** Derive the second inequality of the formula from exercise 6.

    **Exercise 11.** Which workload of the table is far below its bound, and why?

    **Answer 10.** A vector of $k$ entries in $[-1, 1]$ has length at most $\sqrt k$, so $w(K) \le
    \sqrt{2 k \ln N}$. Put this into the second and third term.

    **Answer 11.** The histogram: its vectors have length 1 and not $\sqrt k$, so $w(K) = E \max_i
    g_i$, which is below $\sqrt{2 \ln 64} = 2.88$. The random signs have long vectors in all
    directions, and come near their bound.

    *Next: projection.*
    """)
    return


if __name__ == "__main__":
    app.run()
