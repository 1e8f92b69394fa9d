"""The mode and the hooks of one recording: what is done while the reader's code runs.

Every microsecond here is paid for each op, so rows are flat and nothing is decoded; `assemble`
makes the record of them afterwards.
"""

import sys
import time
import types
from collections.abc import Callable
from typing import Any

import torch
from torch.nn.modules.module import register_module_forward_hook, register_module_forward_pre_hook
from torch.overrides import TorchFunctionMode

from pytorch_lab.graph import regions
from pytorch_lab.graph.grown import Grown
from pytorch_lab.graph.naming import Names
from pytorch_lab.graph.regions import Region
from pytorch_lab.graph.rows import Entered, Row
from pytorch_lab.graph.sites import Place, Sites
from pytorch_lab.graph.stats import summarise
from pytorch_lab.graph.tensors import Known, Tensors, tensors_in, version_of
from pytorch_lab.graph.traits import Trait, trait_of

_sequence: Callable[[], int] = torch._C._autograd._get_sequence_nr
_is_grad = torch.is_grad_enabled
_is_inference = torch.is_inference_mode_enabled
_is_autocast = torch._C._is_any_autocast_enabled
_clock = time.perf_counter_ns
_make = tuple.__new__  # half the time of calling the named tuple


class Recorder(TorchFunctionMode):
    """Gathers the ops of one thread.

    Attributes:
        rows: the ops, in order.
        calls: of modules, in order.
        ends: of each call, one past its last op.
    """

    def __init__(self, names: Names, values: str) -> None:
        super().__init__()
        self.names = names
        self.sites = Sites()
        self.rows: list[Row] = []
        self.tensors = Tensors(names, values, _sequence(), self.rows)
        self.grown = Grown(self.tensors, names, None if values == "none" else summarise)
        self.calls: list[Entered] = []
        self.ends: list[int] = []
        self._call: int | None = None
        self._stack: list[tuple[int, int]] = []  # id of a module, its call
        self._counts: dict[int, int] = {}
        self._open: list[Region] = []
        self.end: types.FrameType | None = None  # the frame that calls the reader's code
        self._traits: dict[Any, Trait] = {}
        self._handles: list[Any] = []

    def __enter__(self) -> "Recorder":
        """Start: hooks for all modules, then the mode."""
        self._handles = [
            register_module_forward_pre_hook(self._enter_module),
            register_module_forward_hook(self._leave_module, always_call=True),
        ]
        super().__enter__()
        return self

    def __exit__(self, *exc: Any) -> None:
        """Stop, whatever happened, and leave nothing behind."""
        super().__exit__(*exc)
        for handle in self._handles:
            handle.remove()
        self._handles.clear()
        while self._stack:
            self._pop()
        self._close(0)
        self.end = None

    # modules

    def _enter_module(self, module: torch.nn.Module, args: Any) -> None:
        key = id(module)
        count = self._counts.get(key, 0)
        self._counts[key] = count + 1
        parent = self._call
        path = self.names.modules.get(key)
        if path is None:
            path = self.names.stranger(
                module, self.calls[parent].path if parent is not None else ""
            )
        self._call = len(self.calls)
        self._stack.append((key, self._call))
        entered = (path, type(module).__name__, count, parent, len(self.rows), module.training)
        self.calls.append(_make(Entered, entered))
        self.ends.append(-1)

    def _leave_module(self, module: torch.nn.Module, args: Any, output: Any) -> None:
        """Also after an error; a hook that raised may have left others open inside."""
        key = id(module)
        if any(entry[0] == key for entry in self._stack):
            while self._pop() != key:
                continue

    def _pop(self) -> int:
        key, call = self._stack.pop()
        self.ends[call] = len(self.rows)
        self._call = self._stack[-1][1] if self._stack else None
        return key

    # ops

    def __torch_function__(
        self, func: Any, types: Any, args: Any = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        """One call of a torch function, by whoever."""
        trait = self._traits.get(func)
        if trait is None:
            trait = self._traits[func] = trait_of(func)
        if not trait.kind:
            return func(*args, **kwargs) if kwargs else func(*args)
        frame = sys._getframe(1)
        inside, kind = None, trait.kind
        if self._open or not _is_grad() or regions.may_be_inside():
            inside, kind = self._look_up(frame, kind)
        place = self.sites.here(frame)
        found: list[torch.Tensor] = []
        inputs: list[Known] = []
        if types:  # a class of the reader's would run its own code for each look at the tensor
            with torch._C.DisableTorchFunction():
                self.tensors.read((args, kwargs), found, inputs)
        else:
            self.tensors.read(args, found, inputs)
            if kwargs:
                self.tensors.read(kwargs.values(), found, inputs)
        state = (trait.name, kind, place, self._call, tuple([known[3] for known in inputs]))
        before, start = _sequence(), _clock()
        try:
            if kind == "backward":
                out = self._backward(found, lambda: func(*args, **(kwargs or {})))
            else:
                out = func(*args, **kwargs) if kwargs else func(*args)
        except BaseException:
            self._note(state, (), before, start, False, inside)
            raise
        if types:
            with torch._C.DisableTorchFunction():
                self._leave(trait, state, found, inputs, before, start, out, kwargs, inside)
        else:
            self._leave(trait, state, found, inputs, before, start, out, kwargs, inside)
        return out

    def _leave(
        self,
        trait: Trait,
        state: Any,
        found: list[torch.Tensor],
        inputs: list[Known],
        before: int,
        start: int,
        out: Any,
        kwargs: dict[str, Any] | None,
        inside: int | None,
    ) -> None:
        """The op is done: its results, and what it wrote to."""
        op = len(self.rows)
        written = False
        if trait.may_write or (kwargs and "out" in kwargs):
            written = self._written(found, inputs, op)
        made = self.tensors.made
        if type(out) is torch.Tensor:
            outputs: tuple[int, ...] = (made(out, op, inputs)[3],)
            in_place = written and any(out is tensor for tensor in found)
        elif out is None and not written:
            outputs, in_place = (), False
        else:
            results = tensors_in(out)
            if written and not results:  # x[0] = 1
                results = [
                    tensor
                    for tensor, known in zip(found, inputs, strict=True)
                    if version_of(tensor) != known[1]
                ]
            outputs = tuple([made(result, op, inputs)[3] for result in results])
            in_place = written and any(results[0] is tensor for tensor in found)
        if state[1] == "backward":
            outputs = (*outputs, *self._gradients(op))
        if outputs or state[1] in _WITHOUT_RESULT:
            self._note(state, outputs, before, start, in_place, inside)

    def _backward(self, found: list[torch.Tensor], run: Callable[[], Any]) -> Any:
        """The recorded code goes back itself: read the graph before it is freed."""
        roots = [tensor for tensor in found if tensor.requires_grad]
        self.grown.read(roots, self.rows)
        return self.grown.watched(roots, run)

    def _gradients(self, op: int) -> list[int]:
        """The `.grad` of the leaves that a backward reached, as its results."""
        made = []
        for place in self.grown.reached:
            leaf = self.grown.live.nodes[place].variable
            name = self.grown.nodes[place].parameter
            if leaf.grad is not None:
                made.append(self.tensors.made(leaf.grad, op, [], f"{name}.grad" if name else "")[3])
        return made

    def _written(self, found: list[torch.Tensor], inputs: list[Known], op: int) -> bool:
        written = False
        for tensor, known in zip(found, inputs, strict=True):
            if known[1] is not None and tensor._version != known[1]:
                self.tensors.writer[known[4]] = op
                written = True
        return written

    def _note(
        self,
        state: Any,
        outputs: tuple[int, ...],
        before: int,
        start: int,
        in_place: bool,
        inside: int | None,
    ) -> None:
        mode = "grad" if _is_grad() else "inference" if _is_inference() else "no_grad"
        autocast = _autocast_dtype() if _is_autocast() else None
        rest = (outputs, before, _sequence(), in_place, mode, autocast, inside, _clock() - start)
        self.rows.append(_make(Row, state + rest))

    # regions

    def _look_up(self, frame: types.FrameType, kind: str) -> tuple[int | None, str]:
        """The op that this one runs inside of, and its kind."""
        found = regions.look_up(frame, self.end, self.sites.is_readers_code)
        same = 0
        for region, (there, _, _) in zip(self._open, found.frames, strict=False):
            if region.frame is not there:
                break
            same += 1
        self._close(same)
        for one in found.frames[same:]:
            self._open_region(one)
        if found.optimizer and kind == "op":
            kind = "optimizer"
        return (self._open[-1].op if self._open else None), kind

    def _open_region(self, one: tuple[types.FrameType, str, str]) -> None:
        frame, kind, name = one
        op = len(self.rows)
        inside = self._open[-1].op if self._open else None
        inputs: list[Known] = []
        with torch._C.DisableTorchFunction():
            self.tensors.read(regions.arguments_of(frame), [], inputs)
        now = _sequence()
        before = now - 1 if regions.has_node(kind, frame) else now
        state = (name, kind, self.sites.here(frame.f_back), self._call)
        read = tuple([known[3] for known in inputs])
        self._note((*state, read), (), before, _clock(), False, inside)
        self.rows[op] = self.rows[op]._replace(grad_mode="grad" if before < now else "no_grad")
        self.tensors.open_region(op, before if before < now else None)
        self._open.append(Region(frame, op, _clock()))

    def _close(self, keep: int) -> None:
        while len(self._open) > keep:
            region = self._open.pop()
            row = self.rows[region.op]
            self.rows[region.op] = row._replace(elapsed_ns=_clock() - region.start_ns)
            self.tensors.close_region(region.op, row.kind)


_WITHOUT_RESULT = frozenset({"exit", "backward"})


def _autocast_dtype() -> str | None:
    for device in ("cpu", "cuda", "mps", "xpu"):
        if torch.is_autocast_enabled(device):
            return str(torch.get_autocast_dtype(device)).removeprefix("torch.")
    return None
