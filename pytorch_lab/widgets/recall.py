"""`recall(...)`: being built."""

from typing import Any


def recall(*args: Any, **kwargs: Any) -> Any:
    """Not there yet."""
    raise NotImplementedError("recall")
