"""Lesson 9. Smooth queries: one summary answers them all."""

import marimo

app = marimo.App(width="medium", app_title="9. Smooth queries")


@app.cell
def _():
    import marimo as mo
    import numpy as np
    from drawing import log_log, md, picture, slider
    from matplotlib import pyplot as plt

    import geomdp as gd
    from geomdp.workloads.smooth import Jackson, Truncation, approximate

    return Jackson, Truncation, approximate, gd, log_log, md, mo, np, picture, plt, slider


@app.cell
def _(mo, slider):
    order = slider(0, 12, value=3, label="m")
    mo.md(r"""
    # 9. Smooth queries

    Records are now real vectors $x \in [-1, 1]^d$, and a query is the mean of a function $f$
    over the records. There are infinitely many functions, so no list of answers can be
    released. But **smooth** functions are nearly polynomials, and the mean of a polynomial is a
    linear combination of a few **moments**. So (Wang, Fan, Zhang and Wang 2013):

    1. release noisy moments, once;
    2. answer any smooth query later, with no further use of the records: take a polynomial
       near $f$, and combine the moments with its coefficients.

    The polynomials are written in Chebyshev's basis, $T_m(\cos\theta) = \cos m\theta$, because
    $|T_m| \le 1$: each moment $\frac1n\sum_x T_m(x)$ is an ordinary bounded query.
    """)
    return (order,)


@app.cell
def _(np, order, picture, plt):
    _x = np.cos(np.linspace(0, np.pi, 400))
    _figure, _ax = plt.subplots(figsize=(5.0, 2.8), layout="constrained")
    _ax.plot(_x, np.cos(order.value * np.arccos(_x)), color="#0072B2")
    _ax.set_title(f"at one half: {np.cos(order.value * np.pi / 3):.3f}")
    _ax.set(ylim=(-1.1, 1.1), xlabel="x", ylabel=f"$T_{{{order.value}}}(x)$")
    picture(_figure, "a Chebyshev polynomial", order)
    return


@app.cell
def _(gd, mo, np, picture, plt, slider):
    _angles = np.linspace(0, np.pi, 65)
    curve = np.cos(np.outer(_angles, [1, 2, 3]))
    flat = gd.bodies.VPolytope(curve[:, :2])
    solid = gd.bodies.VPolytope(curve[::2])
    _figure = plt.figure(figsize=(3.9, 3.7), layout="constrained")
    _ax = _figure.add_subplot(projection="3d")
    gd.plotting.draw(solid, _ax)
    _ax.set(xlabel="$T_1$", ylabel="$T_2$")
    _ax.set_zlabel("$T_3$")
    _ax.set(xticks=[-1, 0, 1], yticks=[-1, 0, 1])
    _ax.set_zticks([-1, 0, 1])
    # Room for the name of the third axis.
    _ax.set_box_aspect((1, 1, 1), zoom=0.85)
    solid_picture = picture(_figure, "the body of the first three moments")
    first = slider(-1, 1, step=0.05, value=-0.6, label="first record")
    second = slider(-1, 1, step=0.05, value=0.7, label="second record")
    mo.md(r"""
    ## The body of moments

    This workload has a body like all others: the convex hull of the curve
    $x \mapsto (T_1(x), \dots, T_{t-1}(x))$. Move the records and see where the moments go.
    """)
    return curve, first, flat, second, solid, solid_picture


@app.cell
def _(curve, first, flat, gd, mo, np, picture, plt, second, solid_picture):
    _figure, _ax = plt.subplots(figsize=(4.2, 3.7), layout="constrained")
    gd.plotting.draw(flat, _ax, label="K for t = 3")
    _ax.plot(*curve[:, :2].T, color="#0072B2", lw=2)
    _records = np.array([first.value, second.value])
    _points = np.column_stack([_records, 2 * _records**2 - 1])
    _ax.plot(*_points.T, "o-", color="black", ms=4, lw=0.8, label="two records")
    _ax.plot(*_points.mean(axis=0), "D", color="#D55E00", label="their moments")
    _ax.set_title("moments ({:.3f}, {:.3f})".format(*_points.mean(axis=0)))
    _ax.set_xlim(-1.3, 1.3)
    _ax.set_ylim(-1.2, 2.0)
    _ax.set_xlabel("moment of $T_1$")
    _ax.set_ylabel("moment of $T_2$")
    _ax.legend(loc="upper center", frameon=False, fontsize=9)
    _choices = mo.hstack([first, second], justify="start", gap=2)
    _picture = picture(_figure, "the curve of moments and the moments of two records")
    mo.vstack([_choices, mo.hstack([_picture, solid_picture], justify="start")])
    return


