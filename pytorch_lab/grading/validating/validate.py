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
import textwrap
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path

from nbformat import NotebookNode

from pytorch_lab.errors import LabError, NotebookError, UsageError
from pytorch_lab.grading.authoring.assignment import Exercise, exercises
from pytorch_lab.grading.authoring.foreign import PERSON, adopt
from pytorch_lab.grading.authoring.mutants import Known, known_answers
from pytorch_lab.grading.authoring.release import student_version
from pytorch_lab.grading.notebooks import facts, grade_id, read
from pytorch_lab.grading.running.trials import Kernels
from pytorch_lab.grading.validating.tryout import Fault, try_out
from pytorch_lab.warm.sandbox import why_not as why_no_sandbox

_POINTS = re.compile(r"(\d+(?:\.\d+)?) points?\b")


@dataclass
class Report:
    """What was found out about one assignment."""

    notebook: Path
    exercises: list[Exercise] = field(default_factory=list)
    known: Known = field(default_factory=Known)
    faults: list[Fault] = field(default_factory=list)
    unseen: frozenset[str] = frozenset()  # the exercises without a visible check


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
    known_cells = [one for cell in solutions.cells if (one := facts(cell))]
    seen = {one.exercise for one in known_cells if one.grade_id.endswith("-check")}
    unseen = frozenset(one.id for one in graded if not one.judge and one.id not in seen)
    return Report(path, graded, known, list(_faults_of_points(solutions, graded)), unseen)


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


def told(reports: Sequence[Report]) -> str:
    """The reports for a terminal, in lines of 80 columns.

    Example:
        >>> fault = Fault("03.1", "the stub passes its hidden check", "reveal more")
        >>> exercise = Exercise("03.1", ("03-1",), "03-1-hidden", 2.0)
        >>> print(told([Report(Path("03.ipynb"), [exercise], faults=[fault])]))
        03.ipynb: 1 exercise, 2 points, no known mistakes
          ✗ 03.1  2 points
              the stub passes its hidden check; reveal more.
        1 fault in 1 of 1 notebook.
    """
    rows = [row for report in reports for row in _lines(report)]
    faults = sum(len(report.faults) for report in reports)
    wrong = sum(bool(report.faults) for report in reports)
    many = _many(len(reports), "notebook")
    rows.append(
        f"{_many(faults, 'fault')} in {wrong} of {many}." if faults else f"{many} all right."
    )
    return "\n".join(rows)


def _lines(report: Report) -> Iterator[str]:
    mutants = [one.exercise for one in report.known.mutants]
    total = sum(one.points for one in report.exercises)
    head = [
        _many(len(report.exercises), "exercise"),
        _many(total, "point"),
        _many(len(mutants), "known mistake"),
    ]
    yield f"{report.notebook.name}: {', '.join(head)}"
    yield from _paragraphs([fault for fault in report.faults if not fault.exercise], "    ")
    width = max((len(one.id) for one in report.exercises), default=0)
    for one in report.exercises:
        faults = [fault for fault in report.faults if fault.exercise == one.id]
        known = f"  {_many(mutants.count(one.id), 'mistake')} rejected" if one.id in mutants else ""
        by = "  marked by a person" if one.judge == PERSON else ""
        if one.id in report.unseen:
            known += f"  has no visible check, no cell `{grade_id(one.id)}-check`"
        sign, more = ("✗", "") if faults else ("✓", known or by)
        yield f"  {sign} {one.id:{width}}  {_many(one.points, 'point')}{more}"
        yield from _paragraphs(faults, "      ")


def _paragraphs(faults: Sequence[Fault], indent: str) -> Iterator[str]:
    for fault in faults:
        yield textwrap.fill(
            f"{fault.what}; {fault.do}.", 80, initial_indent=indent, subsequent_indent=indent
        )


def _many(number: float, what: str) -> str:
    return f"{number:g} {what}{'' if number == 1 else 's'}" if number else f"no {what}s"
