"""Every cheat of the bank in one class, honest students among them, graded in the sandbox."""

import csv
import os
import re
import socket
from pathlib import Path
from typing import NamedTuple

import pytest

from pytorch_lab.grading import Row, grade
from pytorch_lab.grading.notebooks import write
from tests.cheats import grader, host, kernel, notebooks, values
from tests.cheats.bank import EXERCISES, POINTS, RIGHT, WRONG, Cheat, handed_in, solution
from tests.processes import with_argument

pytestmark = pytest.mark.heavy
CHEATS: list[Cheat] = [
    cheat for kind in (values, grader, kernel, host, notebooks) for cheat in kind.CHEATS
]
LIMIT_S = 10
# By name they are graded before, between and after the cheats.
HONEST = {
    "aa-right": (handed_in(RIGHT), [2, 3, 5]),
    "fz-half": (handed_in(RIGHT | {"04.2": WRONG["04.2"]}), [2, 0, 5]),
    "mm-right": (handed_in(RIGHT), [2, 3, 5]),
    "zz-right": (handed_in(RIGHT), [2, 3, 5]),
}
TOKEN = "token-7f3a"
FILES = {
    "zz-huge": ("unreadable", r".* is too large: expected up to 50 MB, got 200 MB"),
    "zz-deep": ("unreadable", r".*"),
    "zz-link": ("refused", r".* is a link, not a file"),
}


class Graded(NamedTuple):
    rows: dict[str, dict[str, Row]]
    out: Path
    secret: Path
    visits: int


def odd_files(folder: Path, secret: Path) -> None:
    """What is no notebook, or too much of one."""
    with (folder / "zz-huge.ipynb").open("wb") as file:
        file.write(b'{"cells": [')
        file.truncate(200_000_000)  # sparse: it costs no disk
    (folder / "zz-deep.ipynb").write_text("[" * 500_000)
    (folder / "zz-link.ipynb").symlink_to(secret)


@pytest.fixture(scope="module")
def graded(tmp_path_factory: pytest.TempPathFactory) -> Graded:
    home = tmp_path_factory.mktemp("cheats")
    folder, secret = home / "handed in", home / "secret"
    secret.write_text(TOKEN)
    assignment = home / "04_cheats.ipynb"
    write(assignment, solution())
    with socket.create_server(("127.0.0.1", 0)) as server, pytest.MonkeyPatch.context() as patch:
        server.setblocking(False)
        patch.setenv("GRADERS_TOKEN", TOKEN)
        patch.setenv("TMPDIR", str(home))
        for cheat in CHEATS:
            made = cheat.notebook(server.getsockname()[1], str(secret))
            write(folder / f"{cheat.name.replace('/', '_')}.ipynb", made)
        for name, (notebook, _) in HONEST.items():
            write(folder / f"{name}.ipynb", notebook)
        odd_files(folder, secret)
        rows = grade(folder, assignment, home / "out", timeout_cell=LIMIT_S, workers=2).rows
        try:
            server.accept()[0].close()
            visits = 1
        except BlockingIOError:
            visits = 0
    by_student: dict[str, dict[str, Row]] = {}
    for row in rows:
        by_student.setdefault(row.student, {})[row.exercise] = row
    return Graded(by_student, home / "out", secret, visits)


def test_there_are_as_many_as_readme_says():
    names = [cheat.name for cheat in CHEATS]
    assert len(names) == len(set(names)) >= 72


@pytest.mark.parametrize("cheat", CHEATS, ids=lambda cheat: cheat.name)
def test_a_cheat_earns_nothing_and_is_told_why(graded: Graded, cheat: Cheat):
    rows = graded.rows[cheat.name.replace("/", "_")]
    assert list(rows) == list(EXERCISES)
    for exercise, (status, says) in cheat.expected().items():
        row = rows[exercise]
        assert re.fullmatch(status, row.status), row
        assert re.fullmatch(says, row.reason), row
        assert row.points == (POINTS[exercise] if status == "passed" else 0)


@pytest.mark.parametrize("name", HONEST)
def test_honest_work_beside_them_keeps_its_marks(graded: Graded, name: str):
    assert [row.points for row in graded.rows[name].values()] == HONEST[name][1]


@pytest.mark.parametrize("name", FILES)
def test_what_is_no_notebook_is_a_row(graded: Graded, name: str):
    status, says = FILES[name]
    for row in graded.rows[name].values():
        assert (row.status, row.points) == (status, 0)
        assert re.fullmatch(says, row.reason), row


def test_nothing_of_the_host_was_touched(graded: Graded):
    assert graded.visits == 0
    assert graded.secret.read_text() == TOKEN
    assert not list(graded.secret.parent.glob("pytorch-lab-*"))
    assert with_argument(kernel.LEFT) == []
    assert not Path("/tmp/torch.py").exists()
    assert "PYTEST_ADDOPTS" not in os.environ


def test_the_files_hold_no_formula_no_script_and_no_line_break(graded: Graded):
    text = (graded.out / "grades.csv").read_text("utf-8")
    table = list(csv.DictReader(text.splitlines()))
    assert len(table) == len(graded.rows) * len(EXERCISES)
    assert not [v for line in table for v in line.values() if v[:1] in tuple("=+-@\t\r")]
    assert not re.search(r"[\x00-\x09\x0b-\x1f\x7f\u202a-\u202e\u2066-\u2069]", text)


def test_the_token_is_in_no_file_that_students_get(graded: Graded):
    for path in graded.out.rglob("*"):
        if path.is_file():
            assert TOKEN.encode() not in path.read_bytes(), path
