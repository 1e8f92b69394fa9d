"""The record of an optimizer's parameter groups: who is in which, who is in none."""

import math
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any

from pytorch_lab import words
from pytorch_lab.optim.curve import Remark
from pytorch_lab.optim.curve_text import remark_lines
from pytorch_lab.remark import problems

MOST_NAMES = 6
MOST_GROUPS = 12


@dataclass(frozen=True, slots=True)
class Parameter:
    """One tensor: of the model, of the optimizer, or of both."""

    names: tuple[str, ...]  # in the model, all of them; of a foreign one what is known: its shape
    shape: tuple[int, ...] | None  # None while lazy
    trainable: bool  # requires_grad
    groups: tuple[int, ...]  # indices into `ParamGroups.groups`; one twice if it is listed twice
    foreign: bool = False  # the optimizer has it, the model has not

    @property
    def numel(self) -> int:
        """Number of elements; 0 while lazy."""
        return 0 if self.shape is None else math.prod(self.shape)


@dataclass(frozen=True, slots=True)
class Group:
    """One parameter group."""

    name: str  # "group 0", or "Muon group 0" where there are several optimizers
    optimizer: str  # class name; empty for groups that no optimizer holds yet
    lr: float | None
    weight_decay: float
    options: tuple[tuple[str, str], ...]  # all the others, spelled
    n_tensors: int
    n_elements: int


@dataclass(frozen=True, slots=True)
class ParamGroups:
    """All that is known about who is in which group."""

    optimizer: str  # "AdamW", "Muon and AdamW"
    model: str  # class name; empty if no model was given
    groups: tuple[Group, ...]
    parameters: tuple[Parameter, ...]  # the model's in order, then the foreign ones
    remarks: tuple[Remark, ...]

    @property
    def problems(self) -> tuple[Remark, ...]:
        """The remarks that are most likely mistakes."""
        return problems(self.remarks)

    @property
    def in_none(self) -> tuple[str, ...]:
        """The trainable tensors of the model that no group holds."""
        return tuple(p.names[0] for p in self.parameters if p.trainable and not p.groups)

    @property
    def foreign(self) -> tuple[str, ...]:
        """The tensors of the optimizer that are not the model's."""
        return tuple(p.names[0] for p in self.parameters if p.foreign)

    @property
    def repeated(self) -> tuple[str, ...]:
        """The tensors that are in two groups, or twice in one."""
        return tuple(p.names[0] for p in self.parameters if len(p.groups) > 1)

    def to_dict(self) -> dict[str, Any]:
        """The record as plain dicts, lists, numbers and strings."""
        return asdict(self)

    def __str__(self) -> str:
        return "\n".join(line.rstrip() for line in _lines(self))


def headline(record: ParamGroups) -> str:
    """How much of the model the optimizer reaches.

    Example:
        >>> headline(ParamGroups("SGD", "", (), (), ()))
        'SGD: 0 groups, 0 tensors'
    """
    groups = words.count(len(record.groups), "group")
    held = sum(1 for p in record.parameters if p.groups)
    if not record.model:
        return f"{record.optimizer}: {groups}, {words.count(held, 'tensor')}"
    trainable = [p for p in record.parameters if p.trainable and not p.foreign]
    reached = sum(1 for p in trainable if p.groups)
    whole = words.count(len(trainable), "trainable tensor")
    return f"{record.optimizer} for {record.model}: {groups}, with {reached:,} of {whole}"


def members(record: ParamGroups, group: int) -> list[Parameter]:
    """The tensors of a group, each once."""
    return [p for p in record.parameters if group in p.groups]


def _lines(record: ParamGroups) -> Iterator[str]:
    yield from words.wrap(headline(record), indent="  ")
    yield ""
    wide = max((words.columns(group.name) for group in record.groups), default=0)
    wide = min(max(wide, 9), 24) + 1
    yield words.pad("", wide) + f"{'lr':>11}{'weight_decay':>14}{'tensors':>10}{'elements':>15}"
    for index, group in enumerate(record.groups[:MOST_GROUPS]):
        lr = "none" if group.lr is None else f"{group.lr:.4g}"
        yield (
            words.pad(words.clip(group.name, wide - 1), wide)
            + f"{lr:>11}{group.weight_decay:>14.4g}{group.n_tensors:>10,}{group.n_elements:>15,}"
        )
        yield from _names([p.names[0] for p in members(record, index)])
    if len(record.groups) > MOST_GROUPS:
        yield f"and {len(record.groups) - MOST_GROUPS} more groups"
    for label, chosen in _outside(record):
        elements = sum(p.numel for p in chosen)
        yield words.pad(label, wide) + f"{'–':>11}{'–':>14}{len(chosen):>10,}{elements:>15,}"
        yield from _names([p.names[0] for p in chosen])
    yield from remark_lines(record.remarks)


def _outside(record: ParamGroups) -> Iterator[tuple[str, list[Parameter]]]:
    """What is in no group: first what should be."""
    for label, trainable in (("in none", True), ("frozen", False)):
        chosen = [p for p in record.parameters if not p.groups and p.trainable is trainable]
        if chosen:
            yield label, chosen


def _names(names: list[str]) -> Iterator[str]:
    if names:
        yield from words.wrap(listed(names), head="  ", indent="  ")


def listed(names: list[str] | tuple[str, ...], most: int = MOST_NAMES) -> str:
    """The first of some names, and how many more there are.

    Example:
        >>> listed(["a", "b", "c"], most=2)
        'a, b and 1 more'
    """
    more = f" and {len(names) - most:,} more" if len(names) > most else ""
    return ", ".join(names[:most]) + more
