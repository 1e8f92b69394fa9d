"""The graders that an instructor would use instead, in an environment of their own.

They are installed once into `peers` below our own environment, whose packages they see (torch is
not downloaded twice); what they need in other versions goes there, and never into ours. Each runs
in the way its manual gives for a batch, in one process, on notebooks of its own format.
"""

import os
import subprocess
import sys
import sysconfig
from collections.abc import Sequence
from pathlib import Path

import grading_class
import nbformat

WANTED = ("nbgrader==0.9.6", "otter-grader==7.0.0")
HOME = Path(sys.prefix, "peers")
OTTER = """
import sys
from otter.api import grade_submission
for path in sys.argv[2:]:
    found = grade_submission(path, ag_path=sys.argv[1], quiet=True)
    print("SCORE", path, found.total)
"""


def install() -> None:
    """Make the peers' environment, unless it is there: about a minute."""
    if (HOME / "done").exists():
        return
    print("installing nbgrader and otter into an environment of their own", flush=True)
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", "--clear", HOME], check=True)
    folder = sysconfig.get_path("purelib", vars={"base": str(HOME)})
    Path(folder, "pytorch-lab.pth").write_text(sysconfig.get_path("purelib"))
    pip = [sys.executable, "-m", "pip", "--python", str(HOME / "bin/python"), "install", "-qq"]
    subprocess.run([*pip, "--disable-pip-version-check", *WANTED], check=True)
    (HOME / "done").write_text("\n".join(WANTED))


def environment() -> dict[str, str]:
    """Where the peers find each other's commands; one thread, as for all."""
    own = {k: v for k, v in os.environ.items() if not k.startswith(("PYTEST_", "PYTHONPATH"))}
    path = f"{HOME / 'bin'}{os.pathsep}{os.environ['PATH']}"
    return own | {"PATH": path, "OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}


class Peer:
    """One grader, ready for some students of the class.

    Args:
        folder: an empty one.
        numbers: the students whose notebooks it gets.
    """

    name = ""

    def __init__(self, folder: Path, numbers: Sequence[int]) -> None:
        self.folder, self.numbers = folder, numbers
        folder.mkdir(parents=True)

    def command(self, numbers: Sequence[int]) -> list[str]:
        """The command that grades these students; each is asked for once."""
        raise NotImplementedError

    def path(self, number: int) -> Path:
        """A student's notebook."""
        return self.folder / f"{number:02}.ipynb"

    def run(self, *words: str) -> None:
        """A step that is not measured."""
        done = subprocess.run(
            words, cwd=self.folder, env=environment(), capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stderr[-2000:]


class Nbval(Peer):
    """Plain nbval, with the tests in the notebooks."""

    name = "pytest --nbval-lax"

    def __init__(self, folder: Path, numbers: Sequence[int]) -> None:
        super().__init__(folder, numbers)
        (folder / "pytest.ini").write_text("[pytest]\n")
        for number in numbers:
            nbformat.write(grading_class.plain(number), self.path(number))

    def command(self, numbers: Sequence[int]) -> list[str]:
        """One pytest process."""
        pytest = [sys.executable, "-m", "pytest", "-q", "--nbval-lax", "-p", "no:cacheprovider"]
        return [*pytest, "-c", "pytest.ini", *(self.path(n).name for n in numbers)]


class Nbgrader(Peer):
    """nbgrader, with a course of its own."""

    name = "nbgrader autograde"

    def __init__(self, folder: Path, numbers: Sequence[int]) -> None:
        super().__init__(folder, numbers)
        (folder / "source/ps1").mkdir(parents=True)
        (folder / "nbgrader_config.py").write_text("get_config().CourseDirectory.course_id = 'b'\n")
        nbformat.write(grading_class.nbgraders(), folder / "source/ps1/ps1.ipynb")
        self.run("nbgrader", "generate_assignment", "ps1", "--create")
        released = nbformat.read(folder / "release/ps1/ps1.ipynb", 4)
        for number in numbers:
            path = folder / f"submitted/s{number:02}/ps1/ps1.ipynb"
            path.parent.mkdir(parents=True)
            nbformat.write(grading_class.submission(released, number), path)

    def command(self, numbers: Sequence[int]) -> list[str]:
        """One process; the students are chosen by a pattern, for it takes one or all."""
        names = "|".join(f"s{n:02}" for n in numbers)
        one = [f"--student={names}"] if len(numbers) == 1 else []
        return [str(HOME / "bin/nbgrader"), "autograde", "ps1", *one]


class Otter(Peer):
    """otter through its Python API, which needs no container."""

    name = "otter grade_submission"

    def __init__(self, folder: Path, numbers: Sequence[int]) -> None:
        super().__init__(folder, numbers)
        nbformat.write(grading_class.otters(), folder / "ps1.ipynb")
        self.run("otter", "assign", "ps1.ipynb", "dist", "--no-run-tests", "--no-pdfs")
        self.released = nbformat.read(folder / "dist/student/ps1.ipynb", 4)
        for number in numbers:
            nbformat.write(grading_class.fill_otters(self.released, number), self.path(number))

    def command(self, numbers: Sequence[int]) -> list[str]:
        """One process that grades them in turn."""
        (archive,) = self.folder.glob("dist/autograder/*.zip")
        paths = [self.path(n).name for n in numbers]
        return [str(HOME / "bin/python"), "-c", OTTER, str(archive), *paths]


PEERS = (Nbval, Nbgrader, Otter)
