"""`recall(...)`: short questions from earlier lessons, one after another, with a score at the end.

Remembering is what makes it stay: each question is answered once, then explained. The score counts
the guesses; they are kept like those of `predict`, under the id with a number behind it.
"""

from typing import Any

from pytorch_lab.errors import UsageError
from pytorch_lab.widgets import guesses
from pytorch_lab.widgets.piece import LessonPiece
from pytorch_lab.widgets.question import Question, ask_for, call


class Recall(LessonPiece, stem="recall"):
    """The widget of some questions."""

    kind = "Recall"

    def __init__(self, questions: list[Question]) -> None:
        self.questions = questions
        super().__init__(
            {"questions": [asked.state() for asked in questions], "kept": self._kept()}
        )

    def on_guess(self, place: int, guess: Any) -> None:
        """Keep the guess at the question of this place."""
        if place in range(len(self.questions)):
            guesses.answer(self.questions[place], guess)
        self.update(kept=self._kept(), trouble=None)

    def _kept(self) -> list[dict[str, Any] | None]:
        return [guesses.answered(asked) for asked in self.questions]

    def to_html(self) -> str:
        """All questions; answers and explanations folded."""
        return self.framed("".join(asked.to_html() for asked in self.questions))

    def __str__(self) -> str:
        texts = [asked.to_text(f"{k}. ") for k, asked in enumerate(self.questions, 1)]
        return "\n".join([f"{self.kind}:", *texts])


def recall(id: str, questions: list[dict[str, Any]]) -> Recall:
    """Questions from earlier lessons.

    Example:
        >>> import pytorch_lab as lab
        >>> print(
        ...     lab.recall(
        ...         "03.recall",
        ...         [
        ...             {
        ...                 "ask": "What do two calls of `backward()` leave in `.grad`?",
        ...                 "choices": {
        ...                     "the sum": "Gradients add up until they are set to zero.",
        ...                     "the last": "Nothing is overwritten; that is why we zero them.",
        ...                 },
        ...                 "answer": "the sum",
        ...             }
        ...         ],
        ...     )
        ... )
        Recall:
        1. What do two calls of `backward()` leave in `.grad`?
          ( ) the sum
          ( ) the last

    Args:
        id: its name in the learner's progress; the questions are `id.1`, `id.2`, ...
        questions: each as the arguments of `predict` without the id.

    Raises:
        UsageError: there is no question, or one that could not be answered.
    """
    where = call("recall", id)
    if not isinstance(questions, list) or not questions:
        raise UsageError(
            f"{where} expected a list of questions, got {questions!r:.60}; write "
            "[{'ask': ..., 'choices': {...}, 'answer': ...}, ...]."
        )
    return Recall([_question(where, id, k, parts) for k, parts in enumerate(questions, 1)])


def _question(where: str, id: str, number: int, parts: Any) -> Question:
    known = {"ask", "choices", "answer", "number", "tolerance", "unit", "why"}
    if not isinstance(parts, dict) or "ask" not in parts or not parts.keys() <= known:
        raise UsageError(
            f"{where} expected question {number} as a dict with 'ask', 'choices' and 'answer', "
            f"got {parts!r:.80}."
        )
    return ask_for(f"{where}, question {number},", f"{id}.{number}", **parts)
