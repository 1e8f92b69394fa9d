"""What a learner has done so far: one readable JSON file beside the notebooks.

    {
      "exercises": {"03.2": {"state": "passed", "tries": 3, "hints": 1}},
      "guesses":   {"03.p1": {"guess": "4", "right": false}}
    }

The file is `progress.json` in the kernel's folder, which is the notebook's; the environment
variable `PYTORCH_LAB_PROGRESS` names another one. It may be edited by hand: what is not ours in it
stays. A broken file is renamed to `progress.broken.json` at the next write, never overwritten.

Several kernels may write at once: each locks the folder, reads, changes its one entry, and replaces
the file in one step, so that a reader sees the old file or the new one. Where the system has no
such lock (Windows, some network drives) the last of two simultaneous writers wins.
"""

import contextlib
import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from pytorch_lab import writing
from pytorch_lab.errors import CourseError, UsageError

SECTIONS = ("exercises", "guesses")


def path() -> Path:
    """The file that this kernel reads and writes."""
    return Path(os.environ.get("PYTORCH_LAB_PROGRESS") or Path.cwd() / "progress.json")


def read() -> dict[str, dict[str, Any]]:
    """All that is known, with every section present; a missing or broken file knows nothing.

    Raises:
        CourseError: the file is there, and may not be read.
    """
    try:
        return _load(path())
    except _BrokenFile:
        return _nothing()


def remember(section: str, key: str, **facts: Any) -> None:
    """Merge `facts` into one entry, and replace the file in one step.

    Args:
        section: "exercises" or "guesses".
        key: the id of the exercise or question.
        facts: what JSON can hold.

    Raises:
        CourseError: the file or its folder cannot be written; nothing has changed then.
        UsageError: there is no such section, or a fact is nothing that JSON can hold.
    """
    if section not in SECTIONS:
        raise UsageError(
            f"remember(section, ...) expected {' or '.join(map(repr, SECTIONS))}, got {section!r}."
        )
    file = Path(os.path.realpath(path()))  # a link keeps pointing to the file
    try:
        with _locked(file.parent):
            try:
                known = _load(file)
            except _BrokenFile:
                file.rename(_free_name(file))
                known = _nothing()
            known[section][key] = known[section].get(key, {}) | facts
            text = json.dumps(known, indent=2, ensure_ascii=False) + "\n"
            writing.replace(file, text.encode())
    except OSError as error:
        raise CourseError(
            f"expected to write your progress to {file}, but got {error.strerror!r}; "
            "make the folder writable, or set PYTORCH_LAB_PROGRESS to a file that is."
        ) from error
    except (TypeError, ValueError) as error:
        raise UsageError(
            f"remember({section!r}, {key!r}, ...) expected facts that JSON can hold: {error}."
        ) from error


class _BrokenFile(Exception):
    """The file is there and is not what this module writes."""


def _nothing() -> dict[str, dict[str, Any]]:
    return {section: {} for section in SECTIONS}


def _load(file: Path) -> dict[str, Any]:
    try:
        found = json.loads(file.read_text("utf-8"))
    except (FileNotFoundError, NotADirectoryError):
        return _nothing()
    except OSError as error:
        raise CourseError(
            f"expected to read your progress from {file}, but got {error.strerror!r}; "
            "make the file readable, or set PYTORCH_LAB_PROGRESS to another one."
        ) from error
    except (ValueError, RecursionError) as error:
        raise _BrokenFile from error
    if not isinstance(found, dict):
        raise _BrokenFile
    known = _nothing() | found
    for section in SECTIONS:
        entries = known[section]
        if not isinstance(entries, dict) or not all(isinstance(e, dict) for e in entries.values()):
            raise _BrokenFile
    return known


def _free_name(file: Path) -> Path:
    """`progress.broken.json`, or the first of `progress.broken-2.json`, … that is not taken."""
    name = file.with_name(f"{file.stem}.broken{file.suffix}")
    number = 2
    while name.exists():
        name = file.with_name(f"{file.stem}.broken-{number}{file.suffix}")
        number += 1
    return name


@contextlib.contextmanager
def _locked(folder: Path) -> Iterator[None]:
    """Hold the folder's lock; the system frees it also when this process dies."""
    try:
        import fcntl
    except ImportError:
        yield
        return
    handle = os.open(folder, os.O_RDONLY)
    try:
        with contextlib.suppress(OSError):
            fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)
