"""Lesson 1. A workload is a body: records, answers, convex hull, separation."""

import marimo

app = marimo.App(width="medium", app_title="1. A workload is a body")


@app.cell
def _():
    import marimo as mo
    import numpy as np
    from drawing import md, panels, picture, slider
    from matplotlib.figure import Figure

    import geomdp as gd

    return Figure, gd, md, mo, np, panels, picture, slider


@app.cell
def _(gd, mo, np, slider):
    # Two queries about a person with two yes/no attributes: "smokes" and "smokes and is ill".
    workload = gd.workloads.Explicit(np.array([[0, 0, 1, 1], [0, 0, 0, 1]]))
    kinds = ["healthy", "ill", "smokes", "smokes, ill"]
    polytope = gd.sensitivity_polytope(workload)
    # One slider for each kind. marimo does not watch a list of sliders, so each has its own name.
    healthy, ill, smoking, both = (
        slider(0, 10, value=value, label=kind)
        for kind, value in zip(kinds, (4, 2, 3, 1), strict=True)
    )
    mo.md(r"""
    # 1. A workload is a body

    A **statistical query** asks a number of one record, say "does this person smoke?", and its
    answer on a data set is the **mean** over the records. A **workload** is a list of such
    queries $q_1,\dots,q_m$, and one record $x$ has the answer vector

    $$Q(x) = (q_1(x), \dots, q_m(x)) \in \mathbb R^m.$$

    The answers on a data set $X$ of $n$ records are the mean of $n$ such vectors:

    $$Q(X) = \frac1n \sum_{x \in X} Q(x).$$

    A mean of points lies in their **convex hull**. So whatever the data, the answers lie in

    $$K = \operatorname{conv}\{Q(x) : x\},$$

    the **sensitivity polytope** of the workload. This lesson looks at it in the plane.

    ## Answers move inside the hull

    Four kinds of people, and two queries: $q_1$ = "smokes", $q_2$ = "smokes and is ill". Choose
    how many people of each kind there are: where do the answers go?
    """)
    return both, healthy, ill, kinds, polytope, smoking, workload


@app.cell
def _(both, gd, healthy, ill, kinds, np, panels, picture, polytope, smoking, workload):
    _people = np.repeat(np.arange(4), [healthy.value, ill.value, smoking.value, both.value])
    _figure, _ax = panels(5.5, 4.2)
    gd.plotting.draw(polytope, _ax, label="K")
    for _corner, _name in zip(workload.evaluate(np.arange(4)), kinds, strict=True):
        _ax.plot(*_corner, "o", color="black", ms=4)
    for _place, _names in (
        ((0.0, 0.0), "healthy and ill"),
        ((1.0, 0.0), "smokes"),
        ((1.0, 1.0), "smokes, ill"),
    ):
        _ax.annotate(_names, _place, textcoords="offset points", xytext=(4, -14))
    if len(_people):
        _answers = workload.answers(_people)
        _ax.plot(*_answers, "D", color="#D55E00", label=f"answers of {len(_people)} records")
        _text = f"answers = ({_answers[0]:.3f}, {_answers[1]:.3f})"
    else:
        _text = "no records, no answers"
    _ax.set_xlim(-0.15, 1.5)
    _ax.set_ylim(-0.2, 1.15)
    _ax.set_xlabel("$q_1$: smokes")
    _ax.set_ylabel("$q_2$: smokes and is ill")
    _ax.legend(loc="upper left", frameon=False)
    _ax.set_title(_text, loc="left")
    _alt = "the polytope of two queries and the answers of the chosen records"
    picture(_figure, _alt, healthy, ill, smoking, both)
    return


@app.cell
def _(md, slider):
    first = slider(-0.4, 1.4, step=0.05, value=1.2, label="first answer")
    second = slider(-0.4, 1.4, step=0.05, value=0.4, label="second answer")
    md(r"""
    **Exercise 1.** Two of the four kinds of people have the same answer vector. Which,
    and what does it mean for this workload?

    **Exercise 2.** With all sliders at 0 but one, where are the answers?

    **Exercise 3.** Can the answers be $(0.2, 0.5)$? Why not?

    **Answer 1.** The healthy and the ill who do not smoke: both answer (0, 0). The workload cannot
    tell them apart, so K has three corners and not four.

    **Answer 2.** At a corner: all records are of one kind, and the mean of equal vectors is that
    vector.

    **Answer 3.** No. Whoever smokes and is ill smokes: $q_2(x) \le q_1(x)$ for every record, hence
    for every mean, and the hull excludes the point.

    ## Is a point in the body? Separation

    To know whether some published answers are possible at all, ask the body. If the point is
    outside, there is a **separating hyperplane**: an inequality that all data satisfy and the
    point does not. The library finds it with `body.separate(point)`.
    """)
    return first, second


