"""`pytorch-lab override`, `history` and `marks`: a person and the gradebook, nothing is run."""

import json
import re
from contextlib import closing
from datetime import UTC, datetime

import pytest

from pytorch_lab import cli
from pytorch_lab.grading.book.gradebook import Gradebook, Person, Verdict

PASSED = Verdict("passed", "")
WRONG = Verdict("failed", "twice: expected 2, got 1", "identity", "Twice is 2 * x.")
LATE = datetime(2026, 12, 3, tzinfo=UTC)


@pytest.fixture
def command(capsys):
    """`command("history", "ada", "03.1")` gives exit code, stdout and stderr."""

    def run(*words):
        with pytest.raises(SystemExit) as end:
            cli.main(list(map(str, words)))
        said = capsys.readouterr()
        return end.value.code or 0, said.out, said.err

    return run


@pytest.fixture
def db(tmp_path):
    """ada, in time, has 1 of 3; bob, late, 3 of 3; and another assignment has an exercise 1."""
    path = tmp_path / "book.sqlite"
    with closing(Gradebook(f"sqlite:///{path}")) as book:
        run = book.begin("03_numbers", [("1", 1.0), ("2", 2.0)], 5, True)
        verdicts = {("ada", "1"): PASSED, ("ada", "2"): WRONG}
        verdicts |= {("bob", "1"): PASSED, ("bob", "2"): PASSED}
        book.end(run, verdicts, {"bob": Person("7", LATE), "ada": Person("8")})
        run = book.begin("04_letters", [("1", 1.0)], 5, False)
        book.end(run, {("eve", "1"): PASSED}, {"eve": Person()})
    return path


def totals(out):
    lines = (out / "summary.csv").read_text("utf-8").splitlines()[1:]
    return {line.split(",")[0]: float(line.split(",")[-2]) for line in lines}


def test_points_by_hand_are_in_the_next_marks_until_taken_back(command, db, tmp_path):
    given = (
        "override",
        "ada",
        "2",
        "1.5",
        "--comment",
        "half right",
        "--author",
        "ann",
        "--db",
        db,
    )
    code, said, _ = command(*given)
    assert (code, said.splitlines()[0]) == (0, "ada, 2: 1.5 of 2")
    again = ("marks", "--db", db, "--out", tmp_path / "out", "--assignment", "03_numbers")
    code, said, _ = command(*again)
    assert (code, said) == (
        0,
        "ada  2.5* of 3      1 passed, 1 failed\n"
        "bob  3 of 3         2 passed\n"
        "2 students: 3 passed, 1 failed\n"
        "* with points given by hand\n"
        f"{tmp_path / 'out' / 'grades.csv'}\n",
    )
    assert totals(tmp_path / "out") == {"ada": 2.5, "bob": 3}
    back = ("override", "ada", "2", "none", "--comment", "a slip", "--db", db)
    code, said, _ = command(*back)
    assert (code, said.splitlines()[0]) == (0, "ada, 2: what was given by hand is taken back")
    command(*again)
    assert totals(tmp_path / "out") == {"ada": 1, "bob": 3}


def test_more_points_than_there_are_is_told(command, db):
    words = ("override", "ada", "2", "15", "--comment", "bonus", "--db", db)
    code, _, err = command(*words)
    assert (code, err) == (
        2,
        "pytorch-lab: expected up to the 2 points of 2, got 15; add --bonus if it shall be more.\n",
    )
    assert command(*words, "--bonus")[1].startswith("ada, 2: 15 of 2, more than its 2\n")


def test_the_next_command_is_told_and_runs(command, db, tmp_path):
    _, said, _ = command("override", "ada", "2", "1", "--comment", "x", "--db", db)
    words = said.splitlines()[-1].strip().split()
    assert words[:3] == ["pytorch-lab", "marks", "--db"]
    assert command(*words[1:], "--assignment", "03_numbers")[0] == 0
    assert totals(db.parent) == {"ada": 2, "bob": 3}


def test_marks_say_which_pages_are_older_than_they(command, db, tmp_path):
    out = tmp_path / "out"
    again = ("marks", "--db", db, "--out", out, "--assignment", "03_numbers")
    assert "of the last" not in command(*again)[1]
    (out / "feedback").mkdir()
    (out / "class.html").write_text("old")
    said = " ".join(command(*again)[1].split())
    assert (
        "class.html and feedback there show the marks of the last `grade`; the same `grade` "
        in said
    )
    (out / "canvas.csv").write_text("old")
    said = " ".join(command(*again)[1].split())
    assert f"not written anew in {out}: canvas.csv, of an earlier run" in said


def test_the_folder_of_marks_is_a_gradebook_too(command, db, tmp_path):
    out = tmp_path / "out"
    db.rename(tmp_path / "gradebook.sqlite")
    code, _, _ = command("history", "ada", "2", "--db", tmp_path)
    assert code == 0
    out.mkdir()
    code, _, err = command("history", "ada", "2", "--db", out)
    assert (code, "expected a gradebook at" in err, "check --db" in err) == (2, True, True)


