"""A Dask cluster and a PostgreSQL server for the tests that need one."""

import os
import shutil
import subprocess
import tempfile
from pathlib import Path

import pytest

SERVERS = sorted(Path("/usr/lib/postgresql").glob("*/bin")) if shutil.which("runuser") else []


def run(*command, user):
    """Run a program, as `user` if one is given; `initdb` and `pg_ctl` refuse to run as root."""
    as_user = ["runuser", "-u", user, "--"] if user else []
    subprocess.run([*as_user, *map(str, command)], check=True, capture_output=True, timeout=120)


@pytest.fixture(scope="module")
def client():
    """A client of a cluster in this process. Dask warns about its ports: ignore warnings."""
    from distributed import Client, LocalCluster

    with (
        LocalCluster(
            n_workers=2, threads_per_worker=1, processes=False, dashboard_address=None
        ) as workers,
        Client(workers) as client,
    ):
        yield client


@pytest.fixture(scope="session")
def postgresql():
    """Start a server without tables; yield its address, which names a socket."""
    if not SERVERS:
        pytest.skip("PostgreSQL is not installed (Debian: postgresql)")
    # Other users cannot enter the temporary folders of pytest, but the user of the server must.
    with tempfile.TemporaryDirectory(prefix="geomdp-postgresql-") as name:
        folder, user = Path(name), "postgres" if os.getuid() == 0 else None
        if user:
            shutil.chown(folder, user)
        data, programs = folder / "data", SERVERS[-1]
        run(programs / "initdb", "-D", data, "-U", "tester", "-A", "trust", user=user)
        settings = f"-k {folder} -c listen_addresses=''"
        log = folder / "log"
        run(programs / "pg_ctl", "-D", data, "-o", settings, "-l", log, "-w", "start", user=user)
        try:
            yield f"postgresql:///postgres?host={folder}&user=tester"
        finally:
            run(programs / "pg_ctl", "-D", data, "-m", "immediate", "stop", user=user)
