"""A pytest plugin: nbval, judging nothing but the values that hidden checks reveal.

`pytest -p pytorch_lab.grading.plugin -p nbval.plugin --lab-results FD FOLDER` runs each notebook
that `overlay` made in a kernel of its own, cell by cell, as nbval does. What differs:

- Only cells of the role "check" are compared, and of their outputs only the values under our own
  MIME type, with the reference's values stored in the notebook; streams and warnings never count.
- What an answer raises is remembered; points hang on the values alone.
- After a timeout or a death the exercise that was to blame is over. The others go on in a fresh
  kernel, for which the earlier cells are run again without the guilty ones.

One JSON line per exercise goes to the open file FD, which no kernel inherits. With
`--lab-reference` values are recorded, not compared.
"""

import json
import os
import shutil
import signal
import time
from collections import defaultdict
from collections.abc import Generator
from pathlib import Path
from typing import Any

import nbformat
from nbval.plugin import IPyNbCell, IPyNbFile, NbCellError

from pytorch_lab import scratch
from pytorch_lab.errors import LabError
from pytorch_lab.grading.kernel import KernelDied, TimedOut, WatchedKernel
from pytorch_lab.grading.overlay import ROLE
from pytorch_lab.grading.trouble import one_line, trouble
from pytorch_lab.grading.values import bounded, judge, reveals, text

# What reading a message that no honest kernel sends may raise.
UNREADABLE = (ValueError, KeyError, TypeError, AttributeError, RuntimeError)

# Verdicts to which the visible check has nothing to add.
UNHELPED = ("passed", "not_attempted", "timed_out", "kernel_died")


class NoKernel(Exception):
    """A kernel did not start."""


class NotPassed(Exception):
    """An exercise earned nothing; the message says why."""


def pytest_addoption(parser: Any) -> None:
    """Two options, beside nbval's own."""
    group = parser.getgroup("pytorch-lab")
    group.addoption("--lab-results", type=int, help="a file descriptor for the verdicts")
    group.addoption("--lab-sandbox", action="store_true", help="shut every kernel in")
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
        self.again: list[GradedCell] = []  # what a fresh kernel must run first
        self.last: GradedCell | None = None
        self.folder = ""

    def collect(self) -> Generator["GradedCell", None, None]:
        """Every cell becomes an item; its options are ours, whatever the cell says."""
        self.nb = nbformat.read(self.path, as_version=4)
        for number, cell in enumerate(self.nb.cells):
            role = cell.metadata[ROLE]
            options = defaultdict(bool, check=role["role"] == "check")
            name = f"{number} {role['role']} {role['exercise']}".rstrip()
            yield GradedCell.from_parent(
                self, name=name, cell_num=number, cell=cell, options=options
            )

    def setup(self) -> None:
        """The kernel starts with the first cell that needs it."""
        self.setup_sanitize_files()

    def teardown(self) -> None:
        """End the kernel and remove its folder."""
        self.lose_kernel()

    def lose_kernel(self) -> None:
        """End the kernel, if there is one, with all that it held."""
        if self.kernel is not None:
            self.kernel.end()
            self.kernel = None
        if self.folder:
            shutil.rmtree(self.folder, ignore_errors=True)
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
                    self.blame(cell, _status(error), "in a fresh kernel it did not end well")
                    break

    def start_kernel(self) -> None:
        """A kernel in an empty folder, which knows nothing of pytest or of the grader's user."""
        self.folder = str(scratch.make("kernel"))
        work = Path(self.folder, "work")
        work.mkdir()
        hidden = ("PYTEST_", "PYTHONSTARTUP", "COV_")
        env = {k: v for k, v in os.environ.items() if not k.startswith(hidden)}
        env |= {
            "IPYTHONDIR": str(Path(self.folder, "ipython")),
            "PYTORCH_LAB_PROGRESS": str(Path(self.folder, "progress.json")),
        }
        try:
            sandbox = self.config.option.lab_sandbox
            self.kernel = WatchedKernel(str(work), env, sandbox=sandbox)
        except (RuntimeError, LabError, TimedOut, KernelDied) as error:
            self.lose_kernel()
            raise NoKernel(str(error)) from error

    def blame(self, cell: "GradedCell | None", status: str, what: str) -> None:
        """Settle the exercise of a cell that cost the kernel, and leave its cells out from now."""
        self.lose_kernel()
        if cell is None:
            return
        self.again = [c for c in self.again if c is not cell]
        did = "ran too long" if status == "timed_out" else "ended the kernel"
        who = f"cell {cell.number}"
        if cell.exercise:
            self.again = [c for c in self.again if c.exercise != cell.exercise]
            self.ended.setdefault(cell.exercise, (status, what))
            who = f"the answer to {cell.exercise}"
        self.left_out[who] = (cell.exercise, did)

    def note(self, exercise: str) -> str:
        """What an exercise was judged without, if another one cost the kernel."""
        told = [f"{who}, which {did}" for who, (of, did) in self.left_out.items() if of != exercise]
        return f"run in a fresh kernel without {'; and without '.join(told)}" if told else ""


def _status(error: Exception) -> str:
    return "timed_out" if isinstance(error, TimedOut) else "kernel_died"


