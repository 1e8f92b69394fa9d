"""A hidden check that judges itself, for nbgrader, which knows no other verdict.

`pytorch-lab release --nbgrader` puts it in the place of `checks` in the cells that nbgrader runs:
each value is compared with the solution's as soon as it is revealed, and the first that differs
raises an `AssertionError`. Our own grader takes no notice of this; it compares outside the kernel.
"""

import base64
import json
import zlib
from collections.abc import Sequence
from typing import Any

from pytorch_lab import checks
from pytorch_lab.checks.compare import difference
from pytorch_lab.checks.encode import encode


class Asserting:
    """Stands in for `pytorch_lab.checks` within one hidden check.

    Args:
        expected: what the solution reveals, as `packed` writes it.
        seed: what the check draws its inputs from.

    Example:
        >>> asserting = Asserting(packed([{"label": "n", "value": {"is": "int", "value": 4}}]))
        >>> asserting.reveal("n", 5)
        Traceback (most recent call last):
        AssertionError: n is not the expected value
        >>> asserting.end()
    """

    def __init__(self, expected: str, seed: int = 0) -> None:
        self._left = json.loads(zlib.decompress(base64.b64decode(expected)))
        checks.seed(seed)

    def reveal(self, label: str, value: Any) -> None:
        """Compare a value with the solution's.

        Raises:
            AssertionError: it is another one.
        """
        want = self._left.pop(0) if self._left else {"label": None}
        if want["label"] != label or difference(encode(value), want["value"], label):
            raise AssertionError(f"{label} is not the expected value")

    def end(self) -> None:
        """Find out whether all values were revealed.

        Raises:
            AssertionError: some are missing.
        """
        if self._left:
            raise AssertionError(f"the check did not reveal {self._left[0]['label']}")

    def __getattr__(self, name: str) -> Any:
        """Everything else is as in `checks`."""
        return getattr(checks, name)


def packed(reveals: Sequence[Any]) -> str:
    """Revealed values as a text for one line of a notebook.

    Example:
        >>> Asserting(packed([])).end()
    """
    return base64.b64encode(zlib.compress(json.dumps(reveals).encode(), 9)).decode()
