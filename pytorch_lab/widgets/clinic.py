"""`clinic(...)`: a broken snippet, its real symptom, its cause, and the learner's own fix.

The symptom is what the snippet really did when the cell was run: its output, its error, the value
of one expression, its loss curve. The learner names the cause, then edits the code and runs it in
the kernel until the patient is healed. That the snippet is broken and that the fix heals it is
proved each time the cell is run.
"""

from typing import Any

from pytorch_lab.errors import UsageError
from pytorch_lab.widgets import curve, guesses, listing, prose, question, running
from pytorch_lab.widgets.piece import LessonPiece

ASK = "What is the cause?"


class Clinic(LessonPiece, stem="clinic"):
    """The widget of one patient."""

    kind = "Clinic"

    def __init__(
        self,
        title: str,
        code: str,
        causes: question.Choice,
        fix: str,
        measure: str | None,
        healed: str,
    ) -> None:
        self.title, self.code, self.causes, self.fix = title, code, causes, fix
        self.measure, self.healed = measure, healed
        self.symptom = self.run(code)
        self.health = self.run(fix)
        super().__init__(
            {
                "title": title,
                "code": code,
                "listing": listing.listing(code),
                "symptom": self.symptom.state(),
                "curve": curve.plan({"loss": self.symptom.losses}),
                "question": causes.state(),
                "kept": guesses.answered(causes),
                "fix": listing.listing(fix),
                "measure": measure,
                "was_healed": guesses.earlier(causes.id).get("healed", False),
                "running": False,
                "runs": 0,
                "result": None,
            }
        )

    def run(self, code: str) -> running.Run:
        """Run some code as this clinic looks at it."""
        return running.run(code, measure=self.measure, healed=self.healed)

    def on_guess(self, guess: Any) -> None:
        """Keep the cause that the learner named."""
        self.update(kept=guesses.answer(self.causes, guess, ask=self.title), trouble=None)

    def on_run(self, code: str) -> None:
        """Run the learner's code, and say whether it is healed."""
        self.update(running=True, trouble=None)
        run = self.run(code)
        curves = {"before": self.symptom.losses, "now": run.losses}
        result = {
            "code": code,
            "healed": run.healed,
            "doubt": run.doubt,
            "run": run.state(),
            "curve": curve.plan(curves) if run.losses else None,
        }
        self.update(running=False, runs=self.state["runs"] + 1, result=result)
        if run.healed:
            guesses.note(self.causes.id, healed=True)

    def to_html(self) -> str:
        """Code, symptom and causes; the cause and a fix folded."""
        plan = curve.plan({"loss": self.symptom.losses})
        image = f"<p>{curve.to_image(plan)}</p>" if plan else ""
        return self.framed(
            f"<p><strong>{prose.to_html(self.title)}</strong></p>{listing.to_html(self.code)}"
            f"<p>What happens:</p>{listing.to_html(self.symptom.to_text(self.measure))}{image}"
            f"{self.causes.to_html()}<details><summary>A fix</summary>{listing.to_html(self.fix)}"
            f"{listing.to_html(self.health.to_text(self.measure))}</details>"
        )

    def __str__(self) -> str:
        return "\n".join(
            [
                prose.to_text(f"{self.kind}: {self.title}"),
                *(f"    {line}".rstrip() for line in self.code.splitlines()),
                "What happens:",
                *(f"    {line}" for line in self.symptom.to_text(self.measure).splitlines()),
                self.causes.to_text(),
            ]
        )


def clinic(
    id: str,
    title: str,
    code: str,
    measure: str | None = None,
    *,
    healed: str,
    causes: dict[str, str],
    cause: str,
    fix: str,
) -> Clinic:
    r"""A broken snippet to be understood, then healed.

    Example:
        >>> import pytorch_lab as lab
        >>> patient = lab.clinic(
        ...     "01.c1",
        ...     "A mean that is too small",
        ...     code="numbers = [1, 2, 3]\nmean = sum(numbers) // 2",
        ...     measure="mean",
        ...     healed="mean == 2",
        ...     causes={
        ...         "It divides by 2": "There are three numbers.",
        ...         "`//` rounds down": "It does, but 6 / 2 is 3 either way.",
        ...     },
        ...     cause="It divides by 2",
        ...     fix="numbers = [1, 2, 3]\nmean = sum(numbers) / len(numbers)",
        ... )
        >>> print(patient)
        Clinic: A mean that is too small
            numbers = [1, 2, 3]
            mean = sum(numbers) // 2
        What happens:
            mean → 3
        What is the cause?
          ( ) It divides by 2
          ( ) `//` rounds down

    Args:
        id: its name in the learner's progress: the lesson, a dot, a word.
        title: the complaint.
        code: the broken snippet; if it fills a list called `losses`, that is drawn as a curve.
        measure: an expression whose value belongs to the symptom.
        healed: an expression over the snippet's names that is true when it is healed.
        causes: possible cause -> what speaks for or against it.
        cause: the right one.
        fix: the snippet, healed.

    Raises:
        UsageError: `code` is not broken, `fix` does not heal it, the causes are no question, ...
    """
    where = question.call("clinic", id)
    title = prose.sentence(where, "a title", title)
    asked = question.ask_for(where, id, ASK, choices=causes, answer=cause)
    for name, text in (("code", code), ("fix", fix)):
        if not isinstance(text, str) or not text.strip():
            raise UsageError(f"{where} expected `{name}` as Python code, got {text!r}.")
    for name, expression in (("measure", measure), ("healed", healed)):
        left_out = name == "measure" and expression is None
        if not (left_out or running.is_expression(expression)):
            raise UsageError(
                f"{where} expected `{name}` as a Python expression, got {expression!r}."
            )
    assert isinstance(asked, question.Choice)  # noqa: S101 - for the type checker
    patient = Clinic(title, code.strip("\n"), asked, fix.strip("\n"), measure, healed)
    _prove(where, patient)
    return patient


def _prove(where: str, patient: Clinic) -> None:
    """That the snippet is broken, and that the fix heals it."""
    sick, well = patient.symptom, patient.health
    if sick.interrupted or well.interrupted:
        raise KeyboardInterrupt
    if sick.healed:
        raise UsageError(
            f"{where} expected `code` that is broken, got one for which `{patient.healed}` is "
            "already true; break it, or ask for more in `healed`."
        )
    if not well.healed:
        came = well.fault or well.doubt or f"it is false; `{patient.measure}` is {well.shown}"
        raise UsageError(
            f"{where} expected `{patient.healed}` to be true for `fix`, but {came}; "
            "heal the fix, or correct `healed`."
        )