class GradedCell(IPyNbCell):
    """One cell of a student's notebook."""

    parent: GradedFile

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        known = self.cell.metadata[ROLE]
        self.role: str = known["role"]
        self.exercise: str = known["exercise"]
        self.number: int = known["number"]
        self.reason = ""

    def runtest(self) -> None:
        """Run the cell unless its exercise is over; a check also gives the verdict."""
        file = self.parent
        if self.role == "check" and self.exercise in file.ended:
            self.give(*file.ended[self.exercise])
        if self.exercise in file.ended:
            return
        status, reason = self.judged()
        if self.role == "check":
            self.give(status, reason)
        elif status == "raised" and self.exercise:
            file.raised.setdefault(self.exercise, reason)

    def judged(self) -> tuple[str, str]:
        """Run the cell, and say what came of it."""
        file = self.parent
        try:
            file.ready()
            if self.exercise in file.ended:  # found out only now that its answer killed the kernel
                return file.ended[self.exercise]
            file.last = self
            self.execute()
        except NoKernel as error:
            return "kernel_died", f"no kernel could be started for it: {error}".rstrip(": ")
        except (KernelDied, TimedOut, *UNREADABLE) as error:
            status, reason = _status(error), self.lost(error)
            file.blame(self, status, reason)
            return status, reason
        except NbCellError:
            verdict = self.what_failed()
        else:
            verdict = ("passed", "")
        if self.role != "check":
            file.again.append(self)
        return verdict

    def execute(self) -> None:
        """Run the cell as nbval does."""
        kernel = self.parent.kernel
        if kernel is not None:
            # The instructor's cells import torch, which takes long on a busy machine.
            kernel.patient = self.role == "given"
        started = time.monotonic()
        try:
            super().runtest()
        except NbCellError as error:
            if kernel is None or not kernel.is_alive():
                raise KernelDied from error
            raise
        finally:
            self.parent.seconds[self.exercise] += time.monotonic() - started
        if kernel is not None and kernel.asked_to_exit:
            raise KernelDied

    def lost(self, error: Exception) -> str:
        """What is said of a cell that took the kernel with it."""
        what = {"check": "the hidden check", "answer": "the answer"}.get(self.role, "the cell")
        if isinstance(error, TimedOut):
            seconds = self.config.option.nbval_cell_timeout
            return f"{what} ran longer than {seconds:g} s; is there a loop that never ends?"
        if isinstance(error, KernelDied):
            return f"the kernel ended while {what} ran (exit, out of memory, or a crash)"
        return f"the kernel answered {what} with something unreadable ({type(error).__name__})"

    def stop(self) -> None:
        """What nbval calls when the kernel stays silent after an error."""
        raise KernelDied

    def what_failed(self) -> tuple[str, str]:
        """The verdict on a cell that nbval found wanting."""
        kernel = self.parent.kernel
        if self.role == "check" and kernel is not None and kernel.was_cut:
            return "failed", "the output was cut after 1 MB, before the check was through"
        error = next((o for o in self.test_outputs or [] if o.output_type == "error"), None)
        if error is None:
            return "failed", self.reason or "nothing was revealed"
        answers = [
            c.cell.source
            for c in self.parent.session.items
            if isinstance(c, GradedCell) and c.parent is self.parent and c.role == "answer"
            if c.exercise == self.exercise
        ]
        return trouble(error, answers)

    def compare_outputs(self, test: Any, ref: Any, skip_compare: Any = None) -> bool:
        """Compare what was revealed with the reference; nothing else."""
        if self.config.option.lab_reference:
            return True
        self.reason = judge(reveals(test), reveals(ref))
        self.comparison_traceback = [self.reason]
        return not self.reason

    def give(self, status: str, reason: str) -> None:
        """Record the verdict on an exercise, and raise unless it passed."""
        file = self.parent
        untouched = self.cell.metadata[ROLE]["untouched"]
        if status in ("failed", "raised") and self.exercise in file.raised:
            status, reason = "raised", file.raised[self.exercise]
        if status in ("failed", "raised") and untouched:
            status, reason = "not_attempted", "the answer is still the stub"
        told = one_line("; ".join(filter(None, [reason, file.note(self.exercise)])))
        revealed = reveals(self.test_outputs or [])
        record: dict[str, Any] = {
            "submission": file.path.stem,
            "exercise": self.exercise,
            "status": status,
            "reason": told,
            "seconds": round(file.seconds[self.exercise], 3),
            "shown": "" if status in UNHELPED else self.visibly(),
            "reveals": [],
        }
        if self.config.option.lab_reference:
            record["reveals"] = revealed
        elif status == "failed":
            record["reveals"] = bounded(revealed)
        line = json.dumps(record) + "\n"
        with open(self.config.option.lab_results, "a", encoding="utf-8", closefd=False) as results:
            results.write(line)
        if status != "passed":
            raise NotPassed(f"{status}: {told}")

    def visibly(self) -> str:
        """What the exercise's visible check shows in this kernel; no point hangs on it."""
        file, source = self.parent, self.cell.metadata[ROLE].get("visible")
        if not source or file.kernel is None:
            return ""
        asked = GradedCell.from_parent(
            file,
            name="visible",
            cell_num=self.cell_num,
            cell=nbformat.v4.new_code_cell(source, metadata=self.cell.metadata),
            options=defaultdict(bool),
        )
        try:
            asked.execute()
        except NbCellError:
            pass
        except (KernelDied, TimedOut, *UNREADABLE):
            file.lose_kernel()
            return ""
        return text(asked.test_outputs or [])

    def repr_failure(self, excinfo: Any, *args: Any) -> str:
        """One line, for whoever reads the grader's log."""
        return f"{type(excinfo.value).__name__}: {excinfo.value}"