@app.cell
def _(Jackson, Truncation, approximate, gd, md, np, slider):
    degrees = [2, 4, 6, 8, 12, 16, 24, 32, 48, 64]
    bandwidths = [0.1, 0.2, 0.3, 0.5]

    def kernel(centre, bandwidth):
        """One Gaussian bump."""
        return gd.workloads.smooth.GaussianMixture(np.array([[centre]]), np.ones(1), bandwidth)

    fitted = {
        (_h, _t): (
            approximate(kernel(0.2, _h), _t, 1, Truncation()),
            approximate(kernel(0.2, _h), _t, 1, Jackson(2)),
        )
        for _h in bandwidths
        for _t in degrees
    }
    bandwidth = slider(steps=bandwidths, value=0.3, label="bandwidth h")
    degree = slider(steps=degrees, value=8, label="degrees t")
    md(r"""
    **Exercise 1.** Which data have moments on the lower, curved boundary? Which on the
    upper edge?

    **Exercise 2.** In $d$ variables with degrees below $t$ in each: how many moments
    are there, and which of them needs no noise?

    **Answer 1.** On the curve: all records are equal. On the edge: all records are $-1$ or $1$,
    where $T_2 = 1$.

    **Answer 2.** $t^d$; the one of $m = 0$ is the mean of 1, a public constant.

    ## Smooth functions are nearly polynomials

    The query below is a Gaussian kernel, $f(x) = e^{-(x - c)^2/(2h^2)}$: "how many records are
    near $c$?". Its $K$-th derivative is of the order $h^{-K}$. Compare plain truncation of the
    Chebyshev series with the operator of the paper (Jackson's kernel, $K = 2$), whose error is
    proved to fall as $t^{-K}$.
    """)
    return bandwidth, bandwidths, degree, degrees, fitted, kernel


@app.cell
def _(bandwidth, degree, fitted, kernel, mo, np, picture, plt):
    _x = np.linspace(-1, 1, 301)[:, None]
    _cut, _smooth = fitted[bandwidth.value, degree.value]
    _figure, _ax = plt.subplots(figsize=(5.5, 3.6), layout="constrained")
    _ax.plot(_x, kernel(0.2, bandwidth.value)(_x), color="black", lw=2.5, alpha=0.4, label="query")
    _ax.plot(_x, _cut(_x), color="#0072B2", label="truncation")
    _ax.plot(_x, _smooth(_x), color="#D55E00", ls="--", label="Jackson")
    _ax.set(ylim=(-0.5, 1.6), xlabel="x")
    _ax.legend(loc="upper left", frameon=False, ncols=3)
    _text = mo.md(f"""
    largest error of truncation: **{_cut.approximation_error:.3g}**

    of Jackson's operator: {_smooth.approximation_error:.3g}
    """)
    picture(_figure, "a kernel and its polynomials", bandwidth, degree, _text)
    return


