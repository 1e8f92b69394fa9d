"""What runs where the samples are made: in the workers, or in the main process without workers.

The copy of a loader gets its dataset, `collate_fn` and `worker_init_fn` wrapped in these classes.
They can be pickled if what they wrap can, note the time of what passes through, and send it along
with the batch: `Parcel`. `time.monotonic_ns` is one clock for all processes of a machine.

In a worker `get_worker_info().dataset` is the reader's own dataset, as it would be without us: a
`worker_init_fn` may shard or seed it.
"""

import hashlib
import os
import pickle
import time
import traceback
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import torch
from torch.utils.data import IterableDataset, get_worker_info

from pytorch_lab.dataloader import torch_private

Clock = Callable[[], int]

FIRSTS = 8  # items of a stream whose contents are compared between workers
DIGESTED = 65_536  # bytes of an item that are looked at


@dataclass(slots=True)
class Failure:
    """An error of the reader's dataset or collate function, where it was raised."""

    where: str  # "dataset[5]", "collate_fn"
    type: str
    message: str
    place: str  # file and line of the innermost frame
    worker: int | None = None
    error: BaseException | None = None  # in the main process only

    @classmethod
    def of(cls, where: str, error: Exception) -> "Failure":
        """What is worth keeping of an error."""
        frames = traceback.extract_tb(error.__traceback__)
        own = [frame for frame in frames if frame.filename != __file__] or frames
        place = f"{os.path.basename(own[-1].filename)}, line {own[-1].lineno}"
        return cls(where, type(error).__name__, str(error), place, error=error)


@dataclass(slots=True)
class Parcel:
    """A batch and when it was made, in nanoseconds of the clock."""

    batch: Any
    worker: int | None = None
    process: int = 0
    fetched: tuple[int, int] = (0, 0)
    collated: tuple[int, int] = (0, 0)
    pinned: tuple[int, int] | None = None
    firsts: tuple[str, ...] = ()  # of a stream: what its first items hold
    seen: Any = None  # what a subclass of the wrappers sends along
    failure: Failure | None = None

    def pin_memory(self) -> "Parcel":
        """Called by torch's pinning thread; a failed parcel has nothing to pin."""
        start = time.monotonic_ns()
        if self.failure is None:
            self.batch = torch_private.pin_memory(self.batch)
        self.pinned = (start, time.monotonic_ns())
        return self


@dataclass(slots=True)
class Notes:
    """What the wrappers of one process tell each other between two batches."""

    clock: Clock
    digest: bool = False  # whether to look at the first items of a stream
    start: int | None = None
    end: int = 0
    firsts: list[str] = field(default_factory=list)
    seen: Any = None  # what a subclass of the wrappers gathers for its parcel


class MapInside:
    """A map-style dataset that notes when a batch was fetched."""

    def __init__(self, inner: Any, notes: Notes) -> None:
        self.inner, self.notes = inner, notes

    def __len__(self) -> int:
        return len(self.inner)

    def __getitem__(self, index: Any) -> Any:
        self.notes.start = self.notes.clock()
        try:
            return self.one(index)
        except Exception as error:  # noqa: BLE001 - the reader's own, carried to the main process
            return Failure.of(f"dataset[{index!r:.60}]", error)
        finally:
            self.notes.end = self.notes.clock()

    def __getitems__(self, indices: list[Any]) -> Any:
        self.notes.start = self.notes.clock()
        data: list[Any] = []
        fetch_all = getattr(self.inner, "__getitems__", None)
        try:
            if fetch_all:
                return self.all(fetch_all, indices)
            self.each(indices, data)
            return data
        except Exception as error:  # noqa: BLE001 - likewise
            if fetch_all:
                return Failure.of(f"dataset.__getitems__({indices!r:.60})", error)
            return Failure.of(f"dataset[{list(indices)[len(data)]!r:.60}]", error)
        finally:
            self.notes.end = self.notes.clock()

    def one(self, index: Any) -> Any:
        """One sample."""
        return self.inner[index]

    def each(self, indices: list[Any], data: list[Any]) -> None:
        """The samples of a batch, one after the other, into `data`."""
        inner = self.inner
        for index in indices:
            data.append(inner[index])  # what came before an error is counted

    def all(self, fetch_all: Callable[[list[Any]], Any], indices: list[Any]) -> Any:
        """A batch of samples at once, of a dataset that can do so."""
        return fetch_all(indices)


