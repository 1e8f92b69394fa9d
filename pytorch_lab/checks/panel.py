"""The panel of an exercise: `lab.exercise("03.2")`.

It runs the visible check, remembers state, tries and hints in `progress.json`, and hands the
widget sentences to show. Task, points, stub and solution are read from the course's own notebooks.
"""

from dataclasses import asdict, dataclass, fields, replace
from typing import Any

from pytorch_lab import progress
from pytorch_lab.checks import registry, sources
from pytorch_lab.checks.untouched import is_untouched
from pytorch_lab.checks.verdict import WORDS, Verdict
from pytorch_lab.errors import CourseError
from pytorch_lab.widgets.exercise import ExercisePanel

TRIES_BEFORE_SOLUTION = 5
UNTOUCHED = "Untouched: the answer is as it was given. Change it, run its cell, then press Check."


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
    """One exercise: what is known about it, and what each button does.

    What is remembered lies in the file, for two kernels may show the same exercise; `self.known` is
    the copy that goes on working where the file cannot be read or written.
    """

    def __init__(self, id: str) -> None:
        self.id = id
        self.check = registry.registered(id)
        self.source = sources.find(id)
        self.known = _Known()
        self.note = ""
        self.opened = False  # the solution, in this panel

    def panel(self) -> ExercisePanel:
        """A new panel, after one run of the check."""
        verdict = self._verdict()
        self._look_up()
        # Running the cell again, say with Run All, is no new try unless something has changed.
        if str(verdict) != self.known.said:
            self._count(verdict)
        state = {
            "exercise": self.id,
            "title": self.source.title,
            "points": self.source.points,
            "stub": None,
            "turn": 0,
        }
        buttons = {
            "check": self.on_check,
            "hint": self.on_hint,
            "reset": self.on_reset,
            "solution": self.on_solution,
        }
        return ExercisePanel(state | self._judged(verdict) | self._counted(), buttons)

    def on_check(self) -> dict[str, Any]:
        """Run the check again; a wrong answer is a try."""
        self.check = registry.registered(self.id)
        verdict = self._verdict()
        self._look_up()
        self._count(verdict)
        return self._judged(verdict) | self._counted() | {"stub": None}

    def on_hint(self) -> dict[str, Any]:
        """One hint more."""
        self._look_up()
        self._keep(hints=min(self.known.hints + 1, len(self.check.hints)))
        return self._counted()

    def on_reset(self) -> dict[str, Any]:
        """Forget tries and hints and show the stub; the learner's cell is theirs."""
        self.opened = False
        self._keep(state="open", tries=0, hints=0, passed=False, said="")
        said = "Tries and hints are forgotten. Your own cell is as you left it."
        fresh = Verdict(self.id, "open", said, said)
        return self._judged(fresh) | self._counted() | {"stub": self.source.stub}

    def on_solution(self) -> dict[str, Any]:
        """The solution's text, once it is open to the learner."""
        self._look_up()
        self.opened = not self._why_closed()
        return self._counted()

    def _verdict(self) -> Verdict:
        """What the check finds; a stub with faults to repair is no wrong answer before a try."""
        verdict = registry.run(self.id)
        if verdict.state in ("failed", "raised") and is_untouched(self.source.stub or ""):
            return Verdict(self.id, "open", UNTOUCHED, UNTOUCHED, printed=verdict.printed)
        return verdict

    def _look_up(self) -> None:
        try:
            found = progress.read()["exercises"].get(self.id)
        except CourseError as error:
            self.note = str(error)
        else:
            # Nothing in the file after a write that failed: go on with what we know.
            self.known = _Known.of(found) if found or not self.note else self.known

    def _count(self, verdict: Verdict) -> None:
        if verdict.state == "open":
            return
        won = verdict.state == "passed"
        self._keep(
            state=verdict.state,
            tries=self.known.tries + (not won),
            passed=self.known.passed or won,
            said=str(verdict),
        )

    def _keep(self, **facts: Any) -> None:
        self.known = replace(self.known, **facts)
        try:
            progress.remember("exercises", self.id, **asdict(self.known))
        except CourseError as error:
            self.note = str(error)
        else:
            self.note = ""

    def _judged(self, verdict: Verdict) -> dict[str, Any]:
        icon, word = WORDS[verdict.state]
        return {
            "state": verdict.state,
            "icon": icon,
            "word": word,
            "message": verdict.message,
            "why": verdict.why + self._beside(verdict),
            "evidence": verdict.evidence,
            "line": asdict(verdict.line) if verdict.line else None,
            "printed": verdict.printed,
        }

    def _beside(self, verdict: Verdict) -> str:
        """What the panel says beyond the verdict."""
        if verdict.state == "open" and self.known.passed:
            return " You have passed this exercise before."
        if verdict.state != "passed":
            return ""
        compare = " Compare your way with the solution's." if self.source.solution else ""
        return f"Everything that the check asks holds.{compare}"

    def _counted(self) -> dict[str, Any]:
        tries, shown = self.known.tries, self.known.hints
        reason = self._why_closed()
        opened = self.opened and not reason
        return {
            "tries": tries,
            "hints": list(self.check.hints[:shown]),
            "hint_count": len(self.check.hints),
            "solution": {
                "enabled": not reason,
                "reason": reason,
                "text": self.source.solution if opened else None,
            },
            "note": self.note,
        }

    def _why_closed(self) -> str:
        left = TRIES_BEFORE_SOLUTION - self.known.tries
        if self.source.solution is None:
            return "This copy of the course carries no solution."
        if self.known.passed or left <= 0:
            return ""
        many = "try" if left == 1 else "tries"
        return f"The solution opens when you pass, or after {left} more {many}."


@dataclass(frozen=True, slots=True)
class _Known:
    """One entry of `progress.json`."""

    state: str = "open"
    tries: int = 0
    hints: int = 0
    passed: bool = False  # at least once
    said: str = ""  # the last verdict in words

    @classmethod
    def of(cls, entry: Any) -> "_Known":
        """From a file that people may have edited; a value of another type is not taken."""
        entry = entry if isinstance(entry, dict) else {}
        facts = {f.name: entry[f.name] for f in fields(cls) if f.name in entry}
        fitting = {k: v for k, v in facts.items() if type(v) is type(getattr(_NEW, k))}
        return cls(**fitting)


_NEW = _Known()
