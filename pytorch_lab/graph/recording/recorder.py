"""The mode and the hooks of one recording: what is done while the reader's code runs.

Every microsecond here is paid for each op, so rows are flat and nothing is decoded; `assemble`
makes the record of them afterwards. An ordinary op is only logged, see `log.py`; one that may write
to a tensor, or is not ordinary in another way, is noted by itself.
"""

import sys
import threading
import time
import types
from typing import Any

import torch
from torch.nn.modules.module import register_module_forward_hook, register_module_forward_pre_hook
from torch.overrides import TorchFunctionMode

from pytorch_lab.graph.naming import Names
from pytorch_lab.graph.recording import log, regions
from pytorch_lab.graph.recording.fast_path import ATTENTION, is_left
from pytorch_lab.graph.recording.grown import Grown
from pytorch_lab.graph.recording.log import FAILED, Log
from pytorch_lab.graph.recording.regions import Region
from pytorch_lab.graph.recording.rows import ELAPSED, KIND, Entered, Rows
from pytorch_lab.graph.recording.sites import Sites
from pytorch_lab.graph.recording.tensors import Known, Tensors, tensors_in
from pytorch_lab.graph.recording.traits import TRAITS, Trait, trait_of
from pytorch_lab.graph.torch_private import (
    count_modes,
    is_autocast,
    node_count,
    plain_torch,
    pop_mode,
    push_mode,
    top_saving_hooks,
    top_transform,
)
from pytorch_lab.graph.walking.hooks import our_handles

_is_grad = torch.is_grad_enabled
_is_inference = torch.is_inference_mode_enabled
_clock = time.perf_counter_ns

_TORCHS_OWN = ((), (torch.Tensor,))  # the classes of arguments that torch asks what to do

# What is known of an op before it runs: name, kind, place, call, grad_mode, inputs, inside, torch's
# count of nodes, the time
Begun = tuple[str, str, Any, int | None, str, list[Known], int | None, int, int]