@app.cell
def _(first, gd, np, panels, picture, polytope, second):
    _point = np.array([first.value, second.value])
    _found = polytope.separate(_point)
    _figure, _ax = panels(5.5, 4.2)
    gd.plotting.draw(polytope, _ax, label="K")
    _ax.plot(*_point, "X", color="#D55E00", ms=9, label="claimed answers")
    if _found is None:
        _text = "possible: the point lies in K"
    else:
        gd.plotting.draw_hyperplane(_found, _ax, label="separates")
        _a, _b = _found.normal / np.abs(_found.normal).max()
        _offset = _found.offset / np.abs(_found.normal).max()
        _text = (
            f"impossible: {_a:.3f} $q_1$ {'+' if _b >= 0 else '-'} {abs(_b):.3f} $q_2$"
            rf" $\leq$ {_offset:.3f} for all data"
        )
    _ticks = np.arange(-0.5, 1.6, 0.5)
    _ax.set(xlim=(-0.5, 1.5), ylim=(-0.5, 1.5), xticks=_ticks, yticks=_ticks)
    _ax.set_xlabel("$q_1$: smokes")
    _ax.set_ylabel("$q_2$: smokes and is ill")
    _ax.legend(loc="upper left", frameon=False)
    _ax.set_title(_text, loc="left", fontsize=10)
    _alt = "the polytope, the claimed answers and a line that separates them"
    picture(_figure, _alt, first, second)
    return


@app.cell
def _(gd, md, mo, np, slider):
    solids = {
        "cube": gd.bodies.VPolytope(np.indices((2, 2, 2)).reshape(3, -1).T),
        "pairs": gd.sensitivity_polytope(gd.workloads.Parities(3, 2)),
        "prefixes": gd.bodies.VPolytope(np.tri(4, 3, -1)),
    }
    shown = mo.ui.dropdown(
        {
            "three attributes (cube)": "cube",
            "products of pairs of signs (tetrahedron)": "pairs",
            "prefix sums (a simplex)": "prefixes",
        },
        value="products of pairs of signs (tetrahedron)",
        label="three queries",
    )
    turn = slider(0, 360, step=5, value=30, label="turn the solid")
    md(r"""
    **Exercise 4.** Move the point until the line is the edge between $(0, 0)$ and
    $(1, 1)$. Which inequality between the two queries is that?

    **Exercise 5.** Why does one inequality prove that a point is outside, while a proof
    that it is inside needs three records?

    **Answer 4.** $q_2 \le q_1$: those who smoke and are ill are among those who smoke.

    **Answer 5.** A point outside of a convex set lies outside of a halfspace that contains the set
    (separation theorem). A point inside is a mixture of at most $m + 1 = 3$ corners (Carathéodory),
    and these records with their weights are the proof.

    ## Bodies grow with the workload

    With two queries $K$ is a polygon. With three it is a solid, and with $m$ queries it lies in
    $\mathbb R^m$. The maximum of a **linear function** over $K$ stays easy to compute. As a
    function of the direction $u$ it is called the support function,

    $$h_K(u) = \max_{x} \langle u, Q(x) \rangle$$

    and it is a maximum over single records: a search in the universe, or, for many workloads, a
    closed form. Everything else in this course is built on it.
    """)
    return shown, solids, turn


@app.cell
def _(Figure, gd, picture, shown, solids, turn):
    _figure = Figure(figsize=(4.5, 4.2), layout="constrained")
    _ax = _figure.add_subplot(projection="3d")
    gd.plotting.draw(solids[shown.value], _ax)
    _ax.view_init(elev=20, azim=turn.value)
    _ax.set_title(f"{len(solids[shown.value].vertices)} corners")
    _ax.locator_params(nbins=3)
    picture(_figure, "the body of three queries", shown, turn)
    return


@app.cell
def _(md):
    md(r"""
    **Exercise 6.** Three signs $x_1, x_2, x_3 \in \{-1, 1\}$ and the three products of
    two of them. There are eight records. Why has $K$ only four corners?

    **Answer 6.** Changing all three signs changes no product, so the eight records fall into four
    pairs with equal answers. And the product of all three products is always 1, which excludes four
    of the eight corners of the cube.

    *Next: what one record can change.*
    """)
    return


if __name__ == "__main__":
    app.run()
