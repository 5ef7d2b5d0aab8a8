"""Faults to plant in interactive mechanisms: sparse vector, online and iterative construction."""

from __future__ import annotations

from experiments.privacy.faults.fault import Fault

SCALES = ("tests/mechanisms/test_sparse_vector.py",)
LAWS = ("tests/laws/test_interactive.py",)
STEPS = ("tests/mechanisms/test_online_iterative.py::test_step_epsilon",)
STREAM = "mechanisms.interactive.sparse_vector:SparseVectorStream."
QUERY = "self._noise.values(truths, self._scaled(self.scales.query))"
VALUE = "self._noise.laplace(truth, self._scaled(self.scales.answer))"


def _online(by: int) -> Fault:
    return Fault(
        f"OnlineConstruction: sensitivity divided by {by}",
        f"all noise of the run is {by} times too small",
        "mechanisms.interactive.online:OnlineConstruction.__init__",
        "sensitivity=1 / self.n",
        f"sensitivity=1 / ({by} * self.n)",
        LAWS,
    )


def _iterative(by: int) -> Fault:
    return Fault(
        f"IterativeConstruction: answer noise divided by {by}",
        f"the answers that update the hypothesis have {by} times too little noise",
        "mechanisms.interactive.iterative:IterativeConstruction.answer_scale",
        "1 / (self.step_epsilon * self.n)",
        f"1 / ({by} * self.step_epsilon * self.n)",
        LAWS,
    )


