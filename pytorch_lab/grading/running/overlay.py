"""The student's answers laid over the instructor's notebook.

Only the sources of the answer cells and of cells that the student added are taken; everything else
(locked cells, metadata, tags, outputs, the choice of a kernel) comes from the instructor. What
comes out is what the grader runs:

    given    the instructor's open cells: imports, data, examples
    own      cells that the student added, after the cell that they stood after
    answer   the student's answer to an exercise
    check    the hidden check, on the grader's seed

The visible checks are feedback, and no point hangs on them: none is a cell of its own, but each
hidden check carries the source of the visible one, to be asked after a wrong answer.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import nbformat
from nbformat import NotebookNode

from pytorch_lab.grading.authoring.assignment import Exercise, exercises
from pytorch_lab.grading.authoring.foreign import KERNEL, PERSON, split
from pytorch_lab.grading.authoring.release import student_source
from pytorch_lab.grading.notebooks import facts
from pytorch_lab.grading.running.persons import for_a_person, tell_untouched, why_a_person

MIME = "application/vnd.pytorch-lab.value+json"
ROLE = "pytorch_lab"  # the key of our own entry in a cell's metadata

_PANEL = re.compile(r"^(?:lab|checks)\.exercise\((.*)\)\s*$", re.MULTILINE)

# Control comments and tags by which a cell could tell nbval or nbclient not to judge it.
_COMMENT = re.compile(r"^\s*#+\s*((?:NBVAL|PYTEST)_\w+)", re.MULTILINE)
_TAG = re.compile(r"nbval-.*|pytest-.*|raises-exception|skip-execution")


@dataclass
class Overlay:
    """What one student handed in, ready to be run."""

    notebook: NotebookNode
    status: dict[str, tuple[str, str]] = field(default_factory=dict)  # settled without running
    notes: list[str] = field(default_factory=list)  # for the reason of every exercise
    notes_of: dict[str, list[str]] = field(default_factory=dict)  # for that of one

    @property
    def worth_running(self) -> bool:
        """Whether any exercise could earn points."""
        checks = [c for c in self.notebook.cells if c.metadata[ROLE]["role"] == "check"]
        own = any(c.metadata[ROLE]["role"] == "own" for c in self.notebook.cells)
        open_ = [c for c in checks if not c.metadata[ROLE]["untouched"]]
        return bool(open_) or (own and bool(checks))


@dataclass
class _Sorted:
    """A student's cells, told apart."""

    answers: dict[str, list[tuple[int, NotebookNode]]] = field(default_factory=dict)
    own: dict[str, list[tuple[int, NotebookNode]]] = field(default_factory=dict)


