"""What happens when a snippet is really run, and the kernel left as it was found.

A snippet runs in a fresh namespace that calls itself `__main__`, so that classes print and pickle
as they would in a notebook. Its output, its warnings, its error with the snippet's own line and
the value of one expression come back as a `Run`. Every run starts from the same seed. Afterwards
the random states, the gradient mode and the default dtype and device are again what they were; what
a snippet writes to files or to other modules stays.

The kernel's interrupt ends a run that does not end by itself. Object addresses are taken out of all
texts, since they differ from run to run.
"""

import ast
import contextlib
import io
import linecache
import math
import re
import sys
import textwrap
import traceback
import types
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

FILE = "<snippet>"
SEED = 0
OUTPUT_LIMIT = 8_000  # letters of stdout that are kept
TEXT_LIMIT = 1_200  # letters of a message or a value


@dataclass(frozen=True, slots=True)
class Fault:
    """An error, as the learner sees it."""

    type: str
    message: str
    line: int | None  # in the snippet, from 1
    source: str  # that line, without its indentation

    def __str__(self) -> str:
        place = f"\n  line {self.line}: {self.source}" if self.line else ""
        return _wrapped(f"{self.type}: {self.message}") + place


@dataclass(frozen=True, slots=True)
class Run:
    """What came of a snippet."""

    stdout: str = ""
    warnings: tuple[str, ...] = ()
    fault: Fault | None = None
    interrupted: bool = False
    value: Any = None  # of the measured expression; may be a tensor
    shown: str | None = None  # that value as text; None when there was nothing to measure
    losses: tuple[float, ...] = ()  # of the namespace's list `losses`
    healed: bool = False
    doubt: str | None = None  # why `healed` could not be evaluated

    @property
    def worked(self) -> bool:
        """Whether it came to its end without an error."""
        return self.fault is None and not self.interrupted

    def state(self) -> dict[str, Any]:
        """What JavaScript draws."""
        fault = self.fault
        return {
            "stdout": self.stdout,
            "warnings": list(self.warnings),
            "fault": fault
            and {
                "type": fault.type, "message": fault.message,
                "line": fault.line, "source": fault.source,
            },
            "interrupted": self.interrupted,
            "value": self.shown,
        }  # fmt: skip

    def to_text(self, measure: str | None = None) -> str:
        """What came of it, in lines; `measure` names the value."""
        parts = [self.stdout.rstrip("\n"), *map(_wrapped, self.warnings)]
        if self.interrupted:
            parts.append("interrupted")
        if self.fault:
            parts.append(str(self.fault))
        elif self.shown is not None:
            parts.append(f"{measure} → {self.shown}" if measure else f"→ {self.shown}")
        return "\n".join(part for part in parts if part) or "It runs without a word."

    def __str__(self) -> str:
        return self.to_text()


def run(code: str, *, measure: str | None = None, healed: str | None = None) -> Run:
    r"""Run `code` in a fresh namespace.

    Example:
        >>> print(run("total = 0\nfor i in range(4):\n    total += i", measure="total"))
        → 6
        >>> print(run("layers = []\nlayers.forward()"))
        AttributeError: 'list' object has no attribute 'forward'
          line 2: layers.forward()

    Args:
        code: Python statements.
        measure: an expression over the namespace, evaluated when the code came to its end.
        healed: an expression over the namespace that is true when the snippet is as it should be.
    """
    lines = code.splitlines(keepends=True)
    linecache.cache[FILE] = (len(code), None, lines, FILE)
    return _kept(lambda namespace: _facts(code, namespace, measure, healed))


def called(function: Callable[[list[str]], Any], lines: list[str]) -> Run:
    """Give `lines` to a function that runs them, such as `loop.run`.

    Example:
        >>> print(called(len, ["x = 1", "y = 2"]))
        → 2
    """
    return _kept(lambda _namespace: _facts_of_call(function, lines))


def _kept(work: Callable[[dict[str, Any]], dict[str, Any]]) -> Run:
    """Run the work, and leave the kernel as it was found."""
    output, heard = _Capped(), []
    facts: dict[str, Any] = {"interrupted": True}
    try:
        with _same_start(), _own_main() as namespace, _heard(output) as heard:
            facts = work(namespace)
    except KeyboardInterrupt:
        pass
    warned = _told(heard) + tuple(facts.pop("warnings", ()))
    return Run(stdout=clean(output.getvalue()), warnings=warned, **facts)


def _facts(
    code: str, namespace: dict[str, Any], measure: str | None, healed: str | None
) -> dict[str, Any]:
    facts: dict[str, Any] = {}
    try:
        exec(compile(code, FILE, "exec"), namespace)
        if measure is not None:
            facts["value"] = eval(compile(measure, "<measure>", "eval"), namespace)
            facts["shown"] = as_text(facts["value"])
        facts["losses"] = _losses(namespace.get("losses"))
        facts |= _of_loop(facts.get("value"))
    except (Exception, SystemExit) as error:  # noqa: BLE001 - the learner's own, shown to them
        return {"fault": _fault(error), "losses": _losses(namespace.get("losses"))}
    if healed is not None:
        try:
            facts["healed"] = bool(eval(compile(healed, "<healed>", "eval"), namespace))
        except Exception as error:  # noqa: BLE001 - likewise
            facts["doubt"] = str(_fault(error))
    return facts


def _facts_of_call(function: Callable[[list[str]], Any], lines: list[str]) -> dict[str, Any]:
    try:
        value = function(lines)
    except (Exception, SystemExit) as error:  # noqa: BLE001 - likewise
        return {"fault": _fault(error)}
    facts = {"value": value, "shown": as_text(value), "losses": _losses(value)}
    return facts | _of_loop(value)


