"""How much memory an option means: `4G`, `512M`."""

import re

from pytorch_lab.errors import UsageError

LEAST = 64 << 20  # below, no kernel starts
_UNITS = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40}


def bytes_of(size: str) -> int:
    """The number of bytes.

    Example:
        >>> bytes_of("4G") == 4 * 1024**3, bytes_of("1.5 gib") == 3 * 2**29
        (True, True)
        >>> bytes_of("lots")
        Traceback (most recent call last):
        pytorch_lab.errors.UsageError: expected a size like 4G or 512M, ... got 'lots'; ...

    Raises:
        UsageError: it is not a size, or too small for a kernel.
    """
    told = re.fullmatch(r"(\d+(?:\.\d+)?)\s*([KMGT]?)(?:i?B)?", size.strip(), re.IGNORECASE)
    made = round(float(told[1]) * _UNITS[told[2].upper()]) if told else 0
    if made < LEAST:
        raise UsageError(
            f"expected a size like 4G or 512M, at least {LEAST >> 20}M, got {size!r:.40}; give "
            "--memory what one student's code may use."
        )
    return made
