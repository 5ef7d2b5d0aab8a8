"""Lesson 7. Lower bounds: packings and lines, and a certificate checked by hand."""

import marimo

app = marimo.App(width="medium", app_title="7. Lower bounds")


@app.cell
def _():
    import marimo as mo
    import numpy as np
    from drawing import log_log, md, picture, slider
    from matplotlib import pyplot as plt

    import geomdp as gd

    return gd, log_log, md, mo, np, picture, plt, slider


@app.cell
def _(mo, slider):
    people = slider(1, 12, value=4, label="records n")
    copies = slider(1, 12, value=2, label="copies r")
    error = slider(0.02, 0.3, step=0.01, value=0.1, label="error α")
    loss = slider(0.1, 2.0, step=0.1, value=0.5, label="ε")
    mo.md(r"""
    # 7. Lower bounds

    All lessons so far built mechanisms. This one asks what **no** mechanism can do: how many
    records are needed at least for error $\alpha$ under $\varepsilon$-DP? Write

    $$\mathrm{sc}_\varepsilon(Q, \alpha) = \min\{n : \text{some } \varepsilon\text{-DP mechanism
    has error at most } \alpha \text{ on all data of } n \text{ records}\},$$

    with error $\max_X \mathbb E\,\lVert M(X) - Q(X)\rVert_2/\sqrt k$, so that $\alpha$ is an
    error per query. A mechanism proves an upper bound on $\mathrm{sc}$. Lower bounds are proved
    in two ways: with many data sets that a good answer tells apart (**packings**), and with one
    number that privacy hides (**lines**). Neighbours replace one record.

    ## A packing

    Take $M$ data sets of $n$ records. If a mechanism has error at most $\alpha$, then by
    Markov's inequality its answers lie within $2\alpha$ of the truth with probability at least
    1/2. If the true answers are $4\alpha$ apart, these discs are disjoint, so an answer names
    its data set. But privacy makes the answers of all data sets alike: if any two differ in at
    most $r$ records, the probability of a disc changes by a factor of at most $e^{\varepsilon
    r}$ (**group privacy**). Summing over the discs, for answers on the first data set,

    $$1 \;\ge\; \tfrac12 + (M - 1)\,\tfrac12\,e^{-\varepsilon r},
      \qquad\text{so}\qquad r \ge \frac{\ln(M-1)}{\varepsilon}.$$

    If $r$ is smaller, there is no such mechanism (Nikolov 2022, Lemma 6).

    The picture: two yes/no questions, so $K$ is a square. Data set number $i$ holds $r$ copies
    of corner $i$ and $n - r$ copies of the record $(0, 0)$. Distances are divided by $\sqrt 2$
    to be errors per query, so the discs have radius $2\sqrt2\,\alpha$ in the picture.
    """)
    return copies, error, loss, people


@app.cell
def _(copies, error, gd, loss, mo, np, people, picture, plt):
    _n, _r = people.value, min(copies.value, people.value)
    _corners = np.array([[0, 0], [1, 0], [0, 1], [1, 1]]) * _r / _n
    _figure, _ax = plt.subplots(figsize=(4.6, 4.4), layout="constrained")
    gd.plotting.draw(gd.bodies.Box(np.zeros(2), np.ones(2)), _ax, label="K")
    _radius = 2 * np.sqrt(2) * error.value
    gd.plotting.draw_packing(_corners, _radius, _ax, label="answers of 4 data sets")
    _ax.set(xlim=(-0.9, 1.9), ylim=(-0.9, 1.9), xlabel="first answer", ylabel="second answer")
    _ax.legend(loc="upper right", frameon=False, fontsize=9)
    _apart = _r / _n / np.sqrt(2)
    _sum = 0.5 + 1.5 * np.exp(-loss.value * _r)
    _discs = _apart >= 4 * error.value - 1e-12
    _mass = _sum > 1
    _verdict = (
        f"**Excluded:** no {loss.value:g}-DP mechanism has error {error.value:g} at n = {_n}."
        if _discs and _mass
        else "This packing excludes nothing."
    )
    _text = mo.md(f"""
        answers apart: {_apart:.3f}; needed 4α = {4 * error.value:.3f}:
        **{"yes" if _discs else "no"}**

        mass of the discs at least {_sum:.3f}; above 1:
        **{"yes" if _mass else "no"}**

        {_verdict}
    """)
    _alt = "four discs around the answers of four data sets"
    picture(_figure, _alt, people, copies, error, loss, _text)
    return


