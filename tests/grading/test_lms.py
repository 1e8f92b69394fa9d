"""The forms of Canvas, Moodle and Gradescope: what their importers look for, and nothing unsafe."""

import csv
import json
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest

from pytorch_lab.errors import UsageError
from pytorch_lab.grading.authoring.assignment import Exercise
from pytorch_lab.grading.book import lms
from pytorch_lab.grading.book.gradebook import Override, Person, Verdict
from pytorch_lab.grading.book.marks import GradedClass, Row

EXERCISES = [Exercise("1", (), "", 1.0), Exercise("2", (), "", 2.5)]
GIVEN = Override(2.25, "a good <idea>", "ann", datetime(2026, 12, 1, tzinfo=UTC))
SECRET = "twice a vector[0]: expected 1.629, got 0.8145"
TOLD = (
    "wrong: A hidden check found another result: one of the values holds other numbers. "
    "Look at the sign."
)


def class_of(people):
    """Each got 0 for a wrong answer to 1, and 2 of 2.5 points, late, for 2."""
    rows, verdicts = [], {}
    for student in people:
        rows.append(Row(student, "1", 0.0, 1.0, "failed", SECRET))
        rows.append(Row(student, "2", 2.0, 2.5, "passed", "", late=0.5))
        verdicts[student, "1"] = Verdict("failed", SECRET, "halved", "Look at the sign.")
        verdicts[student, "2"] = Verdict("passed", "")
    return GradedClass(Path("03_numbers.ipynb"), EXERCISES, rows, verdicts, people=people)


def table(text):
    return list(csv.reader(text.splitlines()))


ADA, BOB = {"ada": Person("4711")}, {"bob": Person()}
SOMEBODY = {"canvas": Person("1", late=False), "moodle": Person("1")}
SOMEBODY["gradescope"] = Person("x", submitted_at=GIVEN.at)


def made(graded, roster=None):
    """The forms, as if somebody had come from each platform."""
    people, graded.people = graded.people, graded.people | SOMEBODY
    found = lms.files(graded, roster)
    graded.people = people
    return found


def test_a_form_is_written_for_those_who_came_from_its_platform_or_with_its_roster(tmp_path):
    assert lms.files(class_of(BOB)) == {}
    for platform, form in (
        ("canvas", "canvas.csv"), ("moodle", "moodle.csv"), ("gradescope", "gradescope/ada.json"),
    ):  # fmt: skip
        assert list(lms.files(class_of({"ada": SOMEBODY[platform]}))) == [form]
    assert list(lms.files(class_of(BOB), roster_of(tmp_path, EXPORT))) == [
        "roster.csv", "canvas.csv",
    ]  # fmt: skip


def test_all_who_are_missing_on_either_side_are_in_a_file(tmp_path):
    people = {f"nobody {n}": Person() for n in range(7)} | {"grace": Person()}
    graded = class_of(people)
    lines = table(lms.files(graded, roster_of(tmp_path, EXPORT))["roster.csv"])
    assert [name for name, what in lines if what.startswith("not in")] == list(people)[:7]
    assert [name for name, what in lines if what == "handed in nothing"] == [
        "Lovelace, Ada", "'=Evil, Bob", "Twin, Al", "Twin, Al",
    ]  # fmt: skip
    assert graded.notes[0].endswith("nobody 3, nobody 4, … (all are in roster.csv)")
    assert graded.notes[1] == (
        "4 in the roster handed in nothing: Lovelace, Ada, =Evil, Bob, Twin, Al, Twin, Al"
    )


def roster_of(tmp_path, text, encoding="utf-8"):
    path = tmp_path / "roster.csv"
    path.write_text(text, encoding)
    return lms.read_roster(path)


# ----------------------------------------------------------------------------- Canvas


def test_canvas_finds_students_by_its_number():
    assert table(made(class_of(ADA | BOB))["canvas.csv"]) == [
        ["Student", "ID", "SIS User ID", "SIS Login ID", "Section", "03_numbers"],
        ["    Points Possible", "", "", "", "", "3.5"],
        ["ada", "4711", "", "", "", "2"],
        ["bob", "", "", "", "", "2"],
    ]


def test_the_id_of_another_platform_is_not_for_canvas_and_moodle():
    found = made(class_of({"ada": Person("ada@x.edu")}))
    assert table(found["canvas.csv"])[2][:2] == ["ada", ""]
    assert table(found["moodle.csv"])[1][:2] == ["", "ada"]


@pytest.mark.parametrize(
    ("possible", "most", "differs"),
    [
        ("3.5", 2.5, False), ("3.50", 2.5, False), ("3,50", 2.5, False), ("10", 9, False),
        ("10.00", 9, False), ("35", 2.5, True), ("1", 9, True), ("(read only)", 2.5, True),
    ],
)  # fmt: skip
def test_points_that_canvas_gives_otherwise_are_told(tmp_path, possible, most, differs):
    text = f'Student,ID,Section,03_numbers (9)\n Points Possible,,,"{possible}"\nada,4711,A,\n'
    graded = class_of(ADA)
    graded.exercises = [EXERCISES[0], replace(EXERCISES[1], points=most)]
    lines = table(made(graded, roster_of(tmp_path, text))["canvas.csv"])
    assert lines[1:] == [["    Points Possible", "", "", possible], ["ada", "4711", "A", "2"]]
    assert [f"Canvas gives {possible} points" in note for note in graded.notes] == [True] * differs


