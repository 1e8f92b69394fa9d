"""The record of a loader's random numbers: a matrix of workers and samples.

`worker_randomness` fills these classes; the text and the picture read nothing else. A cell is one
sample and one generator: what the generator would have given next before the sample was made, and
whether making the sample drew from it. Equal cells begin with an equal state: the same numbers.
"""

from dataclasses import asdict, dataclass
from typing import Any

from pytorch_lab.remark import Remark, problems


@dataclass(frozen=True, slots=True)
class Draw:
    """What one generator gave one sample."""

    stream: str  # "random", "numpy", "torch", or the way to a stored one: "dataset.rng"
    epoch: int  # from 0
    worker: int | None  # None: the main process
    sample: int  # the how many-eth of this worker in this epoch, from 0
    part: str  # "fetch", or "collate" for what collate_fn drew
    value: float  # the first number between 0 and 1 that the generator had to give
    drew: bool  # whether anything was drawn
    same: int | None = None  # equal for draws from equal states; None where there is no other


@dataclass(frozen=True, slots=True)
class WorkerRandomness:
    """What `worker_randomness` saw."""

    loader: str
    workers: int
    epochs: int
    streams: tuple[str, ...]  # the generators that something was drawn from
    unused: tuple[str, ...]  # the stored ones that nothing was drawn from
    draws: tuple[Draw, ...]  # of the streams only
    remarks: tuple[Remark, ...] = ()

    @property
    def duplicates(self) -> tuple[Draw, ...]:
        """The draws that began with the state of another draw."""
        return tuple(one for one in self.draws if one.same is not None)

    @property
    def problems(self) -> tuple[Remark, ...]:
        """The remarks that are most likely mistakes."""
        return problems(self.remarks)

    @property
    def verdict(self) -> str:
        """Whether any two samples get the same numbers, in a sentence."""
        if self.problems:
            return self.problems[0].text
        if not self.streams:
            return "Nothing random happens in this loader's dataset and functions."
        return "No two samples were given the same random numbers."

    def to_dict(self) -> dict[str, Any]:
        """The record as plain dicts, lists, numbers and strings."""
        return asdict(self) | {"verdict": self.verdict}

    def __str__(self) -> str:
        from pytorch_lab.dataloader.drawn_text import render

        return render(self)
