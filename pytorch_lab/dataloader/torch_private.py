"""Everything of torch without a promise that this room uses, and what happens without it.

`DataLoader._get_iterator` makes the iterator that `__iter__` of any subclass starts from, and
`_iterator` keeps it for persistent workers; `_shutdown_workers` ends the workers at once and not
when the iterator is collected. All three are in torch since 1.7.
"""

from collections.abc import Callable
from typing import Any

from torch.utils.data import DataLoader
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