def overlay(instructor: NotebookNode, student: NotebookNode, *, seed: int = 0) -> Overlay:
    r"""Lay a student's answers over the instructor's notebook.

    Args:
        instructor: the notebook of solutions.
        student: the notebook handed in.
        seed: what the hidden checks draw their inputs from.

    Example:
        >>> def cell(source, grade_id, **known):
        ...     known |= {"grade_id": grade_id}
        ...     return nbformat.v4.new_code_cell(source, metadata={"nbgrader": known})
        >>> answer = cell("### BEGIN SOLUTION\nx = 1\n### END SOLUTION", "03-1", solution=True)
        >>> check = cell("### BEGIN HIDDEN TESTS\nchecks.reveal('x', x)\n### END HIDDEN TESTS",
        ...              "03-1-hidden", grade=True, points=1)
        >>> instructor = nbformat.v4.new_notebook(cells=[answer, check])
        >>> overlay(instructor, nbformat.v4.new_notebook()).status["03.1"]
        ('missing', 'the answer cell 03-1 is not in the notebook')
    """
    told = _tell_apart(instructor, student)
    graded = exercises(instructor, "the assignment")
    by_answer = {answer: exercise for exercise in graded for answer in exercise.answers}
    by_check = {exercise.check: exercise for exercise in graded if exercise.judge != PERSON}
    made = Overlay(_empty())
    _lay_own(made, told.own.get("", []))
    for number, cell in enumerate(instructor.cells, 1):
        known = facts(cell)
        grade_id = known.grade_id if known else ""
        if grade_id in by_answer:
            _lay_answer(made, cell, by_answer[grade_id].id, told.answers.get(grade_id, []))
        elif grade_id in by_check:
            _lay_check(made, cell, by_check[grade_id], instructor, seed)
        elif known and (known.is_answer or known.task):  # run, but worth nothing by itself
            _lay_own(made, told.answers.get(grade_id, []))
        elif cell.cell_type == "code" and not _is_visible_check(cell):
            _add(made, cell.source, "given", number)
        if key := _key(cell):
            _lay_own(made, told.own.get(key, []))
    by_hand = [exercise for exercise in graded if exercise.judge == PERSON]
    made.status |= for_a_person(by_hand, instructor, told.answers)
    in_kernel = [exercise.id for exercise in graded if exercise.judge == KERNEL]
    tell_untouched(instructor, made.notebook.cells, told.answers)
    if in_kernel and (reason := why_a_person(instructor, made.notebook.cells)):
        made.status |= dict.fromkeys(in_kernel, ("needs_person", reason))
    return made


def _empty() -> NotebookNode:
    """As `nbformat.v4.new_notebook`, which would hold it against the schema for milliseconds."""
    about = nbformat.from_dict(_KERNEL)
    return NotebookNode(nbformat=4, nbformat_minor=5, metadata=about, cells=[])


_KERNEL = {
    "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
    "language_info": {"name": "python"},
}


def _key(cell: NotebookNode) -> str:
    """What a cell of the instructor's is recognised by in the student's notebook; or nothing."""
    known = facts(cell)
    if known:
        return known.grade_id
    return f"id:{cell.id}" if cell.get("id") else ""


def _tell_apart(instructor: NotebookNode, student: NotebookNode) -> _Sorted:
    """Sort a student's cells into answers, cells of their own, and what the instructor wrote."""
    keys = {_key(cell) for cell in instructor.cells}
    answers = {f.grade_id for f in map(facts, instructor.cells) if f and f.is_answer}
    written = {(cell.cell_type, student_source(cell)): _key(cell) for cell in instructor.cells}
    told, anchor = _Sorted(), ""
    for number, cell in enumerate(student.cells, 1):
        key = _key(cell)
        if key in answers:
            told.answers.setdefault(key, []).append((number, cell))
            anchor = key
        elif facts(cell) is not None and key in keys:
            anchor = key  # locked: the instructor's own cell is run
        elif (cell.cell_type, cell.source) in written:
            anchor = written[cell.cell_type, cell.source]
        else:
            # An open cell of the instructor's that was edited is run after the original.
            anchor = key if key and key in keys else anchor
            if cell.cell_type == "code" and cell.source.strip():
                told.own.setdefault(anchor, []).append((number, cell))
    return told


def _is_visible_check(cell: NotebookNode) -> bool:
    known = facts(cell)
    return (known is not None and known.grade_id.endswith("-check")) or bool(
        re.search(r"\blab\.exercise\(|@checks\.visible\(", cell.source)
    )


def _add(made: Overlay, source: str, role: str, number: int, exercise: str = "") -> NotebookNode:
    # `new_code_cell` asks the schema each time, which took half of what all of this takes.
    cell = NotebookNode(cell_type="code", id=f"cell-{len(made.notebook.cells)}", source=source)
    cell.metadata = {ROLE: {"role": role, "exercise": exercise, "number": number}}
    cell.execution_count, cell.outputs = None, []
    made.notebook.cells.append(cell)
    return cell


