"""Temporary folders that do not outlive their process for long, however it ended.

A folder's name tells whose it is: `pytorch-lab-<what>-<process>-<random>`. Whoever makes one first
removes those of processes that are gone: a killed run cannot do it itself.
"""

import os
import re
import secrets
import shutil
import stat
import tempfile
from contextlib import suppress
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
        >>> remove(folder)
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
            remove(entry)  # another user's stays


def remove(folder: Path) -> None:
    """Remove a folder that a stranger's code may have filled; what refuses to go stays.

    However deep it is, whatever its permissions: no recursion, no long path, two open folders.

    Args:
        folder: one in which nothing runs any more; nothing happens if it isn't there.

    Example:
        >>> folder = make("doctest")
        >>> (folder / "deep" / "deeper").mkdir(parents=True)
        >>> remove(folder)
        >>> folder.exists()
        False
    """
    if os.rename not in os.supports_dir_fd:  # Windows, where paths cannot be that deep
        shutil.rmtree(folder, ignore_errors=True)
        return
    with suppress(OSError):
        top = _opened(str(folder), None)
        try:
            _empty(top)
        finally:
            os.close(top)
        os.rmdir(folder)


def _empty(top: int) -> None:
    stuck: set[str] = set()
    while names := set(os.listdir(top)) - stuck:
        for name in names:
            try:
                _take(name, top)
            except OSError:
                stuck.add(name)


def _take(name: str, top: int) -> None:
    """Remove an entry of the top folder; the folders in it are first lifted beside it."""
    if _unlinked(name, top):
        return
    here = _opened(name, top)
    try:
        for inner in os.listdir(here):
            if not _unlinked(inner, here):
                os.close(_opened(inner, here))  # one that is closed to its owner cannot be moved
                os.rename(inner, secrets.token_hex(8), src_dir_fd=here, dst_dir_fd=top)
    finally:
        os.close(here)
    os.rmdir(name, dir_fd=top)


def _unlinked(name: str, folder: int) -> bool:
    """Whether it was a file or a link, and is gone; False for a folder."""
    if stat.S_ISDIR(os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode):
        return False
    os.unlink(name, dir_fd=folder)
    return True


def _opened(name: str, folder: int | None) -> int:
    """A folder that was perhaps closed to its owner."""
    with suppress(OSError):
        os.chmod(name, 0o700, dir_fd=folder)
    return os.open(name, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW, dir_fd=folder)


def _is_alive(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except OSError:  # it is somebody else's, or the number means something else here
        return True
    return True