@app.cell
def _(gd, md, np):
    marginals = gd.workloads.Marginals(8, 1)
    _generators = np.array(
        [
            [1, 1, 1, 1, 0, 0, 0, 0],
            [0, 0, 1, 1, 1, 1, 0, 0],
            [0, 0, 0, 0, 1, 1, 1, 1],
            [1, 0, 1, 0, 1, 0, 1, 0],
        ]
    )
    words = gd.bounds.LinearCode(_generators).words(np.arange(16))
    packing = gd.bounds.Packing(marginals, words, np.arange(16)[:, None])
    md(r"""
    **Exercise 1.** Find the largest $n$ that this packing excludes at
    $\varepsilon = 0.5$, $\alpha = 0.1$.

    **Exercise 2.** More copies push the discs apart. Why can there be too many?

    **Exercise 3.** The $(1, 1)$ corner is farther from $(0, 0)$ than the others. Is the
    smallest distance the only one that counts?

    **Answer 1.** $r < \ln 3/0.5 = 2.197$, so $r = 2$. Answers are $\frac rn \cdot \frac1{\sqrt2}$
    apart, which must be at least 0.4: $n \le 2/(0.4\sqrt2) = 3.54$. So $n = 3$.

    **Answer 2.** With more copies, the data sets differ in more records. Privacy then lets their
    answers differ more: it guarantees each other disc only a probability of $\tfrac12
    e^{-\varepsilon r}$.

    **Answer 3.** In this proof, yes: all discs have one radius. A packing is as good as its closest
    pair.

    ## A better packing: a code

    The bound grows with $\ln M$, so take many data sets that are still far apart. For 1-way
    marginals (the shares of $d$ yes/no attributes) the answers of a record are the record
    itself, and a set of records that are pairwise far apart is a **code**. For $d = 8$ there is
    the extended Hamming code: 16 words, and any two differ in at least 4 of 8 places.
    """)
    return marginals, packing, words


@app.cell
def _(np, picture, plt, words):
    _differ = (words[:, None, :] != words[None, :, :]).sum(axis=2)
    _figure, (_left, _right) = plt.subplots(
        1, 2, figsize=(7.6, 4.2), layout="constrained", width_ratios=[1, 2]
    )
    _left.imshow(words, cmap="Greys", vmax=1.6)
    _left.set_xticks(range(8), [str(_i + 1) for _i in range(8)])
    _left.set_yticks(range(16), ["".join(map(str, _w)) for _w in words], fontsize=8)
    _left.set_xlabel("attribute")
    _left.set_title("16 records", loc="left")
    _image = _right.imshow(_differ, cmap="Blues", vmax=12)
    for (_i, _j), _d in np.ndenumerate(_differ):
        _right.text(_j, _i, str(_d), ha="center", va="center", fontsize=7)
    _right.set(xticks=[], yticks=[])
    _right.set_title("places in which two records differ", loc="left")
    picture(_figure, "the 16 words of the code and the places in which they differ")
    return


@app.cell
def _(mo, slider):
    alpha = slider(steps=[0.01, 0.02, 0.05, 0.1, 0.15], value=0.1, label="error α")
    epsilon = slider(steps=[0.1, 0.2, 0.5, 1.0, 2.0], value=1.0, label="ε")
    mo.md(r"""
    ## The certificate, by hand

    Data set $i$ holds $r$ copies of word $i$ and $n - r$ copies of one fixed record. Check each
    line yourself. The last column is what the library computes; its bound comes from
    `gd.bounds.certify`.
    """)
    return alpha, epsilon