def test_a_rule_for_lateness_holds_until_another(command, db, tmp_path):
    out = tmp_path / "out"
    again = ("marks", "--db", db, "--out", out, "--assignment", "03_numbers.ipynb")
    rule = "10% per day, at most 50%, after 2026-12-01T12:00+00:00"
    _, said, _ = command(*again, "--late", rule)
    assert totals(out) == {"ada": 1, "bob": 2.4}  # 36 hours late are two days: 20% off 3
    assert "1 came without the moment of handing in (ada): lateness costs them nothing, or" in said
    assert max(map(len, said.splitlines()[:-1])) <= 80
    command(*again)
    assert totals(out) == {"ada": 1, "bob": 2.4}
    assert json.loads((out / "grades.json").read_text())["late"] == rule
    command(*again, "--late", "none")
    assert totals(out) == {"ada": 1, "bob": 3}


def test_a_run_without_a_sandbox_is_told_wherever_there_is_room(command, db, tmp_path):
    out = tmp_path / "out"
    _, said, _ = command("marks", "--db", db, "--out", out, "--assignment", "04_letters")
    assert said.endswith(f"Without a sandbox: the students' code ran as you.\n{out}/grades.csv\n")
    assert json.loads((out / "grades.json").read_text())["sandbox"] is False


def test_the_roster_gives_the_numbers(command, db, tmp_path):
    (tmp_path / "r.csv").write_text('Student,ID,SIS Login ID,Section\n"Lovelace, Ada",8,x,A\n')
    again = ("marks", "--db", db, "--out", tmp_path, "--assignment", "03_numbers")
    _, said, _ = command(*again, "--roster", tmp_path / "r.csv")
    assert "and left out of canvas.csv: bob" in " ".join(said.split())
    lines = (tmp_path / "canvas.csv").read_text().splitlines()
    assert lines[2:] == ['"Lovelace, Ada",8,x,A,1']
    assert (tmp_path / "roster.csv").read_text().splitlines()[1].startswith("bob,not in the roster")


def test_the_history_is_told_at_80_columns(command, db):
    command("override", "ada", "2", "1.5", "--comment", "many words " * 9, "--db", db)
    code, said, _ = command("history", "ada", "2", "--db", db)
    assert code == 0
    stamp = r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d  "
    told = re.findall(rf"^{stamp}(handed in|judged   |by hand  )  (\S+ \S+)", said, re.MULTILINE)
    assert told == [
        ("handed in", "nothing that"),
        ("judged   ", "failed (run"),
        ("by hand  ", "1.5 points,"),
    ]
    assert "identity; twice: expected 2, got 1" in " ".join(said.split())
    assert max(map(len, said.splitlines())) <= 80


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("history", "ade", "2"), "expected one student of the gradebook, got 'ade'; did you mean"),
        (("history", "zoë", "2"), "got 'zoë'; there are bob, ada."),
        (("history", "ada", "7"), "expected one exercise of the gradebook, got '7'; there are"),
        (("history", "ada", "1"), "expected one assignment in the gradebook, found 2: 03_numbers,"),
        (
            ("history", "ada", "2", "--assignment", "05"),
            "one assignment of the gradebook, got '05'",
        ),
        (("history", "eve", "2", "--assignment", "04_letters"), "expected one exercise of the"),
        (("override", "ada", "2", "nan", "--comment", "x"), "expected points from 0 up, got nan;"),
        (("override", "ada", "2", "1e308", "--comment", "x", "--bonus"), "give up to 10000."),
        (("override", "ada", "2", "-1", "--comment", "x"), "expected points from 0 up, got -1.0;"),
        (("override", "ada", "2", "1", "--coment", "x"), "Missing option '--comment'"),
        (("override", "ada", "2", "inf", "--comment", "x"), "expected points from 0 up, got inf;"),
        (("override", "ada", "2", "two", "--comment", "x"), "'two' is no number, and not 'none'."),
        (("override", "ada", "2", "1", "--comment", " "), "expected a comment, got none; say"),
        (("marks", "--out", "x"), "found 2: 03_numbers, 04_letters; say which with --assignment."),
        (("marks", "--out", "x", "--late", "some"), "expected a rule for lateness, got 'some'"),
        (("marks", "--out", "x", "--roster", "no.csv"), "expected a roster at no.csv, but got"),
    ],
)
def test_a_slip_is_a_sentence_and_writes_nothing(command, db, words, says):
    before = db.read_bytes()
    code, out, err = command(*words, "--db", db)
    assert (code, out) == (2, "")
    assert says in err
    assert err.count("\n") == 1
    assert db.read_bytes() == before


@pytest.mark.parametrize("given", ["no.sqlite", "sqlite:///no.sqlite", "no/where.db"])
def test_a_slip_in_the_name_of_the_gradebook_makes_none(command, tmp_path, monkeypatch, given):
    monkeypatch.chdir(tmp_path)
    code, _, err = command("history", "ada", "1", "--db", given)
    assert code == 2
    assert re.search(r"expected a gradebook at no\S*, found nothing; check --db\.", err)
    assert list(tmp_path.iterdir()) == []


def test_a_book_without_a_run_says_so(command, tmp_path):
    Gradebook(f"sqlite:///{tmp_path / 'new.db'}").close()
    _, _, err = command("marks", "--db", tmp_path / "new.db", "--out", tmp_path)
    assert "expected one assignment in the gradebook, found 0; grade one first." in err


@pytest.mark.parametrize("name", ["grade", "marks", "override", "history", "release"])
def test_the_help_fits_a_terminal(command, name):
    code, said, _ = command(name, "--help")
    assert code == 0
    assert max(map(len, said.splitlines())) <= 80
    assert "..." not in said.partition("Options:")[2]  # nothing is cut off
