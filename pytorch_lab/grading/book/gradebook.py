"""The gradebook: which verdict a notebook got, so that nothing is run twice and nothing is lost.

A verdict belongs to a *key*: a hash of all that could change it (the overlaid notebook with its
seed, the solutions, the limits). The same key is never run again; a changed answer, solution or
seed has another key.

What a run said about a student's exercise is an *outcome*; the latest holds, and the earlier ones
are its history. Points given by hand and the rule for lateness stand beside them: they are applied
when marks are written, and no verdict is ever changed by them.

A SQLite file by default, any database of SQLAlchemy's else. Two runs may write at the same time:
each submission is one transaction, and the first to settle a key settles it.
"""

import datetime
import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, NamedTuple, TypeVar

from sqlalchemy import delete, func, select
from sqlalchemy.exc import IntegrityError, SQLAlchemyError
from sqlalchemy.orm import Session

from pytorch_lab import __version__
from pytorch_lab.errors import CourseError
from pytorch_lab.grading.book import past, tables
from pytorch_lab.grading.book.tables import Handed, Known, Outcome, Overridden, Rule, Run

Place = tuple[str, str]  # a student and an exercise


class Verdict(NamedTuple):
    """How one exercise was judged."""

    status: str
    reason: str
    misconception: str = ""  # the mutant that reveals the same
    hint: str = ""
    shown: str = ""  # what the visible check printed in the graded kernel
    seconds: float = 0.0  # that the exercise's cells ran
    points: float | None = None  # where a status does not say it: a part of them


class Override(NamedTuple):
    """Points that a person gave; None takes the earlier ones back."""

    points: float | None
    comment: str
    author: str
    at: datetime.datetime


class Person(NamedTuple):
    """What is known of a student beside the name."""

    lms_id: str = ""  # the number that Canvas or Moodle gave
    submitted_at: datetime.datetime | None = None
    late: bool | None = None  # what the platform says, which may name no moment
    content: str = ""  # a hash of the notebook


T = TypeVar("T", Verdict, Override, Person)


@dataclass
class Standing:
    """What holds in an assignment now."""

    exercises: list[tuple[str, float]]  # their ids and points
    seed: int
    sandbox: bool
    late: str
    verdicts: dict[Place, Verdict] = field(default_factory=dict)
    overrides: dict[Place, Override] = field(default_factory=dict)
    people: dict[str, Person] = field(default_factory=dict)


def key_of(*parts: Any) -> str:
    """A hash of everything that a verdict depends on.

    Example:
        >>> key_of({"a": 1}, 7) == key_of({"a": 1}, 7), key_of({"a": 1}, 8) == key_of({"a": 1}, 7)
        (True, False)
    """
    text = json.dumps(parts, sort_keys=True, ensure_ascii=True)
    return hashlib.sha256(text.encode()).hexdigest()