@app.cell
def _(alpha, epsilon, gd, mo, np, packing):
    _logs = np.log(15)
    _most = int(np.ceil(_logs / epsilon.value)) - 1
    _apart = np.sqrt(4 / 8)
    _separation = packing.separation(gd.bounds.MeanL2())
    _limit = _most * _apart / (4 * alpha.value)
    try:
        _bound = gd.bounds.certify([packing], epsilon=epsilon.value, alpha=alpha.value)
        _library = f"sc > {_bound.value:g}"
    except gd.bounds.SideConditionError:
        _library = "nothing excluded"
    # r copies must fit into n records. They fit into the largest n of the table, because words are
    # at least 4 alpha apart for every alpha on the slider.
    _hand = f"sc > {int(_limit)}" if _most >= 1 else "nothing excluded"
    _table = mo.md(f"""
    | step | by hand | library |
    |---|---|---|
    | data sets $M$ | $2^4 = 16$ | {packing.answers.shape[0]} |
    | $\\ln(M-1)$ | $\\ln 15$ = {_logs:.5f} | {packing.log_others:.5f} |
    | words apart, $\\sqrt{{4/8}}$ | {_apart:.5f} | {_separation:.5f} |
    | largest $r < \\ln 15/\\varepsilon$ = {_logs / epsilon.value:.3f} | {_most} | |
    | $n \\le r\\,\\sqrt{{4/8}}/(4\\alpha)$ | {_limit:.3f} | |
    | **bound** | **{_hand}** | **{_library}** |
    """)
    mo.hstack([mo.vstack([alpha, epsilon]), _table], justify="start", widths=[1, 2])
    return


@app.cell
def _(gd, md, slider):
    steps = [1, 2, 3, 4, 6, 8, 12, 16, 24, 32]
    losses = [0.25, 0.5, 1.0, 2.0]
    lines = {(_e, _t): gd.bounds.private_line(_t, _e, 2) for _e in losses for _t in steps}
    line_loss = slider(steps=losses, value=1.0, label="ε")
    line_steps = slider(steps=steps, value=8, label="steps T")
    md(r"""
    **Exercise 4.** Why does a data set hold $r$ copies of one code word, and not $r$
    different records?

    **Exercise 5.** A certificate must exclude *every* number of records up to its
    value, not only the last. Why does the padding with a fixed record give all of them?

    **Exercise 6.** Halve $\varepsilon$, or halve $\alpha$. When is the bound exactly
    twice as large, and when is it not?

    **Answer 4.** With copies, answers are far apart *relative* to the number of changed records:
    $\frac rn\sqrt{4/8}$ at $r$ replacements.

    **Answer 5.** With fewer records, $r$ can stay the same as long as $r \le n$, and the answers
    are $\frac rn\sqrt{4/8}$ apart, which is more. With fewer than $r$ records, use $n$ copies and
    no padding: then the answers are as far apart as the words.

    **Answer 6.** $r$ is a whole number below $\ln 15/\varepsilon$: 2.708 gives 2 and 5.416 gives 5.
    And $n$ is rounded down to a whole number of records.

    ## A line: privacy hides a single number

    Packings need $\ln M$ large. With few queries another proof is better. Take two kinds of
    records, $t$ of the one and $T - t$ of the other. The data sets of $t$ and $t + 1$ are
    neighbours, so the output of an $\varepsilon$-DP mechanism says little about $t$, and no
    estimate of $t$ is good on average over a prior. `gd.bounds.private_line` proves a lower
    bound on $\mathbb E (\hat t - t)^2$ by dynamic programming.
    """)
    return line_loss, line_steps, lines, losses, steps


@app.cell
def _(line_loss, line_steps, lines, mo, np, picture, plt, steps):
    _found = lines[line_loss.value, line_steps.value]
    _q = np.exp(-line_loss.value)
    _limit = 2 * _q / (1 - _q) ** 2
    _figure, (_left, _right) = plt.subplots(1, 2, figsize=(8.0, 3.5), layout="constrained")
    _left.stairs(_found.prior, np.arange(line_steps.value + 2) - 0.5, fill=True, color="#56B4E9")
    _left.set(xlabel="t", ylabel="prior of the proof")
    _right.plot(steps, [lines[line_loss.value, _t].risk for _t in steps], "o-", color="#0072B2")
    _right.plot(line_steps.value, _found.risk, "o", ms=10, mfc="none", color="#D55E00")
    _right.axhline(_limit, color="black", ls="--", label="discrete Laplace noise")
    _right.set(ylim=(0, 1.15 * _limit), xlabel="steps T", ylabel="squared error of t, at least")
    _right.legend(loc="lower right", frameon=False)
    _text = mo.md(
        f"With T = {line_steps.value} and ε = {line_loss.value:g} no private estimate of t has a "
        f"mean squared error below **{_found.risk:.4f}**; discrete Laplace noise has "
        f"{_limit:.4f}."
    )
    _choices = mo.hstack([line_loss, line_steps], justify="start", gap=2)
    mo.vstack(
        [
            _choices,
            picture(_figure, "the prior of the proof, and the proved risk by the number of steps"),
            _text,
        ]
    )
    return


