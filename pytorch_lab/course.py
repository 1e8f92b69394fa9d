"""Where the course's files are, and how they get to where a learner works.

In a checkout the files lie beside the package, in a wheel inside it. `deliver` copies them into a
folder of the learner's, and never over the learner's work. One rule decides for each file:

| in the folder there is                  | then                                                   |
| --------------------------------------- | ------------------------------------------------------ |
| nothing                                 | the file is written                                    |
| what `deliver` wrote, byte for byte     | it is replaced when the course has a newer one         |
| anything else: it is the learner's      | it is kept; a newer one is put beside it, as `.new`    |

What was offered is remembered as one SHA-256 a line in `.pytorch-lab/delivered.json`; without that
file every file counts as the learner's. Deleting a lesson and opening again brings it back fresh.
"""

import errno
import hashlib
import json
import os
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from typing import NamedTuple

from pytorch_lab import writing
from pytorch_lab.errors import CourseError

LANDING_PAGE = "START_HERE.md"
OURS = ".pytorch-lab"  # the folder in a learner's course that is ours and not theirs

_PACKAGE = Path(__file__).parent
# Answers, wrong answers, and what a run of Jupyter leaves behind.
_NOT_DELIVERED = {"solutions", "mutants", "progress.json", "__pycache__"}


class Delivery(NamedTuple):
    """What `deliver` did, as paths relative to the folder, with forward slashes."""

    written: list[str]  # new, or newer than before
    kept: list[str]  # the learner's own, differing from ours
    beside: list[str]  # `.new` files just put beside kept ones


def root() -> Path:
    """The folder that holds `notebooks/` and `exercises/`."""
    for folder in (_PACKAGE / "course_files", _PACKAGE.parent):
        if (folder / "notebooks").is_dir() and (folder / "exercises").is_dir():
            return folder
    raise CourseError(
        f"expected the course's notebooks beside or inside {_PACKAGE}, found none; "
        "install pytorch-lab again, or work in a checkout of it."
    )


def solution_notebook(exercise: str) -> Path | None:
    """The notebook in `exercises/solutions` that holds exercise "03.2", or None."""
    chapter = exercise.split(".")[0]
    found = sorted((root() / "exercises" / "solutions").glob(f"{chapter}_*.ipynb"))
    return found[0] if found else None


def files() -> list[str]:
    """What a learner gets, as paths relative to `root()`: no solutions, no wrong answers.

    Example:
        >>> from pytorch_lab import course
        >>> course.files()[0]
        'START_HERE.md'
    """
    folders = ("exercises", "notebooks")
    return [
        LANDING_PAGE,
        *(name for folder in folders for name in sorted(_delivered_below(folder))),
    ]


def _delivered_below(folder: str) -> Iterator[str]:
    start = root()
    for path in (start / folder).rglob("*"):
        inside = path.relative_to(start)
        hidden = any(part.startswith(".") or part in _NOT_DELIVERED for part in inside.parts)
        if path.is_file() and not hidden:
            yield inside.as_posix()


def deliver(folder: Path) -> Delivery:
    """Copy the course into `folder`, never over the learner's work.

    Example:
        >>> import tempfile
        >>> from pathlib import Path
        >>> from pytorch_lab import course
        >>> here = Path(tempfile.mkdtemp())
        >>> course.deliver(here).written == course.files()
        True
        >>> course.deliver(here).written  # a second time there is nothing to do
        []

    Args:
        folder: where the learner works; made when missing.

    Raises:
        CourseError: a file is where a folder must be, or the folder can't be written.
    """
    if folder.resolve() == root().resolve():  # a checkout opened as it is
        return Delivery([], [], [])
    try:
        return _deliver(folder)
    except OSError as error:
        # A file in the way is named by the error itself, a full disk isn't.
        where = error.filename2 or error.filename or folder
        raise CourseError(
            f"expected to write the course to {folder}, got {error.strerror!r} at {where}; "
            "choose another folder: pytorch-lab open DIR."
        ) from error


def _deliver(folder: Path) -> Delivery:
    record = folder / OURS / "delivered.json"
    before = _delivered_before(record)
    after = dict(before)
    update: dict[str, bytes] = {}
    beside: dict[str, bytes] = {}
    kept = []
    for name in files():
        ours = (root() / name).read_bytes()
        after[name] = _hash(ours)
        if not _is_theirs(folder / name, before.get(name), ours):
            update[name] = ours
            continue
        kept.append(name)
        new = _beside(name)
        offered = before.get(name) == _hash(ours)  # they have had this one, and changed it
        if not offered and not _is_theirs(folder / new, before.get(new), ours):
            beside[new] = ours
            after[new] = _hash(ours)
    # Everything is decided before anything is written: a file in a folder's way stops all of it.
    parents = [*((folder / name).parent for name in (*update, *beside)), record.parent]
    for parent in parents:
        _refuse_file_in_the_way(parent)
    for parent in parents:
        parent.mkdir(parents=True, exist_ok=True)
    done = Delivery(
        written=[name for name, content in update.items() if _put(folder / name, content)],
        kept=kept,
        beside=[name for name, content in beside.items() if _put(folder / name, content)],
    )
    _put(record, (json.dumps(after, indent=2, sort_keys=True) + "\n").encode())
    return done


def _refuse_file_in_the_way(folder: Path) -> None:
    """Fail as `mkdir` would, but before anything is made, and by the name of what is in the way."""
    for place in (folder, *folder.parents):
        if os.path.lexists(place) and not place.is_dir():
            raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), str(place))


def _beside(name: str) -> str:
    """Where a newer version goes when theirs is kept: `notebooks/03_modules.new.ipynb`."""
    path = PurePosixPath(name)
    return str(path.with_suffix(f".new{path.suffix}"))


def _delivered_before(record: Path) -> dict[str, str]:
    """Which hash each file had when it was written here; a broken record counts as none."""
    try:
        found = json.loads(record.read_bytes())
    except (FileNotFoundError, NotADirectoryError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}


def _is_theirs(target: Path, delivered: str | None, ours: bytes) -> bool:
    """Whether a file holds what neither an earlier delivery nor this one wrote."""
    if not target.exists():
        return False
    return _hash(target.read_bytes()) not in (delivered, _hash(ours))


def _put(target: Path, content: bytes) -> bool:
    """Write a file in one step, unless it is there already."""
    if target.is_file() and target.read_bytes() == content:
        return False
    writing.replace(target, content)
    return True


def _hash(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()
