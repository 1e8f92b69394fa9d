"""The record of a timed loader: who worked when, and who waited for whom.

`time_loader` fills these classes; the text and the picture read nothing else. All times are
milliseconds since the loader was asked for an iterator; a span is (start, end).
"""

from dataclasses import asdict, dataclass
from typing import Any

from pytorch_lab.remark import Remark, problems

Span = tuple[float, float]


@dataclass(frozen=True, slots=True)
class BatchTimes:
    """When one batch was made, waited for and used."""

    number: int  # from 0, in the order in which the model got them
    worker: int | None  # None: made in the main process
    fetched: Span  # its samples were taken from the dataset
    collated: Span
    pinned: Span | None  # copied into pinned memory; None without an accelerator
    waited: Span  # the model stood still
    transferred: Span | None  # moved to `device`; None without one
    used: Span | None  # the step; None without one

    @property
    def end(self) -> float:
        """When the model was done with it."""
        return (self.used or self.transferred or self.waited)[1]

    @property
    def ready(self) -> float:
        """When it was made."""
        return (self.pinned or self.collated)[1]


@dataclass(frozen=True, slots=True)
class WorkerMemory:
    """What one worker process takes, as Linux counts it."""

    worker: int
    own_bytes: int  # USS: what would be free again without this worker
    share_bytes: int  # PSS: its own, and its part of what several processes share


@dataclass(frozen=True, slots=True)
class Trial:
    """The same batches with another number of workers: measured, not computed."""

    workers: int
    batch_ms: float | None  # from one batch to the next; None if it failed
    wait_share: float | None  # of the time, 0 to 1
    memory: tuple[WorkerMemory, ...] = ()
    trouble: str = ""  # why it failed


@dataclass(frozen=True, slots=True)
class LoaderTimeline:
    """What `time_loader` saw."""

    loader: str  # "DataLoader(Digits, 1,797 samples, batch_size=64, num_workers=2)"
    workers: int
    cores: int  # that this process may use
    has_step: bool
    batches: tuple[BatchTimes, ...]
    steady_from: int  # the first batch of what is counted: those before it filled the queue
    memory: tuple[WorkerMemory, ...] = ()
    trials: tuple[Trial, ...] = ()  # by number of workers, this one among them
    remarks: tuple[Remark, ...] = ()

    @property
    def start_ms(self) -> float:
        """Until the first batch came: workers start, and nobody can work before."""
        return self.batches[0].waited[1] if self.batches else 0.0

    @property
    def wait_share(self) -> float | None:
        """The share of the time that the model waits, 0 to 1; None for too few batches."""
        steady = self.batches[self.steady_from :]
        whole = steady[-1].end - steady[0].waited[0] if steady else 0.0
        if not whole:
            return None
        return sum(end - start for start, end in (one.waited for one in steady)) / whole

    @property
    def batch_ms(self) -> float | None:
        """From one batch to the next."""
        steady = self.batches[self.steady_from :]
        return (steady[-1].end - steady[0].waited[0]) / len(steady) if steady else None

    @property
    def verdict(self) -> str:
        """What to do, in a sentence or two."""
        from pytorch_lab.dataloader.verdict import verdict

        return verdict(self)

    @property
    def problems(self) -> tuple[Remark, ...]:
        """The remarks that are most likely mistakes."""
        return problems(self.remarks)

    def to_dict(self) -> dict[str, Any]:
        """The record as plain dicts, lists, numbers and strings."""
        return asdict(self) | {"wait_share": self.wait_share, "verdict": self.verdict}

    def __str__(self) -> str:
        from pytorch_lab.dataloader.timeline_text import render

        return render(self)
