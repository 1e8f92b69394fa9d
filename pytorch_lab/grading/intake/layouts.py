"""Whose file is which, told by how learning platforms name what they export.

| layout     | where a student's file lies                                                        |
| ---------- | ---------------------------------------------------------------------------------- |
| Canvas     | `lovelaceada_LATE_1042_88123_work.ipynb`: name, user, upload, the student's own    |
|            | name for it; `anon_x7Kp2_88123_…` when names are hidden; `…_text.html` for a text  |
| Moodle     | `Ada Lovelace_1042_assignsubmission_file/work.ipynb`, or the same in one name      |
| Gradescope | `submission_88123/work.ipynb`, explained by `submission_metadata.yml`              |
| nbgrader   | `ada/assignment/work.ipynb`, with `timestamp.txt` beside it                        |
| by hand    | `ada.ipynb`, or a folder or a zip of that name                                     |

The times in a zip of Canvas or Moodle are those of the download, so they tell which of two
downloads is newer, but not when a student handed in.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, timezone, tzinfo
from pathlib import PurePath
from typing import Any
from zoneinfo import ZoneInfo

import yaml

from pytorch_lab.errors import NotebookError
from pytorch_lab.grading.intake.arrivals import Entry

METADATA = "submission_metadata.yml"
MAX_METADATA_BYTES = 20_000_000

_CANVAS = re.compile(
    r"(?:(?P<name>.+?)_)??(?P<late>LATE_)?(?P<user>\d+|anon_[A-Za-z0-9]+)_"
    r"(?:(?P<upload>\d+)_(?P<own>.+)|(?P<typed>(?:text|link)\.html))",
    re.DOTALL,
)
_MOODLE = re.compile(
    r"(?P<name>[^_]*)(?:_(?P<id>\d+))?_assignsubmission_(?P<plugin>[a-z]+)(?:_(?P<own>.*))?",
    re.DOTALL,
)
_TIME = re.compile(
    r"(\d{4}-\d\d-\d\d)[ T](\d\d:\d\d(?::\d\d)?)(?:\.\d+)?\s*([A-Za-z][\w/+\-]*|[+-]\d\d:?\d\d)?"
)


@dataclass(frozen=True)
class Handed:
    """A file, and what the layout says about it.

    Attributes:
        entry: the file, or the folder when nothing is in it.
        student: the name as it is written.
        own: what the student called the file.
        within: the folders it lies in, below what is the student's.
        layout: of the table above; students of different ones are different.
        lms_id: what the platform calls the student, or nothing.
        late: whether the platform says that it came late.
        at: when it was handed in, if anything says so.
        upload: a number that grows from upload to upload.
        place: which of the student's hand-ins it belongs to.
    """

    entry: Entry
    student: str
    own: str
    place: str
    within: tuple[str, ...] = ()
    layout: str = "by hand"
    lms_id: str = ""
    late: bool | None = None
    at: datetime | None = None
    upload: int = 0


def sort_out(entries: list[Entry]) -> list[Handed]:
    """Whose each file is, in the layout that the names speak of.

    Example:
        >>> [one] = sort_out([Entry(("lovelaceada_LATE_1042_88123_work.ipynb",))])
        >>> one.student, one.lms_id, one.own, one.late
        ('lovelaceada', '1042', 'work.ipynb', True)
        >>> sort_out([Entry(("Ada Lovelace_7_assignsubmission_file", "a.ipynb"))])[0].lms_id
        '7'
    """
    said = next((e for e in entries if e.parts == (METADATA,)), None)
    known = _gradescope(said) if said is not None else {}
    if known:
        return [h for e in entries if e is not said for h in _of_gradescope(e, known)]
    files = [e for e in entries if len(e.parts) == 1 and not e.is_folder]
    canvas = [e for e in files if _CANVAS.fullmatch(e.parts[0])]
    by_canvas = 2 * len(canvas) > len(files)  # a name of three parts may also be a person's own
    return [_one(entry, by_canvas) for entry in entries]


def is_platform(handed: Iterable[Handed]) -> bool:
    """Whether the names are those of a whole class, and not of what one student has packed."""
    return any(one.layout in ("Canvas", "Moodle", "Gradescope") for one in handed)


def _one(entry: Entry, by_canvas: bool) -> Handed:
    top, below = entry.parts[0], entry.parts[1:]
    place = f"{entry.source}/{top}" if entry.source else top
    moodle = _MOODLE.fullmatch(top)
    if moodle:
        return Handed(
            entry,
            moodle["name"],
            below[-1] if below else moodle["own"] or top,
            place,
            below[:-1],
            "Moodle",
            lms_id=moodle["id"] or "",
        )
    canvas = _CANVAS.fullmatch(top) if by_canvas and not below and not entry.is_folder else None
    if canvas:
        user = canvas["user"]
        return Handed(
            entry,
            canvas["name"] or user.replace("anon_", "anonymous "),
            canvas["own"] or top,
            place,
            layout="Canvas",
            lms_id=user,
            late=bool(canvas["late"]),
            upload=int((canvas["upload"] or "0")[:18]),
        )
    if below or entry.is_folder:
        return Handed(entry, top, entry.parts[-1], place, below[:-1], "folder")
    packed = re.fullmatch(r"(.*)\.(?:ipynb|zip)", top, re.IGNORECASE | re.DOTALL)
    return Handed(entry, packed[1] if packed else top, top, place)


def _gradescope(said: Entry) -> dict[str, dict[Any, Any]]:
    """What Gradescope's export says about each file or folder; nothing if it is no such export."""
    if said.size > MAX_METADATA_BYTES:
        return {}
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    try:
        found = yaml.load(said.read().decode("utf-8"), loader)
    except (NotebookError, yaml.YAMLError, RecursionError, ValueError, TypeError, OverflowError):
        return {}
    known = found.items() if isinstance(found, dict) else ()
    return {
        _word(name): about
        for name, about in known
        if isinstance(about, dict) and isinstance(about.get(":submitters"), list)
    }


