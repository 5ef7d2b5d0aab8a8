"""A release from a file imports no slow packages, and CSV files equal those of pandas."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd

from geomdp.cli.outputs import encoded

#: This program runs the command that its arguments give, and prints the slow packages imported.
PROGRAM = """
import sys
from geomdp.cli import main
try:
    main()
finally:
    slow = ("pandas", "matplotlib", "cvxpy", "scipy.optimize", "scipy.spatial", "scipy.stats")
    print("imported:", [name for name in slow if name in sys.modules])
"""


def test_a_release_from_a_file_imports_nothing_slow_that_it_can_do_without(tmp_path):
    place = str(tmp_path / "tables.csv")
    flags = ["--sample", "affairs", "--workload", "marginals:2", "--columns", "religious,children"]
    command = ["release", *flags, "--mechanism", "laplace", "--epsilon", "1", "--out", place]
    command.append("--unbiased")  # the fit of tables needs scipy.optimize
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, *command],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        check=True,
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert "imported: []" in done.stdout
    assert list(pd.read_csv(place)["table"].unique()) == ["religious x children"]


def test_a_csv_file_is_that_of_pandas():
    columns = {
        "table": ['a "quoted" name', "b, c", "-5", "d"],
        "label": [None, "[0, 1)", "", "é"],
        "answer": np.array([0.1 + 0.2, 1e-17, -1e22, 5e-324]),
        "count": np.array([1, -2, 3, 2**40]),
    }
    expected = pd.DataFrame(columns).to_csv(index=False, lineterminator="\n").encode()
    assert encoded(columns, Path("a.csv")) == expected
    assert encoded({"label": ["a", "b"]}, Path("a.csv")) == b"label\na\nb\n"
