"""Reading a damaged or harmful file raises a documented error, runs no code and fills no memory."""

import contextlib
import dataclasses
import io
import itertools
import json
import os
import pickle
import stat
import sys
import threading
import zipfile
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TypeAlias

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import geomdp as gd
from geomdp._numerics.files import read_arrays, write_together
from geomdp.advice import Plan, load_plan, save_plan
from geomdp.bounds import CertificateRejected, check_certificate, guessing_bound
from geomdp.bounds.certificates import write_certificate
from geomdp.data import Schema, read_chunks
from geomdp.mechanisms.smooth_release import SmoothRelease
from geomdp.mechanisms.sparse_summary import SparseSummary
from geomdp.privacy import Ledger, PureDP
from tests.bounds.test_hostile_certificates import certificate_beside


def smooth(path: Path) -> None:
    mechanism = gd.SmoothSummary(1, n=50, smoothness=2, privacy=PureDP(1.0), degree=3)
    mechanism.release(np.zeros((50, 1)), rng=0).save(path)


def sparse(path: Path) -> None:
    project = gd.SparseProject(n=5, sparsity=1, queries=1, privacy=gd.ZCDP(0.5), rows=64, rng=0)
    project.release([1, 2, 3, 4, 5], rng=0).save(path)


def ledger(path: Path) -> None:
    with Ledger(PureDP(1.0), path=path) as opened:
        gd.AboveThreshold(0.0, privacy=PureDP(0.25), ledger=opened)


def schema(path: Path) -> None:
    path.write_text(Schema.from_dict({"a": bool, "b": ["x", "y"]}).to_json())


def csv(path: Path) -> None:
    path.write_text("a,b\n1,x\n0,y\n" * 40)


def parquet(path: Path) -> None:
    import pandas as pd

    pd.DataFrame({"a": range(50), "b": ["x"] * 50}).to_parquet(path)


def certificate(path: Path) -> None:
    bound = guessing_bound(gd.workloads.Histogram(8), epsilon=0.1, alpha=0.2)
    assert isinstance(bound.certificate, gd.bounds.Certificate)
    write_certificate(path, bound.certificate.document())


def plan(path: Path) -> None:
    save_plan(Plan("laplace", "Prefixes(N=8)", "1-DP", "replace-one", 1000, {"epsilon": 1.0}), path)


def load_schema(path: Path) -> object:
    return Schema.from_json(path.read_bytes().decode())


def load_ledger(path: Path) -> object:
    with Ledger.existing(path) as opened:
        return opened.spends()


def load_records(path: Path) -> object:
    return list(read_chunks(path))


#: For each format, the ending of its files, a function that writes a good file, and the reader.
FORMATS: dict[str, tuple[str, Callable[[Path], None], Callable[[Path], object]]] = {
    "smooth summary": (".npz", smooth, SmoothRelease.load),
    "sparse summary": (".npz", sparse, SparseSummary.load),
    "ledger": (".ledger", ledger, load_ledger),
    "schema": (".json", schema, load_schema),
    "parquet": (".parquet", parquet, load_records),
    "csv": (".csv", csv, load_records),
    "certificate": (".json", certificate, check_certificate),
    "plan": (".json", plan, load_plan),
}
BINARY = ["smooth summary", "sparse summary", "ledger", "parquet"]