def _lay_own(made: Overlay, cells: list[tuple[int, NotebookNode]]) -> None:
    for number, cell in cells:
        if cell.cell_type != "code":
            continue
        marker = _control_marker(cell)
        if marker:
            made.notes.append(f"the student's cell {number} was not run: it holds {marker}")
        else:
            _add(made, cell.source, "own", number)


def _lay_answer(
    made: Overlay, original: NotebookNode, exercise: str, handed_in: list[tuple[int, NotebookNode]]
) -> None:
    known = facts(original)
    grade_id = known.grade_id if known else ""
    code = [(n, cell) for n, cell in handed_in if cell.cell_type == original.cell_type]
    if not handed_in:
        made.status[exercise] = ("missing", f"the answer cell {grade_id} is not in the notebook")
    elif not code:
        kind = handed_in[0][1].cell_type
        made.status[exercise] = ("missing", f"the answer cell {grade_id} was made a {kind} cell")
    markers = [(n, marker) for n, cell in handed_in if (marker := _control_marker(cell))]
    if markers:
        number, marker = markers[0]
        made.status[exercise] = (
            "refused",
            f"the answer cell {grade_id} (cell {number}) holds {marker}, which would keep it "
            "from being judged; take it out",
        )
        return
    if len(code) > 1:
        made.notes_of.setdefault(exercise, []).append(
            f"{len(code)} cells carry the id {grade_id}; they were run in their order"
        )
    for number, cell in code:
        added = _add(made, cell.source, "answer", number, exercise)
        added.metadata[ROLE]["untouched"] = _is_untouched(cell.source, original)


def _is_untouched(source: str, original: NotebookNode) -> bool:
    """Whether an answer is empty, or still the stub, but for spaces at the ends of lines."""
    mine, stub = _stripped(source), _stripped(student_source(original))
    only_comments = all(not line or line.lstrip().startswith("#") for line in mine)
    return mine == stub or only_comments


def _stripped(source: str) -> list[str]:
    return [line.rstrip() for line in source.strip().split("\n") if line.strip()]


def _lay_check(
    made: Overlay, cell: NotebookNode, exercise: Exercise, instructor: NotebookNode, seed: int
) -> None:
    """The hidden check of an exercise, unless the exercise is settled already."""
    if exercise.id in made.status:
        return
    # `checks` is bound anew: the student may have used the name for something else.
    source = f"from pytorch_lab import checks\nchecks.seed({seed})\n{cell.source}"
    test, word = split(source) if exercise.judge == KERNEL else ("", source)
    added = _add(made, word, "check", instructor.cells.index(cell) + 1, exercise.id)
    added.metadata[ROLE]["test"] = test  # run first, by itself
    answers = [
        known
        for made_cell in made.notebook.cells
        if (known := made_cell.metadata[ROLE])["role"] == "answer"
        and known["exercise"] == exercise.id
    ]
    untouched = bool(answers) and all(known["untouched"] for known in answers)
    added.metadata[ROLE]["untouched"] = untouched
    added.metadata[ROLE]["visible"] = _visible_source(exercise, instructor)


def _visible_source(exercise: Exercise, instructor: NotebookNode) -> str:
    """The exercise's visible check, showing its verdict as text instead of in a panel."""
    sources = [
        cell.source
        for cell in instructor.cells
        if (known := facts(cell)) and known.exercise == exercise.id and _is_visible_check(cell)
    ]
    return "\n".join(_PANEL.sub(r"print(checks.run(\1))", source) for source in sources)


def _control_marker(cell: NotebookNode) -> str:
    """The first comment or tag by which a cell tries to steer the grader; or nothing."""
    comment = _COMMENT.search(cell.source)
    if comment:
        return f"the control comment {comment[1][:60]}"
    for tag in _tags(cell.metadata.get("tags")):
        if _TAG.fullmatch(tag):
            return f"the tag {tag[:60]}"
    return ""


def _tags(said: Any) -> Iterator[str]:
    if isinstance(said, list | tuple):
        yield from (tag for tag in said if isinstance(tag, str))
