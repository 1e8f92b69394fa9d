"""A second loader that loads as the reader's would, and leaves the reader's alone.

It is a copy of the object, so that subclasses stay what they are. Samplers and generators are
copied with their state: the copy draws the shuffle that the reader's next epoch will draw, without
drawing it for them. The dataset itself is not copied; without workers it is used in this process,
so its generators and its own attributes are put back afterwards.
"""

import contextlib
import copy
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch.utils.data import DataLoader, IterableDataset

from pytorch_lab import surroundings, words
from pytorch_lab.dataloader import torch_private
from pytorch_lab.dataloader.generators import generators_of, is_generator, state_of
from pytorch_lab.dataloader.inside import CollateInside, InitInside, MapInside, Notes, StreamInside
from pytorch_lab.errors import UsageError

DEPTH = 4  # how far into datasets of datasets


def copied(
    loader: DataLoader,
    notes: Notes,
    *,
    workers: int | None = None,
    wrappers: tuple[type, type, type] = (MapInside, StreamInside, CollateInside),
    opened: Callable[[Any], Any] = lambda iterator: iterator,
) -> DataLoader:
    """The copy, which yields parcels unless `opened` opens them.

    Args:
        loader: the reader's.
        notes: what the wrappers share.
        workers: another number of worker processes.
        wrappers: the classes for a map-style dataset, an iterable one, and `collate_fn`.
        opened: what to make of the iterator.

    Raises:
        UsageError: a sampler cannot be copied.
    """
    of_map, of_stream, of_collate = wrappers
    wrap = of_stream if isinstance(loader.dataset, IterableDataset) else of_map
    twin = copy.copy(loader)
    vars(twin).update(
        _samplers(loader),
        dataset=wrap(loader.dataset, notes),
        collate_fn=of_collate(loader.collate_fn, notes),
        worker_init_fn=InitInside(loader.worker_init_fn),
    )
    if workers is not None and workers != loader.num_workers:
        _set_workers(twin, workers)
    torch_private.let_iterate(twin, opened)
    return twin


def _set_workers(twin: DataLoader, workers: int) -> None:
    """Another number, with what torch allows only together with some workers, or with none."""
    vars(twin)["num_workers"] = workers
    if workers == 0:
        vars(twin).update(prefetch_factor=None, persistent_workers=False, timeout=0)
        twin.multiprocessing_context = None
    elif twin.prefetch_factor is None:
        twin.prefetch_factor = 2


def _samplers(loader: DataLoader) -> dict[str, Any]:
    """Copies of what decides on the order; what it holds of the dataset is shared."""
    memo = {id(thing): thing for thing in _parts_of(loader.dataset)}
    try:
        return {
            name: copy.deepcopy(getattr(loader, name), memo)
            for name in ("generator", "sampler", "batch_sampler")
        }
    except Exception as error:
        kind = type(loader.batch_sampler if loader.batch_size is None else loader.sampler).__name__
        raise UsageError(
            f"expected a sampler that can be copied, so that yours stays where it is; copying a "
            f"{kind} raised {type(error).__name__}: {words.shortened(words.message_of(error))}. "
            "A sampler that is an iterator of its own is used up after one epoch: "
            "make it a class whose __iter__ starts anew."
        ) from error


def _parts_of(dataset: Any, depth: int = DEPTH) -> list[Any]:
    """The dataset, the datasets that it wraps, and what they hold; not their generators."""
    parts = [dataset]
    if depth == 0:
        return parts
    for value in getattr(dataset, "__dict__", {}).values():
        if is_generator(value):
            continue
        parts.append(value)
        if _has_state(value):
            parts.extend(_parts_of(value, depth - 1))
    return parts


@contextlib.contextmanager
def untouched(loader: DataLoader) -> Iterator[None]:
    """Afterwards the random states and what the dataset holds are as before.

    What torch would warn of a second time, or a remark says in its own words, is not heard inside.

    Example:
        >>> import torch
        >>> before = torch.get_rng_state()
        >>> with untouched(DataLoader([1, 2, 3])):
        ...     noise = torch.rand(3)
        >>> torch.equal(torch.get_rng_state(), before)
        True
    """
    found = [one for _, one in generators_of(loader)]
    states = [state_of(one) for one in found]
    own = [(part, dict(vars(part))) for part in _parts_of(loader.dataset) if _has_state(part)]
    with surroundings.kept(), warnings.catch_warnings():
        for start in ("'pin_memory' argument is set", "This DataLoader will create"):
            warnings.filterwarnings("ignore", message=start)
        try:
            yield
        finally:
            for part, attributes in own:
                _put_back(part, attributes)
            for one, state in zip(found, states, strict=True):
                state.put_back(one)


def _has_state(part: Any) -> bool:
    """Whether it is one of the datasets, and not any object that they hold."""
    is_dataset = hasattr(part, "__getitem__") or isinstance(part, IterableDataset)
    return is_dataset and hasattr(part, "__dict__") and not isinstance(part, torch.Tensor)


def _put_back(part: Any, attributes: dict[str, Any]) -> None:
    now = vars(part)
    for name in now.keys() - attributes.keys():
        del now[name]
    now.update(attributes)