class Recorder(TorchFunctionMode):
    """Gathers the ops of one thread.

    Attributes:
        rows: the ops, in order, and what they made.
        calls: of modules, in order.
        starts: of each call, its first op.
        ends: of each call, one past its last op.
        left_fast_path: whether attention ran step by step only because it was recorded.
        elsewhere: whether a module was called in another thread.
    """

    def __init__(self, names: Names, values: str) -> None:
        super().__init__()
        self.names = names
        self.sites = Sites()
        self.rows = Rows()
        self._ops = self.rows.ops
        self.tensors = Tensors(names, values, node_count(), self.rows)
        self._read, self._made, self._here = self.tensors.read, self.tensors.made, self.sites.here
        self.grown = Grown(self.tensors, names, values)
        self.calls: list[Entered] = []
        self.starts: list[int] = []
        self.ends: list[int] = []
        self._log = Log(self.rows, self.tensors, self.calls, log.MOST if values == "none" else 1)
        self.settle = self._log.settle
        self._call: int | None = None
        self._stack: list[tuple[int, int]] = []  # id of a module, its call
        self._counts: dict[int, int] = {}
        self._open: list[Region] = []
        self.end: types.FrameType | None = None  # the frame that calls the reader's code
        self.left_fast_path = self.elsewhere = False
        self._handles: list[Any] = []
        self._above: list[Any] = []  # modes that the reader's code put above this one

    def __enter__(self) -> "Recorder":
        """Start: hooks for all modules, then the mode."""
        self._thread = threading.get_ident()
        self._put_hooks()
        super().__enter__()
        return self

    def __exit__(self, *exc: Any) -> None:
        """Stop, whatever happened, and leave nothing behind."""
        self.step_aside()
        while self._stack:
            self._pop()
        self.settle()
        self._close(0)
        self.end = None

    def step_aside(self) -> None:
        """Take hooks and mode off, and no others: the reader's code may have left a mode open."""
        for handle in self._handles:
            handle.remove()
        self._handles.clear()
        self._above = self._modes_above()
        if count_modes():
            pop_mode()  # this one
        for mode in self._above:
            push_mode(mode)

    def come_back(self) -> None:
        """Put them on again, where they were."""
        for _ in self._above:
            pop_mode()
        for mode in (self, *self._above):
            push_mode(mode)
        self._put_hooks()

    def _modes_above(self) -> list[Any]:
        """Taken off, the lowest first."""
        above: list[Any] = []
        while count_modes():
            mode = pop_mode()
            if mode is self:
                push_mode(mode)
                break
            above.insert(0, mode)
        return above

    def _put_hooks(self) -> None:
        with our_handles():
            self._handles = [
                register_module_forward_pre_hook(self.enter_module),
                register_module_forward_hook(self.leave_module, always_call=True),
            ]

    # modules: the hooks are everybody's, so other threads come by too

    def enter_module(self, module: torch.nn.Module, args: Any) -> None:
        """A module is called."""
        if threading.get_ident() != self._thread:
            self.elsewhere = True
            return
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
        entered = (path, type(module).__name__, count, parent, module.training)
        self.calls.append(tuple.__new__(Entered, entered))
        self.starts.append(-1)
        self.ends.append(-1)
        self._log.add_call(self.starts, self._call)

    def leave_module(self, module: torch.nn.Module, args: Any, output: Any) -> None:
        """It is over, also after an error; a hook that raised may have left others open inside."""
        if threading.get_ident() != self._thread:
            return
        key, stack = id(module), self._stack
        if stack and (stack[-1][0] == key or any(entry[0] == key for entry in stack)):
            while self._pop() != key:
                continue

    def _pop(self) -> int:
        key, call = self._stack.pop()
        self._log.add_call(self.ends, call)
        self._call = self._stack[-1][1] if self._stack else None
        return key

    # ops

    def __torch_function__(
        self, func: Any, types: Any, args: Any = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        """One call of a torch function, by whoever."""
        trait = TRAITS.get(func) or trait_of(func)
        if not trait[1]:
            if not trait[3]:
                self.settle()
            return func(*args, **kwargs) if kwargs else func(*args)
        if (
            not trait[3]
            or types not in _TORCHS_OWN
            or self._open
            or not _is_grad()
            or top_transform() is not None
            or top_saving_hooks(True) is not None
            or (kwargs and _asks_to_write(kwargs))
        ):
            return self._by_itself(trait, sys._getframe(1), func, types, args, kwargs)
        out, site = FAILED, self._here(sys._getframe(1))
        before, start = node_count(), _clock()
        try:
            out = func(*args, **kwargs) if kwargs else func(*args)
            return out
        finally:
            elapsed = _clock() - start
            autocast = _autocast_dtype() if is_autocast() else None
            self._log.add(
                (
                    trait,
                    site,
                    self._call,
                    args,
                    kwargs,
                    out,
                    before,
                    node_count(),
                    elapsed,
                    autocast,
                )
            )

    def _by_itself(
        self,
        trait: Trait,
        frame: types.FrameType,
        func: Any,
        types: Any,
        args: Any,
        kwargs: dict[str, Any] | None,
    ) -> Any:
        """An op that may write to a tensor, that lies within another, or whose kind is special."""
        own = types not in _TORCHS_OWN
        if own:  # a class of the reader's would run its own code for each look at a tensor
            with plain_torch():
                begun = self.begin(trait, frame, args, kwargs)
        else:
            begun = self.begin(trait, frame, args, kwargs)
        try:
            if begun[1] == "backward":
                out = self._backward(begun[5], func, args, kwargs)
            else:
                out = func(*args, **kwargs) if kwargs else func(*args)
        except BaseException:
            self.failed(begun)
            raise
        if own:
            with plain_torch():
                self.done(trait, begun, out, kwargs)
        else:
            self.done(trait, begun, out, kwargs)
        return out

    def begin(
        self, trait: Trait, frame: types.FrameType, args: Any, kwargs: dict[str, Any] | None
    ) -> Begun:
        """What is known of an op before it runs."""
        self.settle()
        name, kind = trait[:2]
        grad_mode, inside = "grad", None
        if not _is_grad():
            grad_mode = "inference" if _is_inference() else "no_grad"
            inside, kind = self._look_up(frame, kind)
        elif self._open or top_transform() is not None or top_saving_hooks(True) is not None:
            inside, kind = self._look_up(frame, kind)
        inputs: list[Known] = []
        self._read(args, inputs)
        if kwargs:
            self._read(kwargs.values(), inputs)
        site = self._here(frame)
        return name, kind, site, self._call, grad_mode, inputs, inside, node_count(), _clock()

    def done(self, trait: Trait, begun: Begun, out: Any, kwargs: dict[str, Any] | None) -> None:
        """An op is done: its results, and what it wrote to."""
        op, inputs = len(self._ops), begun[5]
        written = None
        if trait[2] or (kwargs and _asks_to_write(kwargs)):
            written = self._written(inputs, op)
            if trait[0] == ATTENTION and not self.left_fast_path:
                asks = begun[4] == "grad" and any(known[2] for known in inputs)
                self.left_fast_path = not asks and is_left(sys._getframe(2))
        if type(out) is torch.Tensor:
            before = begun[7]  # one node was made since, so it is the one of a new tensor
            origin = before if node_count() == before + 1 else None
            outputs: tuple[int, ...] = (self._made(out, op, inputs, origin)[3],)
            first = out
        else:
            made = self._made
            results = tensors_in(out) or written or ()  # x[0] = 1 returns nothing
            outputs = tuple([made(result, op, inputs)[3] for result in results])
            first = results[0] if results else None
        if begun[1] == "backward":
            outputs = (*outputs, *self._gradients(op))
        if outputs or begun[1] in _WITHOUT_RESULT:
            in_place = bool(written) and any(known[0]() is first for known in inputs)
            self._note(begun, outputs, in_place)

    def failed(self, begun: Begun) -> None:
        """It raised: there is no result."""
        self._note(begun, (), False)

    def _note(self, begun: Begun, outputs: tuple[int, ...], in_place: bool) -> None:
        name, kind, site, call, grad_mode, inputs, inside, before, start = begun
        self.rows.add(
            name, kind, site, "" if call is None else self.calls[call][0], call,
            tuple([known[3] for known in inputs]), outputs, before, node_count(), _clock() - start,
            _autocast_dtype() if is_autocast() else None, in_place, grad_mode, inside,
        )  # fmt: skip

    def _backward(
        self, inputs: list[Known], func: Any, args: Any, kwargs: dict[str, Any] | None
    ) -> Any:
        """The recorded code goes back itself: read the graph before it is freed."""
        roots = [known[0]() for known in inputs if known[2]]
        self.grown.read(roots, self.rows)
        return self.grown.watched(roots, lambda: func(*args, **(kwargs or {})))

    def _gradients(self, op: int) -> list[int]:
        """The `.grad` of the leaves that a backward reached, as its results."""
        made = []
        for place in self.grown.reached:
            leaf = self.grown.live.nodes[place].variable
            if leaf.grad is not None:
                name = self.names.tensors.get(id(leaf), ("", ""))[1]
                name = f"{name}.grad" if name else ""
                made.append(self.tensors.made(leaf.grad, op, [], None, name)[3])
        return made

    def _written(self, inputs: list[Known], op: int) -> list[torch.Tensor]:
        """The inputs that an op has written to."""
        written = []
        for known in inputs:
            tensor = known[0]()
            if known[1] is not None and tensor._version != known[1]:
                self.tensors.writer[known[4]] = op
                written.append(tensor)
        return written

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
        op = len(self._ops)
        inside = self._open[-1].op if self._open else None
        inputs: list[Known] = []
        with plain_torch():
            self.tensors.read(regions.arguments_of(frame), inputs)
        place, now = self.sites.here(frame.f_back), node_count()
        before = now - 1 if regions.has_node(kind, frame) else now
        grad_mode = "grad" if before < now else "no_grad"
        begun = name, kind, place, self._call, grad_mode, inputs, inside, before, _clock()
        self._note(begun, (), False)
        self.tensors.open_region(op, before if before < now else None)
        self._open.append(Region(frame, op, _clock()))

    def _close(self, keep: int) -> None:
        while len(self._open) > keep:
            region = self._open.pop()
            self.rows.change(region.op, ELAPSED, _clock() - region.start_ns)
            self.tensors.close_region(region.op, self._ops[region.op][KIND])


_WITHOUT_RESULT = frozenset({"exit", "backward", "compiled"})


def _asks_to_write(kwargs: dict[str, Any]) -> bool:
    return "out" in kwargs or bool(kwargs.get("inplace"))


def _autocast_dtype() -> str | None:
    for device in ("cpu", "cuda", "mps", "xpu"):
        if torch.is_autocast_enabled(device):
            return str(torch.get_autocast_dtype(device)).removeprefix("torch.")
    return None