class StreamInside(IterableDataset):
    """An iterable dataset that does the same."""

    def __init__(self, inner: Any, notes: Notes) -> None:
        self.inner, self.notes = inner, notes

    def __len__(self) -> int:
        return len(self.inner)

    def __iter__(self) -> Iterator[Any]:
        notes, place = self.notes, 0
        notes.start, notes.firsts = notes.clock(), []
        try:
            for item in self.items():
                if notes.digest and len(notes.firsts) < FIRSTS:
                    notes.firsts.append(digest(item))
                notes.end = notes.clock()
                yield item
                place += 1
                if notes.start is None:
                    notes.start = notes.clock()
        except Exception as error:  # noqa: BLE001 - likewise
            yield Failure.of(f"item {place} of iter(dataset)", error)

    def items(self) -> Iterator[Any]:
        """The samples of the reader's dataset."""
        return iter(self.inner)


class CollateInside:
    """A collate function that makes a parcel."""

    def __init__(self, inner: Callable[[Any], Any], notes: Notes) -> None:
        self.inner, self.notes = inner, notes

    def __call__(self, data: Any) -> Parcel:
        """The parcel of a batch."""
        notes, info = self.notes, get_worker_info()
        start = notes.clock()
        parcel = Parcel(None, info.id if info else None, os.getpid())
        failure = _failure_in(data)
        if failure is None:
            try:
                parcel.batch = self.collate(data, parcel)
            except Exception as error:  # noqa: BLE001 - likewise
                failure = Failure.of("collate_fn", error)
        if failure is not None:
            failure.worker = parcel.worker
            failure.error = failure.error if info is None else None
            parcel.failure = failure
        parcel.fetched = (start if notes.start is None else notes.start, notes.end or start)
        parcel.collated = (start, notes.clock())
        parcel.firsts = tuple(notes.firsts)
        notes.start = None
        return parcel

    def collate(self, data: Any, parcel: Parcel) -> Any:
        """The batch."""
        return self.inner(data)


def _failure_in(data: Any) -> Failure | None:
    if isinstance(data, Failure):
        return data
    last = data[-1] if type(data) is list and data else None
    return last if isinstance(last, Failure) else None


class InitInside:
    """A `worker_init_fn` that lets the worker see the reader's dataset in place of ours."""

    def __init__(self, inner: Callable[[int], None] | None) -> None:
        self.inner = inner

    def __call__(self, worker: int) -> None:
        """Show the reader's dataset, then do what the reader wants."""
        info: Any = get_worker_info()
        # The class is frozen to protect readers from themselves; the worker is ours alone.
        object.__setattr__(info, "dataset", info.dataset.inner)
        if self.inner is not None:
            self.inner(worker)


def digest(item: Any) -> str:
    """A short text that is the same for equal samples.

    Example:
        >>> digest(torch.arange(3)) == digest(torch.arange(3)) != digest(torch.arange(4))
        True
    """
    hashed = hashlib.blake2b(digest_size=8)
    _feed(hashed, item)
    return hashed.hexdigest()


def _feed(hashed: Any, item: Any) -> None:
    if isinstance(item, torch.Tensor):
        flat = item.detach().reshape(-1)[:DIGESTED].cpu().contiguous()
        hashed.update(f"{item.dtype}{tuple(item.shape)}".encode())
        hashed.update(flat.view(torch.uint8).numpy().tobytes() if flat.numel() else b"")
    elif isinstance(item, dict):
        for key, value in item.items():
            hashed.update(repr(key).encode())
            _feed(hashed, value)
    elif isinstance(item, list | tuple):
        hashed.update(f"{len(item)}".encode())
        for value in item:
            _feed(hashed, value)
    else:
        try:
            hashed.update(pickle.dumps(item)[:DIGESTED])
        except Exception:  # noqa: BLE001 - what cannot be pickled is never equal to another
            hashed.update(os.urandom(8))
