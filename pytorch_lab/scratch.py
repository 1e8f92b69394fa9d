"""Temporary folders that do not outlive their process for long, however it ended.

A folder's name tells whose it is: `pytorch-lab-<what>-<process>-<random>`. Whoever makes one first
removes those of processes that are gone: a killed run cannot do it itself.
"""

import os
import re
import shutil
import tempfile
from pathlib import Path

_NAME = re.compile(r"pytorch-lab-[a-z]+-(\d+)-\w+")


LONGEST_FOR_SOCKETS = 60  # a socket's path ends at 107 characters; ours have up to 40 below


def make(what: str, *, for_sockets: bool = False) -> Path:
    """A new folder of this process; whoever asks for it removes it.

    Args:
        what: a word for its name.
        for_sockets: whether sockets will lie in it; a long `TMPDIR` is then left aside.

    Example:
        >>> folder = make("doctest")
        >>> folder.is_dir(), f"-{os.getpid()}-" in folder.name
        (True, True)
        >>> shutil.rmtree(folder)
    """
    place = Path(tempfile.gettempdir())
    if for_sockets and len(str(place)) > LONGEST_FOR_SOCKETS:
        place = Path("/tmp")
    _sweep(place)
    return Path(tempfile.mkdtemp(prefix=f"pytorch-lab-{what}-{os.getpid()}-", dir=place))


def _sweep(place: Path) -> None:
    for entry in place.glob("pytorch-lab-*"):
        named = _NAME.fullmatch(entry.name)
        if named and not _is_alive(int(named[1])) and not entry.is_symlink():
            shutil.rmtree(entry, ignore_errors=True)  # another user's stays


def _is_alive(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except OSError:  # it is somebody else's, or the number means something else here
        return True
    return True
