"""Lesson 10. A release from beginning to end: from a schema to intervals, on real data."""

import marimo

app = marimo.App(width="medium", app_title="10. A release from beginning to end")


@app.cell
def _():
    import marimo as mo
    import numpy as np
    from drawing import md, picture, slider
    from matplotlib import pyplot as plt

    import geomdp as gd

    return gd, md, mo, np, picture, plt, slider


@app.cell
def _(gd, mo):
    sample = gd.data.rand_health_insurance()
    mo.md(r"""
    # 10. A release from beginning to end

    The RAND Health Insurance Experiment gave families insurance at random and recorded how
    often they saw a doctor. You hold the records and want to publish tables. Seven steps:

    1. say what a record is, and who is protected;
    2. declare the columns (a **schema**);
    3. say what to publish (a **workload**), which makes a body;
    4. choose a mechanism, before seeing the data;
    5. release;
    6. read the answers with their intervals;
    7. keep account of the budget.
    """)
    return (sample,)


@app.cell
def _(md, mo, sample):
    mo.vstack(
        [
            mo.md(f"""
            ## 1. The records

            {len(sample.frame):,} rows and {sample.frame.shape[1]} columns. The first rows:
            """),
            mo.plain_text(sample.frame.head(5).to_string()),
            md("""
            `idp`: the insurance has an individual deductible. `physlm`: physical limitations,
            from 0 to 1. `hlthg`, `hlthf`, `hlthp`: health rated good, fair, poor. A row is one
            person in one **year**, so most people have several rows.

            **Exercise 1.** Neighbours replace one row. Who is protected then, and which
            multiple of ε protects a person with 5 rows?

            **Answer 1.** One year of one person. By group privacy (lesson 7) a person with 5 rows
            is protected at 5ε: to promise ε to each person, release at ε/5. What a record is has
            to be decided before anything else, and no mechanism can do it for you.
            """),
        ]
    )
    return


@app.cell
def _(gd, mo, sample):
    schema = gd.data.Schema(
        (
            gd.data.BooleanColumn("idp"),
            gd.data.NumericColumn("physlm", edges=(0.0, 0.5, 1.0)),
            gd.data.BooleanColumn("hlthg"),
            gd.data.BooleanColumn("hlthf"),
            gd.data.BooleanColumn("hlthp"),
        )
    )
    try:
        gd.release(
            sample.frame.assign(hlthg=sample.frame["hlthg"].where(sample.frame.index != 5, 7)),
            schema,
            "marginals:2",
            epsilon=1.0,
        )
        _refused = ""
    except ValueError as _error:
        _refused = str(_error)
    mo.md(f"""
    ## 2. The schema

    A schema names the columns and all values they may have. It must come from **public**
    knowledge (a codebook, the questionnaire), since categories and edges chosen from the data
    tell something about the data.

    ```python
    schema = gd.data.Schema((
        gd.data.BooleanColumn("idp"),
        gd.data.NumericColumn("physlm", edges=(0.0, 0.5, 1.0)),
        gd.data.BooleanColumn("hlthg"),
        gd.data.BooleanColumn("hlthf"),
        gd.data.BooleanColumn("hlthp"),
    ))
    ```

    A value that the schema does not know is an error, raised before any budget is spent. With
    a 7 planted in `hlthg`:

    > {_refused}
    """)
    return (schema,)


@app.cell
def _(gd, md, schema):
    workload = schema.workload("marginals", k=2)
    body = gd.sensitivity_polytope(workload)
    md(r"""
    **Exercise 2.** Why does the message name the row and the column, and not the value?
    Who may see the message?

    **Exercise 3.** Someone takes the largest value of a column as its last edge. What
    leaks?

    **Answer 2.** The value is confidential. Even the message says that row 5 is odd, so it is for
    the owner of the data and never published.

    **Answer 3.** The value of one person, exactly: the published edge changes as soon as that
    person leaves.
    """)
    return body, workload


@app.cell
def _(body, mo, workload):
    shown = mo.ui.dropdown(
        {
            "good health with deductible, against fair with deductible": (7, 11),
            "good health with deductible, against the rest with deductible": (7, 6),
            "deductible and limited, against neither": (3, 0),
        },
        value="good health with deductible, against fair with deductible",
        label="two cells:",
    )
    mo.md(f"""
    ## 3. The workload and its body

    All 2-way tables of the five columns: `"marginals:2"`. That is 10 tables of 4 cells,
    {workload.n_queries} numbers between 0 and 1. The body has {len(body.vertices)} corners, one
    for each kind of record, and has only **{body.effective_dimension}** dimensions: the
    cells of a table add up to 1, and two tables agree on a column they share. Noise is needed
    in {body.effective_dimension} dimensions and not in {workload.n_queries}.

    The picture is the shadow of the body on two cells. Answers outside of it are impossible.
    """)
    return (shown,)


