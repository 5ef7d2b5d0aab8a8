"""A planted fault: an edit that breaks privacy or a bound, and the tests that must notice it."""

from __future__ import annotations

from dataclasses import dataclass

from experiments.planting.edits import Edit


@dataclass(frozen=True)
class Fault:
    """One fault and the tests that must notice it.

    Parameters
    ----------
    name : str
        A short name, unique in the catalogue.
    breaks : str
        What is wrong while the fault is planted.
    where : str
        The edited function as ``module:function`` or ``module:Class.method``, without the leading
        ``geomdp.``.
    old, new : str
        `old` occurs once in the text of the function, and `new` takes its place.
    tests : tuple of str
        Test files, or single tests as ``file::test``.
    """

    name: str
    breaks: str
    where: str
    old: str
    new: str
    tests: tuple[str, ...]

    @property
    def edit(self) -> Edit:
        """The edit that plants the fault."""
        return Edit(f"geomdp.{self.where}", self.old, self.new)
