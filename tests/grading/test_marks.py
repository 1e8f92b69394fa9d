"""Points, sums and files of marks; every number here was worked out by hand."""

import csv
import json
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path

import pytest

import pytorch_lab
from pytorch_lab.errors import UsageError
from pytorch_lab.grading.authoring.assignment import Exercise
from pytorch_lab.grading.book.gradebook import Override, Person, Standing, Verdict
from pytorch_lab.grading.book.late import LateRule
from pytorch_lab.grading.book.marks import GradedClass, files, rows_of, safe
from pytorch_lab.grading.pages.figures import figures

# ----------------------------------------------------------------------------- lateness

DUE = datetime(2026, 12, 1, 23, 0, tzinfo=UTC)  # the end of the minute that the rules name
PER_DAY = "10% per day, at most 50%, after 2026-12-01T23:59+01:00"


@pytest.mark.parametrize(
    ("rule", "over", "lost"),
    [
        (PER_DAY, timedelta(days=-3), 0),
        (PER_DAY, timedelta(0), 0),
        (PER_DAY, timedelta(seconds=1), 0.1),
        (PER_DAY, timedelta(days=1), 0.1),
        (PER_DAY, timedelta(days=1, seconds=1), 0.2),
        (PER_DAY, timedelta(days=4, hours=3), 0.5),
        (PER_DAY, timedelta(days=40), 0.5),
        ("10% per day after 2026-12-01T22:59Z", timedelta(days=40), 1),
        (
            "2.5% an hour, at most 20%, after 2026-12-01T22:59Z",
            timedelta(hours=2, minutes=1),
            0.075,
        ),
        ("30 % each week after 2026-12-01 22:59+00:00", timedelta(days=8), 0.6),
        ("100% after 2026-12-01T22:59Z", timedelta(minutes=1), 1),
        ("25% after 2026-12-01T22:59Z", timedelta(days=9), 0.25),
        ("25% after 2026-12-01T22:59Z", timedelta(0), 0),
    ],
)
def test_what_lateness_costs(rule, over, lost):
    parsed = LateRule.parse(rule)
    assert parsed.lost(DUE + over) == pytest.approx(lost, abs=1e-12)
    elsewhere = (DUE + over).astimezone(timezone(timedelta(hours=-8)))
    assert parsed.lost(elsewhere) == parsed.lost(DUE + over)
    assert LateRule.parse(str(parsed)) == parsed


def test_a_day_without_a_time_is_in_time_to_its_end_here():
    rule = LateRule.parse("100% after 2026-12-01")
    assert rule.lost(datetime(2026, 12, 1, 23, 59).astimezone()) == 0
    assert rule.lost(datetime(2026, 12, 2, 0, 1).astimezone()) == 1


def test_late_as_the_platform_says_without_a_moment_costs_the_least():
    rule = LateRule.parse(PER_DAY)
    assert [rule.lost(None, late) for late in (None, False, True)] == [0, 0, 0.1]
    assert rule.lost(DUE, late=True) == 0  # the clock decides where there is one


@pytest.mark.parametrize(
    ("named", "in_time", "late"),
    [
        ("2026-12-01T23:59Z", (1, 23, 59, 59), (2, 0, 0, 1)),
        ("2026-12-01T23:59:00Z", (1, 23, 59, 0), (1, 23, 59, 1)),
        ("2026-12-01 12:00 UTC", (1, 12, 1, 0), (1, 12, 1, 1)),
    ],
)
def test_a_minute_that_is_named_is_in_time_to_its_end(named, in_time, late):
    rule = LateRule.parse(f"100% after {named}")
    assert rule.lost(datetime(2026, 12, *in_time, tzinfo=UTC)) == 0
    assert rule.lost(datetime(2026, 12, *late, tzinfo=UTC)) == 1
    assert LateRule.parse(str(rule)) == rule


@pytest.mark.parametrize(
    ("deadline", "handed_in", "days"),
    [
        # Clocks go back at 03:00 on 2026-10-25: that day has 25 hours, and it is one day.
        ("2026-10-24T23:59", datetime(2026, 10, 25, 22, 30, tzinfo=UTC), 1),
        ("2026-10-24T23:59", datetime(2026, 10, 25, 23, 1, tzinfo=UTC), 2),
        # Clocks go forward on 2026-03-29: that day has 23 hours.
        ("2026-03-28T23:59", datetime(2026, 3, 29, 21, 59, tzinfo=UTC), 1),
        ("2026-03-28T23:59", datetime(2026, 3, 29, 22, 30, tzinfo=UTC), 2),
    ],
)
def test_days_are_those_of_the_calendar_in_the_rules_zone(monkeypatch, deadline, handed_in, days):
    for here, written in (("Europe/Berlin", deadline), ("UTC", f"{deadline} Europe/Berlin")):
        monkeypatch.setenv("TZ", here)
        rule = LateRule.parse(f"10% per day after {written}")
        assert rule.lost(handed_in) == pytest.approx(days / 10)
        assert str(rule) == f"10% per day after {deadline} Europe/Berlin"


