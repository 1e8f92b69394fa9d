"""Which way did Python go? The decisions of the reader's own code, in the order of one run.

A decision is an instruction after which two ways are open: the jump of an `if`, `while`, `and`,
ternary or `match`, the next turn of a `for`. They are seen through `sys.settrace`, instruction by
instruction, in the reader's own frames only; whoever traced before (a debugger, coverage) is back
afterwards and sees nothing of the run itself.

Every step knows its turns: in which turn of which loops it was taken, here and in the callers. So
the third turn of one run is held to the third turn of the other.
"""

import dis
import functools
import sys
import types
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from pytorch_lab.graph.explaining.observing import ops_so_far, running_recorder
from pytorch_lab.graph.recording.recorder import Recorder
from pytorch_lab.graph.recording.sites import is_readers_code
from pytorch_lab.modules import reach

_TOOLS = str(Path(reach.__file__).parent)  # what looks into modules while the run is recorded
MOST_STEPS = 2_000_000  # of one run; a trail that is longer ends there
MOST_QUIET = 20_000  # in a row without an op; then a loop is only watched for its end or an op

Turns = dict[tuple[int, int, int, int], int]  # turns of the caller, code, loop, turn: to a number


class Step(NamedTuple):
    """One thing that Python did."""

    kind: str  # "branch", "enter" a function, "raise"
    code: types.CodeType
    offset: int  # of the instruction; for "enter" that of the caller
    outcome: Any  # where it went on; for "enter" the caller's code, for "raise" the error's name
    turns: int  # which turns of which loops, as a number that both runs share

    @property
    def key(self) -> tuple[Any, ...]:
        """Equal for equal steps, and quick to look up: code objects compare slowly."""
        outcome = id(self.outcome) if self.kind == "enter" else self.outcome
        return self.kind, id(self.code), self.offset, outcome, self.turns


class Trail:
    """The steps of one run.

    Args:
        numbers: of the turns; shared by the trails that are to be compared.

    Attributes:
        steps: what Python did.
        ops_before: for each step, how many ops had been recorded.
        turns: from which op on which turns hold: pairs of an op and a number.
        complete: False if the run was too long.
        skipped: whether a long loop without ops was not followed turn by turn.
    """

    def __init__(self, numbers: Turns) -> None:
        self.steps: list[Step] = []
        self.ops_before: list[int] = []
        self.turns: list[tuple[int, int]] = [(0, 0)]
        self.complete = True
        self.skipped = False
        self.now = 0
        self.on = False
        self._numbers = numbers
        self._recorder: Recorder | None = None
        self._quiet = 0  # steps since the last op
        self._looks: dict[types.CodeType, _Look] = {}

    @contextmanager
    def following(self) -> Iterator[None]:
        """Trace what is called inside the `with`."""
        before = sys.gettrace()
        self.on = True
        sys.settrace(self._enter)
        try:
            yield
        finally:
            sys.settrace(before)
            self.on = False
            self._recorder = None

    def add(self, kind: str, code: types.CodeType, offset: int, outcome: Any) -> None:
        """Note a step."""
        if len(self.steps) == MOST_STEPS:
            self.complete = self.on = False
            return
        self.steps.append(Step(kind, code, offset, outcome, self.now))
        count = self._count()
        self._quiet = self._quiet + 1 if self.ops_before and self.ops_before[-1] == count else 0
        self.ops_before.append(count)

    def turn(self, number: int) -> None:
        """From now on other turns hold."""
        if number != self.now:
            self.now = number
            self.turns.append((self._count(), number))

    def number_of(self, outer: int, code: types.CodeType, loop: int, turn: int) -> int:
        """The number of a turn of a loop, within the turns around it."""
        return self._numbers.setdefault((outer, id(code), loop, turn), len(self._numbers) + 1)

    def is_quiet(self) -> bool:
        """Whether nothing but Python has run for long."""
        return self._quiet >= MOST_QUIET and self.ops_before[-1] == self._count()

    def _count(self) -> int:
        if self._recorder is None:
            self._recorder = running_recorder()
        return 0 if self._recorder is None else len(ops_so_far(self._recorder))

    def _enter(self, frame: types.FrameType, event: str, arg: Any) -> Callable[..., Any] | None:
        """A function is called: follow it if it is the reader's."""
        code = frame.f_code
        look = self._looks.get(code)
        if look is None:
            file = code.co_filename
            readers = is_readers_code(code) and not file.startswith(_TOOLS)
            look = _look_at(code) if readers else _NOT_OURS
            self._looks[code] = look
        if look is _NOT_OURS or not self.on or self.is_quiet():
            return None
        again = frame.f_trace
        if isinstance(again, _Follower) and again.trail is self:  # a generator that goes on
            again.resume()
            return again
        if frame.f_back is not None:
            self.add("enter", code, frame.f_back.f_lasti, frame.f_back.f_code)
        frame.f_trace_lines = False
        frame.f_trace_opcodes = True
        return _Follower(self, code, look)


