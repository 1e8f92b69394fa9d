"""The exercises check themselves.

Every notebook of `exercises/solutions` is found by rule, with its mutants. A stub gets no points, a
solution and a second right answer in another style pass, and each named wrong answer is rejected
twice: by the visible check, with the words that name its misconception, and by the grader.

A kernel costs seconds, so the marks come from two runs of the grader: one on the real assignment,
one on a copy of it in which each exercise stands as often as it has mutants.
"""

import copy
import csv
import doctest
import functools
import re
import types
from pathlib import Path

import nbformat
import pytest
from nbformat import NotebookNode

from pytorch_lab import checks, colab, course
from pytorch_lab.checks import registry, sources
from pytorch_lab.checks.compare import difference, encode
from pytorch_lab.grading import Row, grade, release
from pytorch_lab.grading.authoring.mutants import Mutant, assemble
from pytorch_lab.grading.authoring.release import student_source
from pytorch_lab.grading.notebooks import facts, grade_id, read, write

EXERCISES = course.root() / "exercises"
SOLUTIONS = sorted((EXERCISES / "solutions").glob("*.ipynb"))
TOPICS = [path.stem for path in SOLUTIONS]


class Topic:
    """The exercises of one notebook."""

    def __init__(self, stem: str) -> None:
        self.stem = stem
        self.path = EXERCISES / "solutions" / f"{stem}.ipynb"
        self.notebook = read(self.path)
        listed = runpy(EXERCISES / "mutants" / f"{stem}.py")
        self.mutants: list[Mutant] = listed["MUTANTS"]
        self.alternatives: dict[str, str] = listed["ALTERNATIVES"]
        known = [(cell, found) for cell in self.notebook.cells if (found := facts(cell))]
        self.cells = {found.grade_id: cell for cell, found in known}
        self.exercises = [found.exercise for _, found in known if found.is_check]
        self.points = {found.exercise: found.points for _, found in known if found.is_check}

    def stub(self, exercise: str) -> str:
        return student_source(self.cells[grade_id(exercise)])

    def solution(self, exercise: str) -> str:
        return self.cells[grade_id(exercise)].source

    def answered(self, answer: str, **names: object) -> dict[str, object]:
        """A namespace in which the notebook's open cells and the answer were run."""
        space = {"__name__": "__main__"} | names
        for cell in self.notebook.cells:
            if cell.cell_type == "code" and not facts(cell) and cell.source != colab.SETUP_CELL:
                exec(compile(cell.source, cell.id, "exec"), space)
        exec(compile(answer, "answer", "exec"), space)
        return space

    def verdict(self, exercise: str, answer: str) -> checks.Verdict:
        """What the visible check says of an answer."""
        verdicts: list[checks.Verdict] = []
        stand_in = types.SimpleNamespace(exercise=lambda id: verdicts.append(checks.run(id)))
        space = self.answered(answer, lab=stand_in)
        exec(compile(self.cells[f"{grade_id(exercise)}-check"].source, "check", "exec"), space)
        return verdicts[0]

    def revealed(self, exercise: str, answer: str) -> list[tuple[str, object]] | None:
        """What the hidden check shows of an answer, as the grader gets it; None when it raises."""
        shown: list[tuple[str, object]] = []
        space = self.answered(answer)
        space["checks"] = types.SimpleNamespace(
            draw=checks.draw, reveal=lambda label, value: shown.append((label, encode(value)))
        )
        try:
            exec(compile(self.cells[f"{grade_id(exercise)}-hidden"].source, "h", "exec"), space)
        except Exception:  # noqa: BLE001 - a wrong answer may raise anything
            return None
        return shown

    def differs(self, exercise: str, answer: str) -> bool:
        """Whether the hidden check tells an answer from the solution, on the seed in force."""
        want = self.revealed(exercise, self.solution(exercise))
        got = self.revealed(exercise, answer)
        assert want
        if got is None or len(got) != len(want):
            return True
        pairs = zip(want, got, strict=True)
        return any(difference(mine, theirs, label) for (label, theirs), (_, mine) in pairs)


def runpy(file: Path) -> dict:
    space: dict = {"__name__": file.stem}
    exec(compile(file.read_text("utf-8"), file, "exec"), space)
    return space


@functools.cache
def topic(stem: str) -> Topic:
    return Topic(stem)


EACH = [(stem, exercise) for stem in TOPICS for exercise in topic(stem).exercises]
MUTANTS = [(stem, mutant) for stem in TOPICS for mutant in topic(stem).mutants]


def name(value: object) -> str | None:
    return f"{value.exercise}-{value.name}" if isinstance(value, Mutant) else None


def test_there_is_something_to_test():
    assert "03_modules" in TOPICS
    assert len(MUTANTS) >= 5 * len(EACH) > 0


# The visible checks


@pytest.mark.parametrize(("stem", "exercise"), EACH)
def test_a_stub_does_not_pass(stem: str, exercise: str):
    stub = topic(stem).stub(exercise)
    verdict = topic(stem).verdict(exercise, stub)
    # A repair is broken from the start and is told so; every other stub is not begun.
    assert verdict.state == ("open" if "raise NotImplementedError()" in stub else "failed")