@pytest.mark.parametrize("none", ["none", " None ", ""])
def test_no_rule(none):
    assert LateRule.parse(none) is None


@pytest.mark.parametrize(
    "text",
    [
        "10% per day", "10% per fortnight after 2026-12-01", "10 per day after 2026-12-01",
        "10% per day after soon", "110% after 2026-12-01", "10% at most 200% after 2026-12-01",
        "-5% after 2026-12-01", "10%, after 2026-13-01", "10% after 9999-12-31",
        "10% after 0001-01-01T00:00+14:00", "10% after 2026-12-01T23:59 Mars/Base",
    ],
)  # fmt: skip
def test_what_is_no_rule_is_a_sentence(text):
    with pytest.raises(UsageError, match=r"expected a rule for lateness, got .*; write it like"):
        LateRule.parse(text)


# ----------------------------------------------------------------------------- rows

EXERCISES = [Exercise("03.1", (), "", 1.0), Exercise("03.2", (), "", 2.5)]
PASSED, FAILED = Verdict("passed", ""), Verdict("failed", "expected 1, got 2")
AT = datetime(2026, 12, 3, tzinfo=UTC)
TWO_DAYS_LATE = Person("", DUE + timedelta(hours=30))


def standing(verdicts, **more):
    return Standing([], 0, True, more.pop("late", ""), verdicts, **more)


def test_lateness_takes_a_share_of_what_was_earned():
    held = standing(
        {("ada", "03.1"): FAILED, ("ada", "03.2"): PASSED},
        late=PER_DAY,
        people={"ada": TWO_DAYS_LATE},
    )
    first, second = rows_of(held, EXERCISES, ["ada"])
    assert (first.points, first.late, first.reason) == (0, 0, "expected 1, got 2")
    assert (second.points, second.late, second.status) == (2, 0.5, "passed")  # 20% of 2.5
    assert second.reason == "handed in late, which took 0.5 of 2.5 points"


def test_a_person_has_the_last_word():
    given = Override(2.25, "a good idea", "ann", AT)
    held = standing(
        {("ada", "03.1"): PASSED, ("ada", "03.2"): FAILED},
        late=PER_DAY,
        people={"ada": TWO_DAYS_LATE},
        overrides={("ada", "03.2"): given, ("ada", "03.1"): Override(0, "copied", "ann", AT)},
    )
    first, second = rows_of(held, EXERCISES, ["ada"])
    assert (first.points, first.status, first.reason) == (0, "passed", "set to 0 by ann: copied")
    assert (second.points, second.late, second.status) == (2.25, 0, "failed")
    assert second.reason == "set to 2.25 by ann: a good idea; expected 1, got 2"
    assert second.override == given


@pytest.mark.parametrize(
    ("part", "points"),
    [(1.5, 1.5), (0, 0), (2.5, 2.5), (2.6, 0), (-1, 0), (float("nan"), 0), (float("inf"), 0)],
)
def test_a_part_of_the_points_is_within_them(part, points):
    held = standing({("ada", "03.2"): Verdict("partial", "", points=part)})
    assert [row.points for row in rows_of(held, EXERCISES, ["ada"])] == [points]


def test_only_who_is_asked_for_and_what_was_judged_has_rows():
    held = standing({("ada", "03.1"): PASSED, ("bob", "03.1"): PASSED})
    rows = rows_of(held, EXERCISES, ["bob"])
    assert [(row.student, row.exercise) for row in rows] == [("bob", "03.1")]


# ----------------------------------------------------------------------------- files


@pytest.fixture
def graded():
    """ada 1 + 2.5, bob 0 + 2.5 less 20%, =cmd() 0 + 1.5 by hand: totals 3.5, 2, 1.5."""
    held = standing(
        {
            ("ada", "03.1"): PASSED,
            ("ada", "03.2"): Verdict("passed", "", shown="[1]", seconds=0.25),
            ("bob", "03.1"): Verdict("failed", "-1 is not 1", "transposed", "Look at axis 1."),
            ("bob", "03.2"): PASSED,
            ("=cmd()", "03.1"): Verdict("raised", "x\nb\x1b[31m"),
            ("=cmd()", "03.2"): FAILED,
        },
        late=PER_DAY,
        people={
            "bob": TWO_DAYS_LATE._replace(lms_id="7", content="def"),
            "ada": Person(content="abc"),
        },
        overrides={("=cmd()", "03.2"): Override(1.5, "@you: fair", "ann", AT)},
    )
    rows = rows_of(held, EXERCISES, ["=cmd()", "ada", "bob"])
    return GradedClass(
        Path("03_numbers.ipynb"), EXERCISES, rows, held.verdicts,
        people=held.people, sandbox=False, seed=9, late=PER_DAY, notes=["one note"],
    )  # fmt: skip


