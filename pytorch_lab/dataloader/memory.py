"""What each worker process takes of the memory; where /proc tells it, which is on Linux."""

import re
from pathlib import Path

PROC = Path("/proc")


def of_process(process: int) -> tuple[int, int] | None:
    """Own bytes (USS) and proportional bytes (PSS); None where nobody tells.

    Own bytes are what only this process holds. A forked worker shares what its parent had, until
    one of them writes to it: even reading a Python object writes its reference count.

    Example:
        >>> import os
        >>> of_process(0) is None
        True
    """
    try:
        text = (PROC / str(process) / "smaps_rollup").read_text()
    except OSError:  # not Linux, or the process is gone
        return None
    found = {name: int(number) for name, number in re.findall(r"^(\w+): +(\d+) kB", text, re.M)}
    if "Pss" not in found:
        return None
    own = found.get("Private_Clean", 0) + found.get("Private_Dirty", 0)
    return 1024 * own, 1024 * found["Pss"]