@pytest.mark.parametrize(("stem", "exercise"), EACH)
def test_the_solution_passes(stem: str, exercise: str):
    verdict = topic(stem).verdict(exercise, topic(stem).solution(exercise))
    assert str(verdict) == f"{exercise} ✓ passed"
    assert not verdict.printed  # no warning either


@pytest.mark.parametrize(("stem", "exercise"), EACH)
def test_a_right_answer_in_another_style_passes(stem: str, exercise: str):
    verdict = topic(stem).verdict(exercise, topic(stem).alternatives[exercise])
    assert str(verdict) == f"{exercise} ✓ passed"


@pytest.mark.parametrize(("stem", "mutant"), MUTANTS, ids=name)
def test_the_visible_check_names_the_misconception(stem: str, mutant: Mutant):
    verdict = topic(stem).verdict(mutant.exercise, mutant.code)
    assert verdict.state == "failed", verdict
    assert mutant.says in verdict.message
    given = re.sub(r"\s+", "", topic(stem).solution(mutant.exercise))
    assert re.sub(r"\s+", "", verdict.message) not in given


@pytest.mark.parametrize("stem", TOPICS)
def test_every_exercise_has_its_wrong_and_other_answers(stem: str):
    for exercise in topic(stem).exercises:
        mine = [mutant for mutant in topic(stem).mutants if mutant.exercise == exercise]
        assert len(mine) >= 5, exercise
        assert len({mutant.name for mutant in mine}) == len(mine)
        assert len({mutant.code for mutant in mine}) == len(mine)
        assert all(mutant.misconception and mutant.says for mutant in mine)
    assert {mutant.exercise for mutant in topic(stem).mutants} == set(topic(stem).exercises)
    assert list(topic(stem).alternatives) == topic(stem).exercises


@pytest.mark.parametrize(("stem", "exercise"), EACH)
def test_hints_help_more_and_more(stem: str, exercise: str):
    topic(stem).verdict(exercise, topic(stem).solution(exercise))
    hints = registry.registered(exercise).hints
    assert len(set(hints)) == 3
    assert all(len(hint) > 40 for hint in hints)


# What a student is given


def test_the_students_version_is_up_to_date(tmp_path: Path):
    for made in release(SOLUTIONS, tmp_path):
        assert (EXERCISES / made.name).read_bytes() == made.read_bytes(), (
            f"run: pytorch-lab release exercises/solutions/{made.name} --out exercises"
        )


@pytest.mark.parametrize("stem", TOPICS)
def test_only_answers_and_hidden_checks_are_taken_out(stem: str):
    given = read(EXERCISES / f"{stem}.ipynb")
    for mine, theirs in zip(topic(stem).notebook.cells, given.cells, strict=True):
        assert theirs.get("outputs", []) == []
        assert theirs.get("execution_count") is None
        found = facts(mine)
        if found and found.is_check:
            assert theirs.source.splitlines() == [f"# Hidden check of exercise {found.exercise}"]
        elif found and found.is_answer:
            assert theirs.source != mine.source
        else:
            assert theirs.source == mine.source


@pytest.mark.parametrize(("stem", "exercise"), EACH)
def test_the_panel_shows_the_stub_that_was_released(stem: str, exercise: str):
    given = {
        f.grade_id: c.source for c in read(EXERCISES / f"{stem}.ipynb").cells if (f := facts(c))
    }
    found = sources.read(topic(stem).path, exercise)
    assert found.stub == given[grade_id(exercise)]
    assert topic(stem).verdict(exercise, str(found.solution)).state == "passed"


@pytest.mark.parametrize("stem", TOPICS)
def test_points_minutes_and_titles_are_those_of_the_index(stem: str):
    head = topic(stem).notebook.cells[0].source
    rows = [[part.strip() for part in line.split("|")[1:-1]] for line in head.splitlines()]
    index = {row[0]: row[1:] for row in rows if row and re.fullmatch(r"\d\d\.\d", row[0])}
    assert list(index) == topic(stem).exercises
    for exercise, (title, kind, minutes, level, points) in index.items():
        task = topic(stem).cells[f"{grade_id(exercise)}-task"].source
        assert task.startswith(
            f"## {exercise} · {title}\n\n"
            f"*{kind.capitalize()} · {minutes} minutes · {level} · {points} points*\n"
        )
        assert ">>>" in task, "a task shows an example"
        assert topic(stem).points[exercise] == float(points)
    total = f"{sum(topic(stem).points.values()):g} points"
    minutes = f"{sum(int(row[2]) for row in index.values())} minutes"
    assert total in head
    assert minutes in head
    assert [row[1] for row in index.values()] == ["warm-up", "write", "write", "repair", "transfer"]


@pytest.mark.parametrize(("stem", "exercise"), EACH)
def test_the_example_of_a_task_is_true(stem: str, exercise: str):
    task = topic(stem).cells[f"{grade_id(exercise)}-task"].source
    space = topic(stem).answered(topic(stem).solution(exercise))
    (example,) = re.findall(r"```python\n(.*?)```", task, re.DOTALL)
    parsed = doctest.DocTestParser().get_doctest(example, space, exercise, None, 0)
    said: list[str] = []
    result = doctest.DocTestRunner().run(parsed, out=said.append)
    assert result.attempted > 0
    assert not result.failed, "".join(said)


