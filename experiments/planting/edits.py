"""A planted edit: another text of one function, in force inside a ``with`` block only.

The source file stays as it is. The text of the function is changed in memory and compiled, and the
function object gets the new code. Therefore every module that has imported the function runs the
edited code.
"""

from __future__ import annotations
import __future__

import ast
import importlib
import inspect
import textwrap
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from types import CodeType, FunctionType
from typing import Any


class EditDoesNotFit(ValueError):  # noqa: N818 (the name says what is wrong)
    """An edit cannot be planted, because the function or its old text is not found as expected."""


@dataclass(frozen=True)
class Edit:
    """One edit of one function."""

    where: str  # The function, as ``module:function`` or ``module:Class.method``
    old: str  # Occurs once in the text of the function
    new: str  # Takes the place of `old`

    def function(self) -> FunctionType:
        """The function that is edited; ``EditDoesNotFit`` if the module has no such function."""
        module, _, path = self.where.partition(":")
        found: Any = importlib.import_module(module)
        for name in path.split("."):
            if name not in vars(found):
                raise EditDoesNotFit(f"{self.where} does not exist")
            found = vars(found)[name]
        return _plain(found)

    def code(self) -> CodeType:
        """The edited code of the function.

        ``EditDoesNotFit`` unless `old` occurs once in the function, outside its decorators and the
        defaults of its parameters.
        """
        function = self.function()
        source = textwrap.dedent(inspect.getsource(function))
        if source.count(self.old) != 1:
            raise EditDoesNotFit(
                f"{self.old!r} occurs {source.count(self.old)} times in {self.where}"
            )
        # Only the code of the function is exchanged. Its decorators stay, so they are cut off here.
        edited = source[source.index("def ") :]
        if self.old not in edited:
            raise EditDoesNotFit(f"{self.old!r} stands before the function {self.where}")
        changed = edited.replace(self.old, self.new)
        if _defaults(changed) != _defaults(edited):
            raise EditDoesNotFit(f"{self.old!r} is a default of {self.where}, which is not planted")
        return _compiled(changed, function)


@contextmanager
def planted(edit: Edit) -> Iterator[None]:
    """Run the block with `edit` in the code; ``EditDoesNotFit`` if it cannot be planted."""
    function, code = edit.function(), edit.code()
    sound = function.__code__
    function.__code__ = code
    try:
        yield
    finally:
        function.__code__ = sound


def _plain(found: Any) -> FunctionType:
    """The function inside a property, a cached property, a class method or a wrapper."""
    if isinstance(found, property):
        found = found.fget
    elif isinstance(found, cached_property):
        found = found.func
    elif isinstance(found, classmethod | staticmethod):
        found = found.__func__
    found = inspect.unwrap(found)
    if not isinstance(found, FunctionType):
        raise EditDoesNotFit(f"{found!r} is no function")
    return found


def _defaults(text: str) -> list[str]:
    """The defaults of the parameters of the function that `text` defines."""
    function = ast.parse(text).body[0]
    assert isinstance(function, ast.FunctionDef)
    given = (*function.args.defaults, *function.args.kw_defaults)
    return [ast.dump(each) for each in given if each is not None]


def _compiled(text: str, function: FunctionType) -> CodeType:
    """The code of the function that `text` defines, with the free variables of `function`."""
    # A method that calls `super()` has the free variable `__class__`. Here, an outer function has a
    # parameter of this name, so that the compiler finds the variable.
    free = ", ".join(function.__code__.co_freevars)
    outer = f"def outer({free}):\n{textwrap.indent(text, '    ')}"
    flags = __future__.annotations.compiler_flag
    module = compile(outer, f"<edit of {function.__qualname__}>", "exec", flags, dont_inherit=True)
    (outside,) = (part for part in module.co_consts if isinstance(part, CodeType))
    return next(
        part
        for part in outside.co_consts
        if isinstance(part, CodeType) and part.co_name == function.__name__
    )
