"""What a learner guessed: kept in their progress file, and found again.

The first guess stays, because it is what they thought before they had seen anything; later tries
stand beside it as `last`. The closing card of a lesson listens here, so that it fills itself.
"""

from collections.abc import Callable
from typing import Any
from weakref import WeakMethod

from pytorch_lab import progress
from pytorch_lab.widgets.question import Question

_listeners: list[WeakMethod[Callable[[], None]]] = []


def keep(id: str, *, ask: str, guess: Any, right: bool, answer: str, **facts: Any) -> None:
    """Remember a guess: the first under `guess`, each under `last`.

    Args:
        id: the question's name, "03.p1".
        ask: the question in words.
        guess: the learner's answer in words or as a number.
        right: whether it is the answer.
        answer: the right answer in words.
        facts: what else to remember beside it.
    """
    known = earlier(id)
    first = {} if known else {"ask": ask, "guess": guess, "right": right}
    tries = known.get("tries", 1) + 1 if known else 1
    latest = {"answer": answer, "last": guess, "last_right": right, "tries": tries}
    note(id, **first, **latest, **facts)


def answer(question: Question, guess: Any, ask: str | None = None) -> dict[str, Any] | None:
    """Remember a guess if it is an answer to this question; then what `answered` says.

    Args:
        question: the question.
        guess: what the learner answered.
        ask: how the question is called when it does not speak for itself.
    """
    if question.accepts(guess):
        keep(
            question.id,
            ask=ask or question.ask,
            guess=guess,
            right=question.is_right(guess),
            answer=question.shown(question.answer),
        )
    return answered(question)


def answered(question: Question) -> dict[str, Any] | None:
    """The first and the last guess of earlier, if they still are answers to this question."""
    known = earlier(question.id)
    if not all(question.accepts(known.get(key)) for key in ("guess", "last")):
        return None
    first, last = known["guess"], known["last"]
    return {"guess": first, "right": question.is_right(first), "last": last}


def note(id: str, **facts: Any) -> None:
    """Remember facts beside a guess, and tell who listens."""
    progress.remember("guesses", id, **facts)
    for listener in list(_listeners):
        hear = listener()
        if hear is None:
            _listeners.remove(listener)
        else:
            hear()


def earlier(id: str) -> dict[str, Any]:
    """What is remembered of a question; empty if nothing was guessed."""
    found = progress.read()["guesses"].get(id)
    return found if isinstance(found, dict) and "guess" in found else {}


def of_lesson(lesson: str) -> list[dict[str, Any]]:
    """The guesses of one lesson, "03", each with its `id`, in the order they were first made."""
    known = progress.read()["guesses"]
    return [
        {"id": id, **facts}
        for id, facts in known.items()
        if id.startswith(f"{lesson}.") and isinstance(facts, dict) and "guess" in facts
    ]


def listen(hear: Callable[[], None]) -> None:
    """Call the method `hear` after each new guess, as long as its object lives."""
    _listeners.append(WeakMethod(hear))
