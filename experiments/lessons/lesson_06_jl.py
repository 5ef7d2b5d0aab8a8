"""Lesson 6. The JL transform: noise in fewer dimensions, and nearly the same distances."""

import marimo

app = marimo.App(width="medium", app_title="6. The JL transform")


@app.cell
def _():
    import marimo as mo
    import numpy as np
    from drawing import log_log, md, picture, slider
    from matplotlib import pyplot as plt

    import geomdp as gd

    return gd, log_log, md, mo, np, picture, plt, slider


@app.cell
def _(gd, mo, np, slider):
    # 200 random sign queries about 64 kinds of records: a body in R^200 with 64 corners.
    queries, kinds = 200, 64
    workload = gd.workloads.RandomSigns(queries, kinds, rng=0)
    polytope = gd.sensitivity_polytope(workload)
    corners = workload.evaluate(np.arange(kinds))
    width = gd.gaussian_width(polytope, rng=0).value
    first, second = np.triu_indices(kinds, 1)
    lengths = np.linalg.norm(corners[first] - corners[second], axis=1)
    rows = slider(steps=[2, 5, 10, 20, 50, 100, queries], value=20, label="rows m")
    seed = slider(0, 5, value=1, label="draw of A")
    mo.md(r"""
    # 6. The JL transform

    Lesson 5 projected noisy answers back on the body. The noise itself was added in all
    dimensions of the workload, and its length grows with that number. Nikolov (2022) adds the
    noise in fewer dimensions:

    1. Draw a random matrix $A$ with $m$ rows and one column per query. It is public.
    2. Answer the $m$ queries $AQ$ privately: $\hat y = A\,Q(X) + Z$.
    3. Return the point of $K$ whose image is nearest:
       $\dot y = \operatorname{argmin}_{y \in K} \lVert A y - \hat y \rVert_2$.

    All $k$ queries are answered, and the noise has only $m$ coordinates. Two questions decide
    whether that helps: what does $A$ do to distances in $K$, and how much smaller is the noise?
    *(Theorem and lemma numbers are Nikolov's.)*

    ## A random map keeps distances, up to the width

    The entries of $A$ are independent $N(0, 1/m)$, so $\mathbb E \lVert A x\rVert^2 = \lVert x
    \rVert^2$ for every $x$. Theorem 9 says how far a whole set is from that: with Gaussian
    width $w(K)$,

    $$\mathbb E \sup_{x, y \in K} \bigl|\lVert A(x-y)\rVert - \lVert x-y\rVert\bigr|
      \le 6.5\,\frac{w(K)}{\sqrt m}.$$

    The error is **additive**, and it depends on the width, not on the number of points. Below
    are 200 random $\pm 1$ queries about 64 kinds of records, so $K$ has 64 corners in
    $\mathbb R^{200}$. On the left is its image in two random directions, a shadow; on the
    right are the 2016 distances between corners before and after the map.
    """)
    return corners, first, kinds, lengths, polytope, queries, rows, second, seed, width, workload


@app.cell
def _(corners, gd, np, picture, plt, polytope, queries, seed):
    # The two rows of a random map are made orthonormal, so that the shadow is not stretched.
    _plane = np.linalg.qr(gd.jl_map(2, queries, rng=seed.value).T)[0].T
    _figure, _ax = plt.subplots(figsize=(3.6, 3.6), layout="constrained")
    gd.plotting.draw_shadow(polytope, _plane, _ax)
    _shown = corners @ _plane.T
    _ax.plot(*_shown.T, ".", color="black", ms=3)
    _reach = 1.1 * np.abs(_shown).max()
    _ax.set(xlim=(-_reach, _reach), ylim=(-_reach, _reach))
    _ax.set_title("a shadow of K", loc="left")
    shadow = picture(_figure, "the shadow of the body in two random directions")
    return (shadow,)


