"""Good arguments for public constructors; `not_built` says which classes have no row, and why."""

from __future__ import annotations

from tests.hostile.constructors.bodies import BODIES
from tests.hostile.constructors.bounds import BOUNDS
from tests.hostile.constructors.mechanisms import MECHANISMS
from tests.hostile.constructors.noises import NOISES
from tests.hostile.constructors.records import RECORDS
from tests.hostile.constructors.row import Constructor
from tests.hostile.constructors.workloads import WORKLOADS

_TABLES = (RECORDS, NOISES, BODIES, WORKLOADS, MECHANISMS, BOUNDS)
#: All rows by name: the name of the class or function, in some rows with its package before it.
CONSTRUCTORS: dict[str, Constructor] = {
    name: row for table in _TABLES for name, row in table.items()
}
assert len(CONSTRUCTORS) == sum(map(len, _TABLES)), "two rows have one name"
