"""What happened to a student's exercise: handed in, judged, given points by hand, in that order."""

from datetime import datetime
from typing import NamedTuple

from sqlalchemy import select
from sqlalchemy.orm import Session

from pytorch_lab.grading.book.tables import Handed, Outcome, Overridden, Run


class Event(NamedTuple):
    """One line of an exercise's history."""

    at: datetime
    what: str  # "handed in", "judged" or "by hand"
    said: str


def events(session: Session, assignment: str, student: str, exercise: str) -> list[Event]:
    """All that a gradebook knows of a student's exercise, the earliest first.

    Example:
        >>> from pytorch_lab.grading.book.tables import connect
        >>> events(Session(connect("sqlite://")), "03_modules", "ada", "03.1")
        []
    """
    whose = {"assignment": assignment, "student": student}
    runs = {run.id: run for run in session.scalars(select(Run).filter_by(assignment=assignment))}
    handed = session.scalars(select(Handed).filter_by(**whose))
    outcomes = session.scalars(select(Outcome).filter_by(**whose, exercise=exercise))
    by_hand = session.scalars(select(Overridden).filter_by(**whose, exercise=exercise))
    found = [
        *(Event(row.at, "handed in", _notebook(row)) for row in handed),
        *(Event(row.at, "judged", _verdict(row, runs[row.run])) for row in outcomes),
        *(Event(row.at, "by hand", _points(row)) for row in by_hand),
    ]
    return sorted(found, key=lambda event: event.at)


def _notebook(row: Handed) -> str:
    if row.gone:
        return "no longer in the folder"
    when = f", on {row.submitted_at:%Y-%m-%d %H:%M} UTC" if row.submitted_at else ""
    late = ", late as the platform says" if row.late else ""
    what = f"notebook {row.content[:12]}" if row.content else "nothing that could be read"
    return f"{what}{when}{late}"


def _verdict(row: Outcome, run: Run) -> str:
    walls = "" if run.sandbox else ", no sandbox"
    why = "".join(f"; {said}" for said in (row.misconception, row.reason) if said)
    return f"{row.status} (run {run.id}, seed {run.seed}, version {run.version}{walls}){why}"


def _points(row: Overridden) -> str:
    given = "taken back" if row.points is None else f"{row.points:g} points"
    return f"{given}, by {row.author}: {row.comment}"
