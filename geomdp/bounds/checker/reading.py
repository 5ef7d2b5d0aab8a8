"""Reading a certificate file, and comparing its numbers with recomputed ones."""

from __future__ import annotations

import hashlib
import json
import math
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

#: Relative difference of two float64 evaluations of the same few operations.
CLOSE = 1e-9
#: Whole numbers are below this, so that products of three are within the range of float64.
MOST = 1 << 256


class CertificateRejected(ValueError):  # noqa: N818 - what happened, not what went wrong
    """A certificate does not prove what it says; the message names the first failure."""


def require(condition: bool, message: str) -> None:
    """Reject unless `condition` holds."""
    if not condition:
        raise CertificateRejected(message)


def require_close(stated: float, found: float, name: str) -> None:
    """Reject unless a stated number is the one found, up to rounding."""
    same = stated == found or math.isclose(stated, found, rel_tol=CLOSE, abs_tol=CLOSE)
    require(same, f"{name} is {found:.12g}, the file says {stated:.12g}")


def read(path: Path) -> dict[str, Any]:
    """The certificate at `path`, its digest checked and removed."""
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
    except (UnicodeDecodeError, json.JSONDecodeError) as error:
        raise CertificateRejected(f"the file is not JSON: {error}") from error
    require(isinstance(document, dict), "the file is not a JSON object")
    require(document.get("format") == "geomdp packing certificate", "the format is unknown")
    require(document.get("version") == 1, "the version is unknown")
    arrays: dict[str, npt.NDArray[Any]] = {}
    names = document.get("arrays")
    require(isinstance(names, list), "arrays is not a list of names")
    if names:
        arrays = _arrays(path.with_suffix(".npz"))
        require(sorted(arrays) == names, "the arrays are not those of the .npz file")
    stated = document.pop("digest", None)
    text = json.dumps(document, sort_keys=True, separators=(",", ":"))
    content = hashlib.sha256(text.encode("utf-8"))
    for name in sorted(arrays):
        content.update(name.encode("utf-8") + np.ascontiguousarray(arrays[name]).tobytes())
    require(stated == content.hexdigest(), "the digest is not that of the content")
    result: dict[str, Any] = _restore(document, arrays)
    return result


def _arrays(path: Path) -> dict[str, npt.NDArray[Any]]:
    """All arrays of an .npz file."""
    try:
        with np.load(path, allow_pickle=False) as stored:
            return {name: stored[name] for name in stored.files}
    except (ValueError, EOFError, zipfile.BadZipFile) as error:
        raise CertificateRejected(f"{path.name} is not a file of plain arrays") from error


def number(part: Mapping[str, Any], key: str) -> float:
    """A finite number of a part of the file."""
    value = part.get(key)
    if isinstance(value, int) and not isinstance(value, bool) and abs(value) < MOST:
        return float(value)
    require(isinstance(value, float) and math.isfinite(value), f"{key} is not a finite number")
    return value  # type: ignore[return-value]


def whole_number(part: Mapping[str, Any], key: str, least: int = 1) -> int:
    """A whole number of a part of the file, at least `least`."""
    value = part.get(key)
    good = isinstance(value, int) and not isinstance(value, bool) and least <= value < MOST
    require(good, f"{key} is not a whole number, at least {least} and below 2^256")
    return int(value)  # type: ignore[arg-type]


def array(part: Mapping[str, Any], key: str, axes: int | None = None) -> npt.NDArray[np.float64]:
    """A finite array of numbers of a part of the file."""
    try:
        values = np.asarray(part[key], dtype=np.float64)
    except (KeyError, TypeError, ValueError, OverflowError) as error:
        raise CertificateRejected(f"{key} is not an array of numbers") from error
    require(axes is None or values.ndim == axes, f"{key} does not have {axes} axes")
    require(values.size > 0 and bool(np.isfinite(values).all()), f"{key} is empty or not finite")
    return values


def whole_array(
    part: Mapping[str, Any], key: str, axes: int | None = None
) -> npt.NDArray[np.int64]:
    """An array of whole numbers of a part of the file."""
    values = array(part, key, axes)
    require(bool((values == np.rint(values)).all()), f"{key} holds numbers that are not whole")
    return values.astype(np.int64)


def part_of(document: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    """An object within the file."""
    value = document.get(key)
    require(isinstance(value, dict), f"{key} is missing")
    return value  # type: ignore[return-value]


def _restore(value: Any, arrays: dict[str, npt.NDArray[Any]]) -> Any:
    if isinstance(value, list):
        return [_restore(item, arrays) for item in value]
    if not isinstance(value, dict):
        return value
    if set(value) == {"array"}:
        require(value["array"] in arrays, f"array {value['array']} is missing")
        return arrays[value["array"]]
    return {key: _restore(item, arrays) for key, item in value.items()}
