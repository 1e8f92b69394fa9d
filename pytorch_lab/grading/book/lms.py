"""The forms in which Canvas, Moodle and Gradescope take marks.

    canvas.csv           Canvas's gradebook import
    moodle.csv           Moodle's offline grading worksheet
    gradescope/*.json    what Gradescope's autograder calls results.json, one for each student
    roster.csv           who is missing: among the notebooks, or in the roster

A form is written for a class that came from its platform, or whose roster was given.
Students are found by the platform's number, which their zips carry in the names of the files. A
*roster*, the file that Canvas or Moodle itself exports, gives the other columns and the numbers
of those whose notebooks came another way. Who is not in the roster is left out and told: an import
must not make up a student.
"""

import csv
import html
import io
import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pytorch_lab.errors import UsageError
from pytorch_lab.grading.book.gradebook import Person, Verdict
from pytorch_lab.grading.book.marks import GradedClass, Row, as_json, guarded, number, table, total
from pytorch_lab.grading.book.telling import STATUS_WORDS, tell
from pytorch_lab.grading.notebooks import why_not
from pytorch_lab.grading.trouble import one_line

FORMS = ("canvas.csv", "moodle.csv", "gradescope", "roster.csv")
_CANVAS = ("Student", "ID", "SIS User ID", "SIS Login ID", "Section")
_CANVAS_MORE = ("Integration ID", "Root Account")  # Canvas counts on their places
_MOODLE = (
    "Identifier", "Full name", "Email address", "Status", "Grade", "Maximum Grade",
    "Grade can be changed", "Last modified (submission)", "Last modified (grade)",
    "Feedback comments",
)  # fmt: skip
_PARTICIPANT = "Participant "
_TEST_STUDENT = "Student, Test"  # Canvas's own, in every course
_ID = re.compile(r"\w[\w.@~-]*|[+-]?\d+")  # no spreadsheet takes it for a formula


@dataclass
class Roster:
    """A class as Canvas or Moodle exported it."""

    platform: str = ""  # "canvas", "moodle", or "" without a file
    columns: list[str] = field(default_factory=list)
    people: list[dict[str, str]] = field(default_factory=list)
    possible: dict[str, str] = field(default_factory=dict)  # Canvas's row of points

    def find(self, student: str, lms_id: str) -> dict[str, str] | None:
        """Whose line it is: by the platform's number, else by a login or name of one person only.

        Example:
            >>> roster = Roster("canvas", [], [{"Student": "Lovelace, Ada", "ID": "7"}])
            >>> roster.find("Ada Lovelace", "")["ID"], roster.find("x", "7")["ID"]
            ('7', '7')
        """
        number = "Identifier" if self.platform == "moodle" else "ID"
        same = [p for p in self.people if lms_id and _number_in(p.get(number, "")) == lms_id]
        for columns in (("SIS Login ID", "SIS User ID", "Email address"), ("Student", "Full name")):
            wanted = _words(student)
            same = same or [
                person
                for person in self.people
                if any(person.get(c) and _words(person[c]) == wanted for c in columns)
            ]
        return same[0] if len(same) == 1 else None


def read_roster(path: Path) -> Roster:
    """The class in a file that Canvas (gradebook) or Moodle (grading worksheet) exported.

    Raises:
        UsageError: it cannot be read, or is neither.

    Example:
        >>> read_roster(Path("no_such.csv"))
        Traceback (most recent call last):
        pytorch_lab.errors.UsageError: expected a roster at no_such.csv, but got 'No such file ...
    """
    try:
        text = path.read_text("utf-8-sig")
    except OSError as error:
        raise UsageError(
            f"expected a roster at {path}, but got {why_not(error)}; give the file that Canvas or "
            "Moodle exported."
        ) from None
    except UnicodeDecodeError:
        text = ""
    first = text.partition("\n")[0]
    lines = csv.reader(io.StringIO(text), delimiter=";" if first.count(";") > 3 else ",")
    columns = [name.strip() for name in next(lines, [])]
    people = [dict(zip(columns, line, strict=False)) for line in lines if any(map(str.strip, line))]
    if {"Student", "ID", "Section"} <= set(columns):
        possible = next((p for p in people if "Points Possible" in p["Student"]), {})
        return Roster(
            "canvas", columns, [p for p in people if _number_in(p.get("ID", ""))], possible
        )
    if {"Identifier", "Grade"} <= set(columns):
        return Roster("moodle", columns, people)
    raise UsageError(
        f"expected a roster in {path}, with the columns Student, ID and Section (Canvas's exported "
        "gradebook) or Identifier and Grade (Moodle's grading worksheet, in English), found "
        f"{one_line(first)!r}; export it again."
    )


