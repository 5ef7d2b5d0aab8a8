"""Public classes that callers do not construct themselves, each with the reason.

Abstract classes, protocols, enumerations, errors and classes without arguments need no row.
"""

from __future__ import annotations

RESULT = "a result that the library returns"
PIECE = "a piece that the library makes, and passes between its own functions"
LOADED = "a result; its files are hostile input, see test_file_bytes"

NOT_BUILT = {
    "advice.Advice": RESULT,
    "advice.Bracket": RESULT,
    "advice.Plan": LOADED,
    "audit.AuditResult": RESULT,
    "audit.PrivacyLoss": RESULT,
    "bodies.Facets": RESULT,
    "bodies.Halfspace": RESULT,
    "bodies.MomentRelaxation": PIECE,
    "bodies.NamedBody": RESULT,
    "bounds.Certificate": LOADED,
    "bounds.Checked": RESULT,
    "bounds.InstanceOptimality": RESULT,
    "bounds.Line": RESULT,
    "bounds.Rung": PIECE,
    "bounds.VolumeRadius": RESULT,
    "data.CountedRecords": RESULT,
    "data.EncodedRecords": RESULT,
    "data.InferredSchema": RESULT,
    "data.Sample": RESULT,
    "geometry.Diagnostics": RESULT,
    "geometry.Estimate": RESULT,
    "geometry.Projection": RESULT,
    "geometry.Samples": RESULT,
    "geometry.SlabRefinement": RESULT,
    "mechanisms.Answer": RESULT,
    "mechanisms.Choice": RESULT,
    "mechanisms.IterativeRelease": RESULT,
    "mechanisms.Release": RESULT,
    "mechanisms.SmoothAnswer": RESULT,
    "mechanisms.SmoothRelease": LOADED,
    "mechanisms.SparseSummary": LOADED,
    "mechanisms.strategies.Design": PIECE,
    "mechanisms.strategies.Measurement": PIECE,
    "noise.Level": PIECE,
    "noise.NoiseBody": PIECE,
    "noise.Stage": PIECE,
    "plotting.ErrorCurve": RESULT,
    "plotting.Outline": RESULT,
    "tabulation.CovarianceTable": RESULT,
    "tabulation.Table": PIECE,
    "tabulation.Tabulation": RESULT,
    "tabulation.Task": PIECE,
    "tabulation.WorkloadKind": PIECE,
    "workloads.Block": PIECE,
    "workloads.Totals": RESULT,
}