@pytest.fixture(scope="module")
def good(tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    """Contents of good files by format."""
    folder = tmp_path_factory.mktemp("good")
    contents = {}
    for name, (ending, write, read) in FORMATS.items():
        path = folder / f"{name.replace(' ', '-')}{ending}"
        write(path)
        read(path)  # reading a good file raises no error
        contents[name] = path.read_bytes()
    return contents


#: Names of the arrays in a file of each kind of summary.
MEMBERS = {
    "smooth summary": ("record", "moments", "noise_std"),
    "sparse summary": ("record", "vector", "key"),
}


def bomb(size: int, names: Sequence[str]) -> bytes:
    """A small archive, each member of which unpacks to `size` zero bytes."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for name in names:
            with archive.open(f"{name}.npy", "w", force_zip64=True) as member:
                for _ in range(size >> 20):
                    member.write(bytes(1 << 20))
    return buffer.getvalue()


class Planted:
    """An object that creates the file `unpickled` when it is unpickled."""

    def __reduce__(self) -> tuple[Callable[[str], object], tuple[str]]:
        return Path.touch, (Path("unpickled"),)


def archive_of(**arrays: np.ndarray) -> bytes:
    buffer = io.BytesIO()
    np.savez(buffer, **arrays)
    return buffer.getvalue()


def lying_header() -> bytes:
    """An archive of five arrays, which have headers that claim 8 TiB each, but no content."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name in ("record.npy", "moments.npy", "noise_std.npy", "vector.npy", "key.npy"):
            header = io.BytesIO()
            np.lib.format.write_array_header_1_0(
                header, {"descr": "<f8", "fortran_order": False, "shape": (1 << 40,)}
            )
            archive.writestr(name, header.getvalue())
    return buffer.getvalue()


DEEP = "[" * 100_000 + "]" * 100_000
HARMFUL: dict[str, bytes] = {
    "empty": b"",
    "one byte": b"\0",
    "zeros": bytes(4096),
    "text": b"not a file of this kind\n",
    "not utf-8": b"\xff\xfe\x80a,b\n\x80,\xff\n",
    "byte order mark only": b"\xef\xbb\xbf",
    "nul in text": b'a,b\n1,"\0\n',
    "pickle": pickle.dumps(Planted()),
    "object array": archive_of(record=np.array([Planted()], dtype=object)),
    "nested json": DEEP.encode(),
    "nested json in an archive": archive_of(
        record=np.array(DEEP), moments=np.ones(3), noise_std=np.zeros(3)
    ),
    "huge number": b'{"format": ' + b"9" * 6000 + b"}",
    "json scalar": b"3",
    "json null": b"null",
    "json with nan": b'{"format": NaN, "version": Infinity, "columns": []}',
    "bare quote": b'"',
    "half a gzip": b"\x1f\x8b\x08\0\0\0\0\0",
    "no members": archive_of(),
    "other members": archive_of(a=np.ones(3)),
    "member outside the folder": archive_of(**{"../../record": np.ones(3)}),
    "record of numbers": archive_of(record=np.ones(3), moments=np.ones(3), noise_std=np.zeros(3)),
    "header without content": lying_header(),
    "sqlite header only": b"SQLite format 3\0" + bytes(84),
    "parquet magic only": b"PAR1" + bytes(8) + b"PAR1",
    "parquet with a huge footer": b"PAR1" + b"\xff\xff\xff\x7f" + b"PAR1",
}


#: Files of `HARMFUL` that the CSV reader must refuse. It may read the others as CSV.
NO_TEXT = {"empty", "not utf-8", "nul in text", "bare quote"}


@pytest.mark.parametrize("harmful", HARMFUL)
@pytest.mark.parametrize("name", FORMATS)
def test_what_is_no_such_file_is_refused(name, harmful, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    ending, _, read = FORMATS[name]
    path = tmp_path / f"bad{ending}"
    path.write_bytes(HARMFUL[harmful])
    if name == "csv" and harmful not in NO_TEXT:
        with contextlib.suppress(ValueError):  # any line of text may be a header
            read(path)
    else:
        with pytest.raises(ValueError, match=r"."):
            read(path)
    assert path.read_bytes() == HARMFUL[harmful]
    assert not Path("unpickled").exists()
    assert [found.name for found in tmp_path.iterdir()] == [path.name]


@pytest.mark.parametrize("name", BINARY)
def test_truncated_files_are_refused(name, good, tmp_path):
    ending, _, read = FORMATS[name]
    content, path = good[name], tmp_path / f"cut{ending}"
    for share in np.linspace(0, 1, 24, endpoint=False):
        path.write_bytes(content[: int(share * len(content))])
        with pytest.raises(ValueError, match=r"."):
            read(path)


def saved(summary: object) -> bytes:
    """The content of the file to which a summary is saved. Equal summaries have equal files."""
    assert isinstance(summary, SmoothRelease | SparseSummary)
    with TemporaryDirectory() as folder:
        path = Path(folder) / "again.npz"
        summary.save(path)
        return path.read_bytes()


#: Text of one character, which NumPy stores as a 32-bit number; these numbers are no characters.
NO_CHARACTERS = [
    np.array([code], dtype=f"{order}u4").view(f"{order}U1").reshape(())
    for code, order in itertools.product([sys.maxunicode + 1, 0xFFFFFFFF], "<")
]


@pytest.mark.parametrize("text", NO_CHARACTERS, ids=lambda text: text.tobytes().hex())
@pytest.mark.parametrize("name", ["smooth summary", "sparse summary"])
def test_text_outside_unicode_is_refused(name, text, good, tmp_path):
    ending, _, read = FORMATS[name]
    path = tmp_path / f"text{ending}"
    with np.load(io.BytesIO(good[name])) as stored:
        arrays = dict(stored)
    np.savez(path, **arrays | {"record": text})
    with pytest.raises(ValueError, match=r"must hold Unicode text, got the code 0x(110000|f{8})"):
        read(path)


@pytest.mark.parametrize("text", NO_CHARACTERS, ids=lambda text: text.tobytes().hex())
def test_a_certificate_with_text_outside_unicode_is_rejected(text, tmp_path):
    path = certificate_beside(archive_of(a=np.repeat(text, 8)), tmp_path)
    with pytest.raises(CertificateRejected, match="an array does not hold numbers"):
        check_certificate(path)


@pytest.mark.parametrize("name", ["smooth summary", "sparse summary"])
def test_a_zip_bomb_is_not_unpacked(name, tmp_path, monkeypatch):
    """The file is refused before any of its members is opened."""
    ending, _, read = FORMATS[name]
    path = tmp_path / f"bomb{ending}"
    path.write_bytes(bomb(8 << 20, MEMBERS[name]))
    assert path.stat().st_size < 100_000
    opened = []
    monkeypatch.setattr(
        zipfile.ZipFile, "open", lambda archive, member, *rest: opened.append(member)
    )
    monkeypatch.setattr("geomdp._numerics.files.MOST_BYTES", 4 << 20)
    with pytest.raises(ValueError, match=r"must take at most"):
        read(path)
    with pytest.raises(ValueError, match=r"must hold the arrays"):
        read_arrays(path, ("other",))
    assert opened == []


@pytest.mark.parametrize("name", FORMATS)
def test_what_is_no_file_is_refused(name, tmp_path):
    ending, _, read = FORMATS[name]
    loop = tmp_path / f"loop{ending}"
    loop.symlink_to(loop)
    folder = tmp_path / f"folder{ending}"
    folder.mkdir()
    missing = tmp_path / "no" / ".." / f"missing{ending}"
    for path in (loop, folder, missing):
        with pytest.raises((OSError, ValueError), match=r"."):
            read(path)


class BrokenError(OSError):
    pass


def test_a_failure_while_writing_leaves_no_partial_file(tmp_path, monkeypatch):
    path, other = tmp_path / "one.npz", tmp_path / "two.json"
    path.write_bytes(b"old")

    def full(descriptor: int) -> None:
        raise BrokenError("no space left")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(BrokenError):
        write_together({path: b"new", other: b"new"})
    for write in (smooth, sparse):
        with pytest.raises(BrokenError):
            write(path)
    assert path.read_bytes() == b"old"
    assert [found.name for found in tmp_path.iterdir()] == ["one.npz"]


def test_threads_may_write_one_path_at_the_same_time(tmp_path, monkeypatch):
    """Both threads have written a file in full before either renames its file."""
    path, both = tmp_path / "one.npz", threading.Barrier(2, timeout=60)
    monkeypatch.setattr(os, "fsync", lambda descriptor: both.wait())
    contents = [b"first", b"second"]
    with ThreadPoolExecutor(2) as threads:
        written = [threads.submit(write_together, {path: content}) for content in contents]
    for result in written:
        result.result()
    assert path.read_bytes() in contents
    assert [found.name for found in tmp_path.iterdir()] == ["one.npz"]


def test_a_symbolic_link_is_replaced_and_not_followed(tmp_path):
    private, link = tmp_path / "private.csv", tmp_path / "out.npz"
    private.write_bytes(b"records")
    link.symlink_to(private)
    smooth(link)
    assert private.read_bytes() == b"records"
    assert not link.is_symlink()


def test_a_ledger_is_for_its_owner(tmp_path):
    path = tmp_path / "data.ledger"
    before = os.umask(0)
    try:
        ledger(path)
    finally:
        os.umask(before)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


CATEGORICAL, NUMERIC, REAL, BOOLEAN = (
    {"name": "a", "kind": kind} for kind in ("categorical", "numeric", "real", "boolean")
)
NO_COLUMNS: list[object] = [
    *(
        None,
        1,
        "a",
        {},
        [],
        {"name": 1},
        {"name": "a", "kind": []},
        {"name": [], "kind": "boolean"},
    ),
    *({**CATEGORICAL, "categories": c} for c in (3, "ab", [None, {}], [], ["x", "x"], {"x": 1})),
    *(
        {**NUMERIC, "edges": e}
        for e in (["x", 1], [1], [2, 1], [10**400, 10**401], None, [0, None])
    ),
    *({**REAL, "bounds": b} for b in ([0], [1, 0], {"a": 1}, [-(10**400), 10**400], [0, True])),
    {**BOOLEAN, "missing": "yes"},
    {**BOOLEAN, "edges": [1, 2]},
    {**BOOLEAN, "name": ""},
]
HEADER = {"format": "geomdp schema", "version": 1}
NO_SCHEMAS: list[object] = [
    *(None, 1, "a", [], {}, [[]], {"format": 1}, {"columns": {}}, [None]),
    *({**HEADER, "columns": [column]} for column in NO_COLUMNS),
    *({**HEADER, "columns": columns} for columns in (None, {}, "a", [], [BOOLEAN, BOOLEAN])),
    *({**HEADER, "version": v, "columns": [BOOLEAN]} for v in (0, 2, "1", None, [1])),
    *({**HEADER, "version": 2, "columns": c} for c in (None, {}, "a", {"a": {}}, {"a": 3})),
    *({**HEADER, "version": v, "columns": {"a": {"kind": "boolean"}}} for v in (0, 1, 3, "2")),
]


@pytest.mark.parametrize("place", range(len(NO_SCHEMAS)))
def test_json_of_every_shape_is_no_schema(place):
    with pytest.raises(ValueError, match=r"."):
        Schema.from_json(json.dumps(NO_SCHEMAS[place]))


# --- generated bytes ------------------------------------------------------------------------


#: An edit: the position and the length of a piece of the file, and what happens to the piece. It is
#: replaced by bytes, cut out, doubled or zeroed. Position and length are taken modulo their ranges.
EDIT = st.tuples(
    st.integers(0, 1 << 20),
    st.integers(0, 16) | st.integers(0, 1 << 20),
    st.binary(max_size=8) | st.sampled_from(["cut out", "doubled", "zeros"]),
)
#: Edits of a good file, the number of a bit to flip, other bytes, or the name of a harmful file.
#: Most edits move the rest of the file. A flipped bit does not, so that only a checksum shows it.
#: The name is drawn instead of the content, because Hypothesis warns of long values, and some
#: harmful files are long.
CHANGES = (
    st.lists(EDIT, min_size=1, max_size=3)
    | st.integers(0, 1 << 20)
    | st.binary(max_size=200)
    | st.sampled_from(list(HARMFUL))
)


Change: TypeAlias = list[tuple[int, int, bytes | str]] | int | bytes | str


def edited(content: bytes, change: Change) -> bytes:
    """A good file with edited pieces or one flipped bit; or other bytes; or a harmful file."""
    if isinstance(change, bytes):
        return change
    if isinstance(change, str):
        return HARMFUL[change]
    if isinstance(change, int):
        place, bit = divmod(change % (8 * len(content)), 8)
        return content[:place] + bytes([content[place] ^ 1 << bit]) + content[place + 1 :]
    for position, size, new in change:
        start = position % (len(content) + 1)
        length = size % (len(content) - start + 1)
        piece = content[start : start + length]
        match new:
            case "cut out":
                new = b""
            case "doubled":
                new = 2 * piece
            case "zeros":
                new = bytes(length)
        content = content[:start] + new + content[start + length :]
    return content


def load(name: str, content: bytes, good: bytes) -> None:
    """Reading returns an object or raises ``ValueError``, and changes neither file nor folder.

    If a ledger can be read, it lists the spends of the good ledger, so no edit frees any budget. A
    summary that can be read is the good summary, because its file has checksums. The texts of plans
    and schemas have no checksum. They may be edited, and the object holds what the text says. An
    edited certificate is a proof of another bound, which `check_certificate` checks in full. Edited
    records are other records.
    """
    ending, _, read = FORMATS[name]
    with TemporaryDirectory() as folder:
        path = Path(folder) / f"edited{ending}"
        path.write_bytes(content)
        with contextlib.suppress(ValueError):
            found = read(path)
            match found:
                case SmoothRelease() | SparseSummary():
                    assert saved(found) == good
                case Schema():
                    assert json.loads(found.to_json()) == json.loads(content)
                case Plan():
                    assert dataclasses.asdict(found) == json.loads(content)
                case _ if name == "ledger":
                    assert found == spends_of(good)
        assert path.read_bytes() == content
        assert [each.name for each in path.parent.iterdir()] == [path.name]


def spends_of(content: bytes) -> object:
    """The spends listed in the ledger with this content."""
    with TemporaryDirectory() as folder:
        path = Path(folder) / "good.ledger"
        path.write_bytes(content)
        return FORMATS["ledger"][2](path)


@pytest.mark.parametrize("examples", [12, pytest.param(2000, marks=pytest.mark.slow)])
@pytest.mark.parametrize("name", FORMATS)
def test_edited_files_are_read_or_refused(name, good, examples):
    @settings(max_examples=examples)
    @given(CHANGES)
    def check(change: Change) -> None:
        load(name, edited(good[name], change), good[name])

    check()
    for bit in np.random.default_rng(0).integers(8 * len(good[name]), size=20):
        load(name, edited(good[name], int(bit)), good[name])
