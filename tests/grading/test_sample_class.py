"""The class of thirty, and the instructors' guide, whose commands are run on it for real."""

import csv
import hashlib
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from pytorch_lab.errors import CourseError, UsageError
from pytorch_lab.grading import notebooks
from pytorch_lab.grading.authoring.assignment import exercises
from pytorch_lab.grading.book.late import LateRule
from pytorch_lab.grading.book.telling import STATUS_WORDS
from pytorch_lab.grading.intake import arrivals
from pytorch_lab.grading.intake.taking_in import intake
from pytorch_lab.grading.statuses import FROM_RUN
from pytorch_lab.grading.validating.sample_class import (
    EXERCISES,
    LAYOUTS,
    POINTS,
    deliver,
    students,
)
from pytorch_lab.warm.nest import Limits

GUIDE = (Path(__file__).parents[2] / "docs" / "instructors.md").read_text("utf-8")
LIMIT_S = 600


def test_the_thirty_are_of_every_kind():
    known = students()
    assert len({student.name for student in known}) == 30
    assert len({student.name.split()[0] for student in known}) == 30  # nbgrader's names
    assert {status for student in known for status in student.statuses} == set(FROM_RUN)
    assert {student.special for student in known} == {"", "zip", "late", "again", "pdf", "other"}
    right = [student.points for student in known if set(student.statuses) == {"passed"}]
    assert right == [(2.0, 4.0, 5.0, 5.0, 4.0)] * 7


@pytest.mark.parametrize("layout", LAYOUTS)
def test_each_layout_is_taken_in_as_the_thirty(layout, tmp_path: Path):
    given = deliver(tmp_path / "new", layout)
    assignment = tmp_path / "new" / "03_modules.ipynb"
    asked = exercises(notebooks.read(assignment), assignment)
    assert [(e.id, e.points) for e in asked] == list(zip(EXERCISES, POINTS, strict=True))
    found = {s.student: s for s in intake(given, assignment)}
    with (tmp_path / "new" / "expected.csv").open(encoding="utf-8") as stream:
        expected = list(csv.DictReader(stream))
    assert sorted({row["student"] for row in expected}) == list(found)
    assert len(expected) == 150
    assert [s.student for s in found.values() if s.status] == [
        row["student"] for row in expected if row["status"] == "unreadable"
    ][:1]
    told = [note for submission in found.values() for note in submission.notes]
    assert sorted(note.split()[0] for note in told) == ["2", "taken"]
    for submission in found.values():
        if not submission.status:
            submission.read()
    assert len({s.lms_id for s in found.values()}) == (30 if layout in ("canvas", "moodle") else 1)
    late = sum(
        bool(s.late) or bool(s.submitted_at and s.submitted_at.day == 2) for s in found.values()
    )
    assert late == (1 if layout in ("canvas", "nbgrader") else 0)


def test_the_rule_for_lateness_of_the_guide_makes_somebody_late(tmp_path: Path):
    (text,) = re.findall(r'--late "(.*?)"', " ".join(GUIDE.split()))
    rule = LateRule.parse(text)
    assert rule is not None
    for layout, many in (("nbgrader", 1), ("canvas", 1), ("folder", 0)):
        given = deliver(tmp_path / layout, layout)
        found = intake(given, tmp_path / layout / "03_modules.ipynb")
        lost = [share for s in found if (share := rule.lost(s.submitted_at, s.late))]
        assert lost == [0.1] * many


def test_the_guide_tells_the_words_of_the_pages():
    for status in FROM_RUN:
        sign, word = STATUS_WORDS[status]
        assert re.search(rf"^\| `{status}` \| .* \| {sign} {word} \|$", GUIDE, re.MULTILINE)


def test_the_same_class_is_the_same_files(tmp_path: Path):
    def digest(folder: Path):
        return {
            path.relative_to(folder): hashlib.sha256(path.read_bytes()).hexdigest()
            for path in folder.rglob("*")
            if path.is_file()
        }

    for name in ("a", "b"):
        deliver(tmp_path / name, "canvas")
    assert digest(tmp_path / "a") == digest(tmp_path / "b")


def test_no_file_of_yours_is_touched(tmp_path: Path):
    (tmp_path / "mine").write_text("mine")
    for place in (tmp_path, tmp_path / "mine"):
        with pytest.raises(UsageError, match=r"expected a new or an empty folder, got .*; name"):
            deliver(place)
    with pytest.raises(
        UsageError, match="expected one of folder, nbgrader, canvas, moodle, got 'x'"
    ):
        deliver(tmp_path / "new", "x")
    with pytest.raises(
        CourseError, match=r"expected to write the sample class to .*; name a folder"
    ):
        deliver(tmp_path / "mine" / "below")
    assert [path.name for path in tmp_path.iterdir()] == ["mine"]


def test_the_guide_tells_the_limits_and_the_statuses():
    limits = Limits()
    for said in (
        f"{notebooks.MAX_BYTES // 10**6} MB, a zip {arrivals.MAX_FILES} files",
        f"more than {arrivals.MAX_RATIO} times its size",
        f"looked through {arrivals.MAX_DEPTH} deep",
        f"with {limits.memory_bytes >> 30} GB of memory, {limits.disk_bytes >> 20} MB of disk "
        f"and {limits.processes} processes",
    ):
        assert said in " ".join(GUIDE.split())
    assert set(re.findall(r"^\| `(\w+)` \|", GUIDE, re.MULTILINE)) == set(FROM_RUN)
    for place in LAYOUTS:
        assert re.search(rf"^\| {'by hand' if place == 'folder' else place}", GUIDE, re.M | re.I)


@pytest.mark.heavy
def test_the_guide_takes_an_instructor_from_an_empty_folder_to_a_graded_class(tmp_path: Path):
    """Every command of the guide, in its order; each block of text is in what the last printed."""
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    blocks = re.findall(r"^```(\w+)\n(.*?)^```$", GUIDE, re.MULTILINE | re.DOTALL)
    assert [kind for kind, _ in blocks].count("bash") == GUIDE.count("```bash") == 9
    printed: list[str] = []
    for kind, text in blocks:
        if kind == "bash":
            ran = subprocess.run(
                ["bash", "-c", text], cwd=tmp_path, env=os.environ | {"PATH": path},
                capture_output=True, text=True, timeout=LIMIT_S, check=False,
            )  # fmt: skip
            assert ran.returncode == 0, (text, ran.stdout, ran.stderr)
            printed = ran.stdout.splitlines()
            if text.startswith("cut "):
                assert printed == []
        else:
            assert set(text.splitlines()) <= set(printed), (text, printed)
    marks = {path.name for path in (tmp_path / "marks").iterdir()}
    named = re.findall(r"`([\w.]+)/?`", GUIDE.partition("## What lies in")[2].partition("\n## ")[0])
    assert marks <= {name.strip("/") for name in named}
    assert len(list((tmp_path / "marks" / "feedback").iterdir())) >= 30
