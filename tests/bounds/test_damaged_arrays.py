"""Damaged .npz files raise only documented errors in the certificate checker and `read_arrays`.

`zipfile` and NumPy raise many kinds of exceptions for damaged files. They also warn about some
files, and the test suite turns warnings into errors.
"""

from __future__ import annotations

import contextlib
import io
import json
import sys
import zipfile
from pathlib import Path

import numpy as np
import pytest

from geomdp._numerics.array_files import read_arrays
from geomdp.bounds import CertificateRejected, check_certificate
from geomdp.cli import main

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


def certificate_beside(content: bytes, folder: Path) -> Path:
    """Write a certificate with `content` as its .npz file, and return the path of the certificate.

    The certificate has no digest. It passes the checks that come before the .npz file is read.
    """
    path = folder / "bound.json"
    document = {"format": "geomdp packing certificate", "version": 1, "arrays": ["a"]}
    path.write_text(json.dumps(document))
    path.with_suffix(".npz").write_bytes(content)
    return path


def refused(content: bytes, folder: Path) -> None:
    """The checker rejects the certificate; `read_arrays` returns an array or raises ValueError."""
    path = certificate_beside(content, folder)
    with pytest.raises(CertificateRejected):
        check_certificate(path)
    with contextlib.suppress(ValueError):
        read_arrays(path.with_suffix(".npz"), ("a",))


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
    "shape of Python 2": HEADER.replace("8,", "8L,"),
}


@pytest.mark.parametrize("name", HEADERS)
def test_malformed_headers_are_rejected(name: str, tmp_path: Path) -> None:
    refused(archive(HEADERS[name]), tmp_path)


def test_the_command_says_why_a_malformed_header_is_rejected(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    path = certificate_beside(archive("((("), tmp_path)
    monkeypatch.setattr(sys, "argv", ["geomdp", "check-bound", str(path)])
    with pytest.raises(SystemExit) as stop:
        main()
    assert stop.value.code == 1
    assert "is not a file of plain arrays" in " ".join(capsys.readouterr().out.split())


def test_changed_headers_are_rejected(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    for _ in range(200):
        header = HEADER
        for _ in range(int(rng.integers(1, 4))):
            place, removed = int(rng.integers(len(header) + 1)), int(rng.integers(4))
            inserted = INSERTED[int(rng.integers(len(INSERTED)))]
            header = header[:place] + inserted + header[place + removed :]
        refused(archive(header), tmp_path)


@pytest.mark.parametrize("method", [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, zipfile.ZIP_LZMA])
def test_changed_archives_are_rejected(method: int, tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    whole = archive(HEADER, method)
    for _ in range(80):
        content = bytearray(whole)
        for place in rng.integers(len(content), size=int(rng.integers(1, 4))):
            content[place] = int(rng.integers(256))
        end = int(rng.integers(len(content))) if rng.random() < 0.1 else len(content)
        refused(bytes(content[:end]), tmp_path)
