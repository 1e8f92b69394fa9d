"""`as_worker`: what a worker of a DataLoader would do, in this process.

A worker process knows which one it is, has a copy of the dataset, and begins with seeded
generators. That is all its code can tell, so a dataset, an `__iter__` and a `worker_init_fn` can be
tried here: with a debugger, without processes, and the same on every system.
"""

import copy
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from pytorch_lab import surroundings, words
from pytorch_lab.dataloader import torch_private
from pytorch_lab.errors import UsageError


@contextmanager
def as_worker(
    dataset: Any,
    worker: int,
    workers: int,
    *,
    seed: int = 0,
    worker_init_fn: Callable[[int], Any] | None = None,
) -> Iterator[Any]:
    """Inside, `get_worker_info()` answers as in this worker; yields its copy of the dataset.

    Afterwards the random states are as before, and the dataset was not touched.

    Example:
        >>> from torch.utils.data import get_worker_info
        >>> with as_worker([10, 11, 12], worker=1, workers=2) as mine:
        ...     get_worker_info().id, mine[2]
        (1, 12)
        >>> get_worker_info() is None
        True

    Args:
        dataset: any, map-style or iterable.
        worker: which one, from 0.
        workers: how many there are.
        seed: the base seed of the epoch; a loader draws it from torch's generator. The generators
            of Python, numpy and torch begin as in a true worker.
        worker_init_fn: called with `worker` first, as a loader does.

    Raises:
        UsageError: there is no such worker, or the dataset cannot be copied.
    """
    if type(workers) is not int or type(worker) is not int or not 0 <= worker < workers:
        raise UsageError(
            "as_worker(dataset, worker, workers) expected whole numbers with "
            f"0 <= worker < workers, got {worker!r:.40} and {workers!r:.40}."
        )
    try:
        own = copy.deepcopy(dataset)
    except Exception as error:
        raise UsageError(
            f"expected a dataset that can be copied, as each worker has its own; copying a "
            f"{type(dataset).__name__} raised {type(error).__name__}: "
            f"{words.shortened(words.message_of(error))}."
        ) from error
    with surroundings.kept(), torch_private.worker_info(own, worker, workers, seed):
        if worker_init_fn is not None:
            worker_init_fn(worker)
        yield own
