"""What a person should know of a run: found by an ordered list of small finders."""

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch.utils.data import DataLoader

from pytorch_lab import words
from pytorch_lab.dataloader.timeline import BatchTimes, Remark, WorkerMemory

LONG_START = 5  # batches that pass in the time that the first one takes to come
HELD_UP = 0.2  # of the batches


@dataclass(frozen=True, slots=True)
class Ran:
    """One run over some batches, as the stopwatch saw it."""

    loader: DataLoader  # the reader's
    workers: int
    has_step: bool
    batches: tuple[BatchTimes, ...]
    memory: tuple[WorkerMemory, ...]
    firsts: dict[int | None, tuple[str, ...]]  # of a stream: digests of its first items, by worker
    restarts: int  # iterators over the reader's loader that the step made
    ended: bool  # the epoch came to its end before the batches that were asked for


def remarks_on(ran: Ran, cores: int) -> tuple[Remark, ...]:
    """The remarks, mistakes first."""
    finders: list[Callable[[Ran, int], Remark | None]] = [
        _restarted, _repeated, _crowded, _pinned, _held_up, _collated, _start, _ended,
    ]  # fmt: skip
    found = [finder(ran, cores) for finder in finders]
    return tuple(remark for remark in found if remark is not None)


def _restarted(ran: Ran, _cores: int) -> Remark | None:
    if ran.restarts < 2 or 2 * ran.restarts < len(ran.batches):  # once in an epoch is right
        return None
    cost = (
        f"and starts {words.count(ran.loader.num_workers, 'new worker process', 'new workers')}"
        if ran.loader.num_workers and not ran.loader.persistent_workers
        else "and throws the rest of its order away"
    )
    return Remark(
        "restarted",
        "problem",
        f"The step made {ran.restarts} iterators over this loader in "
        f"{words.count(len(ran.batches), 'call')}: each begins with a first batch again {cost}. "
        "Make one before the loop, `for batch in loader:`, and not `next(iter(loader))` inside.",
    )


def _repeated(ran: Ran, _cores: int) -> Remark | None:
    return repeated_stream(ran.firsts)


def repeated_stream(firsts: dict[int | None, tuple[str, ...]]) -> Remark | None:
    """Whether the workers of a stream yield the same items.

    Example:
        >>> remark = repeated_stream({0: ("a", "b"), 1: ("a", "b")})
        >>> remark.text[:58]
        '2 workers each yield the whole stream: every item comes 2 '
        >>> repeated_stream({0: ("a", "b"), 1: ("c", "d")}) is None
        True
    """
    seen = list(firsts.values())
    if len(seen) < 2:
        return None
    length = min(map(len, seen))
    if length == 0 or len({one[:length] for one in seen}) > 1:
        return None
    if length > 1 and len(set(seen[0][:length])) == 1:  # a stream of equal items
        return None
    return Remark(
        "repeated",
        "problem",
        f"{len(seen)} workers each yield the whole stream: every item comes {len(seen)} times in "
        "an epoch. Let each worker yield its own part, in __iter__: "
        "`info = get_worker_info()`, then every `info.num_workers`-th item from `info.id` on.",
    )


def _crowded(ran: Ran, cores: int) -> Remark | None:
    if ran.workers <= cores:
        return None
    return Remark(
        "crowded",
        "note",
        f"{words.count(ran.workers, 'worker')} on {words.count(cores, 'core')}: more than can "
        "compute at once; that helps only where they wait for a disk or a network.",
    )


def _pinned(ran: Ran, _cores: int) -> Remark | None:
    if not ran.loader.pin_memory or torch.accelerator.is_available():
        return None
    return Remark(
        "pinned",
        "note",
        "pin_memory=True does nothing here: pinned memory is for copies to an accelerator, and "
        "there is none.",
    )


def _held_up(ran: Ran, _cores: int) -> Remark | None:
    """Batches that were ready while the model waited for one before them."""
    late = 0
    for one, following in zip(ran.batches, ran.batches[1:], strict=False):
        late += one.waited[0] <= following.ready < one.ready
    if ran.workers < 2 or not ran.loader.in_order or late < HELD_UP * len(ran.batches) or late < 2:
        return None
    return Remark(
        "held_up",
        "note",
        f"{late} times the model waited for a batch while the next one was ready: some samples "
        "take longer, and the order is kept. `in_order=False` hands out what is ready, in an "
        "order that differs from run to run.",
    )


def _collated(ran: Ran, _cores: int) -> Remark | None:
    fetching = sum(end - start for start, end in (one.fetched for one in ran.batches))
    collating = sum(end - start for start, end in (one.collated for one in ran.batches))
    if collating <= fetching:
        return None
    share = round(100 * collating / (fetching + collating))
    return Remark(
        "collated",
        "note",
        f"{share} % of the making of a batch is collate_fn, and only the rest the dataset.",
    )


def _start(ran: Ran, _cores: int) -> Remark | None:
    if not ran.workers or ran.loader.persistent_workers or len(ran.batches) < 2:
        return None
    first = ran.batches[0].waited[1]
    rest = (ran.batches[-1].end - first) / len(ran.batches)
    if first < LONG_START * rest:
        return None
    return Remark(
        "start",
        "note",
        f"Starting {words.count(ran.workers, 'worker')} takes as long as "
        f"{first / rest:.0f} batches, in every epoch; persistent_workers=True keeps them.",
    )


def _ended(ran: Ran, _cores: int) -> Remark | None:
    if not ran.ended:
        return None
    return Remark(
        "ended",
        "note",
        f"The epoch ended after {words.count(len(ran.batches), 'batch', 'batches')}, before as "
        "many were seen as were asked for.",
    )
