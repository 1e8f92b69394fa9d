"""`time_loader`: run a loader as the training loop would, and note who works when.

Nothing of the reader's is wrapped or changed: a copy of the loader runs, in it the dataset and the
functions are wrapped so that each batch brings its times along. Then the same batches are loaded
with other numbers of workers: what helps is tried, since no formula knows the disk, the cores and
what else runs on them.
"""

import contextlib
import math
import os
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch.utils._pytree import tree_map
from torch.utils.data import DataLoader

from pytorch_lab import words
from pytorch_lab.dataloader import keeping, memory, torch_private
from pytorch_lab.dataloader.copying import copied, untouched
from pytorch_lab.dataloader.described import headline
from pytorch_lab.dataloader.inside import Clock, Notes, Parcel
from pytorch_lab.dataloader.remarks import Ran, remarks_on
from pytorch_lab.dataloader.timeline import BatchTimes, LoaderTimeline, Span, Trial, WorkerMemory
from pytorch_lab.dataloader.troubles import check_sendable, told, wrapped
from pytorch_lab.dataloader.verdict import FASTER, is_fed
from pytorch_lab.errors import LoaderError, ModelError, UsageError

BATCHES = 32
MOST_WORKERS = 16  # that are tried without being asked for
BATCHES_EACH = 4  # of each worker: fewer are fetched ahead at the start, and say little

Step = Callable[[Any], Any]


