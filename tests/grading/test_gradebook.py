"""What the gradebook knows is not run again, and a run that was killed goes on where it stopped."""

import sqlite3
import subprocess
import sys
import threading
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace

import pytest
from sqlalchemy import UniqueConstraint, event
from sqlalchemy.dialects import mssql, mysql, oracle, postgresql
from sqlalchemy.schema import CreateTable

import pytorch_lab
from pytorch_lab.errors import CourseError, UsageError
from pytorch_lab.grading import grade
from pytorch_lab.grading.book import tables
from pytorch_lab.grading.book.gradebook import Gradebook, Override, Person, Verdict, now
from pytorch_lab.grading.notebooks import write
from pytorch_lab.grading.running import judging
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


def test_a_text_that_no_database_holds_is_kept_as_near_as_can_be(book):
    book.keep("k", "a\udcff", {"1": Verdict("failed", "a\udcffb\0c", shown="\ud800")})
    assert book.known("k") == {"1": Verdict("failed", "a?b\ufffdc", shown="?")}


@pytest.mark.parametrize("dialect", [postgresql, mysql, mssql, oracle])
def test_other_databases_could_make_the_tables(dialect):
    """Each column has a type there; MySQL's indexes hold at most 3072 bytes, four a letter."""
    for table in tables.Table.metadata.sorted_tables:
        assert str(CreateTable(table).compile(dialect=dialect.dialect()))
        unique = [c.columns for c in table.constraints if isinstance(c, UniqueConstraint)]
        for columns in [*unique, *(index.columns for index in table.indexes)]:
            assert 4 * sum(column.type.length for column in columns) <= 3072


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


def test_a_full_disk_is_a_sentence_and_what_was_kept_before_is_there(book):
    def full(connection, _record):
        connection.execute(f"PRAGMA max_page_count = {pages}")

    with book.engine.connect() as connection:
        pages = connection.exec_driver_sql("PRAGMA page_count").scalar()
    book.keep("before", "ada", {"1": GOOD})
    book.engine.dispose()
    event.listen(book.engine, "connect", full)
    with pytest.raises(CourseError, match=r"'database or disk is full'; what was judged before"):
        book.keep("k", "ada", {"1": Verdict("failed", "x" * 100_000)})
    assert book.known("before") == {"1": GOOD}
    assert book.known("k") == {}


def test_what_may_only_be_read_can_be_read(tmp_path, book):
    book.keep("k", "ada", {"1": GOOD})
    kept = Gradebook(f"sqlite:///file:{tmp_path / 'book.sqlite'}?mode=ro&uri=true")
    assert kept.known("k") == {"1": GOOD}
    with pytest.raises(CourseError, match="readonly database"):
        kept.begin("03", [("1", 1.0)], 0, True)
    kept.close()


WRITER = """
import sys
from pytorch_lab.grading.book.gradebook import Gradebook, Person, Verdict
book, who = Gradebook(sys.argv[1]), sys.argv[2]
print("open", flush=True)
sys.stdin.readline()
for n in range(10):
    run = book.begin("03", [["1", 1.0]], n, True)
    book.keep(f"{who} {n}", who, {"1": Verdict("passed", who)})
    book.keep(f"shared {n}", who, {"1": Verdict("passed", who), "2": Verdict("failed", who)})
    book.end(run, {(who, "1"): Verdict("failed", str(n))}, {who: Person()}, who)
"""


