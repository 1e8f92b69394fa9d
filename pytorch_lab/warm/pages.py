"""Large pages: a fork copies the table of its parent's memory, and its end takes it apart again.

Of 4 kB each a process that has imported torch holds seventy thousand pages, of 2 MB a hundred.
"""

import ctypes
from pathlib import Path

_LARGE = 2 << 20
_COLLAPSE = 25  # madvise(2), since Linux 6.1


def enlarge() -> None:
    """Gather this process's own memory in large pages; where the system has none, in small ones."""
    madvise = ctypes.CDLL(None).madvise
    madvise.argtypes = ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int
    for line in Path("/proc/self/maps").read_text().splitlines():
        where, rights, _, _, inode, *_ = line.split()
        if rights == "rw-p" and inode == "0":
            begin, end = (int(address, 16) for address in where.split("-"))
            begin, end = -(-begin // _LARGE) * _LARGE, end // _LARGE * _LARGE
            if begin < end:
                madvise(begin, end - begin, _COLLAPSE)
