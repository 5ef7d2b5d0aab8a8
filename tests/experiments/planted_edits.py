"""Assertions about the edits of a catalogue, and about the lists of tests that must notice them."""

import ast
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from types import CodeType

from experiments.planting.edits import Edit, planted

ROOT = Path(__file__).parents[2]


def instructions(code: CodeType) -> tuple[object, ...]:
    return code.co_code, code.co_consts, code.co_names


def changes_one_function_and_is_undone(edit: Edit) -> None:
    """Assert that the code of the function differs while the edit is planted, and only then."""
    function = edit.function()
    sound = function.__code__
    with planted(edit):
        assert function.__code__ is not sound
        assert instructions(function.__code__) != instructions(sound)
        arguments = sound.co_varnames[: sound.co_argcount]
        assert function.__code__.co_varnames[: sound.co_argcount] == arguments
    assert function.__code__ is sound


def are_tests(tests: Sequence[str]) -> None:
    """Assert that `tests` is not empty, and that each of these tests is in its file."""
    assert tests
    for test in tests:
        path, *names = test.split("::")
        found: ast.AST = syntax_tree(path)
        for name in names:  # classes from outside in, and then the function
            found = definition(found, name)
        tested = [found] if names else [*ast.walk(found)]
        assert any(
            isinstance(part, ast.FunctionDef) and part.name.startswith("test_") for part in tested
        )


@cache
def syntax_tree(path: str) -> ast.Module:
    """The syntax tree of a file of the repository; hundreds of edits name the same files."""
    return ast.parse((ROOT / path).read_text(encoding="utf-8"))


def definition(outside: ast.AST, name: str) -> ast.AST:
    """The class or function `name` that a module or a class defines."""
    assert isinstance(outside, ast.Module | ast.ClassDef)
    found = [
        part
        for part in outside.body
        if isinstance(part, ast.ClassDef | ast.FunctionDef) and part.name == name
    ]
    assert len(found) == 1
    return found[0]
