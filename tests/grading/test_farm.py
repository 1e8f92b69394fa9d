"""The same class on a real scheduler with two workers, one of which is killed while it grades."""

import csv
import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import distributed
import pytest
from distributed import Client

from pytorch_lab import __version__
from pytorch_lab.errors import LabError
from pytorch_lab.grading import grade
from pytorch_lab.grading.notebooks import write
from pytorch_lab.grading.running import farm
from pytorch_lab.grading.running.anywhere import How
from tests.assignments import make_submission
from tests.processes import descendants, gone, until

pytestmark = pytest.mark.heavy
CLASS = {
    **{f"right-{number}": make_submission() for number in range(6)},
    **{f"wrong-{number}": make_submission(e1="def twice(x):\n    return x") for number in range(6)},
    "exits": make_submission(e2="import os\nos._exit(0)"),
}


class Machines:
    """A scheduler and its workers, as processes of this machine."""

    def __init__(self, folder: Path) -> None:
        self.file = folder / "scheduler.json"
        self.log = (folder / "log").open("wb")
        self.scheduler = self._start("dask_scheduler", "--port", "0", "--dashboard-address", ":0")
        self.workers: list[subprocess.Popen[bytes]] = []
        until(self.file.exists)
        self.address = json.loads(self.file.read_text())["address"]

    def _start(self, what: str, *options: str) -> "subprocess.Popen[bytes]":
        command = [sys.executable, "-m", f"distributed.cli.{what}", "--host", "127.0.0.1"]
        command += ["--scheduler-file", str(self.file), *options]
        return subprocess.Popen(command, stdout=self.log, stderr=self.log)

    def add_worker(self) -> None:
        options = ("--nthreads", "1", "--no-nanny", "--no-dashboard")
        self.workers.append(self._start("dask_worker", *options))

    def await_workers(self, number: int) -> None:
        with Client(self.address, set_as_default=False) as client:
            client.wait_for_workers(number, timeout=120)

    def close(self) -> None:
        for process in [*self.workers, self.scheduler]:
            process.kill()
            process.wait()
        self.log.close()


@pytest.fixture(scope="module")
def machines(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Machines]:
    made = Machines(tmp_path_factory.mktemp("farm"))
    try:
        yield made
    finally:
        made.close()


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("farmed") / "in"
    for student, notebook in CLASS.items():
        write(made / f"{student}.ipynb", notebook)
    return made


def marks(out: Path) -> list[dict[str, str]]:
    return list(csv.DictReader((out / "grades.csv").read_text("utf-8").splitlines()))


def test_no_scheduler_is_a_sentence(tmp_path: Path, folder: Path, assignment: Path, monkeypatch):
    monkeypatch.setattr(farm, "CONNECT_S", 0.2)
    with pytest.raises(LabError, match=r"expected a dask scheduler at tcp://127\.0\.0\.1:1, but"):
        grade(folder, assignment, tmp_path / "out", dask="tcp://127.0.0.1:1")


def test_no_workers_are_a_sentence(machines: Machines):
    with pytest.raises(LabError, match=r"expected dask workers at the scheduler .*, found none"):
        farm.run_on_farm(machines.address, [], How(), lambda number, records: None)


def test_a_worker_that_dies_costs_no_mark(
    tmp_path: Path, folder: Path, assignment: Path, machines: Machines
):
    machines.add_worker()
    machines.add_worker()
    machines.await_workers(2)
    killed = []
    orphans: list[int] = []

    def kill_one(student: str, *settled: object) -> None:
        if not killed:
            killed.append(student)
            orphans.extend(descendants(machines.workers[0].pid))
            machines.workers[0].kill()

    graded = grade(
        folder, assignment, tmp_path / "farm", seed=3, dask=machines.address, heard=kill_one
    )
    alone = grade(folder, assignment, tmp_path / "alone", seed=3)
    assert killed
    assert machines.workers[0].wait() == -9
    assert marks(tmp_path / "farm") == marks(tmp_path / "alone")
    assert [row.points for row in graded.rows] == [row.points for row in alone.rows]
    assert sum(row.points for row in alone.rows) == 6 * 5.5 + 6 * 4.5 + 3.5
    assert orphans
    until(lambda: gone(orphans))
    again = grade(folder, assignment, tmp_path / "farm", seed=3, dask="tcp://127.0.0.1:1")
    assert [row.points for row in again.rows] == [row.points for row in alone.rows]  # all known


def test_a_result_that_dies_with_its_worker_is_made_again(
    tmp_path: Path, folder: Path, assignment: Path, machines: Machines, monkeypatch
):
    """A worker keeps what its task gave until it is fetched; between the two it can die."""
    for worker in machines.workers:
        worker.kill()
        worker.wait()
    machines.workers.clear()
    machines.add_worker()
    machines.await_workers(1)
    real, lost = distributed.wait, []

    def wait(futures: set[distributed.Future], **options: object) -> object:
        found = real(futures, **options)
        if not lost:
            lost.extend(found.done)
            machines.workers[0].kill()
            machines.add_worker()
            until(lambda: all(future.status != "finished" for future in lost))
        return found

    monkeypatch.setattr(distributed, "wait", wait)
    graded = grade(folder, assignment, tmp_path / "out", seed=3, dask=machines.address)
    assert lost
    assert sum(row.points for row in graded.rows) == 6 * 5.5 + 6 * 4.5 + 3.5
    assert not graded.notes


def test_workers_of_another_version_are_refused(machines: Machines, monkeypatch):
    monkeypatch.setattr(farm, "__version__", "0.0.7")
    says = rf"expected PyTorch Lab 0\.0\.7 on every worker, got {__version__} on tcp://"
    with pytest.raises(LabError, match=says):
        farm.run_on_farm(machines.address, [], How(), lambda number, records: None)


def test_nothing_is_left_when_the_workers_end(machines: Machines):
    family = [each for worker in machines.workers for each in descendants(worker.pid)]
    assert family  # the warm process of the one that lives
    for worker in machines.workers:
        worker.terminate()
        worker.wait()
    until(lambda: gone(family))


def test_when_the_last_worker_is_gone_the_rest_is_given_up(
    tmp_path: Path, folder: Path, assignment: Path, machines: Machines, monkeypatch
):
    """What was judged is kept; the same command goes on from there."""
    monkeypatch.setattr(farm, "ALONE_S", 2)
    machines.add_worker()
    machines.await_workers(1)

    def kill(student: str, *settled: object) -> None:
        machines.workers[-1].kill()

    graded = grade(folder, assignment, tmp_path / "out", dask=machines.address, heard=kill)
    assert graded.notes[-1] == "no dask worker was left for 2 s"
    judged = {row.student for row in graded.rows if row.reason != graded.notes[-1]}
    assert 4 <= len(judged) < len(CLASS)
    rest = grade(folder, assignment, tmp_path / "out")
    assert sum(row.points for row in rest.rows) == 6 * 5.5 + 6 * 4.5 + 3.5
