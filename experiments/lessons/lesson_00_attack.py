"""Lesson 0. Two exact tables betray a person, and noise makes tables that no data can have."""

import marimo

app = marimo.App(width="medium", app_title="0. An attack, and a question")


@app.cell
def _():
    import marimo as mo
    import numpy as np
    from drawing import md, panels, picture, slider

    import geomdp as gd

    return gd, md, mo, np, panels, picture, slider


@app.cell
def _(mo, slider):
    ann = mo.ui.dropdown(
        {
            "healthy": (0, 0),
            "ill": (0, 0),
            "smokes": (1, 0),
            "smokes, ill": (1, 1),
        },
        value="smokes",
        label="Ann",
    )
    smokers = slider(0, 10, value=4, label="smokers before")
    mo.md(r"""
    # 0. An attack, and a question

    A club publishes two numbers every month: how many members smoke, and how many smoke and are
    ill. No names, only sums. This month Ann has joined, and nobody else.

    ## The attack

    The points are the two published tables. Say what Ann is, and subtract.
    """)
    return ann, smokers


@app.cell
def _(ann, np, panels, picture, smokers):
    # A third of the smokers are ill.
    _before = np.array([smokers.value, smokers.value // 3])
    _after = _before + ann.value
    _figure, _ax = panels(5.0, 4.2)
    _ax.plot(*_before, "o", color="black", label="last month")
    _ax.plot(*_after, "D", color="#D55E00", label="this month")
    _ax.set(xlim=(-1, 12), ylim=(-1, 6), xlabel="smokers", ylabel="smokers who are ill")
    _ax.legend(loc="upper left", frameon=False)
    _ax.set_title(
        f"({_after[0]}, {_after[1]}) less ({_before[0]}, {_before[1]}) is "
        f"({ann.value[0]}, {ann.value[1]}): Ann's own answers",
        fontsize=10,
    )
    picture(_figure, "the two published tables and their difference", ann, smokers)
    return


@app.cell
def _(mo, np, slider):
    counts = np.array([4, 2, 3, 1])
    kinds = ["healthy", "ill", "smokes", "smokes, ill"]
    # Draws of scale 1; the scale only stretches them.
    unit_noise = np.random.default_rng(29).laplace(size=(12, 4))
    epsilon = slider(steps=[0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0], value=1.0, label="ε")
    draw = slider(0, 11, value=4, label="draw of the noise")
    mo.md(r"""
    Exact sums give a person away as soon as somebody knows the rest, and somebody always does.
    Rounding, small samples and leaving out names do not help: the difference is exact.

    ## Noise, and tables that no data has

    So publish sums with random noise $Z$, so large that one person drowns in it. Here are ten
    people of four kinds and Laplace noise of scale $2/\varepsilon$, with which the table is
    $\varepsilon$-differentially private (lesson 2 says what that means). A small $\varepsilon$
    protects well.
    """)
    return counts, draw, epsilon, kinds, unit_noise


@app.cell
def _(counts, draw, epsilon, unit_noise):
    noisy = counts + 2 / epsilon.value * unit_noise[draw.value]
    return (noisy,)


@app.cell
def _(counts, draw, epsilon, kinds, noisy, panels, picture):
    _figure, _ax = panels(5.6, 3.8)
    _ax.bar(kinds, noisy, color=["#0072B2" if cell >= 0 else "#D55E00" for cell in noisy])
    _ax.plot(kinds, counts, "_", color="black", ms=30, label="truth")
    _ax.axhline(0, color="black", lw=1)
    _ax.legend(frameon=False)
    _ax.set_title(
        f"{(noisy < 0).sum()} of 4 cells are negative; they add up to {noisy.sum():.3f}, not to 10",
        fontsize=10,
    )
    picture(_figure, "a noisy table of four kinds of people", epsilon, draw)
    return


@app.cell
def _(mo):
    mo.md(r"""
    A negative number of people, and a sum that is not 10. No data has this table. Its reader
    will either laugh or repair it, and every repair is a decision.

    ## Can geometry help?

    The two shares of last month's question, from the noisy table: who smokes, and who smokes
    and is ill. **All data** have shares in the triangle $K$, since whoever smokes and is ill
    smokes. Noise does not know that. Where would you move the noisy point?
    """)
    return


@app.cell
def _(counts, gd, noisy, np, panels, picture):
    _triangle = gd.bodies.VPolytope(np.array([[0.0, 0], [1, 0], [1, 1]]))
    _noisy, _truth = (np.array([cells[2] + cells[3], cells[3]]) / 10 for cells in (noisy, counts))
    _nearest = gd.project(_triangle, _noisy).point
    _figure, _ax = panels(5.4, 4.6)
    gd.plotting.draw(_triangle, _ax, label="K")
    gd.plotting.draw_projection(_triangle, _noisy[None], _ax, label="noisy, and nearest in K")
    _ax.plot(*_truth, "*", color="black", ms=13, label="truth")
    _ax.set(xlim=(-1, 2), ylim=(-1, 2))
    _ax.legend(loc="upper left", frameon=False)
    _ax.set_title(
        f"error before {np.linalg.norm(_noisy - _truth):.3f}, "
        f"after {np.linalg.norm(_nearest - _truth):.3f}"
    )
    picture(_figure, "a noisy point and the nearest point of the triangle")
    return


@app.cell
def _(md):
    md(r"""
    The nearest point of $K$ is never farther from the truth than the noisy one, whatever
    the truth is, and finding it reads no record. That is the first of many things that a
    body can do. The shape of $K$ also tells how much noise is needed (lesson 3), how
    many records (lessons 4 to 6), and what nobody can do (lesson 7).

    **Exercise 1.** The club now publishes every second month only, when two people have
    joined. What does the attacker learn?

    **Answer 1.** The sum of two people's answers: (2, 2) and (0, 0) still give both away, and who
    knows one of them knows the other. Crowds delay the attack and do not end it.

    *Next: a workload is a body.*
    """)
    return


if __name__ == "__main__":
    app.run()