class Gradebook:
    """One database of verdicts, outcomes, overrides and rules.

    Args:
        url: as SQLAlchemy writes it, such as `sqlite:///marks/gradebook.sqlite`.

    Raises:
        CourseError: it cannot be opened, or is not a gradebook; in any method: it cannot be read
            or written to.

    Example:
        >>> book = Gradebook("sqlite://")
        >>> book.keep("k1", "ada", {"03.1": Verdict("passed", "")})
        >>> book.known("k1")["03.1"].status
        'passed'
    """

    def __init__(self, url: str) -> None:
        self.engine = tables.connect(url)

    # ------------------------------------------------------------------ verdicts, by key

    def known(self, key: str) -> dict[str, Verdict]:
        """The verdicts on a key, by exercise; empty if it was never run to its end."""
        with self._reading() as session:
            rows = session.scalars(select(Known).where(Known.key == key))
            return {row.exercise: _tuple(Verdict, row) for row in rows}

    def keep(self, key: str, student: str, verdicts: Mapping[str, Verdict]) -> None:
        """Settle a key; if another run has settled it meanwhile, that stands."""
        at = now()
        with self._writing(first_wins=True) as session:
            session.add_all(
                Known(key=key, exercise=exercise, student=student, at=at, **said._asdict())
                for exercise, said in verdicts.items()
            )

    def forget(self, keys: Sequence[str], before: datetime.datetime) -> None:
        """Let keys be run again, but for what was found out since a moment."""
        with self._writing() as session:
            for key in keys:
                session.execute(delete(Known).where(Known.key == key, Known.at < before))

    # ------------------------------------------------------------------ runs and outcomes

    def begin(
        self, assignment: str, exercises: Sequence[tuple[str, float]], seed: int, sandbox: bool,
        only: Sequence[str] = (),
    ) -> Run:  # fmt: skip
        """Note that a run begins; if the last one was like it and was stopped, that one goes on.

        Args:
            assignment: its name.
            exercises: their ids and points.
            seed: what the hidden checks draw their inputs from.
            sandbox: whether students' code is shut in.
            only: the exercises whose outcomes it renews; empty for all.
        """
        said = {"assignment": assignment, "seed": seed, "sandbox": sandbox, "version": __version__}
        pairs = [list(pair) for pair in exercises]
        with self._writing() as session:
            run = session.scalars(
                select(Run).filter_by(assignment=assignment).order_by(Run.id.desc()).limit(1)
            ).first()
            wanted = said | {"exercises": pairs, "only": list(only), "ended": None}
            if run is not None and any(getattr(run, k) != value for k, value in wanted.items()):
                run = None
            if run is None:
                run = Run(**wanted, started=now())
                session.add(run)
            session.flush()
            session.expunge(run)
        return run

    def end(
        self,
        run: Run,
        verdicts: Mapping[Place, Verdict],
        people: Mapping[str, Person],
        folder: str = "",
    ) -> None:
        """Keep what a run said, where it is not what was said before.

        Args:
            run: as `begin` gave it.
            verdicts: by student and exercise.
            people: the students of this run.
            folder: where their submissions lay; who was there once and is not now has no marks.
        """
        at = now()
        with self._writing() as session:
            before = _latest(session, Outcome, run.assignment)
            for (student, exercise), said in verdicts.items():
                old = before.get((student, exercise))
                if old and run.only and exercise not in run.only:
                    continue
                renewed = exercise in run.only
                if old is None or renewed or _timeless(_tuple(Verdict, old)) != _timeless(said):
                    session.add(
                        Outcome(
                            run=run.id, assignment=run.assignment, student=student,
                            exercise=exercise, at=at, **said._asdict(),
                        )
                    )  # fmt: skip
            _note_people(session, people, assignment=run.assignment, folder=folder, at=at)
            session.get_one(Run, run.id).ended = at

    # ------------------------------------------------------------------ by hand

    def override(self, assignment: str, student: str, exercise: str, given: Override) -> None:
        """Let points given by a person stand above the verdict's."""
        whose = {"assignment": assignment, "student": student, "exercise": exercise}
        with self._writing() as session:
            session.add(Overridden(**whose, **given._asdict()))

    def set_late(self, assignment: str, rule: str) -> None:
        """Let a rule for lateness hold from now on; "" for none."""
        with self._writing() as session:
            session.add(Rule(assignment=assignment, late=rule, at=now()))

    # ------------------------------------------------------------------ what holds, what was

    def assignments(self) -> dict[str, list[str]]:
        """The assignments that were graded, each with the ids of its exercises."""
        with self._reading() as session:
            runs = session.scalars(select(Run).order_by(Run.id))
            return {run.assignment: [exercise for exercise, _ in run.exercises] for run in runs}

    def last_seed(self, assignment: str) -> int | None:
        """The seed of an assignment's last run; None if it was never graded."""
        with self._reading() as session:
            of_it = select(Run.seed).where(Run.assignment == assignment)
            return session.scalars(of_it.order_by(Run.id.desc())).first()

    def standing(self, assignment: str) -> Standing:
        """What holds now in an assignment; it must have been graded."""
        with self._reading() as session:
            runs = session.scalars(
                select(Run).where(Run.assignment == assignment).order_by(Run.id)
            ).all()
            outcomes = _latest(session, Outcome, assignment)
            used = {outcome.run for outcome in outcomes.values()}
            by_hand = _latest(session, Overridden, assignment)
            rule = session.scalars(
                select(Rule.late).where(Rule.assignment == assignment).order_by(Rule.id.desc())
            ).first()
            return Standing(
                exercises=[(exercise, points) for exercise, points in runs[-1].exercises],
                seed=runs[-1].seed,
                sandbox=all(run.sandbox for run in runs if run.id in used),
                late=rule or "",
                verdicts={place: _tuple(Verdict, outcome) for place, outcome in outcomes.items()},
                overrides={
                    place: _tuple(Override, row)
                    for place, row in by_hand.items()
                    if row.points is not None
                },
                people=_people(session, assignment),
            )

    def history(self, assignment: str, student: str, exercise: str) -> list[past.Event]:
        """All that happened to a student's exercise, the earliest first."""
        with self._reading() as session:
            return past.events(session, assignment, student, exercise)

    def close(self) -> None:
        """Let go of the database."""
        self.engine.dispose()

    @contextmanager
    def _reading(self) -> Iterator[Session]:
        try:
            with Session(tables.reading(self.engine)) as session:
                yield session
        except SQLAlchemyError as error:
            raise CourseError(
                f"expected to read the gradebook {self.engine.url!r}, but got "
                f"{tables.first_line(error)!r}; give --db the URL of a whole one."
            ) from None

    @contextmanager
    def _writing(self, *, first_wins: bool = False) -> Iterator[Session]:
        try:
            with Session(self.engine) as session, session.begin():
                yield session
        except SQLAlchemyError as error:
            if first_wins and isinstance(error, IntegrityError):
                return
            raise CourseError(
                f"expected to write to the gradebook {self.engine.url!r}, but got "
                f"{tables.first_line(error)!r}; what was judged before is in it, and the same "
                "command goes on from there."
            ) from None


