"""The attacks on the host once more, graded by an ordinary user: nothing of root's helps then."""

import csv
import os
import re
import shutil
import socket
import subprocess
import tempfile
from pathlib import Path

import pytest

from pytorch_lab.grading.notebooks import write
from tests import normal_user
from tests.cheats import host
from tests.cheats.bank import EXERCISES, RIGHT, handed_in, solution

reason = normal_user.why_not()
pytestmark = [pytest.mark.heavy, pytest.mark.skipif(bool(reason), reason=reason)]
SECRET = "token-7f3a"


@pytest.fixture(scope="module")
def rows():
    home = Path(tempfile.mkdtemp(prefix="normal-user-", dir="/tmp"))  # where others may go
    scratch = Path(tempfile.mkdtemp(dir="/tmp"))
    try:
        (home / "secret").write_text(SECRET)
        write(home / "04_cheats.ipynb", solution())
        with socket.create_server(("127.0.0.1", 0)) as server:
            for cheat in host.CHEATS:
                made = cheat.notebook(server.getsockname()[1], str(home / "secret"))
                write(home / "class" / f"{cheat.name}.ipynb", made)
            for name in ("aa-right", "zz-right"):
                write(home / "class" / f"{name}.ipynb", handed_in(RIGHT))
            for path in (home, *home.rglob("*")):
                os.chown(path, normal_user.USER, normal_user.USER)
            run_as_user(home, scratch)
        with (home / "out" / "grades.csv").open(encoding="utf-8") as file:
            by_key = {(row["student"], row["exercise"]): row for row in csv.DictReader(file)}
        assert (home / "secret").read_text() == SECRET
        yield by_key
    finally:
        shutil.rmtree(home)
        shutil.rmtree(scratch)


def run_as_user(home, scratch):
    grade = ["-m", "pytorch_lab.cli", "grade", str(home / "class"), "--out", str(home / "out")]
    grade += ["--assignment", str(home / "04_cheats.ipynb"), "--timeout-cell", "20"]
    keep = ("PATH", "PYTHONPATH", "OMP_NUM_THREADS")
    env = {k: v for k, v in os.environ.items() if k in keep}
    env |= {"HOME": str(home), "TMPDIR": str(home)}
    done = subprocess.run(
        normal_user.command(normal_user.python(*grade), scratch),
        cwd=home, env=env, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert (home / "out" / "grades.csv").exists(), done.stdout[-2000:] + done.stderr[-2000:]


@pytest.mark.parametrize("cheat", host.CHEATS, ids=lambda cheat: cheat.name)
def test_a_cheat_finds_nothing(rows, cheat):
    for exercise, (status, says) in cheat.expected().items():
        row = rows[cheat.name, exercise]
        assert re.fullmatch(status, row["status"]), row
        assert re.fullmatch(says, row["reason"]), row
        assert float(row["points"]) == 0


@pytest.mark.parametrize("name", ["aa-right", "zz-right"])
def test_honest_work_keeps_its_marks(rows, name):
    assert [float(rows[name, exercise]["points"]) for exercise in EXERCISES] == [2, 3, 5]
