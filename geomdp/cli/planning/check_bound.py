"""The command `check-bound`: check the certificate of a lower bound."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from geomdp.cli import display
from geomdp.cli.progress import working

#: Exit code for a certificate that does not prove its bound. For a missing file the code is 2.
REJECTED = 1

CertificateArgument = Annotated[
    Path, typer.Argument(metavar="FILE", help="A certificate (.json).", show_default=False)
]


def check_bound(file: CertificateArgument) -> None:
    """Check the lower bound in FILE: compute its numbers again, and show what the proof assumes."""
    from geomdp.bounds.checker import CertificateRejected, check_certificate

    with working("checking"):
        try:
            checked = check_certificate(file)
        except CertificateRejected as error:
            display.print_rows([("rejected", str(error))])
            raise typer.Exit(REJECTED) from error
    display.print_rows(
        [
            ("bound", f"sc > {checked.records}: {checked.records} records are not enough"),
            ("statement", checked.statement),
            *(("verified", text) for text in checked.verified),
            *(("provided", text) for text in checked.conditions or ("nothing",)),
        ]
    )