@app.cell
def _(md, slider, steps):
    grid_steps = slider(
        steps=[_t for _t in steps if _t <= 16], value=4, label="steps T of each line"
    )
    grid_records = slider(2, 60, value=12, label="records n")
    md(r"""
    **Exercise 7.** Discrete Laplace noise has $\Pr[z] \propto e^{-\varepsilon |z|}$ and
    variance $2q/(1-q)^2$ with $q = e^{-\varepsilon}$. What does the picture say about
    it?

    **Exercise 8.** $T = 1$: one record, of kind 0 or 1. Show that no $\varepsilon$-DP
    mechanism has $\mathbb E(\hat t - t)^2$ below $e^\varepsilon/(1 + e^\varepsilon)^2$
    under a fair coin for $t$, and compare with the picture at $\varepsilon = 1$.

    **Answer 7.** Long lines prove nearly its variance, so for one counting query it is optimal:
    theory and mechanism meet. A short line proves less, since an estimate may be cut to the range
    from 0 to T.

    **Answer 8.** The best estimate is the posterior mean. Its error is the average of
    $p(1-p)$, where $p$ is the posterior probability of $t=1$. Privacy keeps the odds between
    $e^{-\varepsilon}$ and $e^{\varepsilon}$, so $p(1-p) \ge
    e^\varepsilon/(1+e^\varepsilon)^2$: 0.19661 at $\varepsilon = 1$. The library checks only
    estimates on a grid of spacing 0.02 and rounds down, so it proves 0.19659.

    ## Orthogonal lines

    Many lines at once: choose pairs of records whose answer differences $w_1, w_2, \dots$ are
    orthogonal. Line $j$ has $T$ records, and $t_j$ of them are of the first kind. The answers
    for all $t_1, t_2, \dots$ form a grid. The squared errors along orthogonal lines add up, and
    each is at least the risk of its own line. In the square of two yes/no questions:
    """)
    return grid_records, grid_steps


@app.cell
def _(gd, grid_records, grid_steps, lines, mo, np, picture, plt):
    _t, _n = grid_steps.value, grid_records.value
    _figure, _ax = plt.subplots(figsize=(4.4, 4.2), layout="constrained")
    gd.plotting.draw(gd.bodies.Box(np.zeros(2), np.ones(2)), _ax, label="K")
    _fits = 2 * _t <= _n
    _side = np.arange(_t + 1) / _n
    _grid = np.array(np.meshgrid(_side, _side)).reshape(2, -1).T
    _ax.plot(*_grid.T, ".", color="#D55E00" if _fits else "grey", label="answers of data sets")
    _ax.set(xlim=(-0.15, 1.55), ylim=(-0.15, 1.55), xlabel="first answer", ylabel="second answer")
    _ax.legend(loc="upper right", frameon=False, fontsize=9)
    _error = np.sqrt(lines[1.0, _t].risk) / _n
    _text = mo.md(
        f"At ε = 1 no mechanism has a root mean square error per query below "
        f"**{_error:.4f}** on all these data sets."
        if _fits
        else f"Two lines of {_t} steps need 2T = {2 * _t} records: more than n."
    )
    picture(_figure, "a grid of answers in the square", grid_steps, grid_records, _text)
    return


@app.cell
def _(gd, marginals, mo):
    sizes = [2, 3, 5, 8, 12, 20, 30, 50, 80, 120, 200, 300, 500]
    _privacy, _rms = gd.PureDP(1.0), gd.bounds.RMS()
    _knorm = gd.mechanisms.KNorm(marginals, n=1, privacy=_privacy)
    _laplace = gd.mechanisms.Laplace(marginals, n=1, privacy=_privacy)
    _projected = gd.mechanisms.Projected(_knorm)
    curves = {
        "no mechanism is below": [
            gd.bounds.orthogonal_lines_error(marginals, _n, epsilon=1.0, metric=_rms)
            for _n in sizes
        ],
        "no additive noise is below": [
            gd.bounds.additive_noise_error(marginals, _n, epsilon=1.0, metric=_rms) for _n in sizes
        ],
        "Laplace": [_laplace.with_n(_n).predicted_rmse.value for _n in sizes],
        "K-norm": [_knorm.with_n(_n).predicted_rmse.value for _n in sizes],
        "K-norm, projected (bound)": [_projected.with_n(_n).predicted_rmse.value for _n in sizes],
    }
    mo.md(r"""
    ## Upper and lower bounds in one picture

    The eight 1-way marginals at $\varepsilon = 1$. Solid black: the best bound from orthogonal
    lines for each $n$. Dotted: the bound for mechanisms that add noise and do nothing else. In
    colour: the errors of three mechanisms, as predicted before any data.
    """)
    return curves, sizes


