"""`derivatives(...)`: the learner fills in a small graph by hand, and autograd checks each number.

First the local derivative on each arrow, then the gradient of each step, from the result back. A
wrong number gets a sentence about how it may have come about, not the right one. What was right is
kept in the learner's progress, with how many were right at the first try.

The idea is Andrej Karpathy's: backpropagation on numbers small enough to check (micrograd, 2020).
"""

import math
from collections.abc import Callable
from typing import Any

from pytorch_lab import progress
from pytorch_lab.errors import UsageError
from pytorch_lab.graph import by_hand
from pytorch_lab.widgets import derivatives_blanks, derivatives_picture, guesses, prose, question
from pytorch_lab.widgets.piece import LessonPiece

TITLE = "Fill in the derivatives by hand"


class Derivatives(LessonPiece, stem="derivatives"):
    """The widget of one graph."""

    kind = "By hand"

    def __init__(
        self, id: str, title: str, steps: tuple[by_hand.Step, ...], tolerance: float
    ) -> None:
        self.id, self.title, self.steps = id, title, steps
        self.slopes = derivatives_blanks.slopes(steps, tolerance)
        self.gradients = derivatives_blanks.gradients(steps, tolerance)
        self.blanks = {blank.key: blank for blank in (*self.slopes, *self.gradients)}
        super().__init__(
            {
                "title": title,
                "lines": self.lines(),
                "names": {step.name: step.value for step in steps},
                "plan": derivatives_picture.plan(steps, self.slopes, self.gradients),
                "slopes": [derivatives_blanks.state(blank) for blank in self.slopes],
                "gradients": [derivatives_blanks.state(blank) for blank in self.gradients],
                "kept": self._kept(),
            }
        )

    def lines(self) -> list[str]:
        """The graph as code, a step a line."""
        return [f"{step.name} = {step.text or derivatives_picture.short(step.value)}"
                for step in self.steps]  # fmt: skip

    def on_fill(self, key: str, guess: float) -> None:
        """Keep a number that the learner filled in."""
        blank = self.blanks.get(key)
        if blank is None or not isinstance(guess, int | float) or not math.isfinite(guess):
            return
        kept = self._kept()
        right = blank.is_right(guess)
        kept["first"].setdefault(key, right)
        if right:
            kept["filled"][key] = guess
        guesses.note(self.id, **kept)
        if right and len(kept["filled"]) == len(self.blanks):
            self._finish(kept["first"])
        self.update(kept=kept, trouble=None)

    def on_again(self) -> None:
        """Empty all blanks; what the closing card says of the first time stays."""
        guesses.note(self.id, filled={}, first={})
        self.update(kept=self._kept(), trouble=None)

    def _finish(self, first: dict[str, bool]) -> None:
        total = len(self.blanks)
        right = sum(first.values())
        guesses.keep(
            self.id,
            ask=self.title,
            guess=f"{right} of {total} at the first try",
            right=right == total,
            answer=f"{total} of {total}",
        )

    def _kept(self) -> dict[str, dict[str, Any]]:
        """What was filled in earlier, as far as it still is an answer to this graph."""
        known = progress.read()["guesses"].get(self.id)
        known = known if isinstance(known, dict) else {}
        filled, first = known.get("filled"), known.get("first")
        filled = filled if isinstance(filled, dict) else {}
        first = first if isinstance(first, dict) else {}
        return {
            "filled": {
                key: number
                for key, number in filled.items()
                if key in self.blanks
                and isinstance(number, int | float)
                and self.blanks[key].is_right(number)
            },
            "first": {key: right is True for key, right in first.items() if key in self.blanks},
        }

    def to_html(self) -> str:
        """The graph with its blanks; the numbers folded."""
        picture = derivatives_picture.image(self.title, self.steps, self.slopes, self.gradients)
        rows = "".join(
            f"<li><code>{blank.label}</code> = {derivatives_picture.short(blank.answer)}</li>"
            for blank in self.blanks.values()
        )
        return self.framed(
            f"<p><strong>{prose.to_html(self.title)}</strong></p><p>{picture}</p>"
            f"<p>First the local derivative on each arrow, then the gradient of each step, from "
            f"{self.steps[-1].name} back.</p><details><summary>Answer</summary><ul>{rows}</ul>"
            "</details>"
        )

    def __str__(self) -> str:
        return "\n".join(
            [
                prose.to_text(f"{self.kind}: {self.title}"),
                *(f"    {line}" for line in self.lines()),
                "The local derivatives:",
                *(f"    {blank.label} = ____" for blank in self.slopes),
                f"The gradients, from {self.steps[-1].name} back:",
                *(f"    {blank.label} = ____" for blank in self.gradients),
            ]
        )


def derivatives(
    id: str,
    fn: Callable[..., Any],
    /,
    *,
    title: str = TITLE,
    tolerance: float = 0.01,
    **leaves: float,
) -> Derivatives:
    """A small graph whose derivatives the learner works out by hand.

    Example:
        >>> import pytorch_lab as lab
        >>> print(lab.derivatives("02.d1", lambda a, b: (a * b).tanh(), a=2.0, b=-1.0))
        By hand: Fill in the derivatives by hand
            a = 2
            b = -1
            v1 = a * b
            L = tanh(v1)
        The local derivatives:
            ∂v1/∂a = ____
            ∂v1/∂b = ____
            ∂L/∂v1 = ____
        The gradients, from L back:
            L.grad = ____
            v1.grad = ____
            b.grad = ____
            a.grad = ____

    Args:
        id: its name in the learner's progress: the lesson, a dot, a word.
        fn: takes the leaves by name, each a scalar tensor of float64, and returns a scalar tensor;
            at most twelve steps.
        title: what is to be done; `code` and **bold** may stand in it.
        tolerance: how far off a number may be, as a share of the right one: 0.01 is 1 %.
        leaves: a name and a value for each argument of `fn`.

    Raises:
        UsageError: `fn` did not run on these leaves, or is no graph of single numbers.
    """
    where = question.call("derivatives", id)
    title = prose.sentence(where, "a title", title)
    if not callable(fn) or not leaves:
        got = repr(fn) if not callable(fn) else "no leaves"
        raise UsageError(
            f"{where} expected a function and its leaves, got {got:.60}; write "
            "derivatives(id, lambda a, b: a * b, a=2.0, b=-1.0)."
        )
    for name, value in {"tolerance": tolerance, **leaves}.items():
        finite = isinstance(value, int | float) and math.isfinite(value)
        if not finite or isinstance(value, bool):
            raise UsageError(f"{where} expected `{name}` as a finite number, got {value!r:.60}.")
    if not 0 < tolerance < 0.1:
        raise UsageError(
            f"{where} expected a `tolerance` between 0 and 0.1, got {tolerance!r}; it is a share "
            "of the right number."
        )
    return Derivatives(id, title, by_hand.work_out(fn, leaves, where), tolerance)