def files(graded: GradedClass, roster: Roster | None = None) -> dict[str, str]:
    """The texts of the forms, by the names of their files; who is missing is noted.

    Args:
        graded: the class.
        roster: what Canvas or Moodle exported.

    Example:
        >>> row = Row("ada", "03.1", 2.0, 2.0, "passed", "")
        >>> class_ = GradedClass(Path("03.ipynb"), [], [row], {}, people={"ada": Person("7")})
        >>> sorted(files(class_)), sorted(files(class_, Roster("canvas")))
        (['moodle.csv'], ['canvas.csv', 'moodle.csv', 'roster.csv'])
    """
    roster = roster or Roster()
    wanted = {roster.platform, *map(_platform, graded.people.values())}
    made = {}
    if roster.platform:
        made["roster.csv"] = _missing(graded, roster)
    if "canvas" in wanted:
        made["canvas.csv"] = _canvas(graded, roster)
    if "moodle" in wanted:
        made["moodle.csv"] = _moodle(graded, roster)
    if "gradescope" in wanted:
        names = _file_names([student for student, _ in graded.by_student()])
        for student, rows in graded.by_student():
            made[f"gradescope/{names[student]}.json"] = as_json(_gradescope(graded, rows))
    return made


def _platform(person: Person) -> str:
    """Where a submission came from, by what the platform tells: a number, and more."""
    if not person.lms_id:
        return ""
    if person.submitted_at is not None:
        return "gradescope"
    return "canvas" if person.late is not None else "moodle"


def _missing(graded: GradedClass, roster: Roster) -> str:
    """Who is not in the roster, and who in the roster handed in nothing; both are noted."""
    found, unfound = [], []
    for student, _ in graded.by_student():
        person = roster.find(student, _lms_id(graded, student))
        found += [person] if person else []
        unfound += [] if person else [student]
    absent = [p for p in roster.people if p not in found and p.get("Student") != _TEST_STUDENT]
    names = [person.get("Student") or person.get("Full name", "") for person in absent]
    if unfound:
        graded.notes.append(
            f"{len(unfound)} not found in the roster, or by a name of several there, and left out "
            f"of {roster.platform}.csv: {_few(unfound)}"
        )
    if names:
        graded.notes.append(f"{len(names)} in the roster handed in nothing: {_few(names)}")
    return table(
        ["student", "what"],
        [[name, "not in the roster or there several times"] for name in unfound]
        + [[name, "handed in nothing"] for name in names],
    )


def _few(names: Sequence[str]) -> str:
    """The first of many names; `roster.csv` has all."""
    shown = ", ".join(map(one_line, names[:5]))
    return f"{shown}, … (all are in roster.csv)" if len(names) > 5 else shown


def for_student(said: Verdict) -> str:
    """What a student may read of a verdict: no hidden input and no expected value.

    Example:
        >>> for_student(Verdict("failed", "x: expected [1], got [2]", hint="Twice is 2 * x."))
        'wrong: A hidden check found another result than the reference. Twice is 2 * x.'
    """
    if said.status not in STATUS_WORDS:
        return said.status.replace("_", " ")
    told = [STATUS_WORDS[said.status][1], " ".join([*tell(said.status, said.reason), said.hint])]
    return one_line(": ".join(filter(None, map(str.strip, told))))


def _canvas(graded: GradedClass, roster: Roster) -> str:
    mine = roster if roster.platform == "canvas" else Roster()
    title = _canvas_column(graded, mine)
    columns = [c for c in (mine.columns or _CANVAS) if c in _CANVAS or c in _CANVAS_MORE]
    possible = mine.possible.get(title, "").strip() or number(graded.max_points)
    if _points_in(possible) != graded.max_points:
        graded.notes.append(
            f"Canvas gives {possible} points for {one_line(title)}, the notebook "
            f"{number(graded.max_points)}; canvas.csv holds the notebook's, as they are"
        )
    lines = []
    for student, rows in graded.by_student():
        person = mine.find(student, _lms_id(graded, student))
        if person is None and mine.platform:
            continue
        known = person or {"Student": student, "ID": _platform_number(graded, student)}
        lines.append([*(_cell(c, known.get(c, "")) for c in columns), number(total(rows))])
    head = [*columns, guarded(title)]
    points = ["    Points Possible", *[""] * (len(columns) - 1), possible]
    return _plain([head, points, *lines])


