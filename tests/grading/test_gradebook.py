"""What the gradebook knows is not run again, and a run that was killed goes on where it stopped."""

import threading
from pathlib import Path

import pytest

from pytorch_lab.errors import CourseError
from pytorch_lab.grading import grade, judging
from pytorch_lab.grading.gradebook import Gradebook, Verdict
from pytorch_lab.grading.notebooks import write
from tests.assignments import make_submission

GOOD, BAD = Verdict("passed", ""), Verdict("failed", "x: expected 1, got 2")


@pytest.fixture
def book(tmp_path):
    made = Gradebook(f"sqlite:///{tmp_path / 'book.sqlite'}")
    yield made
    made.close()


def test_the_first_to_settle_a_key_settles_it(book):
    book.keep("k", "ada", {"1": GOOD, "2": BAD})
    book.keep("k", "ada", {"1": BAD, "2": BAD})
    assert book.known("k") == {"1": GOOD, "2": BAD}
    assert book.known("other") == {}


def test_many_writers_lose_nothing(book):
    def settle(who):
        for n in range(20):
            book.keep(f"{who} {n}", who, {"1": GOOD})
            book.keep(f"shared {n}", who, {"1": GOOD, "2": BAD})

    threads = [threading.Thread(target=settle, args=(f"t{k}",)) for k in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for n in range(20):
        assert book.known(f"shared {n}") == {"1": GOOD, "2": BAD}
        assert all(book.known(f"t{k} {n}") == {"1": GOOD} for k in range(4))


@pytest.mark.parametrize(
    ("url", "says"),
    [
        ("nonsense", "Could not parse"),
        ("sqlite:////no/such/folder/book.sqlite", "unable to open database file"),
        ("unknown://host/name", "Can't load plugin"),
    ],
)
def test_what_is_no_gradebook_is_a_sentence(url, says):
    with pytest.raises(CourseError, match=f"expected a gradebook at .*{says}.*; give the URL") as e:
        Gradebook(url)
    assert "\n" not in str(e.value)


def test_a_file_that_is_no_database(tmp_path):
    (tmp_path / "book.sqlite").write_text("not a database, but long enough to look like one" * 9)
    with pytest.raises(CourseError, match="file is not a database"):
        Gradebook(f"sqlite:///{tmp_path / 'book.sqlite'}")


def test_what_cannot_be_written_is_a_sentence(book):
    with book.engine.begin() as connection:
        connection.exec_driver_sql("DROP TABLE verdicts")
    with pytest.raises(CourseError, match=r"expected to write to the gradebook .* goes on from"):
        book.keep("k", "ada", {"1": GOOD})


@pytest.mark.heavy
def test_a_second_run_runs_only_what_changed(tmp_path: Path, assignment: Path, monkeypatch):
    runs = []
    really = judging._write_batches

    def counting(waiting, *rest):
        runs.append(sorted(waiting))
        return really(waiting, *rest)

    monkeypatch.setattr(judging, "_write_batches", counting)
    for student in ("ada", "bob"):
        write(tmp_path / "in" / f"{student}.ipynb", make_submission())
    first = grade(tmp_path / "in", assignment, tmp_path / "out")
    again = grade(tmp_path / "in", assignment, tmp_path / "out")
    assert again == first
    write(tmp_path / "in" / "bob.ipynb", make_submission(e1="def twice(x):\n    return x"))
    changed = grade(tmp_path / "in", assignment, tmp_path / "out")
    other_seed = grade(tmp_path / "in", assignment, tmp_path / "out", seed=1)
    assert runs == [["ada", "bob"], ["bob"], ["ada", "bob"]]
    assert [row.status for row in changed if row.student == "bob"] == ["failed", "passed", "passed"]
    assert [row.status for row in other_seed] == [row.status for row in changed]