def time_loader(
    loader: DataLoader,
    step: Step | None = None,
    *,
    batches: int = BATCHES,
    workers: Sequence[int] | None = None,
    device: "torch.device | str | None" = None,
    clock: Clock = time.monotonic_ns,
) -> LoaderTimeline:
    """When each batch was fetched, collated, waited for and used, and how many workers would do.

    Example:
        >>> from torch.utils.data import TensorDataset
        >>> data = TensorDataset(torch.arange(12.0).view(6, 2))
        >>> seen = time_loader(DataLoader(data, batch_size=2), sum, batches=3, workers=())
        >>> [one.number for one in seen.batches], seen.batches[0].worker
        ([0, 1, 2], None)

    Args:
        loader: any DataLoader; it is left as it is, and so are the random states.
        step: what is done with a batch, such as a training step. It is really run, `batches` times
            for each number of workers; the models and optimizers that it uses are put back.
        batches: how many; fewer if the epoch ends before.
        workers: the numbers of workers to try beside the loader's own; by default 0, 1, 2, 4, ...
            until more do not help or each would have less than four batches; `()` for none.
        device: where to move each batch before the step; by default the step does it itself.
        clock: gives nanoseconds, the same in all processes.

    Raises:
        UsageError: `loader` is no DataLoader, a number is none, or a sampler cannot be copied.
        LoaderError: the dataset or a function of the loader raised, or a worker ended; in words.
    """
    bench = Bench(loader, step, batches, device, clock)
    first = bench.seen(loader.num_workers)
    own = as_trial(first)
    most = min(MOST_WORKERS, len(first.batches) // BATCHES_EACH)
    trials = [own] if workers == () else _tried(bench, own, workers, most)
    return replace(first, trials=tuple(sorted(trials, key=lambda one: one.workers)))


def _check(loader: Any, step: Step | None, batches: int) -> None:
    if not isinstance(loader, DataLoader):
        raise UsageError(
            f"time_loader(loader) expected a DataLoader, got {type(loader).__name__!r}; "
            "give the loader itself and not its iterator."
        )
    if step is not None and not callable(step):
        raise UsageError(f"time_loader(loader, step) expected a function, got {step!r:.60}.")
    _check_number("batches", batches, 1)


def _check_number(name: str, number: int, least: int) -> None:
    if type(number) is not int or number < least:
        raise UsageError(
            f"time_loader(...) expected `{name}` to be whole numbers from {least}, "
            f"got {number!r:.60}."
        )


def _device(device: Any) -> torch.device:
    try:
        return torch.device(device)
    except (RuntimeError, TypeError) as error:
        raise UsageError(
            f'time_loader(...) expected `device` as one of torch, such as "cuda", got '
            f"{device!r:.60}."
        ) from error


def _record(ran: Ran) -> LoaderTimeline:
    """The run without its trials."""
    return LoaderTimeline(
        loader=headline(ran.loader, ran.workers),
        workers=ran.workers,
        cores=cores(),
        has_step=ran.has_step,
        batches=ran.batches,
        steady_from=min(max(1, ran.workers), len(ran.batches) // 2),
        memory=ran.memory,
        remarks=remarks_on(ran, cores()),
    )


class Bench:
    """Runs the same batches with any number of workers.

    Example:
        >>> bench = Bench(DataLoader(range(4)), None, 2)
        >>> [one.number for one in bench.seen(0).batches]
        [0, 1]
    """

    def __init__(
        self,
        loader: DataLoader,
        step: Step | None,
        batches: int,
        device: "torch.device | str | None" = None,
        clock: Clock = time.monotonic_ns,
    ) -> None:
        _check(loader, step, batches)
        self.loader, self.step, self.batches = loader, step, batches
        self.device = None if device is None else _device(device)
        self.clock = clock
        self.origin = 0

    def seen(self, workers: int) -> LoaderTimeline:
        """One run as a record, with itself as its only trial."""
        with keeping.kept(self.step):
            record = _record(self._run(workers))
        return replace(record, trials=(as_trial(record),))

    def _run(self, workers: int) -> Ran:
        """One run; random states, samplers and dataset are put back."""
        notes = Notes(self.clock, digest=workers > 1)
        opened: list[_Opened] = []

        def let_open(iterator: Any) -> "_Opened":
            opened.append(_Opened(iterator))
            return opened[-1]

        with untouched(self.loader), contextlib.ExitStack() as at_end:
            twin = copied(self.loader, notes, workers=workers, opened=let_open)
            check_sendable(twin, self.loader)
            at_end.callback(lambda: [one.close() for one in opened])
            with _counted(self.loader) as restarts:
                lanes = wrapped(self.loader, lambda: self._loop(twin))
            parcels = opened[-1].parcels
            return Ran(
                self.loader,
                workers,
                self.step is not None,
                tuple(map(self._times, range(len(lanes)), lanes, parcels)),
                tuple(_memories({one.worker: one.process for one in parcels})),
                {one.worker: one.firsts for one in parcels},
                len(restarts),
                len(lanes) < self.batches,
            )

    def _loop(self, twin: DataLoader) -> list["_Lane"]:
        """The training loop with a stopwatch."""
        lanes: list[_Lane] = []
        clock, step = self.clock, self.step
        asked = self.origin = clock()
        iterator = iter(twin)
        while len(lanes) < self.batches:
            try:
                batch = next(iterator)
            except StopIteration:
                break
            lane = _Lane((asked, clock()))
            lanes.append(lane)
            if self.device is not None:
                batch = self._moved(batch)
                lane.transferred = (lane.waited[1], clock())
            if step is not None:
                began = clock()
                _stepped(step, batch)
                self._settle()
                lane.used = (began, clock())
            asked = clock()
        return lanes

    def _moved(self, batch: Any) -> Any:
        """On the device, and there."""
        device, pinned = self.device, self.loader.pin_memory
        moved = tree_map(
            lambda one: one.to(device, non_blocking=pinned) if hasattr(one, "to") else one, batch
        )
        self._settle()
        return moved

    def _settle(self) -> None:
        """Wait for the accelerator, which works on after Python has gone on."""
        if self.device is not None and self.device.type != "cpu":
            torch.accelerator.synchronize(self.device)
        elif torch.cuda.is_initialized():
            torch.cuda.synchronize()

    def _times(self, number: int, lane: "_Lane", parcel: Parcel) -> BatchTimes:
        def ms(span: tuple[int, int]) -> Span:
            start, end = span
            return (start - self.origin) / 1e6, (end - self.origin) / 1e6

        return BatchTimes(
            number=number,
            worker=parcel.worker,
            fetched=ms(parcel.fetched),
            collated=ms(parcel.collated),
            pinned=parcel.pinned and ms(parcel.pinned),
            waited=ms(lane.waited),
            transferred=lane.transferred and ms(lane.transferred),
            used=lane.used and ms(lane.used),
        )


@dataclass(slots=True)
class _Lane:
    """What the main process did with one batch."""

    waited: tuple[int, int]
    transferred: tuple[int, int] | None = None
    used: tuple[int, int] | None = None


def _stepped(step: Step, batch: Any) -> None:
    try:
        step(batch)
    except Exception as error:
        raise ModelError(
            f"the step raised {type(error).__name__}: "
            f"{words.shortened(words.message_of(error))}; it was given what the loader yields."
        ) from error


class _Opened:
    """An iterator of torch's that opens the parcels and keeps what stands on them."""

    def __init__(self, inner: Any) -> None:
        self.inner = inner
        self.parcels: list[Parcel] = []

    def __iter__(self) -> "_Opened":
        return self

    def __next__(self) -> Any:
        parcel = next(self.inner)
        if not isinstance(parcel, Parcel):
            return parcel
        if parcel.failure is not None:
            raise told(parcel.failure)
        batch, parcel.batch = parcel.batch, None
        self.parcels.append(parcel)
        return batch

    def __len__(self) -> int:
        return len(self.inner)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.inner, name)

    def close(self) -> None:
        """End the workers."""
        torch_private.end_workers(self.inner)


@contextlib.contextmanager
def _counted(loader: DataLoader) -> Iterator[list[int]]:
    """Count the iterators that somebody makes over the reader's loader meanwhile."""
    made: list[int] = []
    kind = type(loader)

    def counting(self: Any) -> Any:
        made.append(1)
        return kind.__iter__(self)

    loader.__class__ = type(kind.__name__, (kind,), {"__iter__": counting})
    try:
        yield made
    finally:
        loader.__class__ = kind


def _memories(processes: dict[int | None, int]) -> Iterator[WorkerMemory]:
    for worker, process in sorted((w, p) for w, p in processes.items() if w is not None):
        found = memory.of_process(process)
        if found is not None:
            yield WorkerMemory(worker, *found)


def cores() -> int:
    """How many cores this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def as_trial(seen: LoaderTimeline) -> Trial:
    """A run as one of several that are compared."""
    return Trial(seen.workers, seen.batch_ms, seen.wait_share, seen.memory)


def _tried(
    bench: Bench, own: Trial, workers: Sequence[int] | None, most: int = MOST_WORKERS
) -> list[Trial]:
    """The other numbers, upwards; without being told which, until more do not help."""
    if workers is not None:
        if not isinstance(workers, Iterable):
            raise UsageError(
                f"time_loader(...) expected `workers` as several numbers, got {workers!r:.60}; "
                f"give [{workers!r:.60}]."
            )
        workers = list(workers)
        for one in workers:
            _check_number("workers", one, 0)
        return [own, *(try_one(bench, one) for one in sorted(set(workers) - {own.workers}))]
    trials: list[Trial] = []
    best = math.inf
    number = 0
    while number <= most:
        trial = own if number == own.workers else try_one(bench, number)
        trials.append(trial)
        if trial.batch_ms is None or is_fed(trial):
            break
        if number > 1 and trial.batch_ms > FASTER * best:
            break
        best = min(best, trial.batch_ms)
        number = max(1, 2 * number)
    return trials if own in trials else [*trials, own]


def try_one(bench: Bench, workers: int) -> Trial:
    """One other number; what fails is a trial with a trouble."""
    try:
        return as_trial(bench.seen(workers))
    except LoaderError as error:
        return Trial(workers, None, None, trouble=str(error))
