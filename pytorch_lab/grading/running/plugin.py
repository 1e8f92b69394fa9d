"""A pytest plugin: nbval, judging nothing but the values that hidden checks reveal.

`pytest -p pytorch_lab.grading.running.plugin -p nbval.plugin --lab-results FD FOLDER` runs each
notebook that `overlay` made in a kernel of its own, cell by cell, as nbval does. What differs:

- Only cells of the role "check" are compared, and of their outputs only the values under our own
  MIME type, with the reference's values stored in the notebook; streams and warnings never count.
- What an answer raises is remembered; points hang on the values alone.
- After a timeout or a death the exercise that was to blame is over. The others go on in a fresh
  kernel, for which the earlier cells are run again without the guilty ones.
- What does not pass beside the other answers is judged once more without them.

One JSON line per exercise goes to the open file FD, which no kernel inherits. With
`--lab-reference` values are recorded, not compared.
"""

import os
import signal
from collections import defaultdict
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from nbval.plugin import IPyNbFile, NbCellError

from pytorch_lab import scratch
from pytorch_lab.errors import LabError
from pytorch_lab.grading.notebooks import read
from pytorch_lab.grading.running.cell import GradedCell, status_of
from pytorch_lab.grading.running.kernel import (
    UNREADABLE,
    KernelDied,
    NoKernel,
    TimedOut,
    WatchedKernel,
)
from pytorch_lab.grading.running.overlay import ROLE


def pytest_addoption(parser: Any) -> None:
    """Our options, beside nbval's own."""
    group = parser.getgroup("pytorch-lab")
    group.addoption("--lab-results", type=int, help="a file descriptor for the verdicts")
    group.addoption("--lab-sandbox", action="store_true", help="shut every kernel in")
    group.addoption("--lab-memory", type=int, help="bytes that a kernel in the sandbox may use")
    group.addoption("--lab-reference", action="store_true", help="record values, compare none")


def pytest_configure(config: Any) -> None:
    """Let SIGTERM end the run in order, kernels first, as Ctrl-C does."""
    if config.option.lab_results:
        signal.signal(signal.SIGTERM, signal.default_int_handler)


def pytest_collect_file(file_path: Path, parent: Any) -> "GradedFile | None":
    """Every notebook below the given folder."""
    if file_path.suffix == ".ipynb" and parent.config.option.lab_results:
        return GradedFile.from_parent(parent, path=file_path)
    return None


def pytest_collection_finish(session: Any) -> None:
    """Take the notebooks off the disk before any student's code runs: they hold the answers."""
    for file in {item.path for item in session.items if isinstance(item, GradedCell)}:
        file.unlink()


