"""What is still there when an exception has come: its frames, the tensors in them, the live graph.

An exception keeps the frames that it went through, and with them the loss that `backward` was
called on. So its graph can be walked, and each of its nodes asked what became of what it saved.
"""

import linecache
import types
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import torch

from pytorch_lab.graph.explaining.living import Held, held_by, leaves_of
from pytorch_lab.graph.explaining.spots import quoted
from pytorch_lab.graph.graph_record import GraphRecord
from pytorch_lab.graph.recording.sites import decode, is_readers
from pytorch_lab.graph.schema import Site
from pytorch_lab.graph.walking.autograd import Live, walk
from pytorch_lab.modules.reach import attributes, is_open_box, parts
from pytorch_lab.words import message_of

_MOST_ITEMS = 200  # of one container
_DEPTH = 3


@dataclass
class Crash:
    """An error of autograd, and what can be seen of it.

    Attributes:
        message: torch's words.
        record: the recording of the code that raised, if there is one.
        frames: the reader's frames, outermost first, each with the offset of its instruction.
        where: the innermost line of the reader's, `train.py:12`.
        roots: the tensors that backward or autograd.grad was called on.
    """

    message: str
    record: GraphRecord | None = None
    frames: list[tuple[types.FrameType, int]] = field(default_factory=list)
    where: str = ""
    roots: list[torch.Tensor] = field(default_factory=list)
    inner: list[types.FrameType] = field(default_factory=list)  # torch's own frames

    @cached_property
    def site(self) -> Site | None:
        """The expression that raised, in the reader's code."""
        if self.frames:
            return decode(self.frames[-1][0].f_code, self.frames[-1][1])
        failure = self.record.failure if self.record is not None else None
        return failure.site if failure is not None and failure.site.line else None

    @property
    def expression(self) -> str:
        """Its text, if it stands on one line."""
        site = self.site
        if site is None or site.columns is None or site.end_line != site.line:
            return ""
        return linecache.getline(site.file, site.line)[slice(*site.columns)]

    @property
    def line(self) -> list[str]:
        """The line that raised, as a fact."""
        site = self.site
        return quoted(self.where, linecache.getline(site.file, site.line)) if site else []

    @cached_property
    def live(self) -> Live:
        """The graph behind the roots."""
        return walk(self.roots)

    @cached_property
    def held(self) -> tuple[Held, ...]:
        """What its nodes keep for backward, and in which state."""
        return tuple(held_by(self.live))

    @cached_property
    def leaves(self) -> dict[int, torch.Tensor]:
        """Its leaves."""
        return leaves_of(self.live)

    @cached_property
    def tensors(self) -> list[tuple[str, torch.Tensor]]:
        """The tensors in the reader's frames by name, those of the innermost first."""
        found: dict[int, tuple[str, torch.Tensor]] = {}
        for frame, _ in reversed(self.frames):
            for name, tensor in _tensors_of(frame):
                found.setdefault(id(tensor), (name, tensor))
        return list(found.values())

    def name_of(self, tensor: torch.Tensor) -> str:
        """What the reader calls a tensor; empty if no frame has it."""
        return next((f"`{name}`" for name, other in self.tensors if other is tensor), "")


def crash_of(error: BaseException, record: GraphRecord | None = None) -> Crash:
    """What can be seen of an exception.

    Example:
        >>> try:
        ...     torch.ones(2).sum().backward()
        ... except RuntimeError as error:
        ...     crash = crash_of(error)
        >>> crash.where, [root.shape for root in crash.roots]
        ('cell line 2', [torch.Size([])])
    """
    crash = Crash(message_of(error), record)
    trace = error.__traceback__
    while trace is not None:
        frame = trace.tb_frame
        if is_readers(frame.f_code.co_filename):
            crash.frames.append((frame, trace.tb_lasti))
            crash.inner.clear()
        elif crash.frames:
            crash.inner.append(frame)
        trace = trace.tb_next
    for frame in crash.inner:
        crash.roots = crash.roots or _roots(frame)
    if crash.site is not None:
        crash.where = crash.site.where
    return crash


def crash_of_record(record: GraphRecord) -> Crash:
    """What a recording that ended in an error shows of it, without the exception."""
    failure = record.failure
    if failure is None:
        return Crash("", record)
    return Crash(failure.message, record, where=failure.site.where)


def _roots(frame: types.FrameType) -> list[torch.Tensor]:
    """What backward was called on, from the variables of torch's own functions."""
    local = frame.f_locals
    name = frame.f_code.co_name
    if name == "backward":
        given = local.get("tensors", local.get("self"))
    elif name == "grad":
        given = local.get("outputs")
    else:
        return []
    given = given if isinstance(given, tuple | list) else (given,)
    return [tensor for tensor in given if isinstance(tensor, torch.Tensor)]


def _tensors_of(frame: types.FrameType) -> Iterator[tuple[str, torch.Tensor]]:
    for name, value in frame.f_locals.items():
        yield from tensors_in(name, value)


def tensors_in(name: str, value: Any, depth: int = _DEPTH) -> Iterator[tuple[str, torch.Tensor]]:
    """The tensors in a variable and in what it holds, with their paths.

    Example:
        >>> [name for name, _ in tensors_in("net", torch.nn.Linear(2, 1))]
        ['net.weight', 'net.bias']
    """
    if isinstance(value, torch.Tensor):
        yield name, value
    elif isinstance(value, torch.nn.Module):
        yield from _tensors_of_module(name, value, depth)
    elif depth > 0 and isinstance(value, dict | list | tuple):
        for place, part in enumerate(parts(value)):
            if place == _MOST_ITEMS:
                break
            yield from tensors_in(name + part.step, part.value, depth - 1)
    elif depth > 0 and is_open_box(type(value)):
        for key, held in attributes(value).items():
            yield from tensors_in(f"{name}.{key}", held, depth - 1)


_MODULES_OWN = frozenset(vars(torch.nn.Module()))


def _tensors_of_module(
    name: str, root: torch.nn.Module, depth: int
) -> Iterator[tuple[str, torch.Tensor]]:
    """Parameters, buffers, and what else it keeps: a hidden state is a plain attribute."""
    for path, module in root.named_modules():
        at = f"{name}.{path}" if path else name
        plain = {key: held for key, held in vars(module).items() if key not in _MODULES_OWN}
        for key, held in {**module._parameters, **module._buffers, **plain}.items():
            if not isinstance(held, torch.nn.Module):
                yield from tensors_in(f"{at}.{key}", held, depth - 1)