def test_no_stray_file_lies_in_the_folder():
    found = {
        path.relative_to(EXERCISES).as_posix()
        for path in EXERCISES.rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    wanted = {
        file
        for stem in TOPICS
        for file in (f"{stem}.ipynb", f"solutions/{stem}.ipynb", f"mutants/{stem}.py")
    }
    assert found - {"progress.json"} == wanted


# The hidden checks


@pytest.fixture(params=[0, 1, 2, 3])
def seed(request: pytest.FixtureRequest):
    """The seed of an instructor."""
    checks.seed(request.param)
    yield
    checks.seed(0)


@pytest.mark.usefixtures("seed")
@pytest.mark.filterwarnings("ignore:var\\(\\)")  # a mutant that takes one row
@pytest.mark.parametrize(("stem", "exercise"), EACH)
def test_no_seed_lets_a_mutant_through(stem: str, exercise: str):
    assert not topic(stem).differs(exercise, topic(stem).alternatives[exercise])
    for mutant in topic(stem).mutants:
        if mutant.exercise == exercise:
            assert topic(stem).differs(exercise, mutant.code), name(mutant)


# The marks


@pytest.fixture(scope="session", params=TOPICS)
def marks(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory):
    """Marks of the real assignment: a stub, the solution, other right answers, wrong answers."""
    mine, folder = topic(request.param), tmp_path_factory.mktemp(request.param)
    first = {mutant.exercise: mutant.code for mutant in reversed(mine.mutants)}
    handed_in = {
        "stub": assemble(mine.notebook, {}),
        "solution": assemble(mine.notebook, {e: mine.solution(e) for e in mine.exercises}),
        "other": assemble(mine.notebook, mine.alternatives),
        "wrong": assemble(mine.notebook, first),
    }
    return mine, _graded(mine.path, handed_in, folder)


@pytest.fixture(scope="session", params=TOPICS)
def rejected(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory):
    """Marks of every mutant: the assignment with as many copies of an exercise as it has."""
    mine, folder = topic(request.param), tmp_path_factory.mktemp(f"{request.param}_mutants")
    assignment, answers = copy.deepcopy(mine.notebook), {}
    assignment.cells = [cell for cell in assignment.cells if not facts(cell)]
    for number, mutant in enumerate(mine.mutants, 1):
        assignment.cells += [
            _copied(mine.cells[grade_id(mutant.exercise) + end], f"99-{number}{end}")
            for end in ("", "-hidden")
        ]
        answers[f"99.{number}"] = mutant.code
    write(folder / "assignment.ipynb", assignment)
    handed_in = {"all": assemble(assignment, answers)}
    return mine, _graded(folder / "assignment.ipynb", handed_in, folder)


def _copied(cell: NotebookNode, new_id: str) -> NotebookNode:
    made = copy.deepcopy(cell)
    made.id = made.metadata.nbgrader.grade_id = new_id
    return made


def _graded(assignment: Path, handed_in: dict[str, NotebookNode], folder: Path) -> list[Row]:
    (folder / "submitted").mkdir()
    for student, notebook in handed_in.items():
        nbformat.write(notebook, folder / "submitted" / f"{student}.ipynb")
    # Nothing here hangs; a traceback through a deep recursion may take long on a busy machine.
    rows = grade(folder / "submitted", assignment, folder / "out", workers=2, timeout_cell=120).rows
    written = list(csv.DictReader((folder / "out/grades.csv").read_text("utf-8").splitlines()))
    assert [(row["student"], row["exercise"], float(row["points"])) for row in written] == [
        (row.student, row.exercise, row.points) for row in rows
    ]
    return rows


@pytest.mark.heavy
def test_right_answers_get_all_points(marks: tuple[Topic, list[Row]]):
    mine, rows = marks
    itself = "these are the solutions themselves, markers and all: look at it"
    for student, reason in (("solution", itself), ("other", "")):
        got = {row.exercise: (row.points, row.reason) for row in rows if row.student == student}
        assert got == {exercise: (points, reason) for exercise, points in mine.points.items()}


@pytest.mark.heavy
def test_a_stub_and_wrong_answers_get_none(marks: tuple[Topic, list[Row]]):
    mine, rows = marks
    stub = {row.exercise: (row.points, row.status) for row in rows if row.student == "stub"}
    assert stub == dict.fromkeys(mine.exercises, (0.0, "not_attempted"))
    assert [row.points for row in rows if row.student == "wrong"] == [0.0] * len(mine.exercises)


@pytest.mark.heavy
def test_no_mutant_gets_points(rejected: tuple[Topic, list[Row]]):
    mine, rows = rejected
    assert len(rows) == len(mine.mutants)
    for mutant, row in zip(mine.mutants, rows, strict=True):
        assert row.points == 0.0 < row.max_points, f"{name(mutant)} got {row.points} points"
        assert row.status in ("failed", "raised"), f"{name(mutant)}: {row.status}, {row.reason}"
