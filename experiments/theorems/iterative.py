"""Roth's lecture: the iterative construction, with the corrected constants."""

from experiments.theorems.theorem import Paper, Theorem

_P = Paper.ROTH

ITERATIVE = (
    Theorem(
        "IC-DUA",
        _P,
        "Database update algorithm",
        r"$U$ is a $B(\alpha)$-DUA if every database update sequence at accuracy $\alpha$ has at"
        r" most"
        r" $\lfloor B(\alpha)\rfloor$ steps: the IDC of Blum and Roth.",
        ("geomdp.mechanisms.interactive.updates.UpdateRule",),
        ("Definition 1", "Definition 2"),
        claims=(
            "update_bounds::BR-MW",
            "update_bounds::BR-MED",
        ),
        tests=(
            "tests/mechanisms/test_updates.py::test_multiplicative_weights_potential_and_bound",
        ),
    ),
    Theorem(
        "IC-DIST",
        _P,
        "Private distinguisher",
        r"The exponential mechanism with score $|Q(D)-Q(D')|$ returns a query whose gap is within"
        r" $F(\varepsilon)=\frac{2}{n\varepsilon}\ln\frac{|\mathcal C|}{\gamma}$ of the largest"
        r" with probability $1-\gamma$.",
        (
            "geomdp.mechanisms.EnumeratedQueries",
            "geomdp.mechanisms.AllParities",
            "geomdp.mechanisms.interactive.distinguishers.Distinguisher",
        ),
        ("Definition 3", "Theorem 6"),
        claims=("iterative_construction::IC-DIST",),
        tests=(
            "tests/mechanisms/test_online_iterative.py::test_exponential_mechanism_law",
            "tests/mechanisms/test_online_iterative.py::test_all_parities_equal_enumeration",
        ),
    ),
    Theorem(
        "IC-ALG",
        _P,
        "Iterative construction",
        r"Up to $\lfloor B(\alpha/2)\rfloor$ times: find a query with a large gap, measure it with"
        r" $\mathrm{Lap}\left(\frac{1}{\varepsilon_0n}\right)$, stop if the gap seen is below"
        r" $\frac34\alpha$, else update the hypothesis at accuracy $\frac\alpha2$.",
        ("geomdp.IterativeConstruction", "geomdp.mechanisms.IterativeRelease"),
        ("Algorithm 1",),
        claims=("iterative_construction::IC-ALG",),
        tests=(
            "tests/mechanisms/test_online_iterative.py::test_stop_instance",
            "tests/mechanisms/test_online_iterative.py::test_iterative_accuracy_theorem",
        ),
    ),
    Theorem(
        "IC-T4",
        _P,
        "Privacy of the iterative construction",
        r"$2B$ steps, $B=\lfloor B(\alpha/2)\rfloor$: $\varepsilon$-DP for $\varepsilon_0\le"
        r"\frac{\varepsilon}{2B}$, $(\varepsilon,\delta)$-DP for $\varepsilon_0\le\frac{"
        r"\varepsilon}"
        r"{4\sqrt{B\ln(1/\delta)}}$.",
        ("geomdp.mechanisms.interactive.rounds.step_epsilon", "geomdp.IterativeConstruction"),
        ("Theorem 4",),
        claims=("iterative_construction::IC-T4",),
        tests=("tests/mechanisms/test_online_iterative.py::test_step_epsilon",),
    ),
    Theorem(
        "IC-T5",
        _P,
        "Accuracy of the iterative construction",
        r"$(\alpha,\beta)$-accurate for $\alpha\ge\max\left\{\frac{8\ln(2B(\alpha/2)/\beta)}"
        r"{\varepsilon_0n},8F(\varepsilon_0)\right\}$, $\gamma\le\frac{\beta}{2B(\alpha/2)}$. With"
        r" the exponential mechanism: $\alpha\ge\frac{32B(\alpha/2)}{n\varepsilon}\ln"
        r"\frac{|\mathcal C|}{\gamma}$ (pure), $\alpha\ge\frac{64\sqrt{B(\alpha/2)\ln(1/\delta)}}"
        r"{n\varepsilon}\ln\frac{|\mathcal C|}{\gamma}$ (approximate).",
        (
            "geomdp.mechanisms.interactive.iterative.StoppingDesign",
            "geomdp.mechanisms.interactive.iterative.CORRECTED",
            "geomdp.mechanisms.printed.PRINTED_STOPPING",
            "geomdp.bounds.upper.iterative_accuracy",
        ),
        ("Theorem 5", "Theorem 7", "Theorem 8"),
        correction="Printed with 4 and 2 in Theorem 5, 8 and 16 in Theorem 8; the step that stops"
        " early then only gives 3 alpha / 2 (DISC-13).",
        claims=(
            "iterative_construction::IC-T5",
            "stated_accuracies::IC-T5",
            "corrections::IC-T5",
        ),
        tests=(
            "tests/mechanisms/test_online_iterative.py::test_stop_instance",
            "tests/mechanisms/test_online_iterative.py::test_iterative_accuracy_theorem",
            "tests/mechanisms/test_online_iterative.py::test_corrected_accuracy_closed_form",
        ),
    ),
)