@app.cell
def _(curves, log_log, picture, sizes):
    _lines = ("-", ":", "--", "--", "-")
    _colours = ("black", "black", "#E69F00", "#D55E00", "#009E73")
    _looks = zip(curves.values(), _lines, _colours, strict=True)
    _labels = {"xlabel": "records n", "ylabel": "root mean square error per query"}
    _figure, _ax = log_log(
        sizes, dict(zip(curves, _looks, strict=True)), ylim=(5e-3, 10), **_labels
    )
    _ax.fill_between(sizes, curves["no mechanism is below"], 5e-3, color="grey", alpha=0.2, lw=0)
    picture(_figure, "errors of mechanisms above the errors that none can beat")
    return


@app.cell
def _(gd, md, np):
    code = gd.bounds.ReedSolomon(prime=11, length=6, degree=3)
    _words = code.words()
    # The number of places in which two polynomials agree, for each pair of polynomials.
    _agree = (_words[:, None, :] == _words[None, :, :]).sum(axis=2)
    agreements = np.bincount(_agree[np.triu_indices(len(_words), 1)], minlength=7)
    md(r"""
    **Exercise 9.** How far are the lower bound and the best mechanism apart at
    $n = 500$, and which bound is it fair to compare K-norm noise with?

    **Exercise 10.** For the error of the certificate above ($\ell_2$ per query, 0.1,
    $\varepsilon = 1$) the library's bracket is $8 < \mathrm{sc} \le 52$. The code
    proved only $\mathrm{sc} > 3$. Where does 8 come from?

    **Answer 9.** A factor of 1.45: 0.01095 against 0.00757. K-norm noise is added and nothing else
    is done, so the dotted bound holds for it too; at 500 records the two bounds are almost equal.
    With few records they differ. Only the solid bound holds for a mechanism that projects.

    **Answer 10.** From lines: with 8 queries a code is short, and at 8 records four orthogonal
    lines are used. For more attributes codes win: for 16 marginals a code excludes 7 records and
    lines 6.

    ## The hard case: random signs

    How sharp is Theorem 1 of lesson 6? Theorem 24 of Nikolov 2022 gives workloads for which
    Theorem 1 cannot be improved by more than a constant factor: random $\pm1$ queries. The
    packing there consists of **sets that hardly meet**: data sets uniform on $s$ of $N$
    elements. Reed-Solomon codes give them explicitly: the graphs $\{(i, p(i)) : i = 1..s\}$ of
    polynomials of degree below $t$ over a field of $q$ elements.
    """)
    return agreements, code


@app.cell
def _(agreements, code, mo, np, picture, plt):
    _figure, _ax = plt.subplots(figsize=(5.0, 3.0), layout="constrained")
    _ax.bar(np.arange(7), agreements / 1000, color="#0072B2")
    _ax.set(xlabel="elements that two sets share", ylabel="thousands of pairs")
    _text = mo.md(
        f"$q = 11$, $s = 6$, $t = 3$: {len(code.words())} sets of 6 among 66 elements. Any two "
        f"share at most {int(np.flatnonzero(agreements).max())}."
    )
    picture(_figure, "how many elements two sets share", _text)
    return


@app.cell
def _(md):
    md(r"""
    **Exercise 11.** Why do two polynomials of degree below 3 agree in at most 2 places?

    **Exercise 12.** For data sets uniform on such sets, about how far apart are the
    answers to random sign queries?

    **Answer 11.** Their difference is a polynomial of degree below 3 and not 0, so it has at most 2
    roots.

    **Answer 12.** The uniform distributions on $S$ and $T$ differ by $1/s$ on $|S \triangle T|$
    elements. A random sign query sees the difference as a sum of that many random signs over
    $s$, so the root mean square distance is about $\sqrt{|S\triangle T|}/s$, here at least
    $\sqrt 8/6 = 0.47$. The full proof needs $k \ge C\ln M$ queries, so that all pairs are close
    to that.

    *Next: answering queries one after the other.*
    """)
    return


if __name__ == "__main__":
    app.run()
