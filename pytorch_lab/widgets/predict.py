"""`predict(...)`: guess before you run.

The learner picks an option or types a number, locks it in, and reads what this guess would mean.
The first guess is kept in their progress and shown again, also when the cell is run anew.
"""

from typing import Any

from pytorch_lab.widgets import guesses
from pytorch_lab.widgets.piece import LessonPiece
from pytorch_lab.widgets.question import Question, ask_for, call


class Predict(LessonPiece, stem="predict"):
    """The widget of one question."""

    kind = "Predict"

    def __init__(self, question: Question) -> None:
        self.question = question
        super().__init__({"question": question.state(), "kept": guesses.answered(question)})

    def on_guess(self, guess: Any) -> None:
        """Keep what the learner locked in."""
        self.update(kept=guesses.answer(self.question, guess), trouble=None)

    def to_html(self) -> str:
        """Question and options; answer and explanations folded."""
        return self.framed(self.question.to_html())

    def __str__(self) -> str:
        return self.question.to_text(f"{self.kind}: ")


def predict(
    id: str,
    ask: str,
    choices: dict[str, str] | None = None,
    answer: str | None = None,
    *,
    number: float | None = None,
    tolerance: float = 0.0,
    unit: str = "",
    why: str = "",
) -> Predict:
    """A question to be answered before the next cell is run.

    Example:
        >>> import pytorch_lab as lab
        >>> print(
        ...     lab.predict(
        ...         "03.p1",
        ...         "How many parameters does `nn.Linear(4, 2)` have?",
        ...         choices={
        ...             "8": "That counts the weight, 4 × 2, and forgets the bias.",
        ...             "10": "A weight of 4 × 2 and a bias of 2.",
        ...         },
        ...         answer="10",
        ...     )
        ... )
        Predict: How many parameters does `nn.Linear(4, 2)` have?
          ( ) 8
          ( ) 10

    Args:
        id: its name in the learner's progress: the lesson, a dot, a word.
        ask: the question; `code` and **bold** may stand in it and in all sentences.
        choices: option -> what it would mean, the right one included; or else `number`.
        answer: the right option.
        number: the right number; or else `choices`.
        tolerance: how far off a number may be.
        unit: of the number.
        why: the explanation of the number.

    Raises:
        UsageError: the answer is not among the choices, an explanation is missing, ...
    """
    return Predict(
        ask_for(
            call("predict", id), id, ask,
            choices=choices, answer=answer, number=number, tolerance=tolerance, unit=unit, why=why,
        )
    )  # fmt: skip
