"""The same run on many machines: a few notebooks to a task of dask's, and records back.

A task carries the bytes of its notebooks and needs nothing of the grader's disk. A worker that dies
costs another try elsewhere; a task that ends more of them than dask allows is given up, and its
submissions have no verdict yet, so that the next run tries them again.

The workers need this very version of the package, and bubblewrap for the sandbox.
"""

from collections.abc import Callable, Sequence
from typing import Any

from pytorch_lab import __version__
from pytorch_lab.errors import LabError, UsageError
from pytorch_lab.grading.running.anywhere import How, run
from pytorch_lab.grading.running.nbval_run import Record
from pytorch_lab.grading.trouble import one_line

CONNECT_S = 20
ALONE_S = 60  # without any worker, before the rest is given up
FETCH_S = 60  # for the records of one task to come over the network
TASK = 4  # notebooks: pytest's own start is shared, and little is lost with a worker


def run_task(notebooks: Sequence[bytes], how: How) -> list[Record]:
    """On a worker: the records of some notebooks; `submission` is the place among them.

    Raises:
        LabError: they could not all be run here.
    """
    records, ended = run(notebooks, how)
    if ended:
        raise LabError(f"expected pytest to run the notebooks, but {ended}.")
    return records


def run_on_farm(
    address: str,
    tasks: Sequence[Sequence[bytes]],
    how: How,
    done: Callable[[int, list[Record]], None],
) -> str:
    """Run all tasks on the workers of a scheduler, and say why some were given up, or "".

    Args:
        address: the scheduler's, such as `tcp://10.0.0.5:8786`.
        tasks: the notebooks of each, as `judging.prepared` gives them.
        how: the limits.
        done: is called with a task's number and its records, as they come.

    Raises:
        UsageError: dask is not installed here.
        LabError: no scheduler answers, it has no workers, or theirs is another version.
    """
    try:
        from distributed import Client
    except ImportError:
        raise UsageError(
            "expected the package distributed for --dask, found none; "
            "install it: pip install 'pytorch-lab[scale]'."
        ) from None
    given_up: list[str] = []
    try:
        client = Client(address, timeout=CONNECT_S, set_as_default=False)
    except (OSError, ValueError) as error:
        raise LabError(
            f"expected a dask scheduler at {address}, but got {one_line(str(error))}; "
            "start one with 'dask scheduler', and give --dask the address that it prints."
        ) from None
    with client, client.as_current():
        _require_workers(client, address)
        futures = {
            client.submit(run_task, notebooks, how, pure=False, retries=1): number
            for number, notebooks in enumerate(tasks)
        }
        given_up += _gather(client, futures, done)
    return "; ".join(dict.fromkeys(given_up))


def _gather(
    client: Any, futures: dict[Any, int], done: Callable[[int, list[Record]], None]
) -> list[str]:
    """Hand on the records as they come, and tell what does not come any more."""
    from distributed import wait

    given_up: list[str] = []
    waiting = set(futures)
    while waiting:
        try:
            found: Any = wait(waiting, timeout=ALONE_S, return_when="FIRST_COMPLETED")
        except TimeoutError:
            if client.scheduler_info()["workers"]:
                continue
            return [*given_up, f"no dask worker was left for {ALONE_S} s"]
        for future in found.done:
            if future.status in ("error", "cancelled"):
                given_up.append(one_line(str(future.exception())))
            elif (records := _records(future)) is not None:
                done(futures[future], records)
            else:
                continue
            waiting.remove(future)
            future.release()  # its notebooks need not stay in the scheduler's memory
    return given_up


def _records(future: Any) -> list[Record] | None:
    """What a task gave, or None while it runs once more: its worker has died with the result."""
    try:
        return future.result(timeout=FETCH_S) if future.status == "finished" else None
    except TimeoutError:
        return None
    except Exception:
        if future.status == "finished":
            raise
        return None  # the second run came to an error, which is seen when it is waited for


def _require_workers(client: Any, address: str) -> None:
    """Refuse workers that would judge by other rules than ours."""
    versions = client.run(_version)
    if not versions:
        raise LabError(
            f"expected dask workers at the scheduler {address}, found none; start some with "
            f"'dask worker {address} --nthreads 1'."
        )
    for worker, version in versions.items():
        if version != __version__:
            raise LabError(
                f"expected PyTorch Lab {__version__} on every worker, got {version} on {worker}; "
                "install the same version everywhere."
            )


def _version() -> str:
    return __version__