def test_grades_csv(graded):
    assert files(graded)["grades.csv"] == (
        "student,exercise,points,max_points,status,reason\n"
        "'=cmd(),03.1,0,1,raised,x b\n"
        '\'=cmd(),03.2,1.5,2.5,failed,"set to 1.5 by ann: @you: fair; expected 1, got 2"\n'
        "ada,03.1,1,1,passed,\n"
        "ada,03.2,2.5,2.5,passed,\n"
        "bob,03.1,0,1,failed,'-1 is not 1\n"
        'bob,03.2,2,2.5,passed,"handed in late, which took 0.5 of 2.5 points"\n'
    )


def test_summary_csv(graded):
    assert files(graded)["summary.csv"] == (
        "student,03.1,03.2,total,max_points\n"
        "'=cmd(),0,1.5,1.5,3.5\n"
        "ada,1,2.5,3.5,3.5\n"
        "bob,0,2,2,3.5\n"
    )


def test_class_csv(graded):
    """Means: 1/3, (1.5 + 2.5 + 2) / 3 = 2, and 7/3 of the totals, whose median is bob's 2."""
    lines = list(csv.DictReader(files(graded)["class.csv"].splitlines()))
    shown = [[line[k] for k in ("exercise", "max_points", "mean", "median")] for line in lines]
    assert shown == [
        ["03.1", "1", "0.3333", "0"],
        ["03.2", "2.5", "2", "2"],
        ["total", "3.5", "2.3333", "2"],
    ]
    assert {(line["students"], line["read"]) for line in lines} == {("3", "3")}
    assert [(x["passed"], x["failed"], x["raised"]) for x in lines] == [
        ("1", "1", "1"),
        ("2", "1", "0"),
        ("3", "2", "1"),
    ]
    assert {line["timed_out"] for line in lines} == {"0"}


def test_means_are_those_of_the_notebooks_that_were_read(graded):
    """Without bob's: 0 and 1, 1.5 and 2.5, 1.5 and 3.5; the class's page counts the same way."""
    graded.people = {"=cmd()": Person(content="x"), "ada": Person(content="y"), "bob": Person()}
    graded.notebooks = {"=cmd()": {}, "ada": {}}
    lines = list(csv.DictReader(files(graded)["class.csv"].splitlines()))
    assert [line["mean"] for line in lines] == ["0.5", "2", "2.5"]
    assert {(line["students"], line["read"]) for line in lines} == {("3", "2")}
    assert [line["passed"] for line in lines] == ["1", "2", "3"]  # of all
    shown = figures(graded)
    assert (shown.mean, shown.read) == (2.5, 2)


def test_a_reason_that_is_a_sentence_joins_the_next_without_its_stop():
    held = standing(
        {("ada", "03.2"): Verdict("passed", "See cell 3.")},
        late=PER_DAY,
        people={"ada": TWO_DAYS_LATE},
    )
    (row,) = rows_of(held, EXERCISES, ["ada"])
    assert row.reason == "See cell 3; handed in late, which took 0.5 of 2.5 points"


def test_grades_json_holds_all(graded):
    found = json.loads(files(graded)["grades.json"])
    students = {student.pop("student"): student for student in found.pop("students")}
    assert found == {
        "assignment": "03_numbers",
        "version": pytorch_lab.__version__,
        "seed": 9,
        "sandbox": False,
        "late": PER_DAY,
        "notes": ["one note"],
        "exercises": [
            {"exercise": "03.1", "max_points": 1.0},
            {"exercise": "03.2", "max_points": 2.5},
        ],
    }
    bob = students["bob"]
    assert (bob["lms_id"], bob["submitted_at"]) == ("7", "2026-12-03T05:00:00+00:00")
    assert (bob["total"], bob["max_points"]) == (2.0, 3.5)
    first, second = bob["exercises"]
    assert (first["misconception"], first["hint"]) == ("transposed", "Look at axis 1.")
    assert (second["points"], second["late"], second["override"]) == (2.0, 0.5, None)
    by_hand = students["=cmd()"]["exercises"][1]["override"]
    assert by_hand == {
        "points": 1.5,
        "comment": "@you: fair",
        "author": "ann",
        "at": "2026-12-03T00:00:00+00:00",
    }
    ada = students["ada"]["exercises"][1]
    assert (ada["shown"], ada["seconds"], students["ada"]["content"]) == ("[1]", 0.25, "abc")


def test_an_empty_class_has_files_too():
    made = files(GradedClass(Path("03.ipynb"), EXERCISES, [], {}))
    assert made["class.csv"].splitlines()[1].startswith("03.1,1,0,0,,,0")
    assert json.loads(made["grades.json"])["students"] == []


@pytest.mark.parametrize(
    "cell", ["=cmd()", "+1", "-1", "@SUM(A1)", "\t=1", " =1", "\r\n=1", "＝1", "－1"]
)
def test_no_cell_is_a_formula(cell):
    assert safe(cell).startswith("'")
