"""What a cell raised, told in one line: the error, and the student's own line.

A traceback arrives as coloured text, in which every frame points at its line with an arrow. The
student's line is the innermost one that stands in their answer.
"""

import re
from typing import Any

_COLOUR = re.compile(r"\x1b\[[0-9;]*[A-Za-z]")
_ARROW = re.compile(r"^-+> (\d+) (.*)$")
_SYNTAX = re.compile(r"\s*\(\S+\.py, line (\d+)\)$")
_NO_MEMORY = re.compile(r"allocate memory|not enough memory|bad_alloc", re.IGNORECASE)
_LONGEST = 400


def one_line(text: str) -> str:
    r"""A text without colours, control characters and line ends, cut where it gets long.

    Example:
        >>> one_line("\x1b[31mred\x1b[0m\n  light")
        'red light'
    """
    plain = " ".join(_COLOUR.sub("", text).split())
    shown = "".join(c for c in plain if c.isprintable())
    return shown if len(shown) <= _LONGEST else shown[: _LONGEST - 1] + "…"


def joined(*reasons: str) -> str:
    """Several reasons in one line.

    Example:
        >>> joined("see cell 3.", "", "the highest number counts")
        'see cell 3; the highest number counts'
    """
    said = [reason.strip() for reason in reasons if reason.strip()]
    cut = [part if part.endswith("..") else part.removesuffix(".") for part in said[:-1]]
    return one_line("; ".join([*cut, *said[-1:]]))


def trouble(error: Any, sources: list[str]) -> tuple[str, str]:
    r"""The status and the reason for an error output.

    Args:
        error: the output, with `ename`, `evalue` and `traceback`.
        sources: the student's cells in which the line is looked for.

    Example:
        >>> trouble({"ename": "ZeroDivisionError", "evalue": "division by zero",
        ...          "traceback": ["----> 2     return 1 / 0"]}, ["def f():\n    return 1 / 0"])
        ('raised', 'ZeroDivisionError in line 2, return 1 / 0: division by zero')
    """
    name, said = str(error["ename"]), str(error["evalue"])
    if name == "UsageError":  # what was revealed is nothing that can be compared
        return "failed", one_line(said)
    if name == "MemoryError" or _NO_MEMORY.search(said):
        name = f"out of memory ({name})"
    where = _line(error, sources)
    return "raised", one_line(f"{name}{where}: {_SYNTAX.sub('', said)}".removesuffix(": "))


def _line(error: Any, sources: list[str]) -> str:
    """The innermost line of the traceback that stands in one of the sources."""
    own = [source.split("\n") for source in sources]
    syntax = _SYNTAX.search(str(error["evalue"]))
    if syntax:
        number = int(syntax[1])
        text = next((lines[number - 1] for lines in own if number <= len(lines)), "")
        return _say(number, text.strip())
    told = "\n".join(str(part) for part in error["traceback"])
    arrows = [_ARROW.match(line) for line in _COLOUR.sub("", told).split("\n")]
    for arrow in reversed([found for found in arrows if found]):
        number, text = int(arrow[1]), arrow[2].strip()
        if any(number <= len(lines) and lines[number - 1].strip() == text for lines in own):
            return _say(number, text)
    return ""


def _say(number: int, text: str) -> str:
    return f" in line {number}, {text}" if text else f" in line {number}"