@app.cell
def _(gd, md, np, slider):
    counts = [2, 3, 4, 5, 8, 16, 32, 64]
    angles = np.linspace(0, np.pi, 2001)
    sums = {_t: np.cos(np.outer(np.arange(_t), angles)).sum(axis=0) for _t in counts}
    library = {
        # The standard deviation of Lap(b) is b sqrt(2), and b = S / (n epsilon).
        _t: gd.SmoothSummary(
            1,
            n=1000,
            smoothness=2,
            privacy=gd.PureDP(1.0),
            degree=_t,
            noise=gd.mechanisms.UniformLaplace(),
        ).noise_std[1]
        * 1000
        / np.sqrt(2)
        for _t in counts
    }
    moments = slider(steps=counts, value=3, label="degrees t")
    md(r"""
    **Exercise 3.** At $h = 0.3$, how many degrees does truncation need for an error
    below 0.001, and how many at $h = 0.1$? Why?

    **Exercise 4.** Jackson's operator needs far more degrees here. Why does the paper
    use it?

    **Answer 3.** Of those on the slider, 16 and 48: a bump three times as narrow needs about three
    times the degrees.

    **Answer 4.** For *every* function with $K$ derivatives bounded by $B$ its error is of the order
    $t^{-K}$ with no logarithm, and its coefficients are bounded by $2^{(K+1)d}B$. Truncation costs
    a factor of order $\log^d t$ in theory and is much better for functions with more than K
    derivatives, as here.

    ## The noise, and a printed scale that is too small

    One replaced record moves all moments at once. Laplace noise needs the $\ell_1$ diameter
    $S(t, d)$ of the curve. The paper adds $\mathrm{Lap}(t^d/(n\varepsilon))$; for replaced
    records that is right only if $S \le t^d$. In one variable, one of the two farthest points
    of the curve is at $x = 1$:

    $$S(t, 1) = \max_\theta \sum_{m<t} (1 - \cos m\theta)
      = t - \min_\theta \sum_{m<t}\cos m\theta .$$
    """)
    return angles, counts, library, moments, sums


@app.cell
def _(angles, library, mo, moments, np, picture, plt, sums):
    _t = moments.value
    _at = int(sums[_t].argmin())
    _figure, _ax = plt.subplots(figsize=(5.2, 3.2), layout="constrained")
    _ax.plot(np.cos(angles), sums[_t], color="#0072B2")
    _ax.plot(np.cos(angles[_at]), sums[_t][_at], "o", color="#D55E00")
    _ax.axhline(0, color="grey", lw=1)
    _ax.set(xlabel="x", ylabel="sum of the moments of x")
    _text = mo.md(f"""
    $S({_t}, 1) = {_t} - ({sums[_t][_at]:.4f})$ = **{_t - sums[_t][_at]:.4f}**
    (the library: {library[_t]:.4f})

    With the printed scale the loss is up to **{(_t - sums[_t][_at]) / _t:.4f} ε**.
    """)
    picture(_figure, "the sum of the moments of x", moments, _text)
    return


@app.cell
def _(bandwidths, degrees, fitted, gd, md, slider):
    _noises = {
        "same noise": gd.mechanisms.UniformLaplace(),
        "weighted noise": gd.mechanisms.WeightedLaplace(2.0),
    }
    # These deviations are for n = 1. The noise on means falls as 1 / n.
    deviations = {
        (_name, _t): gd.SmoothSummary(
            1, n=1, smoothness=2, privacy=gd.PureDP(1.0), degree=_t, noise=_noise
        ).noise_std
        for _name, _noise in _noises.items()
        for _t in degrees
    }
    noise_errors = {
        (_name, _h, _t): _pair[0].noise_std(deviations[_name, _t])
        for (_h, _t), _pair in fitted.items()
        for _name in _noises
    }
    people = slider(steps=[100, 300, 1000, 3000, 10000, 100000], value=1000, label="records n")
    narrow = slider(steps=bandwidths, value=0.3, label="bandwidth h")
    md(r"""
    **Exercise 5.** Compute $S(3, 1)$ by hand.

    **Exercise 6.** Is the printed scale right for the add/remove relation?

    **Answer 5.** With $c = \cos\theta$: $1 + c + (2c^2 - 1) = c + 2c^2$, least at $c = -\frac14$,
    where it is $-\frac18$. So $S = 3.125 > 3$.

    **Answer 6.** Yes, with a declared $n$: one record has $t^d$ moments of size at most 1.
    Replacing a record changes the moments by the difference of two such vectors, which can be
    larger. For large $t$ the ratio $S/t$ tends to 1.2172.

    ## How many degrees?

    With few degrees the polynomial is far from the query. With many, each moment has noise of
    its own, and the noise grows with their number. The paper takes $t = n^{1/(2d+K)}$. The
    library adds weighted noise: more on high degrees, which smooth queries use less.
    """)
    return narrow, noise_errors, people


