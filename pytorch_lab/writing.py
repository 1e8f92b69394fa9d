"""Files that are written whole or not at all."""

import contextlib
import os
import tempfile
from pathlib import Path


def replace(target: Path, content: bytes) -> None:
    """Write beside `target`, then put it there in one step, with the old file's permissions.

    Whoever reads meanwhile sees the old file or the new one; a write that breaks off leaves the old
    file and no scraps.

    Example:
        >>> folder = Path(tempfile.mkdtemp())
        >>> replace(folder / "note.txt", b"one line")
        >>> [path.name for path in folder.iterdir()]
        ['note.txt']

    Raises:
        OSError: the folder is missing or cannot be written to, the disk is full, …
    """
    handle, scratch = tempfile.mkstemp(prefix=f".{target.name}-", suffix=".new", dir=target.parent)
    try:
        with open(handle, "wb") as stream:
            stream.write(content)
        _copy_mode(target, scratch)
        os.replace(scratch, target)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(scratch)
        raise


def _copy_mode(target: Path, scratch: str) -> None:
    """Permissions of the file that is replaced; mkstemp's own are for one person only."""
    with contextlib.suppress(OSError):
        os.chmod(scratch, target.stat().st_mode & 0o777 if target.exists() else 0o644)
