"""Public classes that callers do not construct themselves, each with the reason.

Abstract classes, protocols, enumerations, errors and classes without arguments need no row.
"""

from __future__ import annotations

RESULT = "a result that the library returns"
PIECE = "a piece that the library makes, and passes between its own functions"
LOADED = "a result; its files are hostile input, see test_files"

NOT_BUILT = {
    "advice.Advice": RESULT,
    "advice.Bracket": RESULT,
    "advice.Impossible": RESULT,
    "advice.LeastBudget": RESULT,
    "advice.Plan": LOADED,
    "audit.AuditResult": RESULT,
    "bodies.Halfspace": RESULT,
    "bounds.Certificate": LOADED,
    "bounds.ConfidentAnswers": RESULT,
    "bounds.Line": RESULT,
    "geometry.Estimate": RESULT,
    "geometry.Projection": RESULT,
    "mechanisms.Answer": RESULT,
    "mechanisms.Release": RESULT,
    "mechanisms.SmoothRelease": LOADED,
    "mechanisms.SparseSummary": LOADED,
    "noise.Level": PIECE,
    "tabulation.CovarianceTable": RESULT,
    "tabulation.Regression": RESULT,
    "tabulation.Tabulation": RESULT,
}
