"""Run a function of the reader's once, recorded, and know which values some living tensors were.

A record keeps nothing of torch, so it cannot say which of its values was *this* parameter. Here the
question is asked while the recording runs.
"""

import functools
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import torch

from pytorch_lab.graph.graph_record import GraphRecord
from pytorch_lab.graph.recording.capture import place_of_root, record
from pytorch_lab.graph.recording.compiled import uncompiled
from pytorch_lab.graph.recording.recorder import Recorder
from pytorch_lab.graph.schema import Op
from pytorch_lab.graph.torch_private import open_modes
from pytorch_lab.modules.outputs import tensors_of

_KIND, _INSIDE = Op._fields.index("kind"), Op._fields.index("inside")  # in a row while recording


class Observed(functools.partial):
    """A call of a function, with what was seen of it.

    A partial, so that the recording looks through it for the names of things.

    Attributes:
        record: the recording.
        places: for each tensor asked about, which of `record.values` it was at the start.
        error: the exception in which the function ended, still alive; `forget` it after use,
            because its frames hold this object and the reader's tensors.
    """

    record: GraphRecord
    places: tuple[int, ...] = ()
    error: Exception | None = None
    _asked: Sequence[torch.Tensor] = ()
    _after: Callable[[Any, Recorder], None] | None = None
    _within: AbstractContextManager[Any] = nullcontext()

    def __call__(self) -> Any:
        """What the recording calls."""
        recorder = running_recorder()
        if recorder is not None:
            self.places = tuple(place_of(recorder, tensor) for tensor in self._asked)
        try:
            with self._within:
                result = self.func()
            if self._after is not None and recorder is not None:
                self._after(result, recorder)
            return result
        except Exception as error:
            self.error = error
            raise

    def forget(self) -> None:
        """Let go of the exception, and with it of everything in its frames."""
        self.error = None


def observe(
    fn: Callable[[], Any],
    tensors: Sequence[torch.Tensor] = (),
    *,
    after: Callable[[Any, Recorder], None] | None = None,
    values: str = "summary",
    within: AbstractContextManager[Any] | None = None,
) -> Observed:
    """Record one call of `fn`.

    Args:
        fn: takes no arguments.
        tensors: which values are these?
        after: called with the result and the recorder, while it still records.
        values: as for `record`.
        within: is entered around the call of `fn` alone.

    Example:
        >>> w = torch.ones(3, requires_grad=True)
        >>> seen = observe(lambda: (w * 2).sum(), [w])
        >>> [seen.record.values[place].shape for place in seen.places]
        [(3,)]
    """
    call = Observed(fn)
    call._asked = tensors
    call._after = after
    call._within = within or nullcontext()
    with uncompiled():
        call.record = record(call, values=values)
    return call


def running_recorder() -> Recorder | None:
    """The innermost recording that runs in this thread."""
    modes = open_modes()
    return next((mode for mode in reversed(modes) if isinstance(mode, Recorder)), None)


def ops_so_far(recorder: Recorder) -> list[tuple[Any, ...]]:
    """The ops that a running recording has seen."""
    recorder.settle()
    return recorder.rows.ops


def went_back(recorder: Recorder) -> bool:
    """Whether the recorded code has called backward itself."""
    return any(op[_KIND] == "backward" and op[_INSIDE] is None for op in ops_so_far(recorder))


def root_of(result: Any) -> torch.Tensor | None:
    """The tensor that backward starts from, by the rule of `record(..., backward=True)`.

    Example:
        >>> w = torch.ones(2, requires_grad=True)
        >>> root_of({"logits": w, "loss": w.sum()}).shape
        torch.Size([])
    """
    results = list({id(tensor): tensor for tensor in tensors_of(result)}.values())
    place = place_of_root(result, results)
    return results[place] if place is not None else None


def place_of(recorder: Recorder, tensor: torch.Tensor) -> int:
    """Which value of the record a living tensor will be."""
    recorder.settle()
    return recorder.tensors.met(tensor)[3]
