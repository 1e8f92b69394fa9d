"""Everything of torch without a promise that this room uses, and what happens without it.

`DataLoader._get_iterator` makes the iterator that `__iter__` of any subclass starts from, and
`_iterator` keeps it for persistent workers; `_shutdown_workers` ends the workers at once and not
when the iterator is collected. `_utils.worker._worker_info` tells a worker's code who it is, and
`_generate_state` is numpy's seed there. All are in torch since 1.9.
"""

import random
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch
from torch.utils.data import DataLoader
from torch.utils.data._utils import worker as _worker
from torch.utils.data._utils.pin_memory import pin_memory as _pin_memory


def pin_memory(batch: Any) -> Any:
    """What torch's own thread does with a batch."""
    return _pin_memory(batch)


def let_iterate(loader: DataLoader, make: Callable[[Any], Any]) -> None:
    """Let a loader of ours pass its iterator through `make`."""
    plain = loader._get_iterator
    vars(loader).update(_iterator=None, _get_iterator=lambda: make(plain()))


def end_workers(iterator: Any) -> None:
    """End the worker processes of an iterator; nothing where there are none."""
    end = getattr(iterator, "_shutdown_workers", None)
    if end is not None:
        end()


@contextmanager
def worker_info(dataset: Any, worker: int, workers: int, base_seed: int) -> Iterator[None]:
    """This process passes for a worker, with its seeds; the random states are the caller's."""
    before, seed = _worker._worker_info, base_seed + worker
    random.seed(seed)
    torch.manual_seed(seed)
    np.random.seed(_worker._generate_state(base_seed, worker))  # noqa: NPY002 - the one torch seeds
    _worker._worker_info = _worker.WorkerInfo(worker, workers, seed, dataset)
    try:
        yield
    finally:
        _worker._worker_info = before
