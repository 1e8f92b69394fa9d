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
from contextlib import contextmanager
from importlib import import_module
from typing import Any

import torch

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
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Using `torch.compile.module.` when there are global")
        _LISTENING.begin(ear)
        try:
            yield
        finally:
            _LISTENING.end(ear)


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
            begun = recorder.begin(trait, frame.f_back, (*args, *held), kwargs)
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


class _Listening:
    """The recordings that listen, of all threads, and what torch has in our place meanwhile."""

    def __init__(self) -> None:
        self._ears: list[_Ear] = []
        self._lock = threading.Lock()
        self._back: Callable[[], None] | None = None

    def begin(self, ear: _Ear) -> None:
        with self._lock:
            self._ears.append(ear)
            if self._back is None:
                self._listen()

    def end(self, ear: _Ear) -> None:
        with self._lock:
            self._ears.remove(ear)
            if not self._ears and self._back is not None:
                self._back()
                self._back = None

    def _listen(self) -> None:
        compiler = sys.modules.get(_COMPILER)
        if compiler is None:
            self._back = self._wait_for_compiler()
        elif hasattr(compiler, _TELLS):
            self._back = _put(compiler, _TELLS, self._hear(getattr(compiler, _TELLS)))
        else:  # in a torch that does not say when
            stance = torch.compiler.set_stance("force_eager")
            self._back = lambda: stance.__exit__(None, None, None)

    def _wait_for_compiler(self) -> Callable[[], None]:
        """Nothing has been compiled yet, and loading the compiler takes seconds."""
        compile_ = torch.compile

        def first(*args: Any, **kwargs: Any) -> Any:
            import_module(_COMPILER)
            with self._lock:
                if torch.compile is first and self._back is not None:
                    self._back()
                    self._listen()
            return compile_(*args, **kwargs)

        return _put(torch, "compile", first)

    def _hear(self, tell: Callable[[Any], Any]) -> Callable[[Any], Any]:
        """What stands in for torch's function; `callback` compiles, or is None."""

        def hear(callback: Any) -> Any:
            frame, thread = sys._getframe(1), threading.get_ident()
            mine = [ear for ear in self._ears if ear.thread == thread]
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


_LISTENING = _Listening()


def _put(module: Any, name: str, new: Any) -> Callable[[], None]:
    """Put something else in a module's place; returns what puts the old back."""
    old = getattr(module, name)
    setattr(module, name, new)
    return lambda: setattr(module, name, old)
