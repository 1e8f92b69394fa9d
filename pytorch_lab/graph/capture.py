"""Record what a piece of PyTorch code really does, op by op, while it runs once.

    graph.record(net, x)                    the forward ops and the autograd graph they built
    graph.record(step, batch, backward=True)    and the backward: order, gradients, what was freed

Seen through a function mode (every torch function of this thread), two hooks that torch has for all
modules, and the frames of Python. All three are gone when `record` returns or raises, and nothing of
torch is kept but by wish.
"""

import gc
import sys
import time
from collections.abc import Callable
from typing import Any

import torch
from torch.nn.modules.module import register_module_forward_hook, register_module_forward_pre_hook
from torch.overrides import TorchFunctionMode

from pytorch_lab.graph.naming import Names
from pytorch_lab.graph.sites import Sites
from pytorch_lab.graph.tensors import Known, Tensors, version_of
from pytorch_lab.graph.traits import Trait, trait_of

_sequence: Callable[[], int] = torch._C._autograd._get_sequence_nr
_is_grad = torch.is_grad_enabled
_is_inference = torch.is_inference_mode_enabled
_is_autocast = torch._C._is_any_autocast_enabled
_clock = time.perf_counter_ns


class Recorder(TorchFunctionMode):
    """The mode and the hooks, for one recording; what it gathered is read by `freeze`."""

    def __init__(self, names: Names, values: str = "summary") -> None:
        super().__init__()
        self.names = names
        self.started = _sequence()
        self.sites = Sites()
        self.tensors = Tensors(names, values, self.started)
        self.rows: list[Any] = []
        self.calls: list[list[Any]] = []  # [path, type, count, parent, first_op, end_op, training]
        self.call: int | None = None
        self.inside: int | None = None
        self._stack: list[tuple[int, int]] = []  # id of the module, its call
        self._counts: dict[int, int] = {}
        self._traits: dict[Any, Trait] = {}
        self._handles: list[Any] = []

    def __enter__(self) -> "Recorder":
        """Start recording."""
        self._handles = [
            register_module_forward_pre_hook(self._enter_module),
            register_module_forward_hook(self._leave_module, always_call=True),
        ]
        super().__enter__()
        return self

    def __exit__(self, *exc: Any) -> None:
        """Stop recording and take everything out again."""
        super().__exit__(*exc)
        for handle in self._handles:
            handle.remove()
        while self._stack:
            self._pop()

    def _enter_module(self, module: torch.nn.Module, args: Any) -> None:
        key = id(module)
        count = self._counts.get(key, 0)
        self._counts[key] = count + 1
        path = self.names.modules.get(key)
        if path is None:
            path = self.names.modules[key] = ""
        parent = self._stack[-1][1] if self._stack else None
        self._stack.append((key, len(self.calls)))
        self.call = len(self.calls)
        start = len(self.rows)
        kind = type(module).__name__
        self.calls.append([path, kind, count, parent, start, start, module.training])

    def _leave_module(self, module: torch.nn.Module, args: Any, output: Any) -> None:
        key = id(module)
        if any(entry[0] == key for entry in self._stack):
            while self._pop() != key:
                continue

    def _pop(self) -> int:
        key, call = self._stack.pop()
        self.calls[call][5] = len(self.rows)
        self.call = self._stack[-1][1] if self._stack else None
        return key

    def __torch_function__(
        self, func: Any, types: Any, args: Any = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        """One call of a torch function, by whoever."""
        trait = self._traits.get(func)
        if trait is None:
            trait = self._traits[func] = trait_of(func)
        if not trait.kind:
            return func(*args, **kwargs) if kwargs else func(*args)
        place = self.sites.here(sys._getframe(1))
        tensors: list[torch.Tensor] = []
        inputs: list[Known] = []
        self.tensors.read(args, tensors, inputs)
        if kwargs:
            self.tensors.read(kwargs.values(), tensors, inputs)
        before = _sequence()
        start = _clock()
        try:
            out = func(*args, **kwargs) if kwargs else func(*args)
        except BaseException:
            self._note(trait, place, inputs, (), before, start, False)
            raise
        self._leave(trait, place, tensors, inputs, before, start, out, kwargs)
        return out

    def _leave(self, trait, place, tensors, inputs, before, start, out, kwargs) -> None:
        op = len(self.rows)
        written = False
        if trait.may_write or (kwargs and "out" in kwargs):
            written = self._written(tensors, inputs, op)
        made = self.tensors.made
        if type(out) is torch.Tensor:
            outputs = (made(out, op, inputs)[3],)
            first = out
        else:
            results: list[torch.Tensor] = []
            _collect((out,), results)
            if not results and written:
                results = [t for t, known in zip(tensors, inputs) if known[1] != version_of(t)]
            outputs = tuple([made(result, op, inputs)[3] for result in results])
            first = results[0] if results else None
        if not outputs and trait.kind == "op":
            return
        in_place = written and any(first is tensor for tensor in tensors)
        self._note(trait, place, inputs, outputs, before, start, in_place)

    def _written(self, tensors, inputs, op) -> bool:
        found = False
        for tensor, known in zip(tensors, inputs):
            if known[1] is not None and tensor._version != known[1]:
                self.tensors.writer[known[4]] = op
                found = True
        return found

    def _note(self, trait, place, inputs, outputs, before, start, in_place) -> None:
        mode = "grad" if _is_grad() else "inference" if _is_inference() else "no_grad"
        autocast = None
        if _is_autocast():
            autocast = "bfloat16"
        self.rows.append((
            trait.name, trait.kind, place, self.call, tuple([known[3] for known in inputs]),
            outputs, before, _sequence(), in_place, mode, autocast, self.inside, _clock() - start,
        ))


def _collect(values: Any, found: list[torch.Tensor]) -> None:
    for value in values:
        if isinstance(value, torch.Tensor):
            found.append(value)
        elif isinstance(value, list | tuple):
            _collect(value, found)
        elif isinstance(value, dict):
            _collect(value.values(), found)


def record(
    fn: Callable[..., Any],
    *args: Any,
    backward: bool = False,
    values: str = "summary",
    keep_graph: bool = False,
    **kwargs: Any,
) -> Any:
    """Run `fn` once and record every tensor operation, in order."""
    collects = gc.isenabled()
    gc.disable()  # it would look at every row again and again
    try:
        return _record(fn, args, kwargs, backward, values)
    finally:
        if collects:
            gc.enable()


def _record(fn, args, kwargs, backward, values):
    from pytorch_lab.graph import freeze
    from pytorch_lab.graph.naming import function_name, names_for, results_of

    recorder = Recorder(names_for(fn, args, kwargs, {}), values)
    result, error = None, None
    try:
        with recorder:
            result = fn(*args, **kwargs)
    except Exception as caught:  # noqa: BLE001 - the record up to there is what the reader wants
        error = f"{type(caught).__name__}: {caught}"
    tensors = results_of(result)
    rec = freeze.freeze(recorder, function_name(fn), tensors, error)
    recorder.tensors.release()
    if backward and not error:
        loss = next((t for t in tensors if t.requires_grad), None)
        if loss is not None:
            loss.backward(None if loss.numel() == 1 else torch.ones_like(loss))
    return rec