@app.cell
def _(body, gd, labels, np, picture, plt, shown, truth):
    _rows = np.zeros((2, len(truth)))
    _rows[[0, 1], shown.value] = 1
    _figure, _ax = plt.subplots(figsize=(4.2, 4.0), layout="constrained")
    gd.plotting.draw_shadow(body, _rows, _ax, label="K")
    _ax.plot(*(_rows @ truth), "D", color="#D55E00", label="true answers")
    _ax.set(xlim=(-0.1, 1.1), ylim=(-0.1, 1.3))
    _first, _second = _rows @ truth
    _ax.set_title(f"true answers ({_first:.3f}, {_second:.3f})")
    _ax.set_xlabel(labels[shown.value[0]], fontsize=9)
    _ax.set_ylabel(labels[shown.value[1]], fontsize=9)
    _ax.legend(loc="upper right", frameon=False, ncols=2, fontsize=9)
    picture(_figure, "the shadow of the body on two cells, and the true answers", shown)
    return


@app.cell
def _(gd, md, slider, workload):
    advice = gd.advise(workload, n=20190, privacy=gd.PureDP(1.0), exact_only=True)
    _table = advice.table.dropna(subset=["predicted_rmse"])
    _alone = _table[~_table["mechanism"].str.startswith(("Projected", "Shrunk"))]
    alone = _alone.sort_values("predicted_rmse", ascending=False).reset_index(drop=True)
    planned = slider(steps=[500, 2000, 20190, 100000], value=20190, label="records n")
    loss = slider(steps=[0.1, 0.3, 1.0, 3.0], value=1.0, label="ε")
    md(r"""
    **Exercise 4.** Health cannot be rated good and fair at once. Why does the body in
    the first picture contain the point $(1, 1)$ nevertheless? What would you change?

    **Exercise 5.** Derive 15: how many numbers fix all 2-way tables of five yes/no
    columns?

    **Answer 4.** The schema declares three yes/no columns and does not know that at most one of
    them is true. A single column with the categories excellent, good, fair and poor would say so,
    and make the body smaller.

    **Answer 5.** The five shares and the $\binom52 = 10$ shares of pairs that are both true: 15.

    ## 4. The mechanism, before the data

    Errors of additive noise do not depend on the data, so all mechanisms can be compared before
    a record is read: `gd.advise`. All mechanisms shown have exact samplers, so that privacy
    does not depend on a Markov chain (lesson 3).
    """)
    return advice, alone, loss, planned


@app.cell
def _(alone, loss, picture, planned, plt):
    # Errors of additive noise are proportional to 1 / (n epsilon).
    _errors = alone["predicted_rmse"].to_numpy(dtype=float) * 20190 / (planned.value * loss.value)
    _figure, _ax = plt.subplots(figsize=(5.8, 3.6), layout="constrained")
    _ax.barh(alone["mechanism"], _errors, color="#0072B2")
    for _i, _error in enumerate(_errors):
        _ax.text(_error, _i, f" {_error:.2g}", va="center", fontsize=9)
    _ax.set_xlim(0, 1.2 * _errors.max())
    _ax.set_title(f"from {_errors[0]:.4f} down to {_errors[-1]:.4f}")
    _ax.locator_params(axis="x", nbins=4)
    _ax.set_xlabel("root mean square error of a cell")
    picture(_figure, "error of a cell for each mechanism", planned, loss)
    return


@app.cell
def _(advice, gd, md, np, sample, schema, workload):
    sizes, epsilons = [500, 2000, 20190], [0.1, 0.3, 1.0, 3.0]
    _frames = {_n: sample.frame.sample(_n, random_state=1) for _n in sizes}
    releases = {
        (_n, _e): gd.release(_frames[_n], schema, "marginals:2", epsilon=_e, rng=_i)
        for _i, (_n, _e) in enumerate((_n, _e) for _n in sizes for _e in epsilons)
    }

    def _answers(frame):
        """The true answers for `frame`. A real release never shows them."""
        chunks = gd.data.encode(frame, schema, workload.universe)
        return workload.answers(np.concatenate(list(chunks)))

    truths = {_n: _answers(_frame) for _n, _frame in _frames.items()}
    truth = truths[20190]
    _cells = releases[500, 0.1].to_frame()
    _values = _cells[list(schema.names)].astype(str)
    _short = {"true": "", "[0.5, 1]": "", "false": "not ", "[0, 0.5)": "not "}
    labels = [
        ", ".join(
            _short[_values.loc[_i, _c]] + _c for _c in str(_cells.loc[_i, "table"]).split(" x ")
        )
        for _i in _cells.index
    ]
    md(f"""
    The advice at 20,190 records and ε = 1: `{type(advice.best).__name__}` around
    the best of these, the projection of lesson 5.

    **Exercise 6.** By which factor must the number of records grow for Laplace noise to
    reach the error of the best mechanism?

    **Exercise 7.** May one compare mechanisms on the data and take the one with the
    least error?

    **Answer 6.** 0.0014 against 0.0003 is a factor of 4.7, and errors fall as 1/n: 4.7 times as
    many.

    **Answer 7.** Not without paying: the choice would depend on the records. The comparison above
    uses the workload, n and ε only, so it is free.
    """)
    return epsilons, labels, releases, sizes, truth, truths


