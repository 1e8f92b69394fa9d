"""The marked regions of a cell: what is the solution, what the student gets in its place.

    ### BEGIN SOLUTION       left out for the student, a stub in its place
    ### BEGIN STUB           the author's own stub, each line a comment; stands after a solution
    ### BEGIN HIDDEN TESTS   left out for the student

Each is closed by its `### END …`. They are nbgrader's markers and its stub; "STUB" is ours.
"""

import re
from dataclasses import dataclass

from pytorch_lab.errors import NotebookError

STUB = ("# YOUR CODE HERE", "raise NotImplementedError()")
_MARKER = re.compile(r"^\s*###\s*(BEGIN|END)\s+(SOLUTION|STUB|HIDDEN TESTS)\s*$")


@dataclass(frozen=True)
class Line:
    """One line of a cell, and the marked region that it is in ("" outside of any)."""

    text: str
    region: str
    is_marker: bool


def lines(source: str, where: str) -> list[Line]:
    r"""The lines of a cell with their regions.

    Raises:
        NotebookError: a marker without its partner, or one region inside another.

    Example:
        >>> source = "### BEGIN SOLUTION\nx = 1\n### END SOLUTION"
        >>> [line.region for line in lines(source, "cell 1")]
        ['SOLUTION', 'SOLUTION', 'SOLUTION']
    """
    found, region = [], ""
    for number, line in enumerate(source.split("\n"), 1):
        marker = _MARKER.match(line)
        if marker is None:
            found.append(Line(line, region, False))
            continue
        edge, name = marker.groups()
        if edge == "BEGIN" and region:
            raise NotebookError(
                f"expected '### END {region}' before line {number} of {where}, "
                f"got '### BEGIN {name}'; regions cannot stand inside each other."
            )
        if edge == "END" and region != name:
            raise NotebookError(
                f"expected '### BEGIN {name}' before line {number} of {where}, "
                f"found none; add it, or remove '### END {name}'."
            )
        found.append(Line(line, name, True))
        region = name if edge == "BEGIN" else ""
    if region:
        raise NotebookError(
            f"expected '### END {region}' in {where}, found none; close the region."
        )
    return found


def student_text(source: str, where: str = "the cell", stub: tuple[str, ...] = STUB) -> str:
    r"""What the student gets to read of a cell.

    Example:
        >>> print(student_text("one = 1\n### BEGIN SOLUTION\ntwo = 2\n### END SOLUTION"))
        one = 1
        # YOUR CODE HERE
        raise NotImplementedError()
    """
    found = lines(source, where)
    if not any(line.region for line in found):
        return source
    kept: list[str] = []
    for at, line in enumerate(found):
        if line.region == "":
            kept.append(line.text)
        elif line.region == "STUB" and not line.is_marker:
            kept.append(_uncommented(line.text, where))
        elif _begins(line, "SOLUTION") and not _own_stub_follows(found[at:]):
            indent = line.text[: len(line.text) - len(line.text.lstrip())]
            kept.extend(indent + text for text in stub)
    return "\n".join(kept).strip("\n")


def solution_text(source: str, where: str = "the cell") -> str:
    r"""An answer cell without its markers and without the stub, so that a copy of it runs.

    Example:
        >>> solution_text("### BEGIN SOLUTION\nx = 1\n### END SOLUTION")
        'x = 1'
    """
    kept = [
        line.text for line in lines(source, where) if not line.is_marker and line.region != "STUB"
    ]
    return "\n".join(kept).strip("\n")


def _begins(line: Line, region: str) -> bool:
    return line.is_marker and line.region == region and "BEGIN" in line.text


def _own_stub_follows(rest: list[Line]) -> bool:
    """Whether the author's own stub stands right after the solution that begins here."""
    end = next(at for at, line in enumerate(rest) if line.is_marker and "END" in line.text)
    after = next((line for line in rest[end + 1 :] if line.text.strip()), None)
    return after is not None and after.region == "STUB"


def _uncommented(text: str, where: str) -> str:
    """A line of the author's stub; each is a comment, so that the solution's cell still runs."""
    found = re.fullmatch(r"(\s*)#(?: (.*)|())", text.rstrip())
    if found is None and text.strip():
        raise NotebookError(
            f"expected every line between ### BEGIN STUB and ### END STUB in {where} to begin "
            f"with '# ', got {text.strip()!r}; the '# ' is taken off for the student."
        )
    return found[1] + (found[2] or "") if found else ""
