"""What a cell showed: the values under our own MIME type, and the text that people see.

Values are compared here, outside the kernel; the text is only for the feedback page.
"""

import json
from collections.abc import Sequence
from typing import Any

from pytorch_lab.checks.compare import difference
from pytorch_lab.grading.running.overlay import MIME

MOST_SHOWN = 4_000  # characters of text
MOST_REVEALED = 64_000  # characters of JSON that a record carries


def reveals(outputs: Sequence[Any]) -> list[Any]:
    """What a cell's outputs hold under our MIME type, in their order.

    Example:
        >>> reveals([{"output_type": "stream", "text": "noise"}])
        []
    """
    found = [output["data"] for output in outputs if isinstance(output.get("data"), dict)]
    # Through JSON, so that they are plain dicts and lists, not a notebook's nodes.
    return json.loads(json.dumps([data[MIME] for data in found if MIME in data]))


def bounded(values: list[Any]) -> list[Any]:
    """The same values, or none where they are too much to carry along.

    Example:
        >>> bounded([1]), bounded(["x" * 70_000])
        ([1], [])
    """
    return values if len(json.dumps(values)) <= MOST_REVEALED else []


def text(outputs: Sequence[Any]) -> str:
    r"""What people see of a cell's outputs, cut where it gets long.

    Example:
        >>> text([{"output_type": "stream", "text": "03.1 ✗ not yet"},
        ...       {"output_type": "error", "ename": "ValueError", "evalue": "no"}])
        '03.1 ✗ not yet\nValueError: no'
    """
    parts = []
    for output in outputs:
        if output["output_type"] == "stream":
            parts.append(str(output["text"]))
        elif output["output_type"] == "error":
            parts.append(f"{output['ename']}: {output['evalue']}")
        else:
            parts.append(str(output.get("data", {}).get("text/plain", "")))
    told = "\n".join(part.strip() for part in parts if part.strip())
    return told if len(told) <= MOST_SHOWN else told[: MOST_SHOWN - 1] + "…"


def judge(got: list[Any], want: list[Any]) -> str:
    """Why the revealed values are not the reference's; nothing when they are.

    Example:
        >>> one = {"label": "n", "value": {"is": "int", "value": 1}}
        >>> judge([one], [one])
        ''
        >>> judge([], [one])
        "the check came to no end: expected the value 'n', got none"
    """
    for at, wanted in enumerate(want):
        if at >= len(got):
            return f"the check came to no end: expected the value {wanted['label']!r}, got none"
        label = got[at].get("label") if isinstance(got[at], dict) else None
        if label != wanted["label"]:
            return f"expected the value {wanted['label']!r}, got {str(label)[:60]!r}"
        found = difference(got[at].get("value"), wanted["value"], wanted["label"])
        if found:
            return found
    if len(got) > len(want):
        return f"expected {len(want)} values, got {len(got)}: something else revealed a value"
    return ""
