"""`worker_randomness`: which random numbers each worker draws, and which are drawn twice.

Nothing is drawn by us: before and after each sample the state of every generator is read where the
sample is made. Two draws from equal states are the same numbers. The global generators of Python,
numpy and torch are seeded anew in each worker and epoch; a generator that is stored somewhere is
copied into each worker as it is.
"""

import contextlib
import hashlib
import random
import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import torch
from torch.utils.data import DataLoader

from pytorch_lab.dataloader import torch_private
from pytorch_lab.dataloader.copying import copied, untouched
from pytorch_lab.dataloader.described import headline
from pytorch_lab.dataloader.drawn import Draw, WorkerRandomness
from pytorch_lab.dataloader.drawn_remarks import Kept, remarks_on
from pytorch_lab.dataloader.generators import GLOBAL, generators_in, global_ones, peek, state_of
from pytorch_lab.dataloader.inside import CollateInside, MapInside, Notes, Parcel, StreamInside
from pytorch_lab.dataloader.troubles import check_sendable, told, wrapped
from pytorch_lab.errors import UsageError

SAMPLES = 8
EPOCHS = 2
MOST_BATCHES = 64  # of an epoch


def worker_randomness(
    loader: DataLoader, *, samples: int = SAMPLES, epochs: int = EPOCHS
) -> WorkerRandomness:
    """What each worker draws for its first samples, over some epochs, and what is drawn twice.

    Example:
        >>> import numpy as np
        >>> class Noisy:
        ...     rng = np.random.default_rng(0)
        ...     def __len__(self):
        ...         return 4
        ...     def __getitem__(self, index):
        ...         return self.rng.normal()
        >>> seen = worker_randomness(DataLoader(Noisy(), num_workers=2), samples=2)
        >>> seen.streams, len(seen.draws), len(seen.duplicates)
        (('dataset.rng',), 8, 8)

    Args:
        loader: any DataLoader; it is left as it is, and so are all random states.
        samples: how many of each worker and epoch.
        epochs: how many.

    Raises:
        UsageError: `loader` is no DataLoader, a number is none, or a sampler cannot be copied.
        LoaderError: the dataset or a function of the loader raised, or a worker ended; in words.
    """
    if not isinstance(loader, DataLoader):
        raise UsageError(
            f"worker_randomness(loader) expected a DataLoader, got {type(loader).__name__!r}; "
            "give the loader itself and not its iterator."
        )
    for name, number in (("samples", samples), ("epochs", epochs)):
        if type(number) is not int or number < 1:
            raise UsageError(
                f"worker_randomness(...) expected `{name}` to be a whole number from 1, "
                f"got {number!r:.60}."
            )
    seen = list(_watched(loader, samples, epochs))
    return _record(loader, seen, epochs)


def _watched(loader: DataLoader, samples: int, epochs: int) -> Iterator[Kept]:
    """All readings, epoch by epoch."""
    notes = Notes(time.monotonic_ns, digest=loader.num_workers > 1)
    iterators: list[Any] = []

    def keep(iterator: Any) -> Any:
        iterators.append(iterator)
        return iterator

    def end() -> None:
        for one in iterators:
            torch_private.end_workers(one)

    with untouched(loader), contextlib.ExitStack() as at_end:
        watched = (_MapDrawn, _StreamDrawn, _CollateDrawn)
        twin = copied(loader, notes, wrappers=watched, opened=keep)
        check_sendable(twin, loader)
        at_end.callback(end)
        for epoch in range(epochs):
            yield from wrapped(loader, lambda: _epoch(twin, epoch, samples))  # noqa: B023


def _epoch(twin: DataLoader, epoch: int, samples: int) -> list[Kept]:
    """One epoch, until every worker has made its samples."""
    found: list[Kept] = []
    counts: dict[int | None, int] = dict.fromkeys(range(twin.num_workers) or [None], 0)
    # The parcel itself is wanted, and not what a subclass's own __iter__ would make of it.
    iterator = DataLoader.__iter__(twin)
    for _ in range(MOST_BATCHES):
        parcel = next(iterator, None)
        if not isinstance(parcel, Parcel):
            break
        if parcel.failure is not None:
            raise told(parcel.failure)
        for reading in parcel.seen:
            place = counts[parcel.worker] - (reading.part == "collate")
            counts[parcel.worker] += reading.part == "fetch"
            if place < samples:
                found.append(Kept(epoch, parcel.worker, max(place, 0), reading, parcel.firsts))
        if min(counts.values()) >= samples:
            break
    return found


class Reading:
    """The generators around one sample: before it, and which of them it drew from."""

    __slots__ = ("after", "before", "part", "values")

    def __init__(self, part: str) -> None:
        self.part = part
        self.before: dict[str, bytes] = {}
        self.values: dict[str, float] = {}
        self.after: dict[str, bytes] = {}

    def begins(self, name: str, generator: Any) -> None:
        """What is drawn from now on starts from this state."""
        state = state_of(generator)
        self.before[name] = _short(state.key())
        self.values[name] = peek(generator, state)


