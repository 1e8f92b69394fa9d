"""Assignments made for nbgrader alone: assert cells, answers without markers, marks by a person.

    grade          a code cell of tests    its points hang on its coming to an end
    grade+solution an answer               marked by a person
    task           a text                  marked by a person

`adopt` turns such a notebook into one of ours, so that it is laid over, run and compared as ours
are. Its tests can only speak from inside the kernel; so each is followed by a cell that reveals a
word, which is sent only after the test came to its end. A test that raised, was skipped, or whose
error was hushed up is followed by none and earns nothing. What remains possible to code that runs
in the same kernel is looked for in its source (`suspicion`), and every mark says how it came about.

nbgrader's partial credit is the number that a test cell ends with.
"""

import ast
import copy
import hashlib
import re
from collections.abc import Sequence
from typing import Any

from nbformat import NotebookNode

from pytorch_lab.checks.regions import lines
from pytorch_lab.errors import NotebookError
from pytorch_lab.grading.notebooks import Facts, facts

_IMPORT = "from pytorch_lab.checks import reveal as _reveal"
JUDGE = "judge"  # in a cell's nbgrader metadata: who judges it, if not the values it reveals
KERNEL, PERSON = "kernel", "person"
POINTS, END = "points", "came to its end"  # the labels of what an adopted test reveals

# nbgrader takes these words anywhere in a line, whatever stands before them.
_MARKER = re.compile(r"^(\s*)#.*\b(BEGIN|END) (SOLUTION|HIDDEN TESTS)\b.*$")
_OURS = re.compile(r"\breveal\(")


def adopt(notebook: NotebookNode) -> NotebookNode:
    r"""The same assignment in our form; a notebook of ours is returned as it is.

    Example:
        >>> import nbformat
        >>> test = nbformat.v4.new_code_cell("assert x == 1", metadata={"nbgrader": {
        ...     "grade_id": "test_x", "grade": True, "points": 2}})
        >>> print(adopt(nbformat.v4.new_notebook(cells=[test])).cells[0].source)
        ### BEGIN HIDDEN TESTS
        assert x == 1
        from pytorch_lab.checks import reveal as _reveal
        _reveal('came to its end', '...')
        ### END HIDDEN TESTS
    """
    if not is_foreign(notebook):
        return notebook
    made = copy.deepcopy(notebook)
    made.nbformat_minor = max(5, made.get("nbformat_minor", 0))
    every = "\n".join(cell.source for cell in notebook.cells)
    for number, cell in enumerate(made.cells, 1):
        cell.setdefault("id", f"cell-{number}")
        known = facts(cell)
        if known is None:
            continue
        if known.grade or known.task:
            cell.metadata.nbgrader["points"] = known.points or 0.0
        if known.is_check and cell.cell_type == "code":
            word = hashlib.sha256(f"{known.grade_id}\n{every}".encode()).hexdigest()[:32]
            cell.source = _revealing(cell.source, word, known.grade_id)
            cell.metadata.nbgrader[JUDGE] = KERNEL
        elif known.is_check or known.needs_person:
            cell.metadata.nbgrader[JUDGE] = PERSON
        if known.is_answer:
            cell.source = _with_markers(cell.source, known)
    return made


def is_foreign(notebook: NotebookNode) -> bool:
    """Whether an assignment gives points, but no graded cell reveals a value.

    Our visible checks may stand in it all the same.
    """
    known = [(cell, found) for cell in notebook.cells if (found := facts(cell))]
    checks = [c.source for c, found in known if found.is_check and c.cell_type == "code"]
    if any(_OURS.search(source) for source in checks):
        return False
    # Nothing but comments: a check from which the tests were taken out.
    told = [line for source in checks for line in source.split("\n") if line.strip()]
    holds_tests = any(not line.lstrip().startswith("#") for line in told)
    return holds_tests or (not checks and any(found.needs_person for _, found in known))