@app.cell
def _(
    corners, first, gd, lengths, mo, np, picture, plt, queries, rows, second, seed, shadow, width
):
    _map = gd.jl_map(rows.value, queries, rng=seed.value)
    _images = corners @ _map.T
    _after = np.linalg.norm(_images[first] - _images[second], axis=1)
    _worst = np.abs(_after - lengths).max()
    _figure, _ax = plt.subplots(figsize=(4.0, 3.6), layout="constrained")
    _ax.plot([0, 30], [0, 30], color="grey", lw=1, label="distance kept")
    _ax.plot(lengths, _after, ".", ms=2, color="#0072B2")
    _ax.set(xlim=(0, 30), ylim=(0, 45), xlabel=r"$\|x - y\|$", ylabel=r"$\|A(x - y)\|$")
    _ax.legend(loc="upper left", frameon=False)
    _ax.set_title("distances between corners", loc="left")
    _text = mo.md(rf"""
    Largest change between corners: **{_worst:.3f}**. Bound on its mean over maps:
    $6.5\,w/\sqrt m$ = {6.5 * width / np.sqrt(rows.value):.3f}, with $w(K)$ = {width:.3f}.
    """)
    _choices = mo.hstack([rows, seed], justify="start", gap=2)
    _picture = picture(_figure, "distances between corners before and after the map")
    mo.vstack([_choices, mo.hstack([shadow, _picture], justify="start"), _text])
    return


@app.cell
def _(md):
    md(r"""
    **Exercise 1.** Two corners of $K$ differ in about half of the 200 signs. Which
    distance is that, and where is it in the picture?

    **Exercise 2.** Four times as many rows: what happens to the largest change?

    **Exercise 3.** At $m = 200$ there are as many rows as queries, and distances still
    change. Which map with 200 rows changes none?

    **Answer 1.** Where two signs differ, answers differ by 2. So the distance is $\sqrt{100 \cdot
    2^2} = 20$: all points of the cloud have abscissa near 20.

    **Answer 2.** It is about halved: the change is of order $w(K)/\sqrt m$. The constant 6.5 is a
    proved one; measured ratios on sign matrices, simplices and cubes lie between 1.35 and 1.6.

    **Answer 3.** The identity. A random map only helps with few rows. As soon as there are as many
    rows as K has dimensions (63 here), $A = I$ is better, and the mechanism is the projection of
    lesson 5.

    ## The width stays

    Noise for the workload $AQ$ depends on the body $AK$. Is it wider than $K$? For Gaussian
    $A$ the answer is an identity (behind Lemma 12): conditional on $g$, the vector $A^T g$ is
    distributed as $\lVert g \rVert/\sqrt m$ times a standard Gaussian vector, so

    $$\mathbb E_A\, w(AK) = \frac{\mu_m}{\sqrt m}\, w(K) \le w(K),
      \qquad \mu_m = \mathbb E\lVert g\rVert,\ g \sim N(0, I_m).$$

    The dots are means over 40 maps, with the standard error of that mean.
    """)
    return


@app.cell
def _(corners, gd, np, picture, plt, queries, width):
    _rng = np.random.default_rng(5)
    _ms = np.array([1, 2, 4, 8, 16, 32, 64])
    _means, _errors = [], []
    for _m in _ms:
        _widths = [
            (_rng.standard_normal((64, _m)) @ (gd.jl_map(int(_m), queries, rng=_rng) @ corners.T))
            .max(axis=1)
            .mean()
            for _ in range(40)
        ]
        _means.append(np.mean(_widths))
        _errors.append(np.std(_widths, ddof=1) / np.sqrt(40))
    _figure, _ax = plt.subplots(figsize=(5.5, 3.4), layout="constrained")
    _theory = [gd.geometry.mean_gaussian_norm(int(_m)) / np.sqrt(_m) * width for _m in _ms]
    _ax.errorbar(_ms, _means, yerr=_errors, fmt="o", color="#0072B2", label="measured")
    _ax.plot(_ms, _theory, "--", color="black", label=r"$\mu_m\,w(K)/\sqrt{m}$")
    _ax.axhline(width, color="grey", lw=1)
    _ax.annotate("w(K)", (1, width), textcoords="offset points", xytext=(0, 5))
    _ax.set_xscale("log", base=2)
    _ax.set_xticks(_ms, [str(_m) for _m in _ms])
    _ax.set(ylim=(0.7 * width, 1.12 * width), xlabel="rows m", ylabel="mean width of AK")
    _ax.legend(loc="lower right", frameon=False)
    picture(_figure, "mean width of the image by the number of rows")
    return


