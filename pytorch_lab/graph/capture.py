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
from pytorch_lab.graph.tensors import Known, Tensors
from pytorch_lab.graph.traits import Trait, trait_of

_sequence: Callable[[], int] = torch._C._autograd._get_sequence_nr
_is_grad = torch.is_grad_enabled
_is_inference = torch.is_inference_mode_enabled
_clock = time.perf_counter_ns


class Row:
    """One op while recording; `freeze` makes an `Op` of it."""

    __slots__ = (
        "after",
        "autocast",
        "before",
        "call",
        "elapsed_ns",
        "in_place",
        "inputs",
        "inside",
        "kind",
        "mode",
        "name",
        "outputs",
        "place",
    )

    def __init__(self, trait: Trait, place: Any, call: int | None, inside: int | None) -> None:
        self.name = trait.name
        self.kind = trait.kind
        self.place = place
        self.call = call
        self.inside = inside
        self.inputs: tuple[int, ...] = ()
        self.outputs: tuple[int, ...] = ()
        self.before = self.after = _sequence()
        self.mode = "grad" if _is_grad() else "inference" if _is_inference() else "no_grad"
        self.autocast: Any = None
        self.in_place = False
        self.elapsed_ns = 0


class Recorder(TorchFunctionMode):
    """The mode and the hooks, for one recording; what it gathered is read by `freeze`."""

    def __init__(self, names: Names, values: str = "summary") -> None:
        super().__init__()
        self.names = names
        self.started = _sequence()
        self.sites = Sites()
        self.tensors = Tensors(names, values, self.started)
        self.rows: list[Row] = []
        self.calls: list[list[Any]] = []  # [path, type, count, parent, first_op, end_op, training]
        self.call: int | None = None
        self.inside: int | None = None
        self._stack: list[tuple[int, int]] = []  # id of the module, its call
        self._counts: dict[int, int] = {}
        self._traits: dict[Any, Trait] = {}
        self._handles: list[Any] = []
        self._gc = False

    def __enter__(self) -> "Recorder":
        """Start recording; the collector rests, because it would look at every row again."""
        self._gc = gc.isenabled()
        gc.disable()
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
        if self._gc:
            gc.enable()

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
            return func(*args, **(kwargs or {}))
        place = self.sites.here(sys._getframe(1))
        row = Row(trait, place, self.call, self.inside)
        tensors: list[torch.Tensor] = []
        _collect(args, tensors)
        if kwargs:
            _collect(kwargs.values(), tensors)
        met = self.tensors.met
        inputs = [met(tensor) for tensor in tensors]
        row.inputs = tuple([known.place for known in inputs])
        self.rows.append(row)
        index = len(self.rows) - 1
        start = _clock()
        out = func(*args, **(kwargs or {}))
        row.elapsed_ns = _clock() - start
        row.after = _sequence()
        self._leave_op(row, index, out, tensors, inputs)
        return out

    def _leave_op(
        self, row: Row, index: int, out: Any, tensors: list[torch.Tensor], inputs: list[Known]
    ) -> None:
        written = [
            known
            for tensor, known in zip(tensors, inputs, strict=True)
            if known.version is not None and tensor._version != known.version
        ]
        for known in written:
            self.tensors.writer[known.storage] = index
        results: list[torch.Tensor] = []
        _collect((out,), results)
        if not results and written:  # x[0] = 1, optimizers
            results = [t for t, known in zip(tensors, inputs, strict=True) if known in written]
            row.in_place = True
        elif results and any(results[0] is tensor for tensor in tensors):
            row.in_place = bool(written)
        if not results and row.kind == "op":
            if index == len(self.rows) - 1:
                self.rows.pop()
            return
        made = self.tensors.made
        row.outputs = tuple([made(result, index, inputs).place for result in results])


def _collect(values: Any, found: list[torch.Tensor], depth: int = 3) -> None:
    for value in values:
        if isinstance(value, torch.Tensor):
            found.append(value)
        elif depth and isinstance(value, list | tuple):
            _collect(value, found, depth - 1)
        elif depth and isinstance(value, dict):
            _collect(value.values(), found, depth - 1)


def record(
    fn: Callable[..., Any],
    *args: Any,
    backward: bool = False,
    values: str = "summary",
    keep_graph: bool = False,
    **kwargs: Any,
) -> Any:
    """Run `fn` once and record every tensor operation, in order."""
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
