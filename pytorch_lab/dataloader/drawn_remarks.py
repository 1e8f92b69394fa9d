"""What a person should know of a loader's random numbers."""

import random
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import torch
from torch.utils.data import DataLoader

from pytorch_lab.dataloader.drawn import Draw
from pytorch_lab.dataloader.generators import GLOBAL, generators_of
from pytorch_lab.dataloader.remarks import repeated_stream
from pytorch_lab.dataloader.timeline import Remark

if TYPE_CHECKING:
    from pytorch_lab.dataloader.randomness import Reading


class Kept(NamedTuple):
    """One sample as it was read."""

    epoch: int
    worker: int | None
    sample: int
    reading: "Reading"
    firsts: tuple[str, ...]  # of a stream: digests of the worker's first items


# How a generator of each kind is made from torch's seed of a worker.
_MADE: tuple[tuple[type, str], ...] = (
    (torch.Generator, "torch.Generator().manual_seed(torch.initial_seed())"),
    (random.Random, "random.Random(torch.initial_seed())"),
    (np.random.RandomState, "np.random.RandomState(torch.initial_seed() % 2**32)"),
)


def remarks_on(loader: DataLoader, draws: tuple[Draw, ...], seen: list[Kept]) -> tuple[Remark, ...]:
    """The remarks, mistakes first."""
    firsts = {one.worker: one.firsts for one in seen if one.epoch == 0}
    found: list[Remark | None] = []
    for stream in dict.fromkeys(draw.stream for draw in draws):
        found.append(_duplicated(loader, stream, [one for one in draws if one.stream == stream]))
    found.append(repeated_stream(firsts))
    found.append(_unseeded(loader, draws))
    return tuple(remark for remark in found if remark is not None)


def _duplicated(loader: DataLoader, stream: str, draws: list[Draw]) -> Remark | None:
    """Equal draws of one generator: across workers, epochs, or samples of one worker."""
    groups: dict[int, list[Draw]] = {}
    for one in draws:
        if one.same is not None:
            groups.setdefault(one.same, []).append(one)
    if not groups:
        return None
    across = {
        "workers": any(len({d.worker for d in g if d.epoch == e}) > 1
                       for g in groups.values() for e in {d.epoch for d in g}),
        "epochs": any(len({d.epoch for d in g}) > 1 for g in groups.values()),
    }  # fmt: skip
    samples = not any(across.values())
    who = "both" if loader.num_workers == 2 else f"all {loader.num_workers}"
    what = {
        (True, True): f"{who} workers draw the same numbers, and the same ones in every epoch",
        (True, False): f"{who} workers draw the same numbers",
        (False, True): "the same numbers are drawn in every epoch",
        (False, False): "several samples get the same numbers",
    }[across["workers"], across["epochs"]]
    return Remark(
        "duplicated", "problem", f"`{stream}`: {what}. {_cause(loader, stream, across, samples)}"
    )


def _cause(loader: DataLoader, stream: str, across: dict[str, bool], samples: bool) -> str:
    if samples:
        return "Something seeds it anew for each sample: seed once, where it is made."
    if stream in GLOBAL:
        return (
            "torch seeds it for each worker and epoch, so somebody seeds it again with a fixed "
            f"number{_seeder(loader)}: leave that out, or add `torch.initial_seed()` to it."
        )
    if loader.num_workers == 0:
        return "It is set back when an epoch begins: seed it once, or from the epoch's number."
    holder = stream.rpartition(".")[0]
    at = f"on `get_worker_info().{holder}`" if holder.startswith("dataset") else "where it is kept"
    return (
        "Each worker starts with its own copy of it, in the same state; torch seeds only the "
        "global generators. Draw from those, or make it anew in `worker_init_fn`: "
        f"`{_anew(loader, stream)}`, set {at}."
    )


def _anew(loader: DataLoader, stream: str) -> str:
    """The line that makes a stored generator anew, of the kind and by the name that it has."""
    name = stream.rpartition(".")[2]
    made = next(
        (call for kind, call in _MADE if isinstance(dict(generators_of(loader)).get(stream), kind)),
        "np.random.default_rng(torch.initial_seed())",
    )
    return f"{name if name.isidentifier() else 'rng'} = {made}"


def _seeder(loader: DataLoader) -> str:
    return ", perhaps `worker_init_fn`" if loader.worker_init_fn is not None else ""


def _unseeded(loader: DataLoader, draws: tuple[Draw, ...]) -> Remark | None:
    """Without workers nobody seeds Python's and numpy's generators."""
    used = [name for name in ("random", "numpy") if any(d.stream == name for d in draws)]
    if loader.num_workers or not used:
        return None
    names = " and ".join(f"`{name}`" for name in used)
    calls = {"random": "`random.seed`", "numpy": "`numpy.random.seed`"}
    return Remark(
        "unseeded",
        "note",
        f"Without workers {names} {'is' if len(used) == 1 else 'are'} not seeded by "
        f"`torch.manual_seed`: for runs that can be repeated call "
        f"{' and '.join(calls[name] for name in used)}, too. With workers torch seeds them.",
    )
