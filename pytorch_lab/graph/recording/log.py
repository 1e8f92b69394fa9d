"""Ordinary ops are logged while they run, and made rows of some dozens at a time.

Between two ops of torch each instruction of ours finds the processor's caches cold; one after the
other, the same work for many ops takes half the time. So what an op was given and what it returned
is held until the log is settled. That tells the same as looking at once, since nothing in the log
may change meanwhile: whatever may write to a tensor has the log settled before it runs. But numpy
can write to a tensor unseen, so where values are looked at, each op is settled by itself. Where
they are not, a write of which torch's Python knows nothing (another thread's, a scripted
function's) may be taken for part of an earlier op.

Nor is much memory held: an op has the log settled at once that takes long, returns a large tensor
or a view of one, or was given a list, which its owner may change; and so has every op from the
first on whose result is not on the CPU.
"""

from collections.abc import Iterable, Sequence
from typing import Any

import torch

from pytorch_lab.graph.recording.rows import Entered, Rows
from pytorch_lab.graph.recording.tensors import Known, Tensors, tensors_in
from pytorch_lab.graph.recording.traits import Trait
from pytorch_lab.graph.torch_private import plain_torch

MOST = 64  # entries
LONG_NS = 100_000  # takes an op with a tensor of about a megabyte
LARGE = 2**18  # elements
_HOLDERS = {dict, list, tuple}
FAILED = object()  # in place of a result

# What is known of an ordinary op: trait, site, call, arguments, those by name, result, torch's
# count of nodes before and after, how long it took, what autocast casts to. Where a module's call
# begins or ends there is no trait, and in place of the site the list that says at which op.
Entry = tuple[Trait | None, Any, Any, Any, Any, Any, int, int, int, str | None]


class Log:
    """What ran since the log was settled the last time.

    Args:
        rows: of the ops.
        tensors: that they handled.
        calls: of modules, in order.
        most: how many entries may be held.

    Attributes:
        entries: which the log holds.
        most: how many it may hold.
    """

    def __init__(self, rows: Rows, tensors: Tensors, calls: Sequence[Entered], most: int) -> None:
        self.entries: list[Entry] = []
        self.most = most
        self._rows = rows
        self._tensors = tensors
        self._calls = calls

    def add(self, entry: Entry) -> None:
        """Log an op, and settle the log if that may not be held."""
        self.entries.append(entry)
        _, _, _, args, kwargs, out, _, _, elapsed, _ = entry
        if (
            len(self.entries) >= self.most
            or elapsed > LONG_NS
            or (type(out) is torch.Tensor and (out.numel() > LARGE or out._is_view()))
            or not _HOLDERS.isdisjoint(map(type, args))
            or (kwargs and not _HOLDERS.isdisjoint(map(type, kwargs.values())))
        ):
            self.settle()

    def add_call(self, where: list[int], call: int) -> None:
        """Log that a module's call begins, or ends; at which op will be noted in `where[call]`."""
        self.entries.append((None, where, call, (), None, None, 0, 0, 0, None))

    def settle(self) -> None:
        """Make rows of what is logged."""
        entries, self.entries = self.entries, []
        if not entries:
            return
        ops, add, calls = self._rows.ops, self._rows.add, self._calls
        fresh: dict[int, Known] = {}  # what was looked at for this log, by id
        with plain_torch():
            for trait, site, call, args, kwargs, out, before, after, elapsed, autocast in entries:
                if trait is None:
                    site[call] = len(ops)
                    continue
                inputs = self._inputs((*args, *kwargs.values()) if kwargs else args, fresh)
                if type(out) is torch.Tensor:  # one node made since is the result's
                    origin = before if after == before + 1 else None
                    outputs = (self._made(out, len(ops), inputs, origin, fresh),)
                else:
                    outputs = self._several(out, len(ops), inputs)
                    if not outputs and out is not FAILED and trait[1] != "exit":
                        continue
                path = "" if call is None else calls[call][0]
                read = tuple([known[3] for known in inputs])
                add(
                    trait[0], trait[1], site, path, call, read, outputs, before, after, elapsed,
                    autocast,
                )  # fmt: skip
        if self._tensors.devices - {"cpu"}:
            self.most = 1

    def _inputs(self, arguments: Iterable[Any], fresh: dict[int, Known]) -> list[Known]:
        inputs: list[Known] = []
        for argument in arguments:
            known = fresh.get(id(argument))
            if known is not None:
                inputs.append(known)
            elif type(argument) is list or type(argument) is tuple:
                inputs += self._inputs(argument, fresh)
            elif type(argument) is not int and argument is not None:
                self._tensors.read((argument,), inputs)
                if isinstance(argument, torch.Tensor):
                    fresh[id(argument)] = inputs[-1]
        return inputs

    def _made(
        self,
        out: torch.Tensor,
        op: int,
        inputs: Sequence[Known],
        origin: int | None,
        fresh: dict[int, Known],
    ) -> int:
        known = fresh[id(out)] = self._tensors.made(out, op, inputs, origin)
        return known[3]

    def _several(self, out: Any, op: int, inputs: Sequence[Known]) -> tuple[int, ...]:
        return tuple([self._tensors.made(one, op, inputs)[3] for one in tensors_in(out)])
