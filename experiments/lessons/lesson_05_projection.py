"""Lesson 5. Projection: why the error after a projection depends on the width of the body."""

import marimo

app = marimo.App(width="medium", app_title="5. Projection")


@app.cell
def _():
    import os

    import marimo as mo

    if mo.app_meta().mode == "run":
        # Compiling the projections takes 20 s at the first visit, and the controls answer only
        # afterwards. The bodies here are small enough for projections that are not compiled.
        os.environ.setdefault("NUMBA_DISABLE_JIT", "1")
    import numpy as np
    from drawing import log_log, md, panels, picture, slider

    import geomdp as gd

    return gd, log_log, md, mo, np, panels, picture, slider


@app.cell
def _(gd, mo, np, slider):
    triangle = gd.bodies.VPolytope(np.array([[0.0, 0.0], [1.0, 0.0], [1.0, 1.0]]))
    gaussians = np.random.default_rng(4).normal(size=(25, 2))
    spread = slider(steps=[0.01, 0.03, 0.1, 0.3, 1.0, 3.0], value=0.3, label="noise sigma")
    smokes = slider(0, 1, step=0.05, value=0.7, label="truth: smokes")
    both = slider(0, 1, step=0.05, value=0.35, label="truth: smokes, ill")
    mo.md(r"""
    # 5. Projection

    Noisy answers $\hat y = Q(X) + Z$ often lie outside of the sensitivity polytope $K$: no data
    set has such answers. Publish the nearest possible ones instead:

    $$\dot y = \operatorname*{argmin}_{y \in K} \lVert y - \hat y \rVert_2.$$

    This uses no data, only the noisy answers and the public body, so it costs **no privacy**
    (post-processing). It is the **projection mechanism** of Nikolov, Talwar and Zhang. The
    picture shows 25 fixed draws of Gaussian noise of any size, around any true answers.
    """)
    return both, gaussians, smokes, spread, triangle


@app.cell
def _(both, np, smokes):
    # Nobody smokes and is ill without smoking.
    truth = np.array([smokes.value, min(smokes.value, both.value)])
    return (truth,)


@app.cell
def _(both, gaussians, gd, np, panels, picture, smokes, spread, triangle, truth):
    _noisy = truth + spread.value * gaussians
    _nearest = np.array([gd.project(triangle, y).point for y in _noisy])
    _before = np.sqrt(((_noisy - truth) ** 2).mean())
    _after = np.sqrt(((_nearest - truth) ** 2).mean())
    _figure, _ax = panels(5.6, 4.8)
    gd.plotting.draw(triangle, _ax, label="K")
    gd.plotting.draw_projection(triangle, _noisy, _ax, label="noisy, and nearest in K")
    _ax.plot(*truth, "*", color="black", ms=13, label="true answers")
    _half = max(1.0, 2.2 * spread.value)
    _ax.set(xlim=(0.5 - _half, 0.8 + _half), ylim=(0.35 - _half, 0.65 + _half))
    _ax.set_title(f"rmse before {_before:.3f}, after {_after:.3f}")
    _ax.legend(loc="upper left", fontsize=8)
    picture(_figure, "noisy answers and their nearest points in the triangle", spread, smokes, both)
    return


@app.cell
def _(md, slider):
    noise_angle = slider(0, 360, step=5, value=60, label="direction of Z, degrees")
    noise_length = slider(0.0, 2.0, step=0.1, value=1.0, label="length of Z")
    md(r"""
    **Exercise 1.** Can the projection make the answers worse? Look at single points and
    at the rmse.

    **Exercise 2.** At sigma = 0.03 inside of $K$ nothing changes. Why?

    **Exercise 3.** At sigma = 3, what is the most that the error can be?

    **Answer 1.** Never, if the true answers lie in K. At the nearest point, the way to the noisy
    answers and the way to any point of K make an angle of at least 90 degrees, so the nearest point
    is closer to every point of K.

    **Answer 2.** All noisy answers lie in K and are their own nearest points. In the plane with
    little noise a projection is idle; in many dimensions it is not, as we shall see.

    **Answer 3.** The diameter of K, however large the noise is.

    ## The key inequality

    Let $y = Q(X) \in K$ be the true answers and $e = \dot y - y$ the error after the
    projection. The point $\dot y$ of $K$ is nearest to $\hat y = y + Z$ exactly if every point
    $v$ of $K$ lies behind the plane through $\dot y$ at a right angle to $\hat y - \dot y$:
    $\langle \hat y - \dot y,\, v - \dot y \rangle \le 0$. Put $v = y$ and
    $\hat y - \dot y = Z - e$:

    $$\lVert e \rVert_2^2 \;\le\; \langle Z, e \rangle \;=\; \langle Z, \dot y \rangle - \langle
    Z, y \rangle \;\le\; h_K(Z) - \langle Z, y \rangle.$$

    If $Z$ has mean 0 and does not depend on the data, the last term vanishes in the mean. For
    Gaussian noise $Z \sim N(0, \sigma^2 I)$ it follows that

    $$E \lVert e \rVert_2^2 \le E\,h_K(Z) = \sigma\, w(K) \qquad\text{instead of}\qquad E \lVert
    Z \rVert_2^2 = \sigma^2 m.$$

    **The squared error of the noise, $\sigma^2 m$, has become $\sigma$ times the width.** It
    grows like $\sigma$ and no longer like $\sigma^2$, and the number of queries counts only
    through the width. Check the chain of inequalities on one draw:
    """)
    return noise_angle, noise_length