@app.cell
def _(gd, mo, np, slider):
    pentagon = gd.bodies.VPolytope(
        np.array([[0.0, 0.1], [0.9, 0.0], [1.1, 0.5], [0.6, 0.95], [0.05, 0.7]])
    )
    truth = np.array([0.75, 0.55])
    angle = slider(0, 175, step=5, value=30, label="angle of the row")
    noise = slider(-0.8, 0.8, step=0.05, value=0.15, label="noise")
    mo.md(r"""
    ## The mechanism with one row

    In the plane, one row: the map measures a single number $\langle a, Q(X)\rangle$, noise is
    added to that number, and the mechanism returns a point of $K$ on the measured line, or the
    nearest to it. Turn the row and watch which points the measurement cannot tell apart.
    """)
    return angle, noise, pentagon, truth


@app.cell
def _(angle, gd, mo, noise, np, pentagon, picture, plt, truth):
    _row = np.array([np.cos(np.deg2rad(angle.value)), np.sin(np.deg2rad(angle.value))])
    _image = pentagon.vertices @ _row
    _measured = float(_row @ truth + noise.value)
    _nearest = float(np.clip(_measured, _image.min(), _image.max()))
    # Points where the line <a, y> = _nearest, for the row a, cuts the edges of the polygon.
    _starts, _ends = pentagon.vertices, np.roll(pentagon.vertices, -1, axis=0)
    _a, _b = _image - _nearest, np.roll(_image, -1) - _nearest
    _cut = (_a * _b <= 0) & (_a != _b)
    _shares = _a[_cut] / (_a[_cut] - _b[_cut])
    _points = _starts[_cut] + _shares[:, None] * (_ends[_cut] - _starts[_cut])
    _figure, _ax = plt.subplots(figsize=(5.2, 4.4), layout="constrained")
    gd.plotting.draw(pentagon, _ax, label="K")
    gd.plotting.draw_hyperplane(
        gd.bodies.Halfspace(_row, _measured), _ax, label=r"$\langle a, y\rangle$ = measured"
    )
    _ax.plot(*_points.T, color="#D55E00", lw=4, marker="o", ms=5, label="all nearest points")
    _ax.plot(*truth, "D", color="black", label="true answers")
    _ax.arrow(*truth, *(0.25 * _row), color="black", width=0.008, length_includes_head=True)
    _ax.annotate("a", truth + 0.3 * _row, ha="center", va="center")
    _ax.set(xlim=(-0.6, 1.7), ylim=(-0.6, 1.6), xlabel="first answer", ylabel="second answer")
    _ax.legend(loc="upper left", frameon=False, fontsize=8)
    _far = np.linalg.norm(_points - truth, axis=1).max()
    _text = mo.md(f"""
    error of the measured number after the fit: {abs(_nearest - float(_row @ truth)):.3f}

    error of the answers, at worst: **{_far:.3f}**
    """)
    picture(_figure, "the points of a pentagon that one row cannot tell apart", angle, noise, _text)
    return


@app.cell
def _(md, slider):
    records = slider(steps=[10, 20, 50, 100, 200, 500, 1000], value=100, label="ε n")
    md(r"""
    The fit never increases the error in the image: $\lVert A\dot y - AQ(X)\rVert \le
    \lVert Z\rVert$, always (equation 6). Then distances in the image are distances in
    $K$, up to the distortion. Together this is **Lemma 13**: the error is at most

    $$\mathbb E\lVert Z\rVert_2 + C\,\frac{w(K)}{\sqrt m}.$$

    **Exercise 4.** Set the noise to 0. Why is the answer still wrong?

    **Exercise 5.** Set the noise to 0.8. Which of the two errors does the body limit?

    **Exercise 6.** The privacy of the mechanism: which body must the noise fit, $K - K$
    or $A(K - K)$ for the matrix that was drawn? Would it be enough if $A$ keeps
    distances with high probability?

    **Answer 4.** All points of K on the line have the same measurement. That is the distortion: two
    answers far apart whose images are equal.

    **Answer 5.** Both. The line misses K, and the fit moves the number back to the nearest one that
    K allows. The length of the remaining segment is at most the diameter of K.

    **Answer 6.** $A(K-K)/n$, for the very matrix that was drawn. Then privacy holds for every
    matrix, however bad, and only accuracy depends on luck. Noise scaled to the typical distortion
    would fail with the probability of a bad matrix, which is no pure privacy. For the same reason a
    matrix is never drawn again after a look at the result.

    ## How many rows?

    The noise of Lemma 16 (a recursive K-norm mechanism for $AQ$) has
    $\mathbb E\lVert Z\rVert \le C\sqrt m\,w(K)/(\varepsilon n)$. Theorem 21 balances it against
    the distortion:

    $$\text{error per query} \le C\,\frac{w(K)}{\sqrt k}
    \left(\underbrace{\frac{1}{\sqrt m}}_{\text{distortion}} +
    \underbrace{\frac{\sqrt m}{\varepsilon n}}_{\text{noise}}\right).$$

    The theorem leaves $C$ open; the picture shows the sum in brackets.
    """)
    return (records,)


