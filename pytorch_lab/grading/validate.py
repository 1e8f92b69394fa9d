"""Whether an assignment grades what it says: its own solution, its stub, and every known mistake.

| asked                                                                 | on             |
| --------------------------------------------------------------------- | -------------- |
| does the solution pass, with the same values in another process that   | five seeds     |
| runs two threads                                                       |                |
| do the stub, each known mistake, and functions that only raise, fail   | the first seed |
| do right answers in another style pass                                 | the first seed |
| does the visible check say the same of solution and stub               | its own        |
| do the points add up to what the text says; would anything leak        |                |

The answers are run as students' are: by nbval in the sandbox, compared outside.
"""

import re
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path

from nbformat import NotebookNode

from pytorch_lab.errors import LabError, NotebookError, UsageError
from pytorch_lab.grading.assignment import Exercise, exercises
from pytorch_lab.grading.foreign import adopt
from pytorch_lab.grading.mutants import Known, known_answers
from pytorch_lab.grading.notebooks import facts, read
from pytorch_lab.grading.release import student_version
from pytorch_lab.grading.trials import Kernels
from pytorch_lab.grading.tryout import Fault, try_out
from pytorch_lab.warm.sandbox import why_not as why_no_sandbox

_POINTS = re.compile(r"(\d+(?:\.\d+)?) points?\b")


@dataclass
class Report:
    """What was found out about one assignment."""

    notebook: Path
    exercises: list[Exercise] = field(default_factory=list)
    known: Known = field(default_factory=Known)
    faults: list[Fault] = field(default_factory=list)


def validate(
    notebooks: Sequence[Path],
    *,
    mutants: Path | None = None,
    sandbox: bool = True,
    timeout_cell: int = 60,
    workers: int = 2,
) -> list[Report]:
    """Try assignments out before students get them.

    Args:
        notebooks: notebooks of solutions.
        mutants: the file of known mistakes, if it does not lie in a folder `mutants` beside them.
        sandbox: run the answers in the sandbox, as students' are.
        timeout_cell: seconds that one cell may run.
        workers: how many answers are run at a time.

    Raises:
        NotebookError: one of them is not a notebook.
        LabError: nothing could be run.

    Example:
        >>> validate([Path("no_such.ipynb")])
        Traceback (most recent call last):
        pytorch_lab.errors.NotebookError: expected a notebook at no_such.ipynb, ...
    """
    if mutants is not None and len(notebooks) > 1:
        raise UsageError(
            f"expected one notebook with --mutants, got {len(notebooks)}; validate them one by "
            "one, or put the files into a folder 'mutants' beside them."
        )
    if sandbox and (reason := why_no_sandbox()):
        raise LabError(reason)
    given = [(path, adopt(read(path)), known_answers(path, mutants)) for path in notebooks]
    reports = [_looked_at(solutions, path, known) for path, solutions, known in given]
    with ExitStack() as stack:
        kernels = stack.enter_context(Kernels(sandbox, timeout_cell))
        for report, (_, solutions, known) in zip(reports, given, strict=True):
            if report.exercises:
                report.faults += try_out(solutions, report.exercises, known, kernels, workers)
    return reports


def _looked_at(solutions: NotebookNode, path: Path, known: Known) -> Report:
    """What can be seen without running anything."""
    try:
        student_version(solutions, path)
        graded = exercises(solutions, path)
    except NotebookError as error:
        what, _, do = str(error).removesuffix(".").rpartition("; ")
        return Report(path, faults=[Fault("", what, do)])
    return Report(path, graded, known, list(_faults_of_points(solutions, graded)))


def _faults_of_points(solutions: NotebookNode, graded: Sequence[Exercise]) -> Iterator[Fault]:
    """Where the text promises other points than the checks give."""
    by_id, sums = {one.id: one for one in graded}, []
    for cell in solutions.cells:
        said = [float(points) for points in _POINTS.findall(cell.source)]
        if cell.cell_type != "markdown" or not said:
            continue
        known = facts(cell)
        mine = by_id.get(known.exercise) if known else None
        if mine is None:
            sums += said
        elif mine.points not in said:
            yield Fault(
                mine.id,
                f"its task says {said[0]:g} points, its hidden check gives {mine.points:g}",
                "make the two equal",
            )
    total = sum(one.points for one in graded)
    if sums and total not in sums:
        yield Fault(
            "",
            f"the text says {max(sums):g} points, the checks give {total:g} together",
            "make the two equal",
        )
    if not total:
        yield Fault("", "no exercise is worth a point", 'give the hidden checks "points"')