INTERACTIVE = (
    Fault(
        "AboveThreshold: all queries get the noise of monotone queries",
        "general queries get half their noise",
        "mechanisms.interactive.budgets:above_threshold",
        "2 if monotone else 4",
        "2 if monotone else 2",
        SCALES,
    ),
    Fault(
        "AboveThreshold: half the threshold noise",
        "comparisons spend more than epsilon",
        "mechanisms.interactive.budgets:above_threshold",
        "Scales(2 / epsilon,",
        "Scales(1 / epsilon,",
        SCALES,
    ),
    Fault(
        "Sparse: composition missing",
        "every run spends all of epsilon",
        "mechanisms.interactive.budgets:redrawn",
        "epsilon / cutoff",
        "epsilon",
        SCALES,
    ),
    Fault(
        "Sparse with a kept threshold: all queries get the noise of monotone queries",
        "general queries get half their noise",
        "mechanisms.interactive.budgets:kept",
        "cutoff if monotone else 2 * cutoff",
        "cutoff",
        SCALES,
    ),
    Fault(
        "NumericSparse: released values not composed",
        "every value spends the epsilon that is for all values together",
        "mechanisms.interactive.budgets:numeric",
        "9 * cutoff / epsilon",
        "9 / epsilon",
        SCALES,
    ),
    Fault(
        "NumericSparse: budget split ignored",
        "the values spend all of epsilon, and the comparisons spend more",
        "mechanisms.interactive.budgets:numeric",
        "ApproxDP(epsilon - share, delta / 2)",
        "ApproxDP(epsilon, delta / 2)",
        SCALES,
    ),
    Fault(
        "NumericSparse: delta spent twice",
        "comparisons and values together spend more than delta",
        "mechanisms.interactive.budgets:numeric",
        "ApproxDP(share, delta / 2)",
        "ApproxDP(share, delta)",
        SCALES,
    ),
    Fault(
        "sparse vector: threshold noise forgotten",
        "queries are compared with the true threshold",
        f"{STREAM}_draw_threshold",
        "self._scaled(self.scales.threshold)",
        "1e-9 * self._scaled(self.scales.threshold)",
        LAWS,
    ),
    Fault(
        "sparse vector: half the query noise",
        "comparisons spend twice their epsilon",
        f"{STREAM}ask",
        "self._noise.reaches(truth, self._scaled(self.scales.query)",
        "self._noise.reaches(truth, self._scaled(self.scales.query / 2)",
        LAWS,
    ),
    Fault(
        "sparse vector: half the query noise in arrays",
        "comparisons of one call spend twice their epsilon",
        f"{STREAM}ask_many",
        QUERY,
        QUERY.replace("query)", "query / 2)"),
        LAWS,
    ),
    Fault(
        "sparse vector: one threshold for all runs",
        "the runs share one noisy threshold, but composition needs a new one for each run",
        f"{STREAM}_answer_above",
        "if self.scales.redraw and not self.halted:",
        "if False:",
        LAWS,
    ),
    Fault(
        "NumericSparse: one draw for all values",
        "differences of released values are exact",
        f"{STREAM}_answer_above",
        VALUE,
        'truth + vars(self).setdefault("_drawn", self._noise.laplace('
        "0, self._scaled(self.scales.answer)))",
        LAWS,
    ),
    Fault(
        "NumericSparse: half the noise on values",
        "values spend twice their epsilon",
        f"{STREAM}_answer_above",
        VALUE,
        VALUE.replace("answer)", "answer / 2)"),
        LAWS,
    ),
    Fault(
        "sparse vector: sensitivity ignored",
        "queries that one record changes by 3 get the noise for a change of 1",
        f"{STREAM}_scaled",
        "self.sensitivity * scale",
        "min(1.0, self.sensitivity) * scale",
        LAWS,
    ),
    Fault(
        "sparse vector: scales not rounded up",
        "rounding of the scales spends more than epsilon",
        f"{STREAM}_scaled",
        "* ROUNDED_UP",
        "* 1.0",
        LAWS,
    ),
    Fault(
        "sparse vector: one query too many",
        "queries are answered after the budget is spent",
        f"{STREAM}halted",
        "self._found >= self.cutoff",
        "self._found > self.cutoff",
        ("tests/mechanisms/test_sparse_vector.py::test_halts_after_cutoff_and_says_so",),
    ),
    *(_online(by) for by in (2, 10, 50)),
    *(_iterative(by) for by in (2, 20)),
    Fault(
        "OnlineConstruction: asks after its updates are used up",
        "the mechanism makes more comparisons than the budget pays for",
        "mechanisms.interactive.online:OnlineConstruction._ask",
        "if self.halted:",
        "if False:",
        (
            "tests/mechanisms/test_online_iterative.py::"
            "test_exhausted_updates_answer_from_the_hypothesis_alone",
        ),
    ),
    Fault(
        "OnlineConstruction: hypothesis updated with the truth",
        "public answers depend on exact answers",
        "mechanisms.interactive.online:OnlineConstruction._ask",
        "follow(self._hypothesis, query, value)",
        "follow(self._hypothesis, query, truth)",
        LAWS,
    ),
    Fault(
        "IterativeConstruction: one private step per update",
        "the choice and the answer each spend the epsilon of both",
        "mechanisms.interactive.budgets:step_epsilon",
        "epsilon / (2 * updates)",
        "epsilon / updates",
        STEPS,
    ),
    Fault(
        "IterativeConstruction: wrong constant of advanced composition",
        "each step spends twice the epsilon that composition allows",
        "mechanisms.interactive.budgets:step_epsilon",
        "epsilon / (4 * math",
        "epsilon / (2 * math",
        STEPS,
    ),
    Fault(
        "distinguisher: half the noise of the choice",
        "the choice spends twice its epsilon",
        "mechanisms.interactive.distinguishers:Distinguisher.choose",
        "2 / (n * epsilon)",
        "1 / (n * epsilon)",
        ("tests/mechanisms/test_online_iterative.py::test_exponential_mechanism_law",),
    ),
    Fault(
        "IterativeConstruction: the choice uses all of epsilon",
        "every choice spends all of epsilon",
        "mechanisms.interactive.iterative:SeededAnswers.choose",
        "epsilon=run.step_epsilon",
        "epsilon=run.privacy.epsilon",
        LAWS,
    ),
    Fault(
        "IterativeConstruction: exact choices use all of epsilon",
        "every choice of an unseeded run spends all of epsilon",
        "mechanisms.interactive.iterative:ExactAnswers.choose",
        "epsilon=self.run.step_epsilon",
        "epsilon=self.run.privacy.epsilon",
        LAWS,
    ),
    Fault(
        "IterativeConstruction: exact answers with half the noise",
        "answers of unseeded runs spend twice their epsilon",
        "mechanisms.interactive.iterative:ExactAnswers.value",
        "self.run.answer_scale",
        "self.run.answer_scale / 2",
        LAWS,
    ),
    Fault(
        "IterativeConstruction: exact answers in the transcript",
        "the transcript shows true answers",
        "mechanisms.interactive.iterative:IterativeConstruction._construct",
        "Answer(wrong, value)",
        "Answer(wrong, float(private.truths[index]))",
        LAWS,
    ),
)