def test_two_processes_on_one_new_book_lose_nothing(tmp_path):
    """They make its tables at once, and write at once."""
    url = f"sqlite:///{tmp_path / 'book.sqlite'}"
    both = [
        subprocess.Popen(
            [sys.executable, "-c", WRITER, url, who],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for who in ("ada", "bob")
    ]
    assert [process.stdout.readline() for process in both] == ["open\n"] * 2
    for process in both:
        process.stdin.write("go\n")
        process.stdin.flush()
    for process in both:
        process.communicate()
    assert [process.returncode for process in both] == [0, 0]
    book = Gradebook(url)
    with book.engine.connect() as connection:
        assert connection.exec_driver_sql("PRAGMA integrity_check").scalar() == "ok"
    for n in range(10):
        shared = book.known(f"shared {n}")
        assert {said.status for said in shared.values()} == {"passed", "failed"}
        assert len({said.reason for said in shared.values()}) == 1  # all of it is one writer's
        assert all(book.known(f"{who} {n}") for who in ("ada", "bob"))
    for who in ("ada", "bob"):
        judged = [e.said for e in book.history("03", who, "1") if e.what == "judged"]
        assert [said.rpartition("; ")[2] for said in judged] == [str(n) for n in range(10)]
    book.close()


def test_who_may_write_takes_the_writing_place_at_once_and_who_reads_does_not(tmp_path, book):
    """Else two that read first and write then would refuse each other."""
    with closing(sqlite3.connect(tmp_path / "book.sqlite", timeout=0)) as other:
        with tables.reading(book.engine).begin() as reader:
            reader.exec_driver_sql("SELECT * FROM verdicts").all()
            other.execute("BEGIN IMMEDIATE").close()
            other.rollback()
        with book.engine.begin(), pytest.raises(sqlite3.OperationalError, match="is locked"):
            other.execute("BEGIN IMMEDIATE")


# ----------------------------------------------------------------------------- editions

FIRST_EDITION = """
CREATE TABLE verdicts (
    id INTEGER NOT NULL PRIMARY KEY, "key" VARCHAR(64) NOT NULL, exercise VARCHAR(200) NOT NULL,
    student VARCHAR(500) NOT NULL, status VARCHAR(40) NOT NULL, reason TEXT NOT NULL,
    at DATETIME NOT NULL, UNIQUE ("key", exercise));
INSERT INTO verdicts VALUES (1, 'k', '1', 'ada', 'failed', 'x', '2026-11-01 12:00:00.000000');
"""


def made_by(tmp_path, script):
    path = tmp_path / "book.sqlite"
    with closing(sqlite3.connect(path)) as connection:
        connection.executescript(script)
    return f"sqlite:///{path}"


def test_a_book_of_the_first_edition_is_brought_up_to_date(tmp_path):
    url = made_by(tmp_path, FIRST_EDITION)
    for _ in range(2):
        book = Gradebook(url)
        assert book.known("k") == {"1": Verdict("failed", "x")}
        book.close()
    book = Gradebook(url)
    whole = Verdict("failed", "x", "transposed", "Look.", "[1]", 0.5, points=0.25)
    book.keep("new", "ada", {"1": whole})
    assert book.known("new")["1"] == whole
    assert book.history("03", "ada", "1") == []
    book.close()


@pytest.mark.parametrize(
    ("script", "says"),
    [
        (
            f"{FIRST_EDITION} CREATE TABLE schema (edition INTEGER); "
            f"INSERT INTO schema VALUES ({tables.EDITION + 1});",
            rf"of edition {tables.EDITION} or earlier at .*, got edition {tables.EDITION + 1}; "
            "update PyTorch Lab",
        ),
        (
            "CREATE TABLE grade (id INTEGER); CREATE TABLE student (id INTEGER)",
            r"an empty database, at .*, found other tables \(grade, student, …\); give",
        ),
        (
            f"{FIRST_EDITION} CREATE TABLE student (id INTEGER)",
            r"an empty database, at .*, found other tables \(student, verdicts, …\); give",
        ),
    ],
)
def test_another_edition_and_another_database_are_left_alone(tmp_path, script, says):
    url = made_by(tmp_path, script)
    before = (tmp_path / "book.sqlite").read_bytes()
    with pytest.raises(CourseError, match=says):
        Gradebook(url)
    assert (tmp_path / "book.sqlite").read_bytes() == before


# ----------------------------------------------------------------------------- runs and what holds

TWO = [("1", 1.0), ("2", 2.0)]
ADA = {"ada": Person("7", datetime(2026, 12, 1, 10, tzinfo=UTC), None, "abc")}


def graded(book, first, second, *, seed=0, only=(), people=ADA, folder="in", sandbox=True):
    run = book.begin("03", TWO, seed, sandbox, only)
    verdicts = {(who, "1"): first for who in people} | {(who, "2"): second for who in people}
    book.end(run, verdicts, people, folder)
    return run


def test_the_latest_outcome_holds(book):
    graded(book, GOOD, BAD, sandbox=False)
    assert not book.standing("03").sandbox
    graded(book, BAD, GOOD, seed=3)
    standing = book.standing("03")
    assert standing.verdicts == {("ada", "1"): BAD, ("ada", "2"): GOOD}
    assert (standing.exercises, standing.seed, standing.people) == (TWO, 3, ADA)
    assert standing.sandbox  # both outcomes are of the second run
    assert (standing.late, standing.overrides) == ("", {})
    assert book.assignments() == {"03": ["1", "2"]}


def test_a_regrade_of_one_exercise_leaves_the_others(book):
    graded(book, GOOD, GOOD)
    graded(book, BAD, BAD, only=["2"])
    assert book.standing("03").verdicts == {("ada", "1"): GOOD, ("ada", "2"): BAD}


def test_a_regrade_judges_all_of_who_is_new(book):
    graded(book, GOOD, GOOD)
    graded(book, BAD, BAD, only=["2"], people=ADA | {"bob": Person()})
    verdicts = book.standing("03").verdicts
    assert verdicts["bob", "1"] == verdicts["bob", "2"] == BAD
    assert verdicts["ada", "1"] == GOOD


def test_what_is_forgotten_is_run_again_but_not_what_was_found_since(book):
    book.keep("k", "ada", {"1": GOOD})
    book.keep("other", "bob", {"1": GOOD})
    book.forget(["k"], now())
    assert (book.known("k"), book.known("other")) == ({}, {"1": GOOD})
    book.keep("k", "ada", {"1": BAD})
    book.forget(["k"], now() - timedelta(hours=1))
    assert book.known("k") == {"1": BAD}


def test_a_run_that_was_stopped_goes_on_and_one_that_ended_does_not(book):
    stopped = book.begin("03", TWO, 0, True, ["1"])
    assert book.begin("03", TWO, 0, True, ["1"]).id == stopped.id
    assert book.begin("03", TWO, 0, True, ["1"]).started == stopped.started
    other = book.begin("03", TWO, 1, True, ["1"])
    assert other.id != stopped.id
    assert book.begin("03", TWO, 0, True, ["1"]).id not in (
        stopped.id,
        other.id,
    )  # one came between
    ended = graded(book, GOOD, GOOD)
    assert book.begin("03", TWO, 0, True).id != ended.id


def test_who_left_the_folder_has_no_marks_and_who_is_in_another_keeps_them(book):
    graded(book, GOOD, GOOD, people={"ada": Person(), "bob2": Person()}, folder="monday")
    graded(book, GOOD, GOOD, people={"eve": Person()}, folder="friday")
    assert list(book.standing("03").people) == ["ada", "bob2", "eve"]
    graded(book, GOOD, GOOD, people={"ada": Person(), "bob": Person()}, folder="monday")
    assert list(book.standing("03").people) == ["ada", "eve", "bob"]
    assert book.history("03", "bob2", "1")[-1].said == "no longer in the folder"
    graded(book, GOOD, GOOD, people={"bob2": Person()}, folder="monday")
    assert "bob2" in book.standing("03").people


def test_the_history_tells_all_in_order(book):
    graded(book, BAD, GOOD, seed=4)
    book.override("03", "ada", "1", Override(0.5, "half right", "ann", now()))
    graded(book, BAD, GOOD, seed=4)  # nothing new
    graded(book, BAD, GOOD, only=["1"])  # judged anew
    book.override("03", "ada", "1", Override(None, "a slip", "ann", now()))
    late = ADA["ada"]._replace(late=True, submitted_at=None, content="")
    graded(book, GOOD._replace(reason="see"), GOOD, people={"ada": late}, sandbox=False)
    events = book.history("03", "ada", "1")
    version = f"version {pytorch_lab.__version__}"
    assert [(event.what, event.said) for event in events] == [
        ("handed in", "notebook abc, on 2026-12-01 10:00 UTC"),
        ("judged", f"failed (run 1, seed 4, {version}); x: expected 1, got 2"),
        ("by hand", "0.5 points, by ann: half right"),
        ("judged", f"failed (run 3, seed 0, {version}); x: expected 1, got 2"),
        ("by hand", "taken back, by ann: a slip"),
        ("handed in", "nothing that could be read, late as the platform says"),
        ("judged", f"passed (run 4, seed 0, {version}, no sandbox); see"),
    ]
    assert [event.at for event in events] == sorted(event.at for event in events)
    assert [e.said for e in book.history("03", "ada", "2") if e.what == "judged"] == [
        f"passed (run 1, seed 4, {version})"
    ]


def test_an_override_holds_over_runs_until_taken_back(book):
    graded(book, BAD, BAD)
    given = Override(0.5, "half right", "ann", now())
    book.override("03", "ada", "1", Override(0.1, "first", "bob", now()))
    book.override("03", "ada", "1", given)
    graded(book, GOOD, GOOD)
    assert book.standing("03").overrides == {("ada", "1"): given}
    assert book.standing("03").verdicts["ada", "1"] == GOOD
    book.override("03", "ada", "1", Override(None, "a slip", "ann", now()))
    assert book.standing("03").overrides == {}


def test_the_latest_rule_for_lateness_holds_for_its_assignment(book):
    graded(book, GOOD, GOOD)
    for assignment, rule in (("03", "a"), ("03", "b"), ("04", "c")):
        book.set_late(assignment, rule)
    assert book.standing("03").late == "b"


@pytest.mark.heavy
def test_a_second_run_runs_only_what_changed(tmp_path: Path, assignment: Path, monkeypatch):
    runs = []
    really = judging._run_here

    def counting(pytest, work, texts, *rest):
        runs.append(sorted(texts))
        return really(pytest, work, texts, *rest)

    monkeypatch.setattr(judging, "_run_here", counting)
    for student in ("ada", "bob"):
        write(tmp_path / "in" / f"{student}.ipynb", make_submission())
    first = grade(tmp_path / "in", assignment, tmp_path / "out").rows
    again = grade(tmp_path / "in", assignment, tmp_path / "out").rows
    assert again == first
    write(tmp_path / "in" / "bob.ipynb", make_submission(e1="def twice(x):\n    return x"))
    changed = grade(tmp_path / "in", assignment, tmp_path / "out").rows
    other_seed = grade(tmp_path / "in", assignment, tmp_path / "out", seed=1).rows
    assert runs == [["ada", "bob"], ["bob"], ["ada", "bob"]]
    assert [row.status for row in changed if row.student == "bob"] == ["failed", "passed", "passed"]
    assert [row.status for row in other_seed] == [row.status for row in changed]


@pytest.fixture
def judge(monkeypatch):
    """A judge who runs nothing: `judge.says` is every verdict, `judge.runs` whom it asked for."""

    def settle(assigned, running, book, workers, **_more):
        verdicts = {}
        for student, notebook in running.items():
            key = assigned.key(notebook)
            if not book.known(key):
                room.runs.append(student)
                book.keep(key, student, {e.id: room.says for e in assigned.exercises})
            verdicts |= {(student, e): said for e, said in book.known(key).items()}
        return ({}, room.ended) if room.ended else (verdicts, "")

    room = SimpleNamespace(says=GOOD, runs=[], ended="")
    monkeypatch.setattr(sys.modules["pytorch_lab.grading.grader"], "judge", settle)
    return room


def test_a_regrade_runs_one_exercise_anew_and_renews_only_it(tmp_path, assignment, judge):
    """Every verdict becomes another; only the one that is asked for is renewed."""
    write(tmp_path / "in" / "ada.ipynb", make_submission())

    def graded(*only):
        kept = grade(tmp_path / "in", assignment, tmp_path / "out", sandbox=False, only=only)
        return [row.status for row in kept.rows], len(judge.runs)

    assert graded() == (["passed"] * 3, 1)
    assert graded() == (["passed"] * 3, 1)
    judge.says = Verdict("timed_out", "a busy machine")
    assert graded("03.2") == (["passed", "timed_out", "passed"], 2)
    assert graded("03.2", "03.3") == (["passed", "timed_out", "timed_out"], 3)
    assert graded() == (["timed_out"] * 3, 3)
    with pytest.raises(
        UsageError, match=r"got '03\.9'; give --exercise one of 03\.1, 03\.2, 03\.3"
    ):
        graded("03.9")


def test_an_assignment_may_be_given_by_its_folder(tmp_path, assignment, judge):
    write(tmp_path / "in" / "ada.ipynb", make_submission())
    made = grade(tmp_path / "in", assignment.parent, tmp_path / "out", sandbox=False)
    assert made.assignment == assignment
    assert [row.points for row in made.rows] == [1, 2, 2.5]
    says = r"expected one notebook of solutions in .*, found 0; give --assignment the notebook"
    with pytest.raises(UsageError, match=says):
        grade(tmp_path / "in", tmp_path, tmp_path / "out", sandbox=False)


def test_a_run_that_broke_off_is_a_reason_and_goes_on_with_the_next(tmp_path, assignment, judge):
    write(tmp_path / "in" / "ada.ipynb", make_submission())
    judge.ended = "it ended with code 3"
    broken = grade(tmp_path / "in", assignment, tmp_path / "out", sandbox=False)
    assert {(row.status, row.reason) for row in broken.rows} == {("kernel_died", judge.ended)}
    assert broken.notes[-1] == judge.ended
    judge.ended = ""
    whole = grade(tmp_path / "in", assignment, tmp_path / "out", sandbox=False)
    assert {row.status for row in whole.rows} == {"passed"}
    assert "it ended with code 3" not in whole.notes
    assert not whole.sandbox


def test_a_rule_for_lateness_is_read_before_anything_is_written(tmp_path, assignment, judge):
    with pytest.raises(UsageError, match="expected a rule for lateness"):
        grade(tmp_path / "in", assignment, tmp_path / "out", sandbox=False, late="often")
    assert not (tmp_path / "out").exists()
