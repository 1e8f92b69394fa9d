"""`clinic(...)`: being built."""

from typing import Any


def clinic(*args: Any, **kwargs: Any) -> Any:
    """Not there yet."""
    raise NotImplementedError("clinic")
