"""The learner's file: readable, shared by kernels, never lost."""

import json
import multiprocessing
import os
import subprocess
import sys
import threading

import pytest

from pytorch_lab import progress
from pytorch_lab.errors import CourseError, UsageError


@pytest.fixture(autouse=True)
def file(tmp_path, monkeypatch):
    monkeypatch.delenv("PYTORCH_LAB_PROGRESS", raising=False)
    monkeypatch.chdir(tmp_path)
    return tmp_path / "progress.json"


def names(folder):
    return sorted(path.name for path in folder.iterdir())


def test_nothing_is_known_at_first(file):
    assert progress.read() == {"exercises": {}, "guesses": {}}
    assert not file.exists()


def test_facts_are_merged_and_readable(file):
    progress.remember("exercises", "03.2", state="failed", tries=1)
    progress.remember("exercises", "03.2", state="passed", hints=2)
    progress.remember("guesses", "03.p1", guess="größer", right=False)
    assert progress.read() == {
        "exercises": {"03.2": {"state": "passed", "tries": 1, "hints": 2}},
        "guesses": {"03.p1": {"guess": "größer", "right": False}},
    }
    assert file.read_text("utf-8").startswith('{\n  "exercises": {\n    "03.2": {\n')
    assert "größer" in file.read_text("utf-8")
    assert names(file.parent) == ["progress.json"]


def test_the_environment_names_another_file(tmp_path, monkeypatch):
    other = tmp_path / "other.json"
    monkeypatch.setenv("PYTORCH_LAB_PROGRESS", str(other))
    progress.remember("guesses", "a", guess=1)
    assert names(tmp_path) == ["other.json"]
    assert progress.read()["guesses"] == {"a": {"guess": 1}}


def test_what_is_not_ours_stays(file):
    file.write_text('{"notes": ["mine"], "guesses": {"a": {"guess": 1, "mine": 2}}}')
    progress.remember("guesses", "a", guess=3)
    assert json.loads(file.read_text()) == {
        "exercises": {},
        "guesses": {"a": {"guess": 3, "mine": 2}},
        "notes": ["mine"],
    }


BROKEN = {
    "empty": b"",
    "half": b'{"exercises": {"03.2"',
    "list": b"[]",
    "not text": b"\xff\xfe\x00",
    "section": b'{"exercises": []}',
    "entry": b'{"guesses": {"a": 4}}',
    "deep": b"[" * 100_000,
}


@pytest.mark.parametrize("content", BROKEN.values(), ids=BROKEN)
def test_a_broken_file_is_set_aside(file, content):
    file.write_bytes(content)
    assert progress.read() == {"exercises": {}, "guesses": {}}
    assert file.read_bytes() == content, "reading changes nothing"
    progress.remember("guesses", "a", guess=1)
    assert progress.read()["guesses"] == {"a": {"guess": 1}}
    assert (file.parent / "progress.broken.json").read_bytes() == content
    assert names(file.parent) == ["progress.broken.json", "progress.json"]


def test_a_second_broken_file_does_not_replace_the_first(file):
    for content in ("one", "two", "three"):
        file.write_text(content)
        progress.remember("guesses", "a", guess=1)
    found = {path.name: path.read_text() for path in file.parent.glob("*broken*")}
    assert found == {
        "progress.broken.json": "one",
        "progress.broken-2.json": "two",
        "progress.broken-3.json": "three",
    }


def test_a_folder_that_cannot_be_written(tmp_path, monkeypatch):
    """The folder of a file that is none: also root cannot write there."""
    (tmp_path / "plain").write_text("")
    monkeypatch.setenv("PYTORCH_LAB_PROGRESS", str(tmp_path / "plain" / "progress.json"))
    with pytest.raises(
        CourseError,
        match=r"expected to write your progress to .*plain.progress\.json, but got "
        r"'Not a directory'; make the folder writable, or set PYTORCH_LAB_PROGRESS",
    ):
        progress.remember("guesses", "a", guess=1)
    assert names(tmp_path) == ["plain"]


def test_a_file_that_cannot_be_read(file):
    file.mkdir()
    with pytest.raises(
        CourseError,
        match=r"expected to read your progress from .*, but got 'Is a directory'; make the file",
    ):
        progress.read()
    with pytest.raises(CourseError, match="expected to read your progress"):
        progress.remember("guesses", "a", guess=1)
    assert names(file.parent) == ["progress.json"]


@pytest.mark.parametrize("fault", [OSError(28, "No space left on device"), KeyboardInterrupt()])
def test_a_write_that_ends_in_the_middle_changes_nothing(file, monkeypatch, fault):
    progress.remember("guesses", "a", guess=1)
    before = file.read_bytes()

    def fail(*_args):
        raise fault

    monkeypatch.setattr(os, "replace", fail)
    kind = CourseError if isinstance(fault, OSError) else KeyboardInterrupt
    with pytest.raises(kind, match="No space left on device" if kind is CourseError else None):
        progress.remember("guesses", "a", guess=2)
    assert file.read_bytes() == before
    assert names(file.parent) == ["progress.json"]


def test_the_file_keeps_its_permissions_and_its_link(file, tmp_path):
    home = tmp_path / "home"
    home.mkdir()
    real = home / "mine.json"
    real.write_text("{}")
    real.chmod(0o640)
    file.symlink_to(real)
    progress.remember("guesses", "a", guess=1)
    assert file.is_symlink()
    assert json.loads(real.read_text())["guesses"] == {"a": {"guess": 1}}
    assert real.stat().st_mode & 0o777 == 0o640
    assert names(home) == ["mine.json"]


def test_unknown_sections_and_facts_are_refused(file):
    with pytest.raises(UsageError, match=r"expected 'exercises' or 'guesses', got 'marks'\."):
        progress.remember("marks", "a", guess=1)
    with pytest.raises(UsageError, match=r"expected facts that JSON can hold: .*set"):
        progress.remember("guesses", "a", guess={1})
    assert not file.exists()


def _write_many(folder, writer, count):
    os.chdir(folder)
    for number in range(count):
        progress.remember("guesses", f"{writer}.{number}", guess=number)


def test_two_kernels_write_at_once(file):
    """Nothing that one of them wrote is lost, whatever the order."""
    context = multiprocessing.get_context("spawn")
    writers = [context.Process(target=_write_many, args=(file.parent, name, 60)) for name in "abc"]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()
    assert [writer.exitcode for writer in writers] == [0, 0, 0]
    assert len(progress.read()["guesses"]) == 180
    assert names(file.parent) == ["progress.json"]


def test_a_reader_sees_a_whole_file(file):
    progress.remember("guesses", "0", guess="x" * 10_000)
    done = threading.Event()
    broken = []

    def look():
        while not done.is_set():
            try:
                json.loads(file.read_text())
            except ValueError as error:
                broken.append(error)

    reader = threading.Thread(target=look)
    reader.start()
    for number in range(40):
        progress.remember("guesses", str(number), guess="x" * 10_000)
    done.set()
    reader.join()
    assert broken == []


def test_no_torch_is_needed():
    code = "import sys; from pytorch_lab import progress; print('torch' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"