@app.cell
def _(degrees, fitted, log_log, narrow, noise_errors, np, people, picture):
    _h = narrow.value
    _near = np.array([fitted[_h, _t][0].approximation_error for _t in degrees])
    _curves, _least = {"approximation": (_near, "--", "black")}, []
    for _name, _colour in (("same noise", "#0072B2"), ("weighted noise", "#D55E00")):
        _std = np.array([noise_errors[_name, _h, _t] for _t in degrees]) / people.value
        _curves[f"{_name} + approximation"] = (_near + _std, "o-", _colour)
        _least.append(float((_near + _std).min()))
    _title = f"least: {_least[0]:.4f}, and {_least[1]:.4f} with weighted noise"
    _labels = {"xlabel": "degrees t", "ylabel": "error of the answer at ε = 1"}
    _figure, _ax = log_log(degrees, _curves, title=_title, ylim=(1e-5, 3), **_labels)
    _ax.axvline(people.value**0.25, color="grey", lw=1)
    _ax.annotate(
        "$t = n^{1/4}$", (people.value**0.25, 1.3), textcoords="offset points", xytext=(4, 0)
    )
    _ax.set_xticks([2, 4, 8, 16, 32, 64], ["2", "4", "8", "16", "32", "64"])
    picture(_figure, "error of the answer by the number of degrees", people, narrow)
    return


@app.cell
def _(Truncation, approximate, bandwidths, gd, kernel, md, np, slider):
    _rng = np.random.default_rng(3)
    records = np.concatenate([_rng.normal(-0.45, 0.13, 1300), _rng.normal(0.4, 0.2, 700)])
    records = np.clip(records, -1, 1)[:, None]
    centres = np.linspace(-1, 1, 41)
    asked = {
        _h: np.array([approximate(kernel(_c, _h), 32, 1, Truncation()).values for _c in centres])
        for _h in bandwidths
    }
    true_answers = {
        _h: np.array([kernel(_c, _h)(records).mean() for _c in centres]) for _h in bandwidths
    }
    epsilons = [0.1, 0.3, 1.0, 3.0, 10.0]
    summaries = {
        _e: gd.SmoothSummary(
            1, n=len(records), smoothness=2, privacy=gd.PureDP(_e), degree=32
        ).release(records, rng=1)
        for _e in epsilons
    }
    epsilon = slider(steps=epsilons, value=1.0, label="ε")
    window = slider(steps=bandwidths, value=0.2, label="bandwidth h")
    md(r"""
    **Exercise 7.** $n = 10^5$, $d = 1$, $K = 2$: which $t$ does the paper take, and
    which is best for the same noise at $h = 0.3$?

    **Exercise 8.** With weighted noise, too many degrees hurt little. Why?

    **Answer 7.** $n^{1/4} = 17.8$, so 18. At $h = 0.3$, 16 is best among those drawn. For narrower
    queries more degrees are better, and one summary has to serve all queries: the theorem's choice
    is for the worst of them.

    **Answer 8.** The scale on degree $m$ grows as $m^{2K/3}$, so that the first moments keep small
    noise, and coefficients of smooth queries fall faster than the noise on high degrees grows.

    ## One release, all queries

    2000 records, one release of the 31 noisy moments of $t = 32$ for each $\varepsilon$ on the
    slider. The curve shows the answers to 41 kernels of the chosen bandwidth. Any number of
    further questions costs no privacy: answering them is post-processing.
    """)
    return asked, centres, epsilon, epsilons, summaries, true_answers, window