def _of_loop(value: Any) -> dict[str, Any]:
    """What a `LoopRun` tells: its losses, its remarks, and the error that ended it."""
    from pytorch_lab.loop import LoopRun

    if not isinstance(value, LoopRun):
        return {}
    facts: dict[str, Any] = {
        "losses": value.losses,
        "warnings": [remark.text for remark in value.remarks],
        "shown": value.summary,
    }
    if value.failure:
        place = value.failure.place
        message = f"{value.failure.message} {value.failure.says}".strip()
        source = value.lines[place - 1]
        facts["fault"] = Fault(value.failure.type, _cut(clean(message)), place, source)
    return facts


def same(a: Any, b: Any) -> bool:
    """Whether two measured values are equal: floats to six digits, NaN equal to NaN.

    A record that has an `outcome`, such as a `LoopRun`, is compared by that.

    Example:
        >>> same(0.1 + 0.2, 0.3), same([1, 2], (1, 2)), same(float("nan"), float("nan"))
        (True, False, True)
    """
    if type(a) is not type(b):
        return False
    if hasattr(a, "outcome"):
        return same(a.outcome, b.outcome)
    if isinstance(a, float):
        alike = math.isclose(a, b, rel_tol=1e-6, abs_tol=1e-9)
        return alike or (math.isnan(a) and math.isnan(b))
    if isinstance(a, list | tuple):
        return len(a) == len(b) and all(map(same, a, b))
    if isinstance(a, dict):
        return a.keys() == b.keys() and all(same(a[key], b[key]) for key in a)
    torch = sys.modules.get("torch")
    if torch is not None and isinstance(a, torch.Tensor):
        alike = a.shape == b.shape and a.dtype == b.dtype
        return alike and torch.allclose(a, b, rtol=1e-6, atol=1e-9, equal_nan=True)
    return bool(a == b)


def clean(text: str) -> str:
    """The text without what differs from run to run or place to place."""
    text = re.sub(r" at 0x[0-9a-fA-F]+", "", text)
    return re.sub(r" ?\(Triggered internally at [^)]*\)\.?", "", text)


def as_text(value: Any) -> str:
    """A value as a learner reads it: floats with six digits."""
    text = f"{value:.6g}" if isinstance(value, float) else repr(value)
    return _cut(clean(text))


def is_expression(text: Any) -> bool:
    """Whether this is the text of a Python expression."""
    if not isinstance(text, str):
        return False
    try:
        ast.parse(text.strip(), mode="eval")
    except SyntaxError:
        return False
    return True


def _wrapped(text: str) -> str:
    """Long lines of a message broken, so that they can be read at 80 columns."""
    return "\n".join(
        textwrap.fill(line, 74, subsequent_indent="  ", break_on_hyphens=False)
        for line in text.splitlines()
    )


def _cut(text: str, limit: int = TEXT_LIMIT) -> str:
    return text if len(text) <= limit else text[:limit] + " …"


def _fault(error: BaseException) -> Fault:
    """The error with the last line of the snippet that it passed through."""
    message = _cut(clean(str(error)))
    line: int | None = None
    if isinstance(error, SyntaxError) and error.filename == FILE:
        line, message = error.lineno, error.msg
    for frame in traceback.extract_tb(error.__traceback__):
        if frame.filename == FILE:
            line = frame.lineno
    source = linecache.getline(FILE, line).strip() if line else ""
    return Fault(type(error).__name__, message, line, source)


def _losses(found: Any) -> tuple[float, ...]:
    """The numbers of a list called `losses`; nothing if it is not such a list."""
    if not isinstance(found, list):
        return ()
    try:
        return tuple(float(loss) for loss in found)
    except (TypeError, ValueError, RuntimeError):
        return ()


def _told(heard: list[warnings.WarningMessage]) -> tuple[str, ...]:
    texts = [f"{w.category.__name__}: {_cut(clean(str(w.message)))}" for w in heard]
    return tuple(dict.fromkeys(texts))


class _Capped(io.StringIO):
    """Keeps the first letters only: a loop that prints for ever must not fill the memory."""

    def write(self, text: str, /) -> int:
        room = OUTPUT_LIMIT - self.tell()
        if 0 < room < len(text):
            super().write(text[:room] + "\n… the rest is not shown\n")
        elif room > 0:
            super().write(text)
        return len(text)


@contextlib.contextmanager
def _heard(output: io.StringIO) -> Iterator[list[warnings.WarningMessage]]:
    """Keep stdout and stderr, and the warnings that Python shows in a notebook by default."""
    with (
        contextlib.redirect_stdout(output),
        contextlib.redirect_stderr(output),
        warnings.catch_warnings(record=True) as heard,
    ):
        warnings.simplefilter("default")
        for kind in (DeprecationWarning, PendingDeprecationWarning, ImportWarning, ResourceWarning):
            warnings.simplefilter("ignore", kind)
        warnings.filterwarnings("default", category=DeprecationWarning, module="__main__")
        yield heard


@contextlib.contextmanager
def _own_main() -> Iterator[dict[str, Any]]:
    """A fresh namespace that is `__main__` for a while, so that pickle finds its classes."""
    module = types.ModuleType("__main__")
    before = sys.modules["__main__"]
    sys.modules["__main__"] = module
    try:
        yield module.__dict__
    finally:
        sys.modules["__main__"] = before


@contextlib.contextmanager
def _same_start() -> Iterator[None]:
    """Start from a fixed seed, and put back what a snippet may have switched."""
    import torch

    from pytorch_lab import surroundings

    with surroundings.kept():
        surroundings.seed(SEED)
        torch.set_warn_always(True)  # else a warning would be heard in the first run only
        yield
