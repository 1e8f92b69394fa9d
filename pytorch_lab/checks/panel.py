"""The panel of an exercise: `lab.exercise("03.2")`.

It runs the visible check, remembers state, tries and hints in `progress.json`, and hands the
widget sentences to show. Task, points, stub and solution are read from the course's own notebooks.
"""

from typing import Any

from pytorch_lab import progress
from pytorch_lab.checks import registry, sources
from pytorch_lab.checks.verdict import WORDS, Verdict
from pytorch_lab.errors import CourseError
from pytorch_lab.widgets.exercise import ExercisePanel

TRIES_BEFORE_SOLUTION = 5


def exercise(id: str) -> ExercisePanel:
    """The panel with Check, Hint, Reset and Solution; checks the answer once at creation.

    Args:
        id: the exercise, such as "03.2"; its `@checks.visible` cell has been run.

    Raises:
        UsageError: no check was registered under this id.
    """
    registry.registered(id)
    return _Desk(id).panel()


class _Desk:
    """One exercise: what is known about it, and what each button does."""

    def __init__(self, id: str) -> None:
        self.id = id
        self.check = registry.registered(id)
        self.source = sources.find(id)
        self.known: dict[str, Any] = dict(progress.read()["exercises"].get(id, {}))
        self.note = ""

    def panel(self) -> ExercisePanel:
        """A new panel, after one run of the check."""
        verdict = registry.run(self.id)
        self._count(verdict, again=str(verdict) == self.known.get("said"))
        state = {
            "exercise": self.id,
            "title": self.source.title,
            "points": self.source.points,
            "stub": None,
            "turn": 0,
        }
        buttons = {"check": self.on_check, "hint": self.on_hint, "reset": self.on_reset}
        buttons["solution"] = self.on_solution
        return ExercisePanel(state | self._judged(verdict) | self._counted(), buttons)

    def on_check(self) -> dict[str, Any]:
        """Run the check again; a wrong answer is a try."""
        verdict = registry.run(self.id)
        self._count(verdict, again=False)
        return self._judged(verdict) | self._counted() | {"stub": None}

    def on_hint(self) -> dict[str, Any]:
        """One hint more."""
        self._remember(hints=min(self.known.get("hints", 0) + 1, len(self.check.hints)))
        return self._counted()

    def on_reset(self) -> dict[str, Any]:
        """Forget tries, hints and state, and show the stub; the learner's cell is theirs."""
        self._remember(state="open", tries=0, hints=0, passed=False, said="")
        message = "Tries and hints are forgotten. Your cell is as you left it."
        return (
            self._judged(Verdict(self.id, "open", message))
            | self._counted()
            | {"stub": self.source.stub}
        )

    def on_solution(self) -> dict[str, Any]:
        """The solution's text, when it is open to the learner."""
        shown = self._counted()
        if shown["solution"]["enabled"]:
            shown["solution"]["text"] = self.source.solution
        return shown

    def _count(self, verdict: Verdict, *, again: bool) -> None:
        if verdict.state == "open" or again:
            return
        tries = self.known.get("tries", 0) + (verdict.state != "passed")
        passed = self.known.get("passed", False) or verdict.state == "passed"
        self._remember(state=verdict.state, tries=tries, passed=passed, said=str(verdict))

    def _remember(self, **facts: Any) -> None:
        self.known |= facts
        try:
            progress.remember("exercises", self.id, **self.known)
            self.note = ""
        except CourseError as error:
            self.note = str(error)

    def _judged(self, verdict: Verdict) -> dict[str, Any]:
        icon, word = WORDS[verdict.state]
        line = verdict.line
        return {
            "state": verdict.state,
            "icon": icon,
            "word": word,
            "message": verdict.message,
            "line": {"number": line.number, "source": line.source} if line else None,
            "printed": verdict.printed,
        }

    def _counted(self) -> dict[str, Any]:
        tries, passed = self.known.get("tries", 0), self.known.get("passed", False)
        left = TRIES_BEFORE_SOLUTION - tries
        reason = ""
        if self.source.solution is None:
            reason = "This copy of the course carries no solution."
        elif not passed and left > 0:
            reason = f"Opens when you pass, or after {left} more {'try' if left == 1 else 'tries'}."
        return {
            "tries": tries,
            "hints": list(self.check.hints[: self.known.get("hints", 0)]),
            "hint_count": len(self.check.hints),
            "solution": {"enabled": not reason, "reason": reason, "text": None},
            "note": self.note,
        }
