"""What the hidden checks make of given answers: notebooks in, what each exercise reveals out.

Nothing is compared and no mark is given: that is for whoever asks (`validate`, `misconceptions`,
`for_nbgrader`).
"""

from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Self

from nbformat import NotebookNode

from pytorch_lab import scratch
from pytorch_lab.errors import LabError
from pytorch_lab.grading.notebooks import write
from pytorch_lab.grading.running.nbval_run import Pytest, Record
from pytorch_lab.grading.running.overlay import ROLE, overlay
from pytorch_lab.grading.statuses import NO_KERNEL
from pytorch_lab.warm.worker import Worker

Found = dict[tuple[str, str], Record]  # by the notebook's name and the exercise

# The overlay has the visible check print its verdict; here it reveals it.
_SAYING = (
    "from pytorch_lab import checks\ndef print(what):\n    checks.reveal('verdict', str(what))\n"
)


@dataclass(frozen=True)
class Trial:
    """One notebook to be run.

    Attributes:
        notebook: as a student hands it in.
        seed: what the hidden checks draw their inputs from.
        first: a source that is run before all others.
        visible: ask the visible checks in place of the hidden ones; their verdicts are revealed.
    """

    notebook: NotebookNode
    seed: int = 0
    first: str = ""
    visible: bool = False


@dataclass
class Trials:
    """Runs notebooks over one assignment, each in a kernel of its own.

    Args:
        solutions: the notebook of solutions.
        pytest: what runs them.
    """

    solutions: NotebookNode
    pytest: Pytest

    def __call__(self, trials: Mapping[str, Trial]) -> Found:
        """What each exercise of each notebook revealed, and how its check ended.

        Raises:
            LabError: not all could be run.
        """
        folder = scratch.make("trial")
        try:
            names = list(trials)
            for number, trial in enumerate(trials.values()):
                write(folder / f"{number:05}.ipynb", self._overlaid(trial))
            records, ended = self.pytest(folder, "--lab-reference")
        finally:
            scratch.remove(folder)
        none = next((r["reason"] for r in records if r["reason"].startswith(NO_KERNEL)), "")
        if ended or none:
            raise LabError(
                f"expected pytest to run the notebooks, but {ended or none}; "
                "run 'pytorch-lab doctor'."
            )
        return {(names[int(r["submission"])], r["exercise"]): r for r in records}

    def _overlaid(self, trial: Trial) -> NotebookNode:
        made = overlay(self.solutions, trial.notebook, seed=trial.seed).notebook
        if trial.first and made.cells:
            made.cells[0].source = f"{trial.first}\n{made.cells[0].source}"
        for cell in made.cells if trial.visible else ():
            if visible := cell.metadata[ROLE].get("visible"):
                cell.source = f"{_SAYING}{visible}\ndel print"
        return made


class Kernels:
    """Two processes that run trials, each with kernels of its own.

    What differs between them, such as Python's hash seed, differs between two runs.

    Args:
        sandbox: shut each kernel in, as for students' code.
        timeout_cell: seconds that one cell may run.
    """

    def __init__(self, sandbox: bool, timeout_cell: int) -> None:
        self.sandbox = sandbox
        self.timeout_cell = timeout_cell
        self._stack = ExitStack()
        self._made: list[Pytest] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()
        self._stack.close()

    def start(self, number: int) -> None:
        """Have so many of them; they end with the thread that calls this."""
        while len(self._made) < number:
            worker = self._stack.enter_context(Worker()) if self.sandbox else None
            self._made.append(Pytest(self.timeout_cell, worker.run if worker else None))

    def run(self, solutions: NotebookNode, trials: Mapping[str, Trial], *, which: int = 0) -> Found:
        """Run trials in the first process or the second one, which was started."""
        return Trials(solutions, self._made[which])(trials)

    def stop(self) -> None:
        """End whatever runs."""
        for pytest in self._made:
            pytest.stop()
