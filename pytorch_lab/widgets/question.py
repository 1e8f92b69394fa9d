"""What a question of a lesson is: its answer, its explanations, and how a guess is marked.

A question is either a choice among sentences, each with its own explanation, or a number that may
be missed by a tolerance. `ask_for` makes one from a lesson author's arguments and refuses what
could not be answered.
"""

import html
import math
from dataclasses import dataclass
from typing import Any

from pytorch_lab.errors import UsageError
from pytorch_lab.widgets import prose


@dataclass(frozen=True, slots=True)
class Choice:
    """A question whose answer is one of several sentences."""

    id: str
    ask: str
    options: dict[str, str]  # sentence -> its explanation
    answer: str

    def accepts(self, guess: Any) -> bool:
        """Whether `guess` is something that could have been answered."""
        return isinstance(guess, str) and guess in self.options

    def is_right(self, guess: Any) -> bool:
        """Whether `guess` is the answer."""
        return guess == self.answer

    def shown(self, guess: Any) -> str:
        """A guess as people read it."""
        return str(guess)

    def state(self) -> dict[str, Any]:
        """What JavaScript draws."""
        options = [
            {"text": text, "why": why, "right": text == self.answer}
            for text, why in self.options.items()
        ]
        return {"kind": "choice", "id": self.id, "ask": self.ask, "options": options}

    def to_html(self) -> str:
        """Question and options; answer and explanations folded."""
        options = "".join(f"<li>{prose.to_html(text)}</li>" for text in self.options)
        whys = "".join(
            f"<li>{'<strong>✓ Right:</strong> ' if text == self.answer else ''}"
            f"{prose.to_html(text)} – <em>{prose.to_html(why)}</em></li>"
            for text, why in self._right_first()
        )
        return (
            f"<p><strong>{prose.to_html(self.ask)}</strong></p><ul>{options}</ul>"
            f"<details><summary>Answer</summary><ul>{whys}</ul></details>"
        )

    def to_text(self, opening: str = "") -> str:
        """Question and options, after some opening words; the answer stays hidden."""
        options = [prose.to_text(text, "    ", "  ( ) ") for text in self.options]
        return "\n".join([prose.to_text(self.ask, first=opening), *options])

    def _right_first(self) -> list[tuple[str, str]]:
        return sorted(self.options.items(), key=lambda option: option[0] != self.answer)


@dataclass(frozen=True, slots=True)
class Number:
    """A question whose answer is a number, within a tolerance."""

    id: str
    ask: str
    answer: float
    tolerance: float
    unit: str
    why: str

    def accepts(self, guess: Any) -> bool:
        """Whether `guess` is something that could have been answered."""
        return (
            isinstance(guess, int | float) and not isinstance(guess, bool) and math.isfinite(guess)
        )

    def is_right(self, guess: Any) -> bool:
        """Whether `guess` is close enough; `closeEnough` in piece.js has the same rule."""
        slack = 1e-9 * max(1.0, abs(self.answer))
        return abs(guess - self.answer) <= self.tolerance + slack

    def shown(self, guess: Any) -> str:
        """A guess as people read it."""
        return f"{guess:.6g} {self.unit}".strip()

    def state(self) -> dict[str, Any]:
        """What JavaScript draws."""
        return {
            "kind": "number",
            "id": self.id,
            "ask": self.ask,
            "answer": self.answer,
            "shown": self.shown(self.answer) + self._slack(),
            "tolerance": self.tolerance,
            "unit": self.unit,
            "why": self.why,
        }

    def to_html(self) -> str:
        """Question; answer and explanation folded."""
        unit = f" (in {html.escape(self.unit)})" if self.unit else ""
        answer = html.escape(self.shown(self.answer) + self._slack())
        return (
            f"<p><strong>{prose.to_html(self.ask)}</strong></p><p>Answer with a number{unit}.</p>"
            f"<details><summary>Answer</summary><p><strong>{answer}</strong> "
            f"{prose.to_html(self.why)}</p></details>"
        )

    def to_text(self, opening: str = "") -> str:
        """Question, after some opening words; the answer stays hidden."""
        return f"{prose.to_text(self.ask, first=opening)}\n  a number: ____ {self.unit}".rstrip()

    def _slack(self) -> str:
        return f" (± {self.tolerance:.6g})" if self.tolerance else ""


Question = Choice | Number


def ask_for(
    where: str,
    id: str,
    ask: str,
    *,
    choices: dict[str, str] | None = None,
    answer: str | None = None,
    number: float | None = None,
    tolerance: float = 0.0,
    unit: str = "",
    why: str = "",
) -> Question:
    """The question that these arguments describe.

    Example:
        >>> question = ask_for("predict('03.p1')", "03.p1", "How many?", number=4, why="Two each.")
        >>> question.is_right(4), question.is_right(5)
        (True, False)

    Args:
        where: the call as the author wrote it, for messages.
        id: its name in the learner's progress, such as "03.p1".
        ask: the question.
        choices: option -> explanation; or else `number`.
        answer: the right option.
        number: the right number; or else `choices`.
        tolerance: how far off a number may be.
        unit: of the number.
        why: explanation of the number.

    Raises:
        UsageError: the arguments do not make a question that can be answered.
    """
    ask = prose.sentence(where, "the question", ask)
    if (choices is None) == (number is None):
        got = "neither" if choices is None else "both"
        raise UsageError(f"{where} expected either `choices` or `number`, got {got}; give one.")
    if choices is not None:
        return _choice(where, id, ask, choices, answer)
    return _number(where, id, ask, number, tolerance, unit, why)


def _choice(where: str, id: str, ask: str, choices: Any, answer: Any) -> Choice:
    if not isinstance(choices, dict) or len(choices) < 2:
        raise UsageError(
            f"{where} expected `choices` as a dict of at least two options, each with its "
            f"explanation, got {choices!r:.60}; write {{option: explanation, ...}}."
        )
    options = {
        prose.sentence(where, "an option", text): prose.sentence(
            where, f"an explanation of the option {text!r}", why
        )
        for text, why in choices.items()
    }
    if answer not in options:
        raise UsageError(
            f"{where} expected `answer` to be one of its choices, got {answer!r}; "
            f"use one of {', '.join(map(repr, options))}."
        )
    return Choice(id, ask, options, answer)


def _number(
    where: str, id: str, ask: str, number: Any, tolerance: Any, unit: str, why: Any
) -> Number:
    for name, value in (("number", number), ("tolerance", tolerance)):
        finite = isinstance(value, int | float) and math.isfinite(value)
        if not finite or isinstance(value, bool):
            raise UsageError(f"{where} expected `{name}` as a finite number, got {value!r}.")
    if tolerance < 0:
        raise UsageError(
            f"{where} expected a `tolerance` of 0 or more, got {tolerance!r}; "
            "it is how far off a guess may be."
        )
    why = prose.sentence(where, "an explanation of the number, `why=`,", why)
    return Number(id, ask, number, tolerance, unit, why)


def call(function: str, id: Any) -> str:
    """`predict('03.p1')`, as messages name a call.

    Raises:
        UsageError: `id` is not a short name without spaces.
    """
    if not isinstance(id, str) or not id or any(letter.isspace() for letter in id):
        raise UsageError(
            f"{function}(id, ...) expected an id without spaces such as '03.p1', got {id!r}."
        )
    return f"{function}({id!r})"
