"""`card(...)`: what a lesson is about, and at its end what was learned.

The closing card shows the learner's guesses beside the answers, and fills itself while they are
made. Its static form shows none of them: they are the learner's own, not the notebook's.
"""

import html
from typing import Any

from pytorch_lab.errors import UsageError
from pytorch_lab.widgets import guesses, prose
from pytorch_lab.widgets.piece import LessonPiece


class OpeningCard(LessonPiece, stem="card"):
    """The card above a lesson."""

    kind = "Lesson"

    def __init__(
        self, title: str, goal: str, minutes: int | None, needs: list[str], changed: list[str]
    ) -> None:
        super().__init__(
            {
                "kind": self.kind,
                "title": title,
                "goal": goal,
                "minutes": minutes,
                "needs": needs,
                "changed": changed,
            }
        )

    def to_html(self) -> str:
        """The whole card."""
        state = self.state
        minutes = f"<p>{state['minutes']} minutes</p>" if state["minutes"] else ""
        lists = "".join(
            f"<p><strong>{name}</strong></p><ul>"
            + "".join(f"<li>{prose.to_html(line)}</li>" for line in state[key])
            + "</ul>"
            for key, name in SECTIONS.items()
            if state[key]
        )
        return self.framed(
            f"<p><strong>{prose.to_html(state['title'])}</strong></p>"
            f"<p>{prose.to_html(state['goal'])}</p>{minutes}{lists}"
        )

    def __str__(self) -> str:
        state = self.state
        minutes = f" ({state['minutes']} minutes)" if state["minutes"] else ""
        lines = [
            f"{self.kind}: {state['title']}{minutes}",
            prose.to_text(state["goal"], "  ", "  "),
        ]
        for key, name in SECTIONS.items():
            if state[key]:
                lines.append(f"{name}:")
                lines += [prose.to_text(line, "    ", "  - ") for line in state[key]]
        return "\n".join(lines)


class ClosingCard(LessonPiece, stem="card"):
    """The card below a lesson."""

    kind = "Learned"

    def __init__(self, title: str, learned: str, lesson: str) -> None:
        self.lesson = lesson
        super().__init__(
            {"kind": self.kind, "title": title, "learned": learned, "rows": self._rows()}
        )
        guesses.listen(self.refresh)

    def refresh(self) -> None:
        """Read the learner's guesses again."""
        self.update(rows=self._rows())

    def _rows(self) -> list[dict[str, str]]:
        return [
            {
                "ask": str(known.get("ask", known["id"])),
                "guess": _words(known["guess"]),
                "answer": str(known.get("answer", "")),
                "mark": _mark(known),
            }
            for known in guesses.of_lesson(self.lesson)
        ]

    def to_html(self) -> str:
        """What was learned; no guesses."""
        return self.framed(
            f"<p><strong>{prose.to_html(self.state['title'])}</strong></p>"
            f"<p>{prose.to_html(self.state['learned'])}</p>"
            f"<p>In a running notebook your guesses of lesson {html.escape(self.lesson)} "
            "stand here.</p>"
        )

    def __str__(self) -> str:
        learned = prose.to_text(self.state["learned"], "  ", "  ")
        return f"{self.kind}: {self.state['title']}\n{learned}"


SECTIONS = {"needs": "Needs", "changed": "Changed since most tutorials were written"}


def _words(guess: Any) -> str:
    return f"{guess:.6g}" if isinstance(guess, float) else str(guess)


def _mark(known: dict[str, Any]) -> str:
    if known.get("right"):
        return "right"
    return "right in the end" if known.get("last_right") else "not right"


def card(
    title: str,
    *,
    goal: str | None = None,
    minutes: int | None = None,
    needs: list[str] | None = None,
    changed: list[str] | None = None,
    learned: str | None = None,
    lesson: str | None = None,
) -> OpeningCard | ClosingCard:
    """The card that opens a lesson, or the one that closes it.

    Example:
        >>> import pytorch_lab as lab
        >>> print(lab.card("Modules", goal="You will see what is registered.", minutes=50))
        Lesson: Modules (50 minutes)
          You will see what is registered.
        >>> print(lab.card("Modules", learned="What is hidden is not trained.", lesson="03"))
        Learned: Modules
          What is hidden is not trained.

    Args:
        title: of the lesson.
        goal: in one sentence; makes it an opening card.
        minutes: how long it takes.
        needs: what the learner should know or have.
        changed: what has changed in torch since most tutorials were written, a line each.
        learned: in one line; makes it a closing card.
        lesson: the lesson whose guesses are shown, such as "03".

    Raises:
        UsageError: neither or both kinds of card, or a part that is missing.
    """
    title = prose.sentence("card(...)", "a title", title)
    where = f"card({title!r})"
    if (goal is None) == (learned is None):
        got = "neither" if goal is None else "both"
        raise UsageError(
            f"{where} expected either `goal` (it opens a lesson) or `learned` (it closes one), "
            f"got {got}; give one."
        )
    if learned is not None:
        if not isinstance(lesson, str) or not lesson.isalnum():
            raise UsageError(
                f"{where} expected `lesson` such as '03', got {lesson!r}; "
                "its guesses are shown on the card."
            )
        return ClosingCard(title, prose.sentence(where, "`learned`", learned), lesson)
    if minutes is not None and (not isinstance(minutes, int) or minutes < 1):
        raise UsageError(f"{where} expected `minutes` as a whole number, got {minutes!r}.")
    goal = prose.sentence(where, "`goal`", goal)
    return OpeningCard(
        title, goal, minutes, _lines(where, "needs", needs), _lines(where, "changed", changed)
    )


def _lines(where: str, name: str, lines: Any) -> list[str]:
    """Each entry a sentence on one line."""
    if lines is None:
        return []
    if not isinstance(lines, list):
        raise UsageError(f"{where} expected `{name}` as a list of lines, got {lines!r:.60}.")
    lines = [prose.sentence(where, f"each entry of `{name}`", line) for line in lines]
    for line in lines:
        if "\n" in line:
            raise UsageError(
                f"{where} expected each entry of `{name}` on one line, got {line!r}; split it."
            )
    return lines
