"""The work of `smooth summarize`: compute and write the summary, and print rows about it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from geomdp.cli import display
from geomdp.cli.ledger_flags import Payment, left_in
from geomdp.cli.output_files import paid_files
from geomdp.cli.progress import working
from geomdp.cli.smooth_queries.inputs import counted
from geomdp.data import Schema, encode, read_chunks
from geomdp.mechanisms import SmoothRelease, SmoothSummary
from geomdp.privacy import Adjacency, Exact, Guarantee, Privacy


@dataclass(frozen=True)
class Request:
    """The values of the flags that describe a summary; `degree` None is that of the least error."""

    schema: Schema
    privacy: Privacy
    adjacency: Adjacency
    n: int | None
    smoothness: int
    degree: int | None
    seed: int | None


def carry_out(request: Request, data: Path, out: Path, payment: Payment) -> None:
    """Release the summary of the records in `data` to the file `out`, and print rows about it."""
    schema, n = request.schema, request.n
    with payment.opened(request.adjacency) as account, working("reading records"):
        if account is not None:
            claim = Guarantee(request.privacy, request.adjacency, Exact())
            account.require(claim, "SmoothSummary")
        summary = SmoothSummary(
            len(schema.columns),
            n=counted(data, schema) if n is None else n,
            smoothness=request.smoothness,
            privacy=request.privacy,
            degree=request.degree,
            adjacency=request.adjacency,
            schema=schema,
        )
        points = encode(
            read_chunks(data, schema.names, csv=schema.csv),
            schema.confirm(),
            summary.workload.universe,
        )
        # Two numbers for each moment, of 8 bytes, and the record.
        room = 16 * (summary.workload.n_queries + 1) + 2**16 + 2 * len(schema.to_json())
        with paid_files({out: room}) as write:
            released = summary.release(points, rng=request.seed, ledger=account)
            charged = payment.charged(released.guarantee)
            write({out: released.to_bytes()}, charged)
        left = left_in(account)
    counting = "declared" if n is not None else "counted"
    rows = [
        ("records", f"{released.n} ({counting}), {data}"),
        ("moments", f"{released.moments.size - 1}: {degrees(released)}"),
        ("privacy", str(released.guarantee)),
        ("noise", _noise(released)),
        ("summary", str(out)),
        *left,
    ]
    with display.printing(f"{charged}, and the summary is in {out}"):
        display.print_rows(rows)


def degrees(release: SmoothRelease) -> str:
    """The degrees of the moments in a summary, in words."""
    variables = f"each of {release.d} variables" if release.d > 1 else "1 variable"
    return f"degrees 0 to {release.degree - 1} in {variables}"


def _noise(release: SmoothRelease) -> str:
    deviations = release.noise_std.ravel()[1:]
    low, high = map(display.number, (float(deviations.min()), float(deviations.max())))
    return f"standard deviation from {low} to {high} per moment"
