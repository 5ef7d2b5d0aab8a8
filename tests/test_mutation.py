"""Mutation testing leaves out the changes that no test should see, and no others."""

from tests.mutation import ROOT, TESTS, changes_of_words, harmless

MODULE = """
def x_add__mutmut_orig(connection, name):
    connection.execute("SELECT * FROM head WHERE name = 'Old'", name)
    raise ValueError("no such entry")

def x_add__mutmut_1(connection, name):
    connection.execute("select * from head where name = 'Old'", name)
    raise ValueError("no such entry")

def x_add__mutmut_2(connection, name):
    connection.execute("SELECT * FROM HEAD WHERE NAME = 'OLD'", name)
    raise ValueError("no such entry")

def x_add__mutmut_3(connection, name):
    connection.execute("XXSELECT * FROM head WHERE name = 'Old'XX", name)
    raise ValueError("no such entry")

def x_add__mutmut_4(connection, name):
    connection.execute("SELECT * FROM head WHERE name = 'Old'", None)
    raise ValueError("no such entry")

def x_add__mutmut_5(connection, name):
    connection.execute("SELECT * FROM head WHERE name = 'Old'", name)
    raise ValueError("NO SUCH ENTRY")

def x_name__mutmut_orig(text):
    return text.removeprefix("Old")

def x_name__mutmut_1(text):
    return text.removeprefix("old")

def x_bound__mutmut_orig(inputs):
    return split(inputs), "by Markov's inequality"

def x_bound__mutmut_2(inputs):
    return split(inputs), "XXby Markov's inequalityXX"

def x_bound__mutmut_3(inputs):
    return split(None), "by Markov's inequality"

def x_pairs__mutmut_orig(first, second):
    return zip(first, second, strict=True)

def x_pairs__mutmut_1(first, second):
    return zip(first, second, strict=False)

def x_pairs__mutmut_2(first, second):
    return zip(first, second, )

def x_pairs__mutmut_3(first, second):
    return zip(first, strict=True)

def x_bound__mutmut_4(inputs):
    return split(inputs), None
"""


def test_changes_that_no_test_should_see_are_left_out(tmp_path):
    """They are in texts for people, letters of SQL, and `strict`."""
    module = tmp_path / "module.py"
    module.write_text(MODULE, encoding="utf-8")
    left_out = {"x_add": (1, 5), "x_bound": (2,), "x_pairs": (1, 2)}
    words = {f"{name}__mutmut_{i}" for name, numbers in left_out.items() for i in numbers}
    assert changes_of_words(module) == words


def test_the_tests_of_every_package_exist():
    missing = [path for paths in TESTS.values() for path in paths if not (ROOT / path).exists()]
    assert missing == []


def test_harmless_changes_are_changes_of_code_that_exists():
    """A row of code that has moved excuses nothing, and its survivor comes back unexplained."""
    for function, removed, _ in harmless():
        module, _, mangled = function.partition(".x")  # x_function or xǁClassǁmethod
        name = mangled.rpartition("ǁ")[2] if "ǁ" in mangled else mangled[1:]
        text = " ".join((ROOT / f"{module.replace('.', '/')}.py").read_text("utf-8").split())
        assert f"def {name}(" in text, function
        assert " ".join(removed.split()) in text, f"{function} does not hold {removed!r}"
