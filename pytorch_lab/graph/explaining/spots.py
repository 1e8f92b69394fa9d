"""How the facts of an answer are written: names, and places in the reader's source."""

import re

from pytorch_lab.graph.graph_record import GraphRecord
from pytorch_lab.graph.schema import Op

LONGEST_LINE = 110  # of source that is quoted
_ENDING = re.compile(r"Backward\d*$")


def capital(name: str) -> str:
    """A name at the start of a sentence."""
    return f"{name[0].upper()}{name[1:]}"


def stem(node: str) -> str:
    """A node's name without its ending, to be compared whole.

    Example:
        >>> stem("LogSoftmaxBackward0"), stem("PowBackward1")
        ('LogSoftmax', 'Pow')
    """
    return _ENDING.sub("", node)


def quoted(where: str, line: str, inside: str = "") -> list[str]:
    """A line of source as a list of one fact; empty if there is no text.

    Args:
        where: `train.py:12`.
        line: its text.
        inside: what is said behind it.
    """
    text = line.strip()
    text = text if len(text) <= LONGEST_LINE else f"{text[: LONGEST_LINE - 1]}…"
    return [f"{where}: {text}{inside}"] if text else []


def spot(op: Op | None) -> str:
    """` (train.py:12, module `fc`)`, with a space in front; empty if nothing is known."""
    if op is None or not op.site.where:
        return ""
    return f" ({op.site.where}{f', module `{op.module}`' if op.module else ''})"


def line_of(record: GraphRecord, op: Op) -> list[str]:
    """The line that called an op, as a list of one fact; empty if there is no source."""
    lines = record.source(op.site.file) if op.site.line else []
    text = lines[op.site.line - 1] if 0 < op.site.line <= len(lines) else ""
    return quoted(op.site.where, text, f" (in module `{op.module}`)" if op.module else "")