class GradedFile(IPyNbFile):
    """One student's notebook."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.ended: dict[str, tuple[str, str]] = {}  # exercise -> its verdict, once it has one
        self.raised: dict[str, str] = {}  # exercise -> what its answer raised
        self.seconds: defaultdict[str, float] = defaultdict(float)  # exercise -> of its cells
        self.left_out: dict[str, tuple[str, str]] = {}  # who cost a kernel -> exercise, how
        self.cells: list[GradedCell] = []
        self.again: list[GradedCell] = []  # what a fresh kernel must run first
        self.costly: list[GradedCell] = []  # who cost a kernel
        self.last: GradedCell | None = None
        self.folder = ""
        self.untold: Any = (None, "", [])  # a kernel, its folder, the cells that it has run

    def collect(self) -> Generator[GradedCell, None, None]:
        """Every cell becomes an item; its options are ours, whatever the cell says."""
        self.nb = read(self.path)  # ours: nbformat's own would compile the schema to check it
        for number, cell in enumerate(self.nb.cells):
            role = cell.metadata[ROLE]
            options = defaultdict(bool, check=role["role"] == "check")
            name = f"{number} {role['role']} {role['exercise']}".rstrip()
            made = GradedCell.from_parent(
                self, name=name, cell_num=number, cell=cell, options=options
            )
            self.cells.append(made)
            yield made

    def setup(self) -> None:
        """The kernel starts with the first cell that needs it."""
        self.setup_sanitize_files()

    def teardown(self) -> None:
        """End the kernels and remove their folders."""
        with self.untold_kernel():
            self.lose_kernel()
        self.lose_kernel()

    def lose_kernel(self) -> None:
        """End the kernel, if there is one, with all that it held."""
        if self.kernel is not None:
            self.kernel.end()
            self.kernel = None
        if self.folder:
            scratch.remove(Path(self.folder))
            self.folder = ""

    def ready(self) -> None:
        """See to it that a kernel lives in which every earlier innocent cell has run."""
        if self.kernel is not None and not self.kernel.is_alive():
            self.blame(self.last, "kernel_died", "the kernel ended soon after it")
        while self.kernel is None:
            self.start_kernel()
            for cell in list(self.again):
                try:
                    cell.execute()
                except NbCellError:
                    continue
                except (KernelDied, TimedOut, *UNREADABLE) as error:
                    self.blame(cell, status_of(error), "in a fresh kernel it did not end well")
                    break

    def start_kernel(self) -> None:
        """A kernel in an empty folder, which knows nothing of pytest or of the grader's user."""
        hidden = ("PYTEST_", "PYTHONSTARTUP", "COV_")
        env = {k: v for k, v in os.environ.items() if not k.startswith(hidden)}
        try:
            self.folder = str(scratch.make("kernel"))
            work = Path(self.folder, "work")
            work.mkdir()
            env |= {
                "IPYTHONDIR": str(Path(self.folder, "ipython")),
                "PYTORCH_LAB_PROGRESS": str(Path(self.folder, "progress.json")),
            }
            given = self.config.option
            limits = {"memory_bytes": given.lab_memory} if given.lab_memory else {}
            self.kernel = WatchedKernel(str(work), env, sandbox=given.lab_sandbox, limits=limits)
        except (RuntimeError, LabError, OSError, TimedOut, KernelDied) as error:
            self.lose_kernel()
            raise NoKernel(str(error)) from error

    def blame(self, cell: GradedCell | None, status: str, what: str) -> None:
        """Settle the exercise of a cell that cost the kernel, and leave its cells out from now."""
        self.lose_kernel()
        if cell is None:
            return
        self.costly.append(cell)
        self.again = [c for c in self.again if c is not cell]
        did = "ran too long" if status == "timed_out" else "ended the kernel"
        who = f"cell {cell.number}"
        if cell.exercise:
            self.again = [c for c in self.again if c.exercise != cell.exercise]
            self.ended.setdefault(cell.exercise, (status, what))
            who = f"the answer to {cell.exercise}"
        self.left_out[who] = (cell.exercise, did)

    def before(self, check: GradedCell) -> list[GradedCell]:
        """The cells before a check that did not cost a kernel; its own answers in any case."""
        cells = [c for c in self.cells if c.cell_num < check.cell_num and c.role != "check"]
        return [c for c in cells if c not in self.costly or c.exercise == check.exercise]

    def answers(self, exercise: str) -> list[str]:
        """The sources of the answers to an exercise."""
        return [c.cell.source for c in self.cells if (c.role, c.exercise) == ("answer", exercise)]

    @contextmanager
    def other_kernel(self) -> Iterator[None]:
        """Put the kernel aside; whatever was started meanwhile ends."""
        kept = self.kernel, self.folder
        self.kernel, self.folder = None, ""
        try:
            yield
        finally:
            self.lose_kernel()
            self.kernel, self.folder = kept

    @contextmanager
    def untold_kernel(self) -> Iterator[list[GradedCell]]:
        """The kernel in which no hidden check runs, and the cells that have run there."""
        kept = self.kernel, self.folder
        self.kernel, self.folder, has_run = self.untold
        try:
            yield has_run
        finally:
            self.untold = (self.kernel, self.folder, has_run if self.kernel else [])
            self.kernel, self.folder = kept

    def note(self, exercise: str) -> str:
        """What an exercise was judged without, if another one cost the kernel."""
        told = [f"{who}, which {did}" for who, (of, did) in self.left_out.items() if of != exercise]
        return f"run in a fresh kernel without {'; and without '.join(told)}" if told else ""
