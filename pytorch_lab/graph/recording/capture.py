"""Record what a piece of PyTorch code really does, op by op, while it runs once.

    graph.record(net, x)                        the forward ops and the autograd graph they built
    graph.record(loss_of, batch, backward=True)     and backward: order, gradients, what was freed

Seen through a function mode (every torch function of this thread), two hooks that torch has for all
modules, and the frames of Python. All three are gone when `record` returns or raises, and nothing
of torch is kept, unless it is asked for.
"""

import asyncio
import itertools
import sys
import types
import weakref
from collections.abc import Callable
from typing import Any

import torch

from pytorch_lab.errors import UsageError
from pytorch_lab.graph.collector import collector_rests
from pytorch_lab.graph.graph_record import GraphRecord
from pytorch_lab.graph.naming import function_name, names_for
from pytorch_lab.graph.recording.assemble import assemble
from pytorch_lab.graph.recording.compiled import compiled_is_one_op
from pytorch_lab.graph.recording.meanwhile import deeper, noticing_threads, threads_started
from pytorch_lab.graph.recording.recorder import Recorder
from pytorch_lab.graph.recording.sites import where_raised
from pytorch_lab.graph.schema import Failure
from pytorch_lab.graph.torch_private import plain_torch
from pytorch_lab.graph.walking.hooks import Recorded, handles_made, recorded_without_hooks
from pytorch_lab.modules.outputs import tensors_of
from pytorch_lab.words import count, message_of

MOST_YIELDS = 1000  # items taken from a generator
VALUES = ("none", "summary", "full")


def record(
    fn: Callable[..., Any],
    *args: Any,
    backward: bool = False,
    values: str = "summary",
    keep_graph: bool = False,
    **kwargs: Any,
) -> GraphRecord:
    """Run `fn` once and record every tensor operation, in order.

    An exception of `fn` ends the run and not the record: what ran until then is there, and
    `record.error` says what happened and where. A `KeyboardInterrupt` goes through.

    Example:
        >>> net = torch.nn.Sequential(torch.nn.Linear(4, 3), torch.nn.ReLU())
        >>> rec = record(net, torch.ones(2, 4))
        >>> [(op.name, op.module) for op in rec.ops]
        [('linear', '0'), ('relu', '1')]
        >>> rec.values[rec.ops[0].inputs[1]].name
        '0.weight'
        >>> rec = record(lambda x: net(x).sum(), torch.ones(2, 4), backward=True)
        >>> [rec.nodes[i].name for i in rec.backward_order][:4]
        ['SumBackward0', 'ReluBackward0', 'AddmmBackward0', 'AccumulateGrad']

    Args:
        fn: an `nn.Module` or any callable. It runs as it is: in its own modes, changing what it
            changes.
        args: its arguments.
        backward: go back from the result, as `loss.backward()` does; gradients are added to
            `.grad`. Of several results the one called `loss` counts, else the first that requires
            a gradient; one that is not a single number gets a gradient of ones.
        values: "summary" keeps seven figures of each tensor, "full" also all elements of small
            ones. "none" looks at no value and is the quickest: it looks at ordinary ops some dozens
            at a time, so that a small tensor may live a few ops longer, and a write by another
            thread or by scripted code may be seen late.
        keep_graph: keep the result, and with it torch's graph, alive for `record.backward()` and
            `record.stepper()`, until they have run or `record.release()` is called.
        kwargs: arguments by name. One that is called `backward`, `values` or `keep_graph` needs a
            way around: `record(lambda: fn(values=v))`.

    Raises:
        UsageError: `fn` cannot be called, `values` is none of the three words, or `backward` or
            `keep_graph` is not a bool.
    """
    if not callable(fn):
        raise UsageError(
            f"record(fn, ...) expected something to call, got {type(fn).__name__!r}; "
            "for a result that exists already see graph.of(tensor)."
        )
    if not isinstance(values, str) or values not in VALUES:
        raise UsageError(
            f"record(values=...) expected one of {', '.join(VALUES)}, got {_short(values)}; for an "
            f"argument of that name write record(lambda: fn(values=...))"
        )
    for name, given in (("backward", backward), ("keep_graph", keep_graph)):
        if not isinstance(given, bool):
            raise UsageError(
                f"record({name}=...) expected True or False, got {_short(given)}; for an argument "
                f"of that name write record(lambda: fn({name}=...))"
            )
    with collector_rests(settled=True):
        run = _Run(fn, args, kwargs, values, keep_graph)
        record = run.forward()
        if backward:
            run.backward(record)
        record.keep(run.results, run.root, keep_graph, run.recorded())
        del run  # before the collector looks at it
    return record