@app.cell
def _(gd, noise_angle, noise_length, np, panels, picture, triangle, truth):
    _turn = np.deg2rad(noise_angle.value)
    _z = noise_length.value * np.array([np.cos(_turn), np.sin(_turn)])
    _error = gd.project(triangle, truth + _z).point - truth
    _chain = {
        "squared error": _error @ _error,
        "<Z, e>": _z @ _error,
        "h(Z) - <Z, y>": triangle.support(_z[None])[0] - _z @ truth,
        "squared noise": _z @ _z,
    }
    _figure, _left, _right = panels(8.8, 4.0, 2)
    gd.plotting.draw(triangle, _left)
    gd.plotting.draw_projection(triangle, (truth + _z)[None], _left)
    _left.plot(*truth, "*", color="black", ms=13)
    for _end, _colour in ((truth + _z, "#555555"), (truth + _error, "#0072B2")):
        _left.annotate("", _end, truth, arrowprops={"arrowstyle": "->", "color": _colour, "lw": 2})
    _left.set(xlim=(-1.5, 3.0), ylim=(-1.6, 2.9), title="Z in grey, e in blue")
    _bars = _right.barh(list(_chain), list(_chain.values()), color=["#0072B2"] * 3 + ["#999999"])
    _right.bar_label(_bars, fmt="%.2f", padding=3)
    _right.invert_yaxis()
    _first, _second, _third, _ = _chain.values()
    _right.set(xlim=(0, 4.8), title=f"{_first:.3f} is at most {_second:.3f} and {_third:.3f}")
    _alt = "one draw of the noise and its error, and four numbers in order"
    picture(_figure, _alt, noise_angle, noise_length)
    return


@app.cell
def _(gd, md, np, slider):
    _rng = np.random.default_rng(7)
    _matrix = _rng.choice([-1.0, 1.0], size=(64, 256))
    _workload = gd.workloads.Explicit(_matrix)
    _body = gd.sensitivity_polytope(_workload)
    _projector = gd.geometry.Projector(_body)
    width = gd.gaussian_width(_body, rng=0).value
    # The noise at n = 1; sigma is proportional to 1 / n.
    _gaussian = gd.mechanisms.Gaussian(_workload, n=1, privacy=gd.ZCDP(0.5))
    sigma_one = _gaussian.predicted_rmse.value
    sizes = np.array([3, 10, 30, 100, 300, 1000, 3000])
    _truth = _matrix[:, :10].mean(axis=1)
    measured = []
    for _n in sizes:
        _noisy = _truth + sigma_one / _n * _rng.normal(size=(15, 64))
        _found = np.array([found.point for found in _projector.nearest_many(_noisy)])
        measured.append(np.sqrt(((_found - _truth) ** 2).mean()))
    count = slider(steps=[3, 10, 30, 100, 300, 1000, 3000], value=30, label="number of records n")
    md(r"""
    **Exercise 4.** Put the truth on the edge and turn $Z$ until the error is as long as
    the noise. Which directions are these, and what do the bars show?

    **Exercise 5.** Turn $Z$ to the outside, at a right angle to the edge. What is the
    error now?

    **Exercise 6.** Prove $\lVert e \rVert \le \lVert Z \rVert$ from the key inequality.

    **Answer 4.** Along the edge, and into the body as long as the noisy answers stay in it: there
    all but the third bar agree.

    **Answer 5.** It is 0: the part of the noise that points out of the body is removed.

    **Answer 6.** $\lVert e \rVert^2 \le \langle Z, e \rangle \le \lVert Z \rVert\,\lVert e \rVert$
    by Cauchy and Schwarz.

    ## Many queries: the slope changes

    $m = 64$ random queries with answers $\pm 1$ on $N$ = 256 elements, Gaussian noise for
    $\rho = 1/2$. The true answers are the mean of ten elements.

    *$\rho$-zCDP* (Bun and Steinke 2016) bounds the Rényi divergence between the outputs on
    neighbours by $\rho\alpha$ at every order $\alpha > 1$. It is weaker than pure privacy:
    $\varepsilon$-DP implies $\frac{\varepsilon^2}{2}$-zCDP, and $\rho$-zCDP implies
    $(\rho + 2\sqrt{\rho \ln(1/\delta)}, \delta)$-DP. Gaussian noise with
    $\sigma = \Delta_2/(n\sqrt{2\rho})$ has it, if one record moves the sums by at most
    $\Delta_2$. So $\sigma \propto 1/n$. Per query

    * before: $\sigma$, so $n^{-1}$;
    * after: at most $\sqrt{\sigma\,w(K) / m}$, so $n^{-1/2}$ with a smaller constant.

    The two meet where the noise is smaller than the body, and there the projection gains
    little. The points are measured, 15 releases each.
    """)
    return count, measured, sigma_one, sizes, width


