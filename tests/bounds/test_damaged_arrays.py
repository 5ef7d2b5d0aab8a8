"""Damaged .npz files raise only documented errors in the certificate checker and `read_arrays`.

`zipfile` and NumPy raise many kinds of exceptions for damaged files. They also warn about some
files, and the test suite turns warnings into errors.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import io
import json
import zipfile
from pathlib import Path

import numpy as np
import pytest

from geomdp._numerics.files import read_arrays
from geomdp.bounds import Bound, CertificateRejected, check_certificate, guessing_bound
from geomdp.bounds.checker.reading import _arrays
from geomdp.workloads import Histogram
from tests.bounds.test_checker import saved

#: An array in NumPy's format. Eight bytes name the format and its version. The length of the header
#: follows in two bytes, then the header, and from byte 128 on the numbers.
STORED = io.BytesIO()
np.save(STORED, np.arange(8))
MAGIC, HEADER, NUMBERS = (
    STORED.getvalue()[:8],
    STORED.getvalue()[10:128].decode().rstrip(" \n"),
    STORED.getvalue()[128:],
)
#: Texts that mutations insert into a header. For example, they open a bracket or a string that
#: nothing closes, change the type of a value, or change the indentation.
INSERTED = [*"()[]{}'\"\\,:#*-<1LjVO\0", "\n", "\n  ", "()", "[()]", "9" * 30, "None", "True"]


def archive(header: str, method: int = zipfile.ZIP_STORED) -> bytes:
    """An .npz file of the array "a" with this header."""
    content = header.encode()
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", method) as members:
        length = len(content).to_bytes(2, "little")
        members.writestr("a.npy", MAGIC + length + content + NUMBERS)
    return file.getvalue()


@functools.cache
def bound() -> Bound:
    """A bound from the elements 0, ..., 7. These are the numbers in `STORED`."""
    return guessing_bound(Histogram(8), epsilon=0.1, alpha=0.2)


def certificate_beside(content: bytes, folder: Path) -> Path:
    """Write a certificate with `content` as its .npz file, and return the path of the certificate.

    The elements of the last rung are the array "a" of the .npz file. If the checker can read this
    file, the certificate has the right digest. So the digest does not protect from the damage.
    """
    path = saved(bound(), folder)
    document = json.loads(path.read_text())
    document.pop("digest")
    assert document["rungs"][-1]["family"]["elements"] == list(range(8))
    document["rungs"][-1]["family"]["elements"] = {"array": "a"}
    document["arrays"] = ["a"]
    path.with_suffix(".npz").write_bytes(content)
    digest = hashlib.sha256(json.dumps(document, sort_keys=True, separators=(",", ":")).encode())
    with contextlib.suppress(CertificateRejected):
        for name, values in sorted(_arrays(path.with_suffix(".npz")).items()):
            digest.update(name.encode() + values.tobytes())
    path.write_text(json.dumps(document | {"digest": digest.hexdigest()}))
    return path


def read_or_refused(path: Path) -> None:
    """`read_arrays` returns an array or raises ValueError for the .npz file of a certificate."""
    with contextlib.suppress(ValueError):
        read_arrays(path.with_suffix(".npz"), ("a",))


def harmless(content: bytes, folder: Path) -> None:
    """The checker rejects the damaged file, or confirms the bound of the undamaged file."""
    path = certificate_beside(content, folder)
    with contextlib.suppress(CertificateRejected):
        assert check_certificate(path).records == bound().value
    read_or_refused(path)


HEADERS = {
    "no dict": "(((",
    "open bracket": HEADER.replace("(8,)", "(((8,)"),
    "indentation": "if 1:\n    1\n  2" + HEADER,
    "type is an empty tuple": HEADER.replace("'<i8'", "()"),
    "type of one entry": HEADER.replace("'<i8'", "('<i8',)"),
    "type with a comma": HEADER.replace("'<i8'", "'<,i8'"),
    "fields of no names": HEADER.replace("'<i8'", "[()]"),
    "nested types": HEADER.replace("'<i8'", "(" * 50 + "'<i8'" + ", (1,))" * 50),
    "deep type": HEADER.replace("'<i8'", "[" * 2000 + "]" * 2000),
    "keys of two types": HEADER.replace("'shape'", "()"),
    "huge shape": HEADER.replace("8,", "9" * 2000 + ","),
    "negative shape": HEADER.replace("8,", "-2, -4"),
    "shape of a truth value": HEADER.replace("8,", "True, 8"),
}


METHODS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, zipfile.ZIP_LZMA)


@pytest.mark.parametrize("method", METHODS)
def test_undamaged_files_are_accepted(method, tmp_path):
    path = certificate_beside(archive(HEADER, method), tmp_path)
    assert check_certificate(path).records == bound().value
    stored = read_arrays(path.with_suffix(".npz"), ("a",))
    np.testing.assert_array_equal(stored["a"], np.arange(8))


@pytest.mark.parametrize("name", HEADERS)
def test_malformed_headers_are_rejected(name, tmp_path):
    path = certificate_beside(archive(HEADERS[name]), tmp_path)
    with pytest.raises(CertificateRejected):
        check_certificate(path)
    read_or_refused(path)


@pytest.mark.filterwarnings("ignore:Reading .* created on Python 2")
def test_a_header_of_python_2_proves_nothing_else(tmp_path):
    """NumPy reads such a header with a warning, and the numbers are the same."""
    harmless(archive(HEADER.replace("8,", "8L,")), tmp_path)


def test_changed_headers_prove_nothing_else(tmp_path):
    rng = np.random.default_rng(0)
    for _ in range(200):
        header = HEADER
        for _ in range(int(rng.integers(1, 4))):
            place, removed = int(rng.integers(len(header) + 1)), int(rng.integers(4))
            inserted = INSERTED[int(rng.integers(len(INSERTED)))]
            header = header[:place] + inserted + header[place + removed :]
        harmless(archive(header), tmp_path)


@pytest.mark.parametrize("method", METHODS)
def test_changed_archives_prove_nothing_else(method, tmp_path):
    rng = np.random.default_rng(0)
    whole = archive(HEADER, method)
    for _ in range(80):
        content = bytearray(whole)
        for place in rng.integers(len(content), size=int(rng.integers(1, 4))):
            content[place] = int(rng.integers(256))
        end = int(rng.integers(len(content))) if rng.random() < 0.1 else len(content)
        harmless(bytes(content[:end]), tmp_path)
