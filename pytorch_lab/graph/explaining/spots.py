"""How the place of an op in the reader's source is written as a fact."""

from pytorch_lab.graph.record import Op
from pytorch_lab.graph.recorded import GraphRecord

LONGEST_LINE = 110  # of source that is quoted


def spot(op: Op | None) -> str:
    """` (train.py:12, module `fc`)`, with a space in front; empty if nothing is known."""
    if op is None or not op.site.where:
        return ""
    return f" ({op.site.where}{f', module `{op.module}`' if op.module else ''})"


def line_of(record: GraphRecord, op: Op) -> list[str]:
    """The line that called an op, as a list of one fact; empty if there is no source."""
    lines = record.source(op.site.file) if op.site.line else []
    text = lines[op.site.line - 1].strip() if 0 < op.site.line <= len(lines) else ""
    text = text if len(text) <= LONGEST_LINE else f"{text[: LONGEST_LINE - 1]}…"
    inside = f" (in module `{op.module}`)" if op.module else ""
    return [f"{op.site.where}: {text}{inside}"] if text else []
