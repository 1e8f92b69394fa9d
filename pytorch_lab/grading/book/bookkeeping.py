"""What the gradebook holds, written out; and what a person adds to it.

Nothing here runs a notebook: marks are written again in a second, with points given by hand and
with the rule for lateness.
"""

import difflib
import getpass
import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from sqlalchemy.engine import make_url
from sqlalchemy.exc import ArgumentError

from pytorch_lab.errors import CourseError, UsageError
from pytorch_lab.grading.authoring.assignment import Exercise
from pytorch_lab.grading.book import lms, marks
from pytorch_lab.grading.book.gradebook import Gradebook, Override, Person, Standing, now
from pytorch_lab.grading.book.late import LateRule
from pytorch_lab.grading.book.marks import GradedClass
from pytorch_lab.grading.book.past import Event
from pytorch_lab.grading.notebooks import replace

BOOK = "gradebook.sqlite"  # in the folder of the marks
MOST_POINTS = 10_000
_FILES = (".sqlite", ".sqlite3", ".db")
_SHOWN = 5  # names in a note


def url_of(db: str) -> str:
    """The URL of a gradebook; a SQLite file may be given by its path, or by its folder of marks.

    Example:
        >>> url_of("marks/gradebook.sqlite"), url_of("postgresql://host/marks")
        ('sqlite:///marks/gradebook.sqlite', 'postgresql://host/marks')
    """
    if "://" in db:
        return db
    if Path(db).is_dir():
        return f"sqlite:///{Path(db) / BOOK}"
    return f"sqlite:///{db}" if Path(db).suffix in _FILES else db


def graded_class(
    standing: Standing, name: Path, exercises: Sequence[Exercise], students: Sequence[str]
) -> GradedClass:
    """Some students' marks, as the gradebook holds them now.

    Args:
        standing: what it holds.
        name: of the assignment.
        exercises: what can be earned.
        students: whose marks, in their order.
    """
    here = set(students)
    graded = GradedClass(
        assignment=name,
        exercises=list(exercises),
        rows=marks.rows_of(standing, exercises, students),
        verdicts={place: said for place, said in standing.verdicts.items() if place[0] in here},
        people={student: standing.people.get(student, Person()) for student in students},
        sandbox=standing.sandbox,
        seed=standing.seed,
        late=standing.late,
    )
    untimed = [s for s, person in graded.people.items() if person.submitted_at is None]
    if standing.late and untimed:
        names = ", ".join(untimed[:_SHOWN]) + (", …" if len(untimed) > _SHOWN else "")
        graded.notes.append(
            f"{len(untimed)} came without the moment of handing in ({names}): lateness costs them "
            "nothing, or the least there is if the platform calls them late; grades.json has all"
        )
    return graded


def write(graded: GradedClass, out: Path, roster: lms.Roster | None = None) -> None:
    """Write the marks and the forms of the platforms.

    Raises:
        CourseError: the folder cannot be written to.
    """
    texts = lms.files(graded, roster)  # first, for it notes who was not found
    old = [name for name in lms.FORMS if name not in {Path(n).parts[0] for n in texts}]
    if old := [name for name in old if (out / name).exists()]:
        graded.notes.append(
            f"not written anew in {out}: {', '.join(old)}, of an earlier run, which had a roster "
            "or another platform's files"
        )
    for name, text in (marks.files(graded) | texts).items():
        replace(out / name, text)


def rewrite(
    db: str,
    out: Path,
    *,
    assignment: str | None = None,
    late: str | None = None,
    roster: Path | None = None,
) -> GradedClass:
    """Write the marks of all students in a gradebook again, without running anything.

    Args:
        db: the gradebook's URL, or the path of its file.
        out: the folder for the marks.
        assignment: its name, if the gradebook holds several.
        late: a rule for lateness, which holds from now on; "none" for none.
        roster: the file that Canvas or Moodle exported.

    Raises:
        LabError: there is no such gradebook, assignment, rule or roster.

    Example:
        >>> rewrite("no_such.sqlite", Path("marks"))
        Traceback (most recent call last):
        pytorch_lab.errors.CourseError: expected a gradebook at no_such.sqlite, found nothing; ...
    """
    rule = None if late is None else LateRule.parse(late)
    known = lms.read_roster(roster) if roster else None
    with _existing(db) as book:
        name = _assignment(book, assignment)
        if late is not None:
            book.set_late(name, str(rule or ""))
        standing = book.standing(name)
    exercises = [Exercise(exercise, (), "", points) for exercise, points in standing.exercises]
    graded = graded_class(standing, Path(name), exercises, sorted(standing.people))
    write(graded, out, known)
    return graded


