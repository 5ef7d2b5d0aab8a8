"""Release one smooth summary of a Parquet file and print the peak memory of this process.

``python -m experiments.benchmarks.smooth_memory FILE N DEGREE`` prints JSON: the peak memory at the
end and at the start, in MiB, and seconds of processor time.
"""

from __future__ import annotations

import json
import re
import resource
import sys
import time
from pathlib import Path

import geomdp as gd
from geomdp.data import RealColumn, Schema, encode, read_chunks

#: The columns of the file, with the bounds that map them to the cube.
SCHEMA = Schema((RealColumn("first", (-1.0, 1.0)), RealColumn("second", (0.0, 10.0))))
SMOOTHNESS = 4


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


def main(path: str, n: int, degree: int) -> None:
    """Release a summary of the file and print the memory and the time that it took."""
    start = peak_mib()
    mechanism = gd.SmoothSummary(
        2, n=n, smoothness=SMOOTHNESS, privacy=gd.PureDP(1.0), degree=degree, schema=SCHEMA
    )
    seconds = time.process_time()
    points = encode(read_chunks(path, SCHEMA.names), SCHEMA, mechanism.workload.universe)
    mechanism.release(points)
    seconds = time.process_time() - seconds
    print(json.dumps({"peak": peak_mib(), "start": start, "seconds": seconds}))


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
