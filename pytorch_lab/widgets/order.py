"""`order(...)`: being built."""

from typing import Any


def order(*args: Any, **kwargs: Any) -> Any:
    """Not there yet."""
    raise NotImplementedError("order")