def _short(value: Any) -> str:
    return f"{value!r:.40}" if isinstance(value, str | int | float) else type(value).__name__


class _Run:
    """One call of a reader's function, and the backward after it."""

    def __init__(
        self,
        fn: Callable[..., Any],
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        values: str,
        keep_graph: bool,
    ) -> None:
        self.fn, self.args, self.kwargs, self.values = fn, args, kwargs, values
        self.recorder = Recorder(names_for(fn, args, kwargs), values)
        self.results: list[torch.Tensor] = []
        self.root: int | None = None  # which result backward starts from
        self.notes: list[str] = []
        self.threads = 0  # started before
        self.keep_graph = keep_graph
        self.handles = handles_made()
        self.alive: list[weakref.ref[torch.Tensor]] = []  # tensors with a graph, if it is kept

    def forward(self) -> GraphRecord:
        """Call it."""
        self.recorder.end = sys._getframe()
        self.threads = threads_started()
        try:
            with deeper, noticing_threads, compiled_is_one_op(self.recorder), self.recorder:
                result = self._drain(self.fn(*self.args, **self.kwargs))
        except Exception as caught:  # noqa: BLE001 - the record up to there is what is wanted
            name, said = type(caught).__name__, message_of(caught)
            failure = Failure(name, said, where_raised(caught))
            return self._record(None, failure)  # the frames keep the graph alive until then
        return self._record(result, None)

    def _record(self, result: Any, failure: Failure | None) -> GraphRecord:
        with plain_torch():  # classes of the reader's needn't hear of it
            self.results = list({id(t): t for t in tensors_of(result)}.values())
            self.root = place_of_root(result, self.results)
            if self.keep_graph:
                self.alive = [weakref.ref(one) for one in self.recorder.tensors.living()]
            record = assemble(self.recorder, function_name(self.fn), self.results, failure)
        if self.recorder.elsewhere or threads_started() > self.threads:
            self.notes.append("code ran in another thread; ops of other threads are not recorded")
        record.notes += tuple(self.notes)
        return record

    def _drain(self, result: Any) -> Any:
        """A generator runs while its items are taken; a coroutine doesn't, without a loop."""
        if isinstance(result, types.CoroutineType):
            result.close()
            self.notes.append(
                f"it returned a coroutine, and nothing of it ran; {how_to_run_coroutines()} instead"
            )
            return None
        if not isinstance(result, types.GeneratorType):
            return result
        items = list(itertools.islice(result, MOST_YIELDS))
        self.notes.append(f"it is a generator; {count(len(items), 'item')} taken from it")
        return items

    def backward(self, record: GraphRecord) -> None:
        """Go back from the result, and note in the record what that did."""
        if record.failure is not None:
            return
        if self.root is None:
            record.notes += ("no result requires a gradient, so there was no backward",)
            return
        record.walk_back(
            self.recorder.grown.live, self.results[self.root], None, values=self.values
        )

    def recorded(self) -> Recorded | None:
        """The live graph, if it is kept and there cannot be hooks on it."""
        grown = self.recorder.grown
        if not self.keep_graph or self.root is None or grown.seen is not None:
            return None
        return recorded_without_hooks(grown.live, grown.nodes, self.alive, self.handles)


def how_to_run_coroutines() -> str:
    """In a notebook a loop runs already, and a thread can't have two."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return "record lambda: asyncio.run(fn(...))"
    return "await asyncio.to_thread(record, lambda: asyncio.run(fn(...)))"


def place_of_root(result: Any, results: list[torch.Tensor]) -> int | None:
    """Which of the results backward starts from."""
    loss = result.get("loss") if isinstance(result, dict) else getattr(result, "loss", None)
    for place, tensor in enumerate(results):
        if tensor is loss and tensor.requires_grad:
            return place
    return next((i for i, tensor in enumerate(results) if tensor.requires_grad), None)