@app.cell
def _(epsilons, mo, sizes, slider):
    people = slider(steps=sizes, value=500, label="records n")
    spent = slider(steps=epsilons, value=0.3, label="ε")
    confidence = slider(steps=[0.5, 0.8, 0.9, 0.95, 0.99], value=0.95, label="confidence")
    mo.md(r"""
    ## 5 and 6. The release and its intervals

    ```python
    released = gd.release(frame, schema, "marginals:2", epsilon=1.0)
    released.tables["idp", "hlthg"]
    released.interval(0.95)
    ```

    The law of the noise is public, so the length of every interval is known before the data.
    In class we may look at the truth as well. Choose a smaller sample or a smaller ε.
    """)
    return confidence, people, spent


@app.cell
def _(confidence, labels, mo, np, people, picture, plt, releases, spent, truths):
    _released, _truth = releases[people.value, spent.value], truths[people.value]
    _low, _high = _released.interval(confidence.value)
    _held = (_low <= _truth) & (_truth <= _high)
    _shown = slice(0, 12)
    _figure, _ax = plt.subplots(figsize=(5.8, 3.9), layout="constrained")
    _y = np.arange(12)[::-1]
    _ax.hlines(_y, _low[_shown], _high[_shown], color="#0072B2", lw=3, alpha=0.5)
    _ax.plot(_released.answers[_shown], _y, "|", ms=9, color="#0072B2", label="released")
    _ax.plot(_truth[_shown], _y, "x", ms=4, color="#D55E00", label="true")
    _ax.set_yticks(_y, labels[:12], fontsize=8)
    _ax.set(xlim=(-0.03, 1.03), xlabel="share of records (the first 12 of 40 cells)")
    _ax.legend(loc="upper right", frameon=False)
    _text = mo.md(f"""
    {_held.sum()} of 40 intervals hold the truth.

    error of this release: {np.sqrt(np.mean((_released.answers - _truth) ** 2)):.4f}

    predicted before the data: at most {_released.predicted_rmse.value:.4f}
    (root mean square)
    """)
    _alt = "intervals of twelve cells with the released and the true shares"
    picture(_figure, _alt, people, spent, confidence, _text)
    return


@app.cell
def _(md):
    md(r"""
    **Exercise 8.** At 95% one expects 38 of 40 intervals to hold the truth. Why can a
    single release have 34 (500 records, $\varepsilon = 3$), or 40?

    **Exercise 9.** Most released numbers do not stand in the middle of their intervals.
    Why?

    **Exercise 10.** Is the interval also one for the share in the *population*?

    **Answer 8.** 40 cells share noise of 15 dimensions, so their intervals fail together.
    `interval(0.95, simultaneous=True)` gives wider ones that all hold with probability 95%.

    **Answer 9.** The released numbers are moved to consistent tables (no cell negative, tables
    agree on shared columns). The intervals stand around the noisy answers before that, whose law is
    known.

    **Answer 10.** No. It is for the share among these records. For a population add the sampling
    error, about $\sqrt{p(1-p)/n}$: at 20,190 records up to 0.0035, more than ten times the noise at
    $\varepsilon = 1$.
    """)
    return


@app.cell
def _(gd, mo, sample, schema):
    # Without a seed, the noise comes from the operating system's randomness, and a guarantee holds.
    _frame = sample.frame.sample(500, random_state=1)
    _ledger = gd.Ledger(gd.PureDP(1.0))
    _first = gd.release(_frame, schema, "marginals:2", epsilon=0.6, ledger=_ledger)
    try:
        gd.release(_frame, schema, "marginals:2", epsilon=0.6, ledger=_ledger)
        _second = ""
    except gd.BudgetExhausted as _error:
        _second = str(_error)
    mo.md(f"""
    ## 7. The record and the ledger

    The releases above were made with seeds so that all see the same numbers; their record says
    so, and carries no claim. Without a seed the record reads:

    > {_first.guarantee}

    > {_first.statement}

    Epsilons of several releases add up. A `gd.Ledger` with a budget of 1 grants a release at
    0.6, and refuses a second one before a record is read:

    > {_second}
    """)
    return


@app.cell
def _(md):
    md(r"""
    **Exercise 11.** The record names a grid to which the noise is rounded. Why
    should a privacy proof care about that?

    **Exercise 12.** You are unhappy with the released numbers and run the release
    again, publishing the second. What did you spend?

    **Answer 11.** The proof is about real numbers. In float64 the set of reachable outputs depends
    on the true answer, which can give it away. Noise that is correctly rounded to a public grid
    keeps the proof on the computer.

    **Answer 12.** Both. And choosing which to publish by looking at them is a mechanism that nobody
    analysed.

    *This was the last lesson. The commands `geomdp advise` and `geomdp release` do the same from a
    shell.*
    """)
    return


if __name__ == "__main__":
    app.run()