EXPORT = """\
Student,ID,SIS User ID,SIS Login ID,Root Account,Section,02 Loops (11),03 Numbers (12),Final Score
,,,,,,Manual Posting,,
    Points Possible,,,,,,5,10,(read only)
"Lovelace, Ada",4711,-12,ada@x.edu,x.edu,"Lab, 1",5,,50
"Hopper, Grace",42,+1+cmd|x,grace,x.edu,Lab 2,,3,0
"=Evil, Bob",43,s-3,bob,x.edu,Lab 2,,3,0
"Twin, Al",44,s4,al1,x.edu,Lab 2,,3,0
"Twin, Al",45,s5,al2,x.edu,Lab 2,,3,0
"Student, Test",99,,abc,x.edu,Lab 2,,,
"""


def test_a_roster_of_canvas_gives_its_numbers_and_its_own_name_of_the_assignment(tmp_path):
    """Found by number, by login, by the words of the name; nobody who is not in the class."""
    people = {"xy": Person("4711"), "bob": Person(), "Grace Hopper": Person(), "al2": Person()}
    graded = class_of(people)
    assert table(made(graded, roster_of(tmp_path, EXPORT))["canvas.csv"]) == [
        [*EXPORT.splitlines()[0].split(",")[:6], "03 Numbers (12)"],
        ["    Points Possible", "", "", "", "", "", "10"],
        ["Lovelace, Ada", "4711", "-12", "ada@x.edu", "x.edu", "Lab, 1", "2"],
        ["'=Evil, Bob", "43", "s-3", "bob", "x.edu", "Lab 2", "2"],
        ["Hopper, Grace", "42", "'+1+cmd|x", "grace", "x.edu", "Lab 2", "2"],
        ["Twin, Al", "45", "s5", "al2", "x.edu", "Lab 2", "2"],
    ]
    assert graded.notes == [
        "1 in the roster handed in nothing: Twin, Al",
        "Canvas gives 10 points for 03 Numbers (12), the notebook 3.5; canvas.csv holds the "
        "notebook's, as they are",
    ]


def test_who_is_not_in_the_roster_or_twice_is_left_out_and_told(tmp_path):
    graded = class_of({"Al Twin": Person(), "nobody\n": Person("5"), "ada@x.edu": Person()})
    text = made(graded, roster_of(tmp_path, EXPORT))["canvas.csv"]
    assert [line[0] for line in table(text)[2:]] == ["Lovelace, Ada"]
    assert graded.notes[0] == (
        "2 not found in the roster, or by a name of several there, and left out of canvas.csv: "
        "Al Twin, nobody"
    )


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig"])
def test_a_roster_with_semicolons(tmp_path, encoding):
    text = "Student;ID;SIS User ID;SIS Login ID;Section\nZoë Ünal;7;;zoe;A\n"
    lines = table(
        made(class_of({"Ünal Zoë": Person()}), roster_of(tmp_path, text, encoding))["canvas.csv"]
    )
    assert lines[2] == ["Zoë Ünal", "7", "", "zoe", "A", "2"]


# ----------------------------------------------------------------------------- Moodle


def test_moodle_finds_participants_and_shows_no_expected_value():
    head, ada, bob = table(made(class_of(ADA | BOB))["moodle.csv"])
    assert head == [
        "Identifier", "Full name", "Email address", "Status", "Grade", "Maximum Grade",
        "Grade can be changed", "Last modified (submission)", "Last modified (grade)",
        "Feedback comments",
    ]  # fmt: skip
    said = f"1: 0 of 1, {TOLD}<br>2: 2 of 2.5, passed; handed in late, which took 0.5"
    assert ada == ["Participant 4711", "ada", "", "", "2", "3.5", "Yes", "", "", said]
    assert bob[0] == ""


WORKSHEET = """\
Identifier,Full name,Email address,Status,Grade,Maximum Grade,Last modified (grade),\
Feedback comments
Participant 4711,Ada Lovelace,ada@x.edu,Submitted,,100.00,"Monday, 1 June 2026",
Participant 12,=Grace Hopper,grace@x.edu,Submitted,,100.00,-,old
"""