def override(
    db: str,
    student: str,
    exercise: str,
    points: float | None,
    comment: str,
    *,
    author: str | None = None,
    assignment: str | None = None,
    bonus: bool = False,
) -> str:
    """Give a student's exercise other points than its verdict; they hold until taken back.

    Args:
        db: the gradebook's URL, or the path of its file.
        student: as in the marks.
        exercise: as in the marks.
        points: from 0 to what the exercise is worth; None to take back what was given.
        comment: why, for the student and for whoever asks.
        author: by default, who is logged in.
        assignment: its name, if the gradebook holds several with this exercise.
        bonus: let the points be more than the exercise is worth.

    Returns:
        What was done, in a sentence.

    Raises:
        LabError: there is no such gradebook, student or exercise, or these are no points.

    Example:
        >>> override("x.sqlite", "ada", "03.1", -1, "")
        Traceback (most recent call last):
        pytorch_lab.errors.UsageError: expected points from 0 up, got -1; ...
    """
    if points is not None and not (math.isfinite(points) and points >= 0):
        raise UsageError(
            f"expected points from 0 up, got {points}; give a number, or 'none' to take back what "
            "was given."
        )
    if not comment.strip():
        raise UsageError("expected a comment, got none; say in --comment why.")
    with _existing(db) as book:
        name = _assignment(book, assignment, exercise)
        standing = book.standing(name)
        _known(student, list(standing.people), "student")
        most = dict(standing.exercises)[exercise]
        _refuse_more(points, most, exercise, bonus)
        given = Override(points, comment.strip(), author or getpass.getuser(), now())
        book.override(name, student, exercise, given)
    if points is None:
        return f"{student}, {exercise}: what was given by hand is taken back"
    more = f", more than its {marks.number(most)}" if points > most else ""
    return f"{student}, {exercise}: {marks.number(points)} of {marks.number(most)}{more}"


def _refuse_more(points: float | None, most: float, exercise: str, bonus: bool) -> None:
    if points is None or points <= most or (bonus and points <= MOST_POINTS):
        return
    way = f"give up to {MOST_POINTS}" if bonus else "add --bonus if it shall be more"
    raise UsageError(
        f"expected up to the {marks.number(most)} points of {exercise}, got {points:g}; {way}."
    )


def history(db: str, student: str, exercise: str, *, assignment: str | None = None) -> list[Event]:
    """All that happened to a student's exercise, the earliest first.

    Args:
        db: the gradebook's URL, or the path of its file.
        student: as in the marks.
        exercise: as in the marks.
        assignment: its name, if the gradebook holds several with this exercise.

    Raises:
        LabError: there is no such gradebook, student or exercise.

    Example:
        >>> history("no_such.sqlite", "ada", "03.1")
        Traceback (most recent call last):
        pytorch_lab.errors.CourseError: expected a gradebook at no_such.sqlite, found nothing; ...
    """
    with _existing(db) as book:
        name = _assignment(book, assignment, exercise)
        _known(student, list(book.standing(name).people), "student")
        return book.history(name, student, exercise)


@contextmanager
def _existing(db: str) -> Iterator[Gradebook]:
    """A gradebook that is there: a slip in its name must not make a new one."""
    url = url_of(db)
    try:
        file = make_url(url).database if url.startswith("sqlite") else None
    except ArgumentError:
        file = None  # opening it says so
    if file and file != ":memory:" and not file.startswith("file:") and not Path(file).is_file():
        raise CourseError(f"expected a gradebook at {file}, found nothing; check --db.")
    book = Gradebook(url)
    try:
        yield book
    finally:
        book.close()


def _assignment(book: Gradebook, wanted: str | None, exercise: str | None = None) -> str:
    """Which assignment is meant."""
    there = book.assignments()
    if wanted is not None:
        name = _known(Path(wanted).stem, list(there), "assignment")
        if exercise is not None:
            _known(exercise, there[name], "exercise")
        return name
    if exercise is not None:
        _known(exercise, [e for every in there.values() for e in every], "exercise")
    meant = [name for name, every in there.items() if exercise is None or exercise in every]
    if len(meant) == 1:
        return meant[0]
    raise UsageError(
        f"expected one assignment in the gradebook, found {len(meant)}"
        f"{': ' if meant else ''}{', '.join(meant[:5])}; "
        f"{'say which with --assignment.' if meant else 'grade one first.'}"
    )


def _known(wanted: str, there: Sequence[str], what: str) -> str:
    """A name that is there; else the sentence with what was meant perhaps."""
    if wanted in there:
        return wanted
    near = difflib.get_close_matches(wanted, there, 1)
    meant = f"did you mean {near[0]!r}?" if near else f"there are {', '.join(there[:5]) or 'none'}."
    raise UsageError(f"expected one {what} of the gradebook, got {wanted!r}; {meant}")