class _Loop(NamedTuple):
    """A loop that is running."""

    offset: int  # of the instruction that begins its next turn
    start: int  # its instructions lie from here
    end: int  # to before here
    turn: int
    outer: int  # the turns around it


class _Follower:
    """What Python calls before each instruction of one frame."""

    __slots__ = ("base", "code", "look", "loops", "pending", "trail")

    def __init__(self, trail: Trail, code: types.CodeType, look: "_Look") -> None:
        self.trail = trail
        self.code = code
        self.look = look
        self.base = trail.now  # the caller's turns
        self.pending = -1
        self.loops: list[_Loop] = []

    def __call__(self, frame: types.FrameType, event: str, arg: Any) -> Callable[..., Any] | None:
        trail = self.trail
        if not trail.on:
            frame.f_trace_opcodes = False
            return None
        if event == "line" and self._goes_on_unseen(frame):
            return self
        if event == "opcode":
            offset = frame.f_lasti
            if self.pending >= 0:
                self._decided(offset)
            if self.loops and not self.loops[-1].start <= offset < self.loops[-1].end:
                self._leave_loops(offset)
            self.pending = offset if offset in self.look.decisions else -1
            if self.loops and trail.is_quiet():
                trail.skipped = True
                self.pending = -1
                frame.f_trace_opcodes, frame.f_trace_lines = False, True
        elif event == "exception":
            self.pending = -1
            if not issubclass(arg[0], StopIteration | GeneratorExit):
                trail.add("raise", self.code, frame.f_lasti, arg[0].__name__)
        elif event == "return":
            trail.turn(self.base)
        return self

    def _goes_on_unseen(self, frame: types.FrameType) -> bool:
        """Whether a loop of Python alone still runs; if not, it is followed again from here."""
        outermost = self.loops[0]
        if self.trail.is_quiet() and outermost.start <= frame.f_lasti < outermost.end:
            return True
        frame.f_trace_opcodes, frame.f_trace_lines = True, False
        self._leave_loops(frame.f_lasti)
        return False

    def resume(self) -> None:
        """A generator goes on, perhaps called from elsewhere."""
        self.base = self.trail.now
        if self.loops:
            self._turn(self.loops[-1])

    def _decided(self, offset: int) -> None:
        self.trail.add("branch", self.code, self.pending, offset)
        span = self.look.loops.get((self.pending, offset))
        if span is None:
            return
        self._leave_loops(self.pending)
        if self.loops and self.loops[-1].offset == self.pending:
            last = self.loops.pop()
            loop = last._replace(turn=last.turn + 1)
        else:
            loop = _Loop(self.pending, *span, 0, self.trail.now)
        self.loops.append(loop)
        self._turn(loop)

    def _turn(self, loop: _Loop) -> None:
        self.trail.turn(self.trail.number_of(loop.outer, self.code, loop.offset, loop.turn))

    def _leave_loops(self, offset: int) -> None:
        while self.loops and not self.loops[-1].start <= offset < self.loops[-1].end:
            self.trail.turn(self.loops.pop().outer)


class _Look(NamedTuple):
    """What a function's instructions say before it runs."""

    decisions: frozenset[int]
    loops: dict[tuple[int, int], tuple[int, int]]  # a decision for another turn: the loop's span


_NOT_OURS = _Look(frozenset({-1}), {})


def _look_at(code: types.CodeType) -> _Look:
    loops = {}
    found = list(dis.get_instructions(code))
    for place, instruction in enumerate(found):
        if not _decides(instruction):
            continue
        offset, target = instruction.offset, instruction.argval
        if instruction.opname.startswith("FOR_ITER"):
            loops[offset, found[place + 1].offset] = offset, target
        elif target < offset:  # the test at the end of a `while`
            loops[offset, target] = target, offset + 1
    return _Look(decisions_of(code), loops)


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
    instruction = _instruction(step.code, step.offset)
    return instruction.opname.startswith("FOR_ITER") and instruction.argval == step.outcome


@functools.lru_cache(maxsize=4096)
def _instruction(code: types.CodeType, offset: int) -> dis.Instruction:
    return next(i for i in dis.get_instructions(code) if i.offset == offset)


def _decides(instruction: dis.Instruction) -> bool:
    return instruction.opname.startswith(("POP_JUMP", "JUMP_IF", "FOR_ITER"))
