"""A folder of pages with every figure, theorem and claim, from stored outputs: see `build`."""

from experiments.report.build import build_report

__all__ = ["build_report"]