def judged_by(cell: NotebookNode) -> str:
    """`KERNEL`, `PERSON`, or "" for a check whose values are compared outside the kernel."""
    return str(cell.metadata.nbgrader.get(JUDGE, ""))


def _with_markers(source: str, known: Facts) -> str:
    """An answer whose solution is marked: by its author, or else all of it."""
    made = _our_markers(source)
    if any(line.region == "SOLUTION" for line in lines(made, known.grade_id)):
        return made
    return f"### BEGIN SOLUTION\n{made}\n### END SOLUTION"


def _our_markers(source: str) -> str:
    return "\n".join(_MARKER.sub(r"\1### \2 \3", line) for line in source.split("\n"))


def _revealing(source: str, word: str, grade_id: str) -> str:
    """A test cell that ends by revealing its number, if it ends with one, and the word."""
    from IPython.core.inputtransformer2 import TransformerManager  # of use for few, and slow

    bare = [
        line.text for line in lines(_our_markers(source), grade_id) if not line.is_marker
    ]  # all of it is hidden from here on
    plain = TransformerManager().transform_cell("\n".join(bare)).rstrip("\n")
    try:
        last = ast.parse(plain).body[-1:]
    except SyntaxError as error:
        raise NotebookError(
            f"expected Python in the test cell {grade_id}, got a {type(error).__name__} in line "
            f"{error.lineno}: {error.msg}; repair it."
        ) from None
    end = [_IMPORT]
    if last and isinstance(last[0], ast.Expr):
        plain, shown = _with_name(plain, last[0])
        # IPython would show this value, and nbgrader take it for the points if it is a number.
        end += [f"_reveal({POINTS!r}, {_NUMBER})"] if shown else []
    end.append(f"_reveal({END!r}, {word!r})")
    return "\n".join(["### BEGIN HIDDEN TESTS", plain, *end, "### END HIDDEN TESTS"])


_NUMBER = "float(_end) if isinstance(_end, (int, float)) and type(_end) is not bool else None"


def _with_name(source: str, last: ast.Expr) -> tuple[str, bool]:
    """The source with its last expression kept as `_end`, and whether IPython would show it."""
    rows = source.encode().split(b"\n")
    head = [*rows[: last.lineno - 1], rows[last.lineno - 1][: last.col_offset]]
    text = ast.get_source_segment(source, last) or ""
    after = rows[(last.end_lineno or last.lineno) - 1][last.end_col_offset :]
    silent = after.strip().startswith(b";")
    return b"\n".join(head).decode() + f"_end = (\n{text}\n)", not silent


def split(source: str) -> tuple[str, str]:
    r"""An adopted test by itself, and what `adopt` put at its end.

    The second part is shown to the kernel only after the first came to its end there, because
    whatever runs in a kernel can read the source of the cell that it runs in.

    Example:
        >>> split("assert x\nfrom pytorch_lab.checks import reveal as _reveal\n_reveal('n', 1)")
        ('assert x', "from pytorch_lab.checks import reveal as _reveal\n_reveal('n', 1)")
    """
    test, _, word = source.partition(f"\n{_IMPORT}\n")
    return test, f"{_IMPORT}\n{word}"


def partial_credit(got: Sequence[Any], want: Sequence[Any], most: float) -> float | None:
    """The number that a test cell ended with, if it came to its end with one up to `most`.

    Args:
        got: what the student's run revealed.
        want: what the solution's run revealed.
        most: the points of the cell.

    Example:
        >>> half = {"label": "points", "value": {"is": "float", "value": 0.5}}
        >>> end = {"label": "came to its end", "value": {"is": "str", "value": "w"}}
        >>> partial_credit([half, end], [half, end], 2.0), partial_credit([end], [end], 2.0)
        (0.5, None)
    """
    if len(got) != 2 or len(want) != 2 or got[1] != want[1] or not isinstance(got[0], dict):
        return None
    value = got[0].get("value")
    if got[0].get("label") != POINTS or not isinstance(value, dict):
        return None
    number = value.get("value")
    return number if isinstance(number, float) and 0 <= number <= most else None
