"""Which way did Python go? The decisions of the reader's own code, in the order of one run.

A decision is an instruction after which two ways are open: the jump of an `if`, `while`, `and`,
ternary or `match`, the next turn of a `for`. They are seen through `sys.settrace`, instruction by
instruction, in the reader's own frames only; whoever traced before (a debugger, coverage) is back
afterwards and sees nothing of the run itself.
"""

import dis
import functools
import sys
import types
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

from pytorch_lab.graph.observing import ops_so_far, running_recorder
from pytorch_lab.graph.sites import is_readers

MOST_STEPS = 2_000_000  # of one run; a trail that is longer ends there


class Step(NamedTuple):
    """One thing that Python did."""

    kind: str  # "branch", "enter" a function, "raise"
    code: types.CodeType
    offset: int  # of the instruction; for "enter" that of the caller
    outcome: Any  # where it went on; for "enter" the caller's code, for "raise" the error's name

    @property
    def key(self) -> tuple[Any, ...]:
        """Equal for equal steps, and quick to look up: code objects compare slowly."""
        outcome = id(self.outcome) if self.kind == "enter" else self.outcome
        return self.kind, id(self.code), self.offset, outcome


class Trail:
    """The steps of one run, each with the number of ops that had been recorded before it."""

    def __init__(self) -> None:
        self.steps: list[Step] = []
        self.ops_before: list[int] = []
        self.complete = True
        self._rows: list[Any] | None = None
        self._decisions: dict[types.CodeType, frozenset[int]] = {}
        self._on = False

    @contextmanager
    def following(self) -> Iterator[None]:
        """Trace what is called inside the `with`."""
        before = sys.gettrace()
        self._on = True
        sys.settrace(self._enter)
        try:
            yield
        finally:
            sys.settrace(before)
            self._on = False
            self._rows = None

    def _add(self, step: Step) -> None:
        if self._rows is None:
            recorder = running_recorder()
            self._rows = ops_so_far(recorder) if recorder is not None else None
        if len(self.steps) == MOST_STEPS:
            self.complete = self._on = False
            return
        self.steps.append(step)
        self.ops_before.append(len(self._rows) if self._rows is not None else 0)

    def _enter(self, frame: types.FrameType, event: str, arg: Any) -> Callable[..., Any] | None:
        """A function is called: follow it if it is the reader's."""
        code = frame.f_code
        decisions = self._decisions.get(code)
        if decisions is None:
            decisions = decisions_of(code) if is_readers(code.co_filename) else _NOT_OURS
            self._decisions[code] = decisions
        if decisions is _NOT_OURS or not self._on:
            return None
        caller = frame.f_back
        if frame.f_lasti <= 0 and caller is not None:  # not a generator that goes on
            self._add(Step("enter", code, caller.f_lasti, caller.f_code))
        frame.f_trace_lines = False
        frame.f_trace_opcodes = True
        return self._follower(code, decisions)

    def _follower(self, code: types.CodeType, decisions: frozenset[int]) -> Callable[..., Any]:
        """What Python calls before each instruction of one frame."""
        pending = -1

        def follow(frame: types.FrameType, event: str, arg: Any) -> Callable[..., Any] | None:
            nonlocal pending
            if not self._on:
                frame.f_trace_opcodes = False
                return None
            if event == "opcode":
                offset = frame.f_lasti
                if pending >= 0:
                    self._add(Step("branch", code, pending, offset))
                pending = offset if offset in decisions else -1
            elif event == "exception":
                pending = -1
                if not issubclass(arg[0], StopIteration | GeneratorExit):
                    self._add(Step("raise", code, frame.f_lasti, arg[0].__name__))
            return follow

        return follow


_NOT_OURS: frozenset[int] = frozenset({-1})


def decisions_of(code: types.CodeType) -> frozenset[int]:
    r"""The offsets of the instructions of a function after which two ways are open.

    Example:
        >>> len(decisions_of(compile("for i in x:\n  if i: y()", "", "exec")))
        2
    """
    return frozenset(
        instruction.offset for instruction in dis.get_instructions(code) if _decides(instruction)
    )


def is_loop(code: types.CodeType, offset: int) -> bool:
    """Whether the instruction begins the next turn of a `for`."""
    return _instruction(code, offset).opname.startswith("FOR_ITER")


def ends_loop(step: Step) -> bool:
    """Whether a `for` had no next turn."""
    return (
        is_loop(step.code, step.offset)
        and _instruction(step.code, step.offset).argval == step.outcome
    )


@functools.lru_cache(maxsize=4096)
def _instruction(code: types.CodeType, offset: int) -> dis.Instruction:
    return next(i for i in dis.get_instructions(code) if i.offset == offset)


def _decides(instruction: dis.Instruction) -> bool:
    return instruction.opname.startswith(("POP_JUMP", "JUMP_IF", "FOR_ITER"))