# Where a sample seeds a global generator itself, its numbers start from there.
SEEDERS = [
    ("random", random, "seed"),
    ("numpy", np.random, "seed"),
    ("torch", torch, "manual_seed"),
    ("torch", torch.random, "manual_seed"),
]


@contextlib.contextmanager
def _seeding_noted(reading: Reading) -> Iterator[None]:
    generators = dict(global_ones())

    def noting(name: str, seed: Callable[..., Any]) -> Callable[..., Any]:
        def seeded(*args: Any, **kwargs: Any) -> Any:
            given = seed(*args, **kwargs)
            reading.begins(name, generators[name])
            return given

        return seeded

    plain = [(module, verb, getattr(module, verb)) for _, module, verb in SEEDERS]
    for (name, module, verb), (_, _, seed) in zip(SEEDERS, plain, strict=True):
        setattr(module, verb, noting(name, seed))
    try:
        yield
    finally:
        for module, verb, seed in plain:
            setattr(module, verb, seed)


def _generators(*things: tuple[str, Any]) -> list[tuple[str, Any]]:
    return global_ones() + generators_in(*things)


@contextlib.contextmanager
def _read(into: list[Reading], part: str, *things: tuple[str, Any]) -> Iterator[None]:
    reading = Reading(part)
    for name, generator in _generators(*things):
        reading.begins(name, generator)
    with _seeding_noted(reading):
        yield
    for name, generator in _generators(*things):
        reading.after[name] = _short(state_of(generator).key())
    into.append(reading)


def _short(key: bytes) -> bytes:
    return hashlib.blake2b(key, digest_size=12).digest()


def _readings(notes: Notes) -> list[Reading]:
    """The readings of this process since the last batch."""
    if notes.seen is None:
        notes.seen = []
    return notes.seen


class _MapDrawn(MapInside):
    """Reads the generators around each sample."""

    def one(self, index: Any) -> Any:
        with _read(_readings(self.notes), "fetch", ("dataset", self.inner)):
            return super().one(index)

    def each(self, indices: list[Any], data: list[Any]) -> None:
        for index in indices:
            data.append(self.one(index))

    def all(self, fetch_all: Callable[[list[Any]], Any], indices: list[Any]) -> Any:
        with _read(_readings(self.notes), "fetch", ("dataset", self.inner)):
            return super().all(fetch_all, indices)


class _StreamDrawn(StreamInside):
    """The same for a stream."""

    def items(self) -> Iterator[Any]:
        iterator, nothing = iter(self.inner), object()
        while True:
            readings = _readings(self.notes)
            with _read(readings, "fetch", ("dataset", self.inner)):
                item = next(iterator, nothing)
            if item is nothing:
                readings.pop()
                return
            yield item


class _CollateDrawn(CollateInside):
    """Reads the generators around `collate_fn`, and sends all readings along."""

    def collate(self, data: Any, parcel: Parcel) -> Any:
        readings = _readings(self.notes)
        with _read(readings, "collate", ("collate_fn", self.inner)):
            super().collate(data, parcel)  # it may draw; the batch itself is not wanted
        parcel.seen, self.notes.seen = readings, None
        return None


def _record(loader: DataLoader, seen: list[Kept], epochs: int) -> WorkerRandomness:
    """Draws from equal states get the same number."""
    draws: list[Draw] = []
    keys: list[tuple[str, bytes]] = []
    names: dict[str, bool] = {}  # of every generator: whether anything was drawn from it
    for kept in seen:
        reading = kept.reading
        for name, before in reading.before.items():
            drew = reading.after.get(name) != before
            names[name] = names.get(name, False) or drew
            draws.append(
                Draw(
                    name, kept.epoch, kept.worker, kept.sample, reading.part,
                    reading.values[name], drew,
                )
            )  # fmt: skip
            keys.append((name, before))
    streams = tuple(sorted((name for name in names if names[name]), key=_by_kind))
    marked = tuple(_marked(draws, keys))
    used = tuple(one for one in marked if one.stream in streams and _tells(one))
    return WorkerRandomness(
        loader=headline(loader),
        workers=loader.num_workers,
        epochs=epochs,
        streams=streams,
        unused=tuple(n for n in names if not names[n] and n not in GLOBAL),
        draws=used,
        remarks=remarks_on(loader, used, seen),
    )


def _tells(draw: Draw) -> bool:
    return draw.part == "fetch" or draw.drew


def _by_kind(name: str) -> tuple[bool, str]:
    return name in GLOBAL, name


def _marked(draws: list[Draw], keys: list[tuple[str, bytes]]) -> Iterator[Draw]:
    """Each draw with the number of its group, if it is not alone."""
    from dataclasses import replace

    places: dict[tuple[str, bytes], list[int]] = {}
    for place, (draw, key) in enumerate(zip(draws, keys, strict=True)):
        if draw.drew:
            places.setdefault(key, []).append(place)
    groups = [group for group in places.values() if len(group) > 1]
    number = {place: k for k, group in enumerate(groups) for place in group}
    for place, draw in enumerate(draws):
        yield replace(draw, same=number.get(place))
