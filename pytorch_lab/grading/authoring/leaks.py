"""Whether a student's notebook holds a line of the solution or of a hidden check, in any guise.

| searched                                         | how                                        |
| ------------------------------------------------ | ------------------------------------------ |
| sources, outputs, attachments, metadata, ids      | line by line, without `#`, `>` and indent  |
| … for lines of 20 characters and more            | also inside of a longer line               |
| … code of 14 characters and more                 | whatever its spaces, without `return`      |
| … what is packed in them                         | base64, zlib, `%20` and `&lt;` are undone  |

Lines that any other program says too (imports, heads of blocks) are no secret, nor is what the
author's own stub gives. The hints in an exercise's own check may quote its solution.
"""

import base64
import binascii
import html
import re
import urllib.parse
import zlib
from collections.abc import Iterator
from typing import Any

from nbformat import NotebookNode

from pytorch_lab.checks.regions import lines
from pytorch_lab.errors import NotebookError
from pytorch_lab.grading.authoring.assignment import place
from pytorch_lab.grading.notebooks import facts, grade_id

# Shorter lines say nothing about a solution; longer ones betray it even inside a sentence.
SHORTEST, ANYWHERE = 12, 20
CODE = 14  # characters without spaces, where it can only be code
# What every other program says too: heads of blocks, imports, decorators.
_COMMON = re.compile(r".*:$|import |from |@|super\(\)|raise NotImplementedError")
_PACKED = re.compile(r"[A-Za-z0-9+/_-]{16,}={0,2}")
_MOST_UNPACKED = 1_000_000
_DEEPEST = 3  # a packing inside another one


def refuse_leaks(solution: NotebookNode, released: NotebookNode, name: object) -> None:
    r"""Search a student's notebook for every telling line of the solutions and hidden checks.

    Args:
        solution: the notebook of solutions.
        released: what was made of it for students.
        name: what messages call it.

    Raises:
        NotebookError: there is one, and where.

    Example:
        >>> import nbformat
        >>> answer = nbformat.v4.new_code_cell(
        ...     "### BEGIN SOLUTION\nnearest = x.abs().argmin()\n### END SOLUTION")
        >>> told = nbformat.v4.new_markdown_cell("Try `nearest = x.abs().argmin()`.")
        >>> refuse_leaks(nbformat.v4.new_notebook(cells=[answer]),
        ...              nbformat.v4.new_notebook(cells=[told]), "03.ipynb")
        Traceback (most recent call last):
        pytorch_lab.errors.NotebookError: expected no line of cell 1 of 03.ipynb in the ...
    """
    shown = [(where, _Text(text)) for where, text in _texts(released)]
    for number, cell in enumerate(solution.cells, 1):
        known, told = facts(cell), lines(cell.source, place(number, cell, name))
        # The author's own stub may share lines with the solution: a repair changes only some.
        given = {_plain(line.text.replace("#", "", 1)) for line in told if line.region == "STUB"}
        own_check = f"({grade_id(known.exercise)}-check)" if known else ""
        for line in told:
            secret = _plain(line.text)
            if line.is_marker or secret in given or not _tells(secret, line.region):
                continue
            for where, text in shown:
                inside = not (own_check and where.endswith(own_check))
                if text.shows(secret, inside):
                    raise NotebookError(
                        f"expected no line of {place(number, cell, name)} in the student's "
                        f"version, got {secret!r} in {where}; reword it there, or put it between "
                        "markers."
                    )


def _plain(line: str) -> str:
    """A line without indentation, comment sign and irregular spaces."""
    return " ".join(line.strip().lstrip("#>").split())


def _tells(secret: str, region: str) -> bool:
    """Whether finding this line would tell a student something."""
    if len(secret) < SHORTEST:
        return False
    if region == "SOLUTION":
        return _COMMON.match(secret) is None
    # A hidden check shares its set-up with the visible one; what it asks is its secret.
    return region == "HIDDEN TESTS" and ("reveal(" in secret or secret.startswith("assert "))


def _squeezed(text: str) -> str:
    """Code as it is with other spaces and quotes."""
    return "".join(text.split()).replace("'", '"')


def _expression(secret: str) -> str:
    """What a line computes, without spaces; "" if it is too short or not clearly code."""
    bare = _squeezed(re.sub(r"^return\b", "", secret))
    return bare if len(bare) >= CODE and len(re.findall(r"[(\[=+*/%@-]", bare)) > 1 else ""


class _Text:
    """A text as it stands and unpacked, prepared for many searches."""

    def __init__(self, text: str) -> None:
        every = list(unpacked(text))
        self.lines = {_plain(line) for one in every for line in one.split("\n")}
        self.runs = [" ".join(one.split()) for one in every]
        self.squeezed = [_squeezed(one) for one in every]

    def shows(self, secret: str, inside: bool) -> bool:
        """Whether it has the secret as a line, or, if asked for, inside of one."""
        if secret in self.lines:
            return True
        bare = _expression(secret)
        among = any(secret in run for run in self.runs) and len(secret) >= ANYWHERE
        return inside and (among or any(bare in one for one in self.squeezed if bare))


def unpacked(text: str, depth: int = 0) -> Iterator[str]:
    """A text, and all texts that are packed in it.

    Example:
        >>> list(unpacked("aGVsbG8sIHdvcmxkIQ=="))
        ['aGVsbG8sIHdvcmxkIQ==', 'hello, world!']
        >>> list(unpacked("1&lt;2"))
        ['1&lt;2', '1<2']
    """
    yield text
    if depth == _DEEPEST:
        return
    inner = {html.unescape(text), urllib.parse.unquote(text)} - {text}
    for found in _PACKED.findall(text.replace("\n", "")):  # e-mail breaks it into lines
        inner.update(_decoded(found))
    for one in inner:
        yield from unpacked(one, depth + 1)


def _decoded(packed: str) -> Iterator[str]:
    """The texts that a run of base64 may be; a picture is none."""
    whole = packed.rstrip("=")
    try:
        content = base64.urlsafe_b64decode(
            whole.translate(str.maketrans("+/", "-_")) + "=" * (-len(whole) % 4)
        )
    except (ValueError, binascii.Error):
        return
    for window in (None, zlib.MAX_WBITS | 32):  # as it is, and inflated: zlib or gzip
        try:
            plain = content if window is None else _inflated(content, window)
            yield plain.decode()
        except (UnicodeDecodeError, zlib.error):
            continue


def _inflated(content: bytes, window: int) -> bytes:
    return zlib.decompressobj(window).decompress(content, _MOST_UNPACKED)


def _texts(notebook: NotebookNode) -> Iterator[tuple[str, str]]:
    """Every text in a notebook, with the place where it stands."""
    for number, cell in enumerate(notebook.cells, 1):
        known = facts(cell)
        yield f"cell {number}{f' ({known.grade_id})' if known else ''}", cell.source
        beside = [cell.metadata, cell.get("attachments", {}), cell.get("id", "")]
        for text in _strings(beside):
            yield f"the metadata of cell {number}", text
        for text in _strings(cell.get("outputs", [])):
            yield f"the outputs of cell {number}", text
    for text in _strings(notebook.metadata):
        yield "the notebook's metadata", text


def _strings(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for key, inner in value.items():
            yield str(key)
            yield from _strings(inner)
    elif isinstance(value, list | tuple):
        for inner in value:
            yield from _strings(inner)