def test_a_worksheet_of_moodle_is_filled_in(tmp_path):
    graded = class_of({"grace@x.edu": Person(), "ada": Person("4711"), "bob": Person("13")})
    graded.sandbox = False
    graded.rows[1] = replace(graded.rows[1], points=2.25, late=0.0, override=GIVEN)
    found = made(graded, roster_of(tmp_path, WORKSHEET))
    head, grace, ada = table(found["moodle.csv"])
    assert head == WORKSHEET.splitlines()[0].split(",")
    assert ada[:4] == ["Participant 4711", "Ada Lovelace", "ada@x.edu", "Submitted"]
    assert ada[4:7] == ["2", "100.00", "Monday, 1 June 2026"]
    assert grace[:2] == ["Participant 12", "'=Grace Hopper"]
    assert grace[4] == "2.25"
    assert grace[7] == (
        f"1: 0 of 1, {TOLD}<br>"
        "2: 2.25 of 2.5, passed; set by hand: a good &lt;idea&gt;<br>Graded without a sandbox."
    )
    assert graded.notes == [
        "1 not found in the roster, or by a name of several there, and left out of moodle.csv: bob"
    ]
    assert len(table(found["canvas.csv"])) == 5  # the other platform's form is as without a roster


# ----------------------------------------------------------------------------- Gradescope


def test_gradescope_has_a_result_for_each_student():
    graded = class_of({"ada": Person(), "bob": Person()})
    graded.rows[3] = replace(graded.rows[3], points=2.5, late=0.0, override=GIVEN, status="raised")
    graded.sandbox = False
    found = made(graded)
    ada = json.loads(found["gradescope/ada.json"])
    tests = ada.pop("tests")
    assert ada == {
        "score": 2.0,
        "output": "03_numbers: graded\nGraded without a sandbox.",
        "output_format": "text",
        "visibility": "after_published",
        "stdout_visibility": "hidden",
    }
    assert [(t["name"], t["score"], t["max_score"], t["status"]) for t in tests] == [
        ("1", 0.0, 1.0, "failed"),
        ("2", 2.0, 2.5, "passed"),
    ]
    assert tests[0]["output"] == TOLD
    bob = json.loads(found["gradescope/bob.json"])["tests"][1]
    assert (bob["score"], bob["status"]) == (2.5, "passed")
    assert bob["output"] == "passed; set by hand: a good <idea>"


def test_no_two_students_share_a_file_and_none_leaves_the_folder():
    names = {
        **{"../../etc/x": "etc_x", "x y": "x_y", "x_y": "x_y-2", "X y": "X_y-3", ".": "student"},
        **{"zo\u00eb": "zo\u00eb", "zoe\u0308": "zo\u00eb-2", "a" * 300: "a" * 50},
        **{"": "student-2", "\udcff": "student-3"},
    }
    found = made(class_of({name: Person() for name in names}))
    files = [name for name in found if name.startswith("gradescope/")]
    assert files == [f"gradescope/{name}.json" for name in names.values()]


# ----------------------------------------------------------------------------- safety


@pytest.mark.parametrize("evil", ["=cmd|' /C calc'!A0", "+1", "-1+1", "@SUM(A1)", "\t=1", "＝1"])
def test_no_cell_of_a_form_is_a_formula(evil):
    exercise = Exercise(evil, (), "", 1.0)
    row = Row(evil, evil, 1.0, 1.0, "passed", evil, override=GIVEN._replace(comment=evil))
    graded = GradedClass(
        Path(f"{evil}.ipynb".replace("/", "")), [exercise], [row], {}, people={evil: Person(evil)}
    )
    for name in ("canvas.csv", "moodle.csv"):
        cells = [cell for line in table(made(graded)[name]) for cell in line]
        assert [c for c in cells if c.strip()[:1] in tuple("=+-@＝") and c not in ("+1",)] == []


@pytest.mark.parametrize(
    ("status", "reason", "says"),
    [
        ("failed", SECRET, TOLD.removesuffix(" Look at the sign.")),
        (
            "raised",
            "ValueError in line 2, raise ValueError(x): 1.629",
            "error: `ValueError` while your answer was run or used.",
        ),
        ("raised", "Is1629 in line 2: x", "error: An error while your answer was run or used."),
        ("partial", SECRET, "in part: Some of the tests passed."),
        ("needs_person", "marked by a person", "waits for a person: Your instructor marks it."),
        ("missing", "no notebook in /home/x/ada", "missing: No notebook in ada."),
        ("passed", "run in a fresh kernel", "passed"),
    ],
)
def test_what_a_student_may_read(status, reason, says):
    assert lms.for_student(Verdict(status, reason)) == says


# ----------------------------------------------------------------------------- no rosters


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (b"name,points\nada,1\n", "expected a roster in .*, found 'name,points'; export it again"),
        (b"\xff\xfe\x00", "expected a roster in .*, found ''"),
        (b"", "expected a roster in .*, found ''"),
        (None, "expected a roster at .*, but got 'No such file or directory'; give the file"),
    ],
)
def test_what_is_no_roster_is_a_sentence(tmp_path, content, says):
    if content is not None:
        (tmp_path / "r.csv").write_bytes(content)
    with pytest.raises(UsageError, match=says):
        lms.read_roster(tmp_path / "r.csv")