def _word(value: Any) -> str:
    """A name or a number; a list in which each list holds another ten times is not spelt out."""
    return str(value) if isinstance(value, str) or (type(value) is int and value < 10**18) else ""


def _of_gradescope(entry: Entry, known: dict[str, dict[Any, Any]]) -> list[Handed]:
    """One file for each of the people who handed it in together."""
    about = known.get(entry.parts[0])
    if about is None:
        return [_one(entry, by_canvas=False)]
    own = _word(about.get(":original_filename")) or entry.parts[-1]
    at = about.get(":created_at")
    people = [one for one in about[":submitters"] if isinstance(one, dict)]
    return [
        Handed(
            entry,
            _word(one.get(":name")),
            own if len(entry.parts) == 1 else entry.parts[-1],
            f"{entry.source}/{entry.parts[0]}",
            entry.parts[1:-1],
            "Gradescope",
            lms_id=_word(one.get(":sid")) or _word(one.get(":email")),
            at=_aware(at) if isinstance(at, datetime) else None,
        )
        for one in people or [{}]
    ]


def _aware(at: datetime) -> datetime:
    return at if at.tzinfo else at.replace(tzinfo=UTC)


def time_in(text: str) -> datetime | None:
    """The time in nbgrader's `timestamp.txt`; none if its zone is not known.

    Example:
        >>> time_in("2026-03-01 15:58:23.948203 UTC").isoformat()
        '2026-03-01T15:58:23+00:00'
        >>> time_in("2026-03-01 15:58:23 Europe/Berlin").isoformat()
        '2026-03-01T15:58:23+01:00'
        >>> time_in("2026-03-01 15:58:23 somewhere"), time_in("yesterday")
        (None, None)
    """
    found = _TIME.fullmatch(text.strip())
    if not found:
        return None
    try:
        return datetime.fromisoformat(f"{found[1]}T{found[2]}").replace(tzinfo=_zone(found[3]))
    except (KeyError, OSError, ValueError):  # no such zone, no such day
        return None


def _zone(name: str | None) -> tzinfo:
    if name is None or name.upper() in ("UTC", "GMT", "Z"):
        return UTC
    if name[0] in "+-":
        away = timedelta(hours=int(name[1:3]), minutes=int(name[-2:]))
        return timezone(away if name[0] == "+" else -away)
    return ZoneInfo(name)


def is_for(own: str, assignment: PurePath) -> bool:
    """Whether a file has the assignment's name, perhaps with the number of a second upload.

    Example:
        >>> [is_for(name, PurePath("hw-1.ipynb")) for name in ("HW-1 (2).ipynb", "hw-2.ipynb")]
        [True, False]
    """
    stem = re.escape(assignment.stem)
    return bool(re.fullmatch(rf"{stem}(?:-\d{{1,3}}| ?\(\d{{1,3}}\))?\.ipynb", own, re.IGNORECASE))


def times_uploaded(own: str, assignment: PurePath) -> int:
    """The number that a platform or a browser has put behind the name of a second upload.

    Example:
        >>> times_uploaded("hw-1.ipynb", PurePath("hw-1.ipynb"))
        0
        >>> times_uploaded("hw-1-2.ipynb", PurePath("hw-1.ipynb"))
        2
    """
    number = re.search(r"(\d{1,3})\)?$", PurePath(own).stem[len(assignment.stem) :])
    return int(number[1]) if number else 0


def is_in_named(one: Handed, assignment: PurePath) -> bool:
    """Whether a file lies where nbgrader puts those of the assignment."""
    stem = assignment.stem.casefold()
    return one.layout == "folder" and stem in [part.casefold() for part in one.within[:1]]
