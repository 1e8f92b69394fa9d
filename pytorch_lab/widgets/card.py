"""`card(...)`: being built."""

from typing import Any


def card(*args: Any, **kwargs: Any) -> Any:
    """Not there yet."""
    raise NotImplementedError("card")