@app.cell
def _(log_log, np, picture, records):
    _ms = np.geomspace(1, 2000, 200)
    _near, _noisy = 1 / np.sqrt(_ms), np.sqrt(_ms) / records.value
    _curves = {
        r"distortion $1/\sqrt{m}$": (_near, "-", "#0072B2"),
        r"noise $\sqrt{m}/(\varepsilon n)$": (_noisy, "-", "#D55E00"),
        "sum": (_near + _noisy, "-", "black"),
    }
    _least = 2 / np.sqrt(records.value)
    _title = f"least at m = {records.value}: {_least:.3f}"
    _labels = {"xlabel": "rows m", "ylabel": "the bracket"}
    _figure, _ax = log_log(_ms, _curves, title=_title, ylim=(3e-3, 20), **_labels)
    _ax.plot(records.value, _least, "o", color="black")
    picture(_figure, "distortion, noise and their sum by the number of rows", records)
    return


@app.cell
def _(md, slider):
    bits = slider(2, 60, value=20, label="bits of a record")
    alpha = slider(steps=[0.01, 0.02, 0.05, 0.1, 0.2], value=0.1, label="error α")
    md(r"""
    **Exercise 7.** Show that $m = \varepsilon n$ is best and that the bracket is then
    $2/\sqrt{\varepsilon n}$. How many records does error $\alpha$ need?

    **Exercise 8.** For $N$ kinds of records and answers in $[-1, 1]$ the width is at
    most $\sqrt{2k \ln N}$. What becomes of Exercise 7?

    **Answer 7.** For positive $a, b$: $a/\sqrt m + b\sqrt m \ge 2\sqrt{ab}$, with equality at $m =
    a/b = \varepsilon n$. So $\alpha = 2C w/\sqrt{k\varepsilon n}$, and $n$ is of the order of
    $w(K)^2/(k\alpha^2\varepsilon)$: Theorem 2.

    **Answer 8.** $n$ is of the order of $\ln N/(\alpha^2\varepsilon)$. **The number of queries is
    gone.** That is the third term of Theorem 1: the number of records needed grows with the
    logarithm of the number of kinds of records and not with the number of queries.

    ## Theorem 1: three mechanisms, three regimes

    $$\mathrm{sc}_\varepsilon(Q, \alpha) \le \frac{C}{\varepsilon}\min\left\{
    \underbrace{\frac{k}{\alpha}}_{\text{ball noise}},\;
    \underbrace{\frac{\sqrt{k\ln N}}{\alpha}}_{\text{K-norm noise}},\;
    \underbrace{\frac{\ln N}{\alpha^2}}_{\text{JL}}\right\}$$

    The curves are drawn with $C = 1$ for all three, so they show slopes and the order of the
    regimes, not numbers of records.
    """)
    return alpha, bits


@app.cell
def _(alpha, bits, gd, log_log, np, picture):
    def _records(k):
        size, scale = 2**bits.value, {"epsilon": 1.0, "alpha": alpha.value, "constant": 1.0}
        found = gd.bounds.upper.bounded_queries(int(k), size, **scale)
        return found.ball, found.knorm, found.jl

    _counts = np.unique(np.geomspace(1, 1e6, 60).astype(int))
    _looks = {"ball": "#0072B2", "K-norm": "#009E73", "JL": "#D55E00"}
    _terms = zip(*map(_records, _counts), strict=True)
    _curves = {
        name: (values, "-", _looks[name]) for name, values in zip(_looks, _terms, strict=True)
    }
    _ball, _knorm, _jl = _records(1000)
    _title = f"k = 1000: ball {_ball:.0f}, K-norm {_knorm:.0f}, JL {_jl:.0f}"
    _labels = {"xlabel": "queries k", "ylabel": "records, up to the constant"}
    _figure, _ = log_log(_counts, _curves, least=True, title=_title, ylim=(5, 1e7), **_labels)
    picture(_figure, "three bounds on the number of records by the number of queries", bits, alpha)
    return