def _canvas_column(graded: GradedClass, roster: Roster) -> str:
    """The assignment as Canvas's own export names it, with its number; else the notebook's name."""
    name = graded.assignment.stem
    for column in roster.columns:
        if _words(re.sub(r"\s*\(\d+\)$", "", column)) == _words(name):
            return column
    return name


def _moodle(graded: GradedClass, roster: Roster) -> str:
    mine = roster if roster.platform == "moodle" else Roster()
    columns = list(mine.columns or _MOODLE)
    columns += [c for c in ("Last modified (grade)", "Feedback comments") if c not in columns]
    lines = []
    for student, rows in graded.by_student():
        person = mine.find(student, _lms_id(graded, student))
        if person is None and mine.platform:
            continue
        unknown = {
            "Identifier": f"{_PARTICIPANT}{at}"
            if (at := _platform_number(graded, student))
            else "",
            "Full name": student,
            "Maximum Grade": number(graded.max_points),
            "Grade can be changed": "Yes",
        }
        known = (person or unknown) | {
            "Grade": number(total(rows)),
            "Feedback comments": _comment(graded, rows),
        }
        lines.append([_cell(c, known.get(c, "")) for c in columns])
    return _plain([columns, *lines])


def _comment(graded: GradedClass, rows: Sequence[Row]) -> str:
    """A line about each exercise, as HTML, for that is what Moodle takes it for."""
    lines = [
        f"{row.exercise}: {number(row.points)} of {number(row.max_points)}, {_said(graded, row)}"
        for row in rows
    ]
    return "<br>".join(html.escape(line) for line in [*lines, *_warning(graded)])


def _gradescope(graded: GradedClass, rows: Sequence[Row]) -> dict[str, Any]:
    return {
        "score": total(rows),
        "output": "\n".join([f"{graded.assignment.stem}: graded", *_warning(graded)]),
        "output_format": "text",
        "visibility": "after_published",
        "stdout_visibility": "hidden",
        "tests": [
            {
                "name": row.exercise,
                "score": row.points,
                "max_score": row.max_points,
                "status": "passed" if _is_full(row) else "failed",
                "output": _said(graded, row),
                "output_format": "text",
                "visibility": "after_published",
            }
            for row in rows
        ],
    }


def _is_full(row: Row) -> bool:
    return row.points >= row.max_points if row.override else row.status == "passed"


def _said(graded: GradedClass, row: Row) -> str:
    """The verdict in the student's words, and what a person or the clock did to the points."""
    said = for_student(graded.verdicts.get((row.student, row.exercise), Verdict(row.status, "")))
    if row.override:
        return f"{said}; set by hand: {one_line(row.override.comment)}"
    if row.late:
        return f"{said}; handed in late, which took {number(row.late)}"
    return said


def _warning(graded: GradedClass) -> list[str]:
    return [] if graded.sandbox else ["Graded without a sandbox."]


def _lms_id(graded: GradedClass, student: str) -> str:
    return graded.people.get(student, Person()).lms_id


def _points_in(text: str) -> float | None:
    """The number that Canvas writes, with a comma in some languages."""
    try:
        return float(text.replace(",", "."))
    except ValueError:
        return None


def _words(text: str) -> list[str]:
    """A name to compare: "Lovelace, Ada" is "ada lovelace"."""
    return sorted(re.findall(r"[^\W_]+", text.casefold()))


def _number_in(text: str) -> str:
    """The number in "Participant 7", or in "7"."""
    return text.split()[-1] if text.split() else ""


def _cell(column: str, value: str) -> str:
    """A cell that is no formula; numbers by which people are found stay as they are."""
    kept = column.endswith("ID") and _ID.fullmatch(value)
    return value if kept else guarded(value)


def _plain(lines: Sequence[Sequence[str]]) -> str:
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows(lines)
    return text.getvalue()


def _platform_number(graded: GradedClass, student: str) -> str:
    """What Canvas and Moodle call a student is a number; another platform's id is not for them."""
    lms_id = _lms_id(graded, student)
    return lms_id if lms_id.isdecimal() else ""


def _file_names(students: Sequence[str]) -> dict[str, str]:
    """A name for each student's file: letters and digits, and no two alike."""
    names: dict[str, str] = {}
    taken: set[str] = set()
    for student in students:
        composed = unicodedata.normalize("NFC", student)
        plain = re.sub(r"[^\w.@+-]+", "_", composed).strip("._")[:50] or "student"
        name, count = plain, 1
        while name.casefold() in taken:
            count += 1
            name = f"{plain}-{count}"
        taken.add(name.casefold())
        names[student] = name
    return names
