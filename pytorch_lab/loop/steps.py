"""The named steps of a training loop: each is a line of Python, and that line is what runs.

A loop is an order of steps, gone through once for each batch. A step is a name of `STEPS`, a line
of Python of the reader's own, or a function that takes what the loop has at hand.
"""

import difflib
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from types import CodeType, MappingProxyType
from typing import Any

from pytorch_lab.errors import UsageError

NO_GRAD = "with torch.no_grad():"

STEPS = MappingProxyType(
    {
        "forward": "output = model(x)",
        "loss": "loss = loss_fn(output, y)",
        "zero_grad": "optimizer.zero_grad()",
        "zero_grad(set_to_none=False)": "optimizer.zero_grad(set_to_none=False)",
        "backward": "loss.backward()",
        "backward(retain_graph=True)": "loss.backward(retain_graph=True)",
        "clip": "torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)",
        "step": "optimizer.step()",
        "scheduler": "scheduler.step()",
        "total": "total += loss",
        "total.item": "total += loss.item()",
        "train": "model.train()",
        "eval": "model.eval()",
        "no_grad": NO_GRAD,
    }
)
RIGHT = ("zero_grad", "forward", "loss", "backward", "step")

_COMPUTING = {STEPS[name] for name in ("forward", "loss", "total", "total.item", "train", "eval")}
_NAMES = {line: name for name, line in STEPS.items()}

Given = str | Callable[["Here"], Any]  # what a reader may write into an order


class Here:
    """What the loop has at hand, for a step that is a function: `here.loss`.

    Example:
        >>> here = Here({"loss": 8.0})
        >>> here.loss = here.loss / 4
        >>> here.loss
        2.0
    """

    def __init__(self, names: dict[str, Any]) -> None:
        object.__setattr__(self, "_names", names)

    def __getattr__(self, name: str) -> Any:
        try:
            return self._names[name]
        except KeyError:
            raise NameError(f"name {name!r} is not defined", name=name) from None

    def __setattr__(self, name: str, value: Any) -> None:
        self._names[name] = value

    def __dir__(self) -> list[str]:
        return sorted(self._names)


@dataclass(frozen=True, slots=True)
class Step:
    """One step of an order, ready to run."""

    name: str
    line: str
    code: CodeType | None = None  # None for a function, and for `with torch.no_grad():`
    function: Callable[[Here], Any] | None = None

    @property
    def computes(self) -> bool:
        """Whether it is a line of ours that leaves gradients alone."""
        return self.line in _COMPUTING

    def run(self, names: dict[str, Any]) -> None:
        """Do it with these names."""
        if self.function is not None:
            self.function(Here(names))
        elif self.code is not None:
            exec(self.code, names)


def parse(order: Any) -> tuple[Step, ...]:
    """The steps that an order stands for.

    Raises:
        UsageError: the order is none, a name is not known, or a line is no Python.
    """
    if isinstance(order, str) or not isinstance(order, Iterable):
        raise UsageError(
            "loop.run(order) expected a list of steps, such as "
            f"{list(RIGHT)}, got {order!r:.60}; see loop.STEPS for their names."
        )
    steps = tuple(_step(given) for given in order)
    if not steps:
        raise UsageError(
            "loop.run(order) expected at least one step, got an empty order; "
            f"the usual one is {list(RIGHT)}."
        )
    return steps


def lines(order: Iterable[Given] = RIGHT) -> list[str]:
    """The lines of an order, for a listing or for `lab.order`.

    Example:
        >>> lines(["zero_grad", "no_grad", "forward"])
        ['optimizer.zero_grad()', 'with torch.no_grad():', '    output = model(x)']
    """
    return list(indented(parse(order)))


def indented(steps: Iterable[Step]) -> Iterator[str]:
    """What stands below `with torch.no_grad():` is moved in."""
    margin = ""
    for step in steps:
        yield margin + step.line
        if step.line == NO_GRAD:
            margin += "    "


def _step(given: Any) -> Step:
    if callable(given):
        name = getattr(given, "__name__", type(given).__name__)
        return Step(name, f"{name}(here)", function=given)
    if not isinstance(given, str) or not given.strip():
        raise UsageError(
            "loop.run(order) expected each step as a name, a line of Python or a function, "
            f"got {given!r:.60}."
        )
    text = given.strip()
    line = STEPS.get(text, text)
    name = _NAMES.get(line, line)
    if line == NO_GRAD:
        return Step(name, line)
    if line == text and text.isidentifier():
        raise UsageError(_unknown(text))
    try:
        return Step(name, line, code=compile(line, f"<{name}>", "exec"))
    except (SyntaxError, ValueError, MemoryError, RecursionError) as error:
        raise UsageError(
            f"loop.run(order) expected a name of loop.STEPS or a line of Python, got {text!r:.60} "
            f"({getattr(error, 'msg', '') or type(error).__name__})."
        ) from error


def _unknown(name: str) -> str:
    near = difflib.get_close_matches(name, STEPS, n=1, cutoff=0.5)
    meant = f"did you mean {near[0]!r}?" if near else f"known are {', '.join(STEPS)}."
    return f"loop.run(order) expected the name of a step, got {name!r}; {meant}"
