"""Seconds and peak memory of one piece of work in a process of its own.

``python -m experiments.benchmarks.peaks WORK PATH NUMBER ...`` does the work on a Parquet file and
prints JSON: the seconds of processor time, and the peak memory of the whole process in MiB.
"""

import json
import re
import resource
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median

import geomdp as gd
from geomdp.data import RealColumn, Schema, count_records, encode, read_chunks, source_of
from geomdp.data.tallies import CountedRecords

#: The columns of the file of a smooth summary, with the bounds that map them to the cube.
SCHEMA = Schema((RealColumn("first", (-1.0, 1.0)), RealColumn("second", (0.0, 10.0))))
SMOOTHNESS = 4
#: The levels of each column whose tables are counted.
LEVELS = ["north", "east", "south", "west"]


def release_summary(path: str, n: int, degree: int) -> None:
    """Release a smooth summary of the file."""
    mechanism = gd.SmoothSummary(
        2, n=n, smoothness=SMOOTHNESS, privacy=gd.PureDP(1.0), degree=degree, schema=SCHEMA
    )
    points = encode(read_chunks(path, SCHEMA.names), SCHEMA, mechanism.workload.universe)
    mechanism.release(points)


def count_tables(path: str | Path, columns: int, k: int) -> CountedRecords:
    """Count all k-way tables of `columns` columns of a file, or of all files of a folder."""
    schema = Schema.from_dict({f"c{i}": LEVELS for i in range(columns)})
    found = count_records(source_of(path), schema, schema.workload("marginals", k=k))
    assert isinstance(found, CountedRecords)
    return found


WORKS: dict[str, Callable[..., object]] = {
    work.__name__: work for work in (release_summary, count_tables)
}


def apart(
    work: Callable[..., object], path: Path, *numbers: int, repetitions: int = 1
) -> dict[str, float]:
    """The median seconds and the peak MiB of `work`, done `repetitions` times in a new process."""
    command = [sys.executable, "-m", "experiments.benchmarks.peaks", work.__name__, str(path)]
    arguments = map(str, (repetitions, *numbers))
    done = subprocess.run([*command, *arguments], capture_output=True, text=True, check=True)
    found: dict[str, float] = json.loads(done.stdout)
    return found


def peak_mib() -> float:
    """Largest resident memory of this process so far, in MiB.

    The kernel's status file is read if there is one. The number from `resource` is worse: it
    includes the memory that the parent process had when it started this one.
    """
    status = Path("/proc/self/status")
    if status.exists():
        found = re.search(r"VmHWM:\s+(\d+) kB", status.read_text())
        if found is not None:
            return int(found.group(1)) / 1024
    unit = 1024**2 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / unit


def main(name: str, path: str, repetitions: str, *numbers: str) -> None:
    """Do the work and print what it took."""
    seconds = []
    for _ in range(int(repetitions)):
        start = time.process_time()
        WORKS[name](path, *map(int, numbers))
        seconds.append(time.process_time() - start)
    print(json.dumps({"seconds": median(seconds), "mib": peak_mib()}))


if __name__ == "__main__":
    main(*sys.argv[1:])