def now() -> datetime.datetime:
    """This moment, with its time zone."""
    return datetime.datetime.now(datetime.UTC)


def _timeless(said: Verdict) -> Verdict:
    """A verdict without what differs between two runs that agree."""
    return said._replace(seconds=0.0, shown="")


def _tuple(kind: type[T], row: Any) -> T:
    return kind(*(getattr(row, name) for name in kind._fields))


def _latest(session: Session, table: Any, assignment: str) -> dict[Place, Any]:
    """The last row on each student and exercise."""
    newest = (
        select(func.max(table.id))
        .where(table.assignment == assignment)
        .group_by(table.student, table.exercise)
    )
    rows = session.scalars(select(table).where(table.id.in_(newest)))
    return {(row.student, row.exercise): row for row in rows}


def _people(session: Session, assignment: str) -> dict[str, Person]:
    """Those whose submissions are still there."""
    last = _last_handed(session, assignment)
    return {student: _tuple(Person, row) for student, row in last.items() if not row.gone}


def _last_handed(session: Session, assignment: str) -> dict[str, Handed]:
    rows = session.scalars(select(Handed).filter_by(assignment=assignment).order_by(Handed.id))
    return {row.student: row for row in rows}


def _note_people(session: Session, people: Mapping[str, Person], **known: Any) -> None:
    """Note what was handed in since, and what is no longer in its folder."""
    last, folder = _last_handed(session, known["assignment"]), known["folder"]
    for student, person in people.items():
        old = last.get(student)
        if old is None or (_tuple(Person, old), old.folder, old.gone) != (person, folder, False):
            session.add(Handed(student=student, gone=False, **known, **person._asdict()))
    for student, old in last.items():
        if student not in people and old.folder == folder and not old.gone:
            session.add(Handed(student=student, gone=True, **known, **Person()._asdict()))