@app.cell
def _(asked, centres, epsilon, np, picture, plt, summaries, true_answers, window):
    _release = summaries[epsilon.value]
    _rows = asked[window.value]
    _answers = _rows @ _release.moments
    _std = np.sqrt(_rows**2 @ _release.noise_std**2)
    _figure, _ax = plt.subplots(figsize=(5.6, 3.6), layout="constrained")
    _ax.fill_between(
        centres,
        _answers - 2 * _std,
        _answers + 2 * _std,
        color="#0072B2",
        alpha=0.2,
        lw=0,
        label="± 2 standard deviations",
    )
    _ax.plot(centres, _answers, color="#0072B2", label="private")
    _ax.set_title(f"largest error {np.abs(_answers - true_answers[window.value]).max():.3f}")
    _ax.plot(centres, true_answers[window.value], color="black", ls="--", label="true")
    _ax.set(ylim=(-0.1, 0.9), xlabel="centre c of the kernel", ylabel="answer")
    _ax.legend(loc="upper right", frameon=False, fontsize=9)
    picture(_figure, "private and true answers by the centre of the kernel", epsilon, window)
    return


@app.cell
def _(md, slider):
    variables = slider(1, 8, value=2, label="variables d")
    smooth = slider(1, 16, value=4, label="derivatives K")
    md(r"""
    **Exercise 9.** A narrow kernel has a wide band. Where does the budget go?

    **Exercise 10.** The release was made with a seed so that the picture is always the
    same. What does that mean for privacy?

    **Answer 9.** It is spent once, on the moments; asking costs nothing. But a narrow kernel has
    large coefficients at high degrees, where the noise is.

    **Answer 10.** Nothing of it is private: whoever knows the seed can subtract the noise. The
    record of the release says `seeded: no privacy claim`.

    ## The rate

    Balancing approximation $t^{-K}$ against noise $t^{2d}/(n\varepsilon)$ gives
    $t = n^{1/(2d+K)}$ and Theorem 3.1: error of the order

    $$n^{-\frac{K}{2d + K}}\,\max(1, 1/\varepsilon).$$

    (The paper prints $1/\varepsilon$ for every $\varepsilon$; the approximation error does not
    fall when $\varepsilon$ grows.) Weighted noise, which is not in the paper, improves the
    exponent to $\min(1, K / (1.5\,d))$, up to logarithms.
    """)
    return smooth, variables


@app.cell
def _(mo, np, picture, plt, smooth, variables):
    _d = variables.value
    _orders = np.arange(1, 17)
    _figure, _ax = plt.subplots(figsize=(5.4, 3.4), layout="constrained")
    _ax.plot(_orders, _orders / (2 * _d + _orders), "o-", color="#0072B2", label="K / (2d + K)")
    _ax.plot(_orders, np.minimum(1, _orders / (1.5 * _d)), "s--", color="#D55E00", label="weighted")
    _ax.axvline(smooth.value, color="grey", lw=1)
    _ax.set(ylim=(0, 1.25), xlabel="derivatives K", ylabel="exponent of 1/n")
    _ax.legend(loc="upper left", facecolor="white", edgecolor="none", framealpha=1, ncols=2)
    _text = mo.md(f"""
    d = {_d}, K = {smooth.value}: exponent {smooth.value / (2 * _d + smooth.value):.3f}, weighted
    {min(1, smooth.value / (1.5 * _d)):.3f}
    """)
    picture(_figure, "exponent of the error by the smoothness", variables, smooth, _text)
    return


@app.cell
def _(md):
    md(r"""
    **Exercise 11.** Check the first two rows of the paper's Table 1: $K = 1$ gives
    $n^{-1/(2d+1)}$, and $K = 2d$ gives $n^{-1/2}$. What happens as $d/K \to 0$?

    **Answer 11.** Put $K$ into $\frac{K}{2d+K}$. For $d/K = \epsilon_0$ it is $\frac{1}{1 +
    2\epsilon_0} \approx 1 - 2\epsilon_0$: very smooth queries are answered nearly as well as a
    single one, with error near $1/n$.

    *Next: a release from beginning to end.*
    """)
    return


if __name__ == "__main__":
    app.run()
