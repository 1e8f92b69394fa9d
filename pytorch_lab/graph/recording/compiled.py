"""Compiled code is one op: what runs inside is no Python of the reader's any more.

The compiler looks at all that is around a call, and would compile the recording, too, and fail. So
a recording steps aside while compiled code runs, as if there were none. Torch tells nobody that a
compiled function is called; but each tells Python's interpreter twice what to do with frames, when
it begins and when it ends, and while a recording runs, that is where we listen.
"""

import inspect
import sys
import threading
import types
import warnings
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from importlib import import_module
from typing import Any

import torch

from pytorch_lab.graph.recording.meanwhile import Meanwhile, put
from pytorch_lab.graph.recording.recorder import Begun, Recorder
from pytorch_lab.graph.recording.traits import Trait
from pytorch_lab.graph.torch_private import plain_torch
from pytorch_lab.modules.outputs import tensors_of

_COMPILER = "torch._dynamo.eval_frame"
_TELLS = "_maybe_set_eval_frame"


@contextmanager
def compiled_is_one_op(recorder: Recorder) -> Iterator[None]:
    """While this is open, each call of compiled code is one op of the recording.

    Args:
        recorder: of this thread.
    """
    ear = _Ear(recorder)
    with ExitStack() as stack:
        if _COMPILER in sys.modules:  # else the reader's own filters are left alone
            stack.enter_context(warnings.catch_warnings())
            warnings.filterwarnings("ignore", "Using `torch.compile.module.` when there are global")
        _EARS.append(ear)
        try:
            with _listening:
                yield
        finally:
            _EARS.remove(ear)


@contextmanager
def uncompiled() -> Iterator[None]:
    """While this is open, compiled functions run as they are written, op by op.

    Without the compiler's module nothing has been compiled yet.
    """
    if _COMPILER not in sys.modules:
        yield
        return
    with torch.compiler.set_stance("force_eager"):
        yield


class _Ear:
    """What one recording hears of compiled code."""

    def __init__(self, recorder: Recorder) -> None:
        self.frame: types.FrameType | None = None  # of the compiled function that is running
        self.thread = threading.get_ident()
        self._recorder = recorder
        self._begun: tuple[Trait, Begun, Any] | None = None

    def enter(self, frame: types.FrameType) -> None:
        """Compiled code begins: note what it gets, and step aside."""
        recorder = self._recorder
        called = inspect.unwrap(frame.f_locals["fn"])
        args, kwargs = frame.f_locals["args"], frame.f_locals["kwargs"]
        owner = called if isinstance(called, torch.nn.Module) else getattr(called, "__self__", None)
        module = owner if isinstance(owner, torch.nn.Module) else None
        name = type(module).__name__ if module else getattr(called, "__name__", "code")
        trait = Trait(f"compiled {name}", "compiled", True)
        with plain_torch():
            held: tuple[Any, ...] = ()
            if module is not None:
                recorder.enter_module(module, args)
                held = (*module.parameters(), *module.buffers())
            begun = recorder.begin(trait, frame.f_back or frame, (*args, *held), kwargs)
        self.frame, self._begun = frame, (trait, begun, module)
        recorder.step_aside()

    def leave(self) -> None:
        """It is over, or has raised: take up the recording again."""
        frame, begun = self.frame, self._begun
        self.frame = self._begun = None
        if frame is None or begun is None:
            return
        recorder, (trait, before, module) = self._recorder, begun
        said = frame.f_locals
        with plain_torch():
            if "result" in said and said.get("call_succeeded", True):
                found = tensors_of(said["result"])
                recorder.done(trait, before, found[0] if len(found) == 1 else tuple(found), None)
            else:
                recorder.failed(before)
            if module is not None:
                recorder.leave_module(module, (), None)
        recorder.come_back()


_EARS: list[_Ear] = []  # of all threads


def _listen() -> Callable[[], None]:
    compiler = sys.modules.get(_COMPILER)
    if compiler is None:
        return _wait_for_compiler()
    if hasattr(compiler, _TELLS):
        return put(compiler, _TELLS, _hear(getattr(compiler, _TELLS)))
    stance = torch.compiler.set_stance("force_eager")  # in a torch that does not say when
    return lambda: stance.__exit__(None, None, None)


def _wait_for_compiler() -> Callable[[], None]:
    """Nothing has been compiled yet, and loading the compiler takes seconds."""
    compile_ = torch.compile

    def first(*args: Any, **kwargs: Any) -> Any:
        import_module(_COMPILER)
        if torch.compile is first:
            _listening.again()
        return compile_(*args, **kwargs)

    return put(torch, "compile", first)


def _hear(tell: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """What stands in for torch's function; its `callback` compiles, or is None."""

    def hear(callback: Any) -> Any:
        frame, thread = sys._getframe(1), threading.get_ident()
        mine = [ear for ear in _EARS if ear.thread == thread]
        if mine and mine[-1].frame is frame:
            before = tell(callback)
            for ear in mine:
                ear.leave()
            return before
        starts = frame.f_code.co_name == "compile_wrapper" and callable(callback)
        if starts and all(ear.frame is None for ear in mine):
            for ear in reversed(mine):
                ear.enter(frame)
        return tell(callback)

    return hear


_listening = Meanwhile(_listen)