@app.cell
def _(count, log_log, measured, np, picture, sigma_one, sizes, width):
    _sigma = sigma_one / np.array(sizes)
    _curves = {
        r"noise: $\sigma$": (_sigma, "-", "#D55E00"),
        r"theory: $\sqrt{\sigma\,w(K)/m}$": (np.sqrt(_sigma * width / 64), "--", "#0072B2"),
        "measured after projection": (measured, "o-", "#009E73"),
    }
    _now = float(measured[list(sizes).index(count.value)])
    _title = f"n = {count.value}: from {sigma_one / count.value:.3f} to {_now:.3f}"
    _labels = {"xlabel": "records n", "ylabel": "error per query (rmse)"}
    _figure, _ax = log_log(sizes, _curves, title=_title, **_labels)
    _ax.axvline(count.value, color="grey", lw=1)
    _alt = "error per query before and after the projection, by the number of records"
    picture(_figure, _alt, count)
    return


@app.cell
def _(md):
    md(r"""
    **Exercise 7.** For bounded queries $w(K) \le \sqrt{2 m \ln N}$ and $\sigma = 2
    \sqrt m / (n \sqrt{2 \rho})$. Show that the error after projection is at most

    $$\left(\frac{2 \sqrt{\ln N / \rho}}{n}\right)^{1/2},$$

    and evaluate it at $N = 1000$, $n = 500$, $\rho = 1/2$. Where has the number of
    queries gone?

    **Exercise 8.** For which $\sigma$ is the bound below the error of the noise?

    **Exercise 9.** Is the projected answer unbiased?

    **Answer 7.** $\sigma\,w(K)/m \le \frac{2\sqrt m}{n\sqrt{2\rho}} \cdot \frac{\sqrt{2 m \ln
    N}}{m} = \frac{2\sqrt{\ln N/\rho}}{n}$. The value is 0.12193. The number of queries has
    cancelled: a million queries are answered as well as a thousand.

    **Answer 8.** $\sqrt{\sigma w / m} < \sigma$ if $\sigma > w(K)/m$, that is, if the noise is long
    compared with the body in a random direction.

    **Answer 9.** No. At a corner all errors point into the body. Projection trades a little bias
    for much less variance; an interval around the projected answer must not pretend otherwise
    (lesson 10).

    ## Pure privacy: what is left to do

    For $\varepsilon$-DP the noise must be K-norm or cone noise, which is longer. The same
    inequalities give $E \lVert e \rVert^2 \le E\,h_K(Z)$ for every noise of mean 0. These are
    the errors for the workload above that are predicted before any data is seen:
    """)
    return


@app.cell
def _(gd, mo, np):
    _matrix = np.random.default_rng(7).choice([-1.0, 1.0], size=(64, 256))
    _workload = gd.workloads.Explicit(_matrix)
    _rows = []
    for _n in (30, 100, 300, 1000):
        _cells = [f"{_n}"]
        for _make in (gd.mechanisms.Laplace, gd.mechanisms.Ball):
            _inner = _make(_workload, n=_n, privacy=gd.PureDP(1.0))
            _cells.append(f"{_inner.predicted_rmse.value:.2f}")
            _cells.append(f"{gd.mechanisms.Projected(_inner).predicted_rmse.value:.2f}")
        _rows.append("| " + " | ".join(_cells) + " |")
    mo.md(
        "| n | Laplace | projected, at most | ball | projected, at most |\n"
        "|---|---|---|---|---|\n" + "\n".join(_rows)
    )
    return


@app.cell
def _(md):
    md(r"""
    **Exercise 10.** Nikolov's second theorem needs $w(K)^2 / (m \alpha^2 \varepsilon)$
    records. What must the noise be like for the projection to reach that, and why is
    ball noise of length about $m \Delta / (\varepsilon n)$ not like that?

    **Answer 10.** The noise must be short in the few directions that the body uses: in dimension
    $m$ pure-DP noise of a ball has length $\propto m$ and not $\sqrt m$. The next lesson maps the
    answers to fewer dimensions by a random matrix first, adds noise there, and projects back.

    *Next: the Johnson-Lindenstrauss transform.*
    """)
    return


if __name__ == "__main__":
    app.run()
