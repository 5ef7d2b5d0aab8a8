"""An executor on a Dask cluster, which may lose workers and even its scheduler during a sweep."""

from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import CancelledError
from typing import Any

from distributed import Client, Future, as_completed
from distributed.comm.core import CommClosedError
from distributed.scheduler import KilledWorker

from experiments.engine.cells import Cell, Outcome
from experiments.engine.processes import died
from experiments.engine.run import EachWork, ExecutorError, Task, Work

#: Seconds to wait for a scheduler, which may be restarting, and then for its first worker.
PATIENCE = 60.0
#: The sweep fails when this many connections in a row are lost before a cell completes.
LOSSES = 3


class DaskCluster:
    """Runs cells on the workers of a Dask scheduler; an `Executor`.

    If a worker dies, its cells run again on other workers. A cell counts as failed if more workers
    die with it than the scheduler's setting ``allowed-failures`` permits. If the scheduler is lost,
    the cells without an outcome are submitted again as soon as a scheduler answers at the same
    address. Workers need this code and its packages (``pip install -e '.[cluster]'``). A worker
    with other code refuses the sweep.
    """

    def __init__(self, address: str, patience: float = PATIENCE) -> None:
        self.address = address
        self.patience = patience

    def __call__(
        self, work: Work | EachWork, cells: Iterable[Cell[Any]] | Iterable[Task]
    ) -> Iterator[Outcome[Any]]:
        """Outcomes of all `cells`, as they complete."""
        waiting, losses = {cell.key: cell for cell in cells}, 0
        while waiting:
            losses += 1
            with self._connected() as client:
                for outcome in _outcomes(client, work, list(waiting.values())):
                    del waiting[outcome.cell.key]
                    losses = 0
                    yield outcome
            if waiting and losses == LOSSES:
                raise ExecutorError(
                    f"the scheduler at {self.address} was lost {LOSSES} times without completing "
                    "a cell"
                )

    def _connected(self) -> Client:
        try:
            client = Client(self.address, timeout=self.patience, set_as_default=False)
        except (OSError, ValueError) as error:
            raise ExecutorError(f"no Dask scheduler at {self.address}: {error}") from error
        try:
            client.wait_for_workers(1, timeout=self.patience)
        except (TimeoutError, CommClosedError) as error:
            client.close()
            raise ExecutorError(
                f"the scheduler at {self.address} has no workers; start some with "
                f"`dask worker {self.address}`"
            ) from error
        return client


def _outcomes(client: Client, work: Work, cells: Sequence[Cell[Any]]) -> Iterator[Outcome[Any]]:
    """Outcomes of the cells, until every cell has an outcome or the scheduler is lost."""
    try:
        # Not pure: Dask must not reuse an outcome that it computed for an earlier request.
        futures = client.map(work.checked, cells, pure=False)
        by_future = dict(zip(futures, cells, strict=True))
        del futures
        for future in as_completed(list(by_future), loop=client.loop):
            yield _outcome(future, by_future.pop(future))
            del future  # the scheduler drops a result once no future refers to it
    except (CancelledError, CommClosedError):
        return


def _outcome(future: Future, cell: Cell[Any]) -> Outcome[Any]:
    try:
        return future.result()  # type: ignore[no-any-return]
    except (CancelledError, CommClosedError):
        raise
    except KilledWorker as error:
        # The scheduler gives up at the first death that its setting does not allow.
        return died(cell, 0.0, "the worker", error.allowed_failures + 1)
    except ExecutorError as error:
        raise ExecutorError(f"on a worker: {error}") from error
    except Exception as error:
        raise ExecutorError(f"a worker cannot load the script: {error}") from error
