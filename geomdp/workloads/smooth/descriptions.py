"""Smooth queries read from descriptions in files."""

from __future__ import annotations

from geomdp.workloads.smooth.closed_forms import (
    ClosedForm,
    GaussianMixture,
    Logistic,
    Polynomial,
    SoftRange,
    Waves,
    parameter_names,
)

#: The kinds of query that can be read from a file, by name.
KINDS: dict[str, type[ClosedForm]] = {
    kind.__name__: kind for kind in (GaussianMixture, Polynomial, Logistic, Waves, SoftRange)
}


def query_from_dict(description: object) -> ClosedForm:
    """The query with a given description, the inverse of `ClosedForm.to_dict`.

    `description` is a dict with the name of the class under ``"kind"``, and its parameters, as read
    from JSON. ``ValueError`` for others; the message names the known kinds, or the parameters of
    the kind.

    Examples
    --------
    >>> import geomdp as gd
    >>> smooth = gd.workloads.smooth
    >>> smooth.query_from_dict({"kind": "Logistic", "weights": [3.0, 0.0], "bias": -0.5})
    Logistic(2 variables)
    """
    if not isinstance(description, dict):
        raise ValueError(f"a query must be a dict, got {type(description).__name__}")
    kind = description.get("kind")
    if not isinstance(kind, str) or kind not in KINDS:
        raise ValueError(f"kind must be one of {', '.join(KINDS)}, got {kind!r}")
    parameters = {name: value for name, value in description.items() if name != "kind"}
    known = parameter_names(KINDS[kind])
    if parameters.keys() != set(known):
        raise ValueError(
            f"{kind} must have the parameters {', '.join(known)}, "
            f"got {', '.join(map(str, parameters)) or 'none'}"
        )
    return KINDS[kind](**parameters)
