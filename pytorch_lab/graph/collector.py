"""Python's garbage collector rests while tens of thousands of small records are made at once.

It would be set off again and again, and look at all of them each time: twice the time.
"""

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def collector_rests(*, settled: bool = False) -> Iterator[None]:
    """No collection inside the `with`.

    Args:
        settled: what was made goes straight to the oldest generation, where it would end up anyway.

    Example:
        >>> with collector_rests():
        ...     gc.isenabled()
        False
    """
    was = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if settled and gc.get_freeze_count() == 0:
            gc.freeze()
            gc.unfreeze()
        if was:
            gc.enable()