@app.cell
def _(gd, kinds, md, np, slider, workload):
    sizes, tried = (30, 100, 300), (2, 4, 8, 16, 32, 48, 62)
    _inner = gd.mechanisms.Ball(workload, n=1, privacy=gd.PureDP(1.0))
    _maps = [gd.mechanisms.JL(_inner, _m, rng=_m) for _m in tried]

    def _measure(mechanism, data):
        truth = workload.answers(data)
        errors = [mechanism.release(data, rng=_i).answers - truth for _i in range(20)]
        return float(np.sqrt(np.mean(np.square(errors))))

    measured, zero = {}, {}
    for _n in sizes:
        _data = np.random.default_rng(_n).choice(kinds, 4, replace=False)[np.arange(_n) % 4]
        _noisy = _inner.with_n(_n)
        zero[_n] = float(np.sqrt(np.mean(workload.answers(_data) ** 2)))
        measured[_n] = (
            _measure(_noisy, _data),
            _measure(gd.mechanisms.Projected(_noisy), _data),
            [_measure(_jl.with_n(_n), _data) for _jl in _maps],
        )
    people = slider(steps=list(sizes), value=100, label="records n")
    md(r"""
    **Exercise 9.** From which number of queries on is the third term the least?

    **Answer 9.** $\ln N/\alpha^2 \le \sqrt{k\ln N}/\alpha$ means $k \ge \ln N/\alpha^2$. With 20
    bits and $\alpha = 0.1$: $20 \ln 2 \cdot 100 = 1386$ queries.

    ## Measured: is the map needed?

    The body with 64 corners again, $\varepsilon = 1$, ball noise, and data of four kinds of
    records. Lines: noise alone, and noise projected on $K$ with no map. Dots: the mechanism
    with one map of $m$ rows. The dotted line is the error of answering 0 to all queries, which
    uses no data. Each error is the root mean square over 20 releases.
    """)
    return measured, people, sizes, tried, zero


@app.cell
def _(measured, people, picture, plt, tried, zero):
    _alone, _projected, _behind = measured[people.value]
    _figure, _ax = plt.subplots(figsize=(5.5, 3.8), layout="constrained")
    _ax.axhline(_alone, color="#0072B2", ls="--", label="noise alone")
    _ax.axhline(_projected, color="#009E73", label="projected")
    _ax.plot(tried, _behind, "o-", color="#D55E00", label="with a map")
    _ax.axhline(zero[people.value], color="grey", lw=1.2, ls=":", label="answer 0 always")
    _ax.set_xscale("log", base=2)
    _ax.set_yscale("log")
    _ax.minorticks_off()
    _ax.set_title(f"noise {_alone:.3f}, projected {_projected:.3f}, best map {min(_behind):.3f}")
    _ax.set_ylim(0.08, 5)
    _ax.set_yticks([0.1, 0.2, 0.5, 1, 2, 5], ["0.1", "0.2", "0.5", "1", "2", "5"])
    _ax.set_xticks(tried, [str(_m) for _m in tried])
    _ax.set(xlabel="rows m", ylabel="error per query")
    _ax.legend(loc="upper right", frameon=False, ncols=2, fontsize=9)
    picture(_figure, "measured error by the number of rows", people)
    return


@app.cell
def _(md):
    md(r"""
    **Exercise 10.** At which numbers of records is a release worth more than the
    answer 0?

    **Exercise 11.** The theorem needs the map to *prove* its bound. Does the picture
    need it?

    **Answer 10.** At 30 records no mechanism here beats the constant answer. At 100 the projection
    does and the noise alone does not, at 300 both do.

    **Answer 11.** Hardly. With few records a map of a good number of rows gains a little; from a
    hundred records on the projection alone is as good as the best map, up to the chance of 20
    releases, and nobody tells the best number of rows in advance. Whether pure privacy ever needs
    the map by more than a constant factor is open; the figure `jl_needed` of the report looks at
    eight families of workloads.

    *Next: what no mechanism can do.*
    """)
    return


if __name__ == "__main__":
    app.run()
