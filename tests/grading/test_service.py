"""A run that is ended from outside: in order, and with nothing left."""

import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from pytorch_lab import scratch
from pytorch_lab.grading.notebooks import write
from tests.assignments import make_submission
from tests.processes import descendants, gone, until

HANG = """
import pathlib, time
pathlib.Path("/proc/self/comm").write_text("hanging")
time.sleep(600)
"""


def names(processes):
    found = []
    for process in processes:
        try:
            found.append(Path(f"/proc/{process}/comm").read_text().strip())
        except OSError:
            continue
    return found


@pytest.mark.heavy
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
@pytest.mark.parametrize("walls", [[], ["--no-sandbox"]], ids=["sandbox", "no-sandbox"])
def test_a_signal_ends_it_and_leaves_nothing(number, walls, tmp_path, assignment):
    for student in ("ada", "bob"):
        write(tmp_path / "in" / f"{student}.ipynb", make_submission(e1=HANG))
    (tmp_path / "tmp").mkdir()
    command = [sys.executable, "-m", "pytorch_lab.cli", "grade", str(tmp_path / "in"), *walls]
    command += ["--assignment", str(assignment), "--out", str(tmp_path / "out"), "--workers", "2"]
    run = subprocess.Popen(
        command,
        env=os.environ | {"TMPDIR": str(tmp_path / "tmp")},
        stderr=subprocess.PIPE,
        text=True,
    )
    until(lambda: names(descendants(run.pid)).count("hanging") == 2, seconds=200)
    family = descendants(run.pid)
    run.send_signal(number)
    said = run.communicate(timeout=60)[1]
    assert run.returncode == 130
    assert said == "pytorch-lab: stopped; the same command goes on from here.\n"
    until(lambda: gone(family))
    for place in (tmp_path / "tmp", Path("/tmp")):
        assert list(place.glob(f"pytorch-lab-*-{run.pid}-*")) == []
    assert not (tmp_path / "out" / "grades.csv").exists()


def test_sockets_fit_below_a_long_temporary_folder(tmp_path, monkeypatch):
    long = tmp_path / ("x" * 80)
    long.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(long))
    for_sockets, other = scratch.make("warm", for_sockets=True), scratch.make("grade")
    assert other.parent == long
    assert len(str(for_sockets / "0123abcd" / "server.sock")) < 107
    shutil.rmtree(for_sockets)


def test_what_a_killed_process_left_goes_with_the_next_one(tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    ended = subprocess.Popen([sys.executable, "-c", ""])
    ended.wait()
    for name in (
        f"pytorch-lab-warm-{ended.pid}-abc",
        f"pytorch-lab-warm-{os.getpid()}-abc",
        "mine",
    ):
        (tmp_path / name).mkdir()
    made = scratch.make("warm")
    left = {path.name for path in tmp_path.iterdir()}
    assert left == {made.name, f"pytorch-lab-warm-{os.getpid()}-abc", "mine"}
