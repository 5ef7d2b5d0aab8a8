"""One page with every figure, theorem and claim, built from stored outputs: see `page`."""

from experiments.report.build import build_report

__all__ = ["build_report"]
