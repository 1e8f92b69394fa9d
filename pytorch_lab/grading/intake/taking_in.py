"""What a class handed in, one submission for each student, whatever the platform it came from.

Read is a folder or a zip in any layout of `layouts`; a folder may hold several zips as well, and a
student may have packed the notebook. Whatever lies there appears among the
marks: a file that is no notebook, a trap, or a student with two files is a row with a reason, and
never silently left out. Which of several files counts, and why, is told in the notes.
"""

import hashlib
import re
import unicodedata
from dataclasses import dataclass, field, replace
from datetime import datetime
from pathlib import Path, PurePath

from nbformat import NotebookNode

from pytorch_lab.errors import CourseError, NotebookError
from pytorch_lab.grading.intake import layouts
from pytorch_lab.grading.intake.arrivals import Entry, in_folder, in_zip
from pytorch_lab.grading.intake.layouts import Handed
from pytorch_lab.grading.intake.names import key, shown, unused
from pytorch_lab.grading.intake.wrong_folder import looks_like_a_class, refuse_assignment
from pytorch_lab.grading.notebooks import parse, why_not

_SHOWN = 5  # names of files in a reason


@dataclass(frozen=True)
class Submission:
    """One student's notebook, or the reason why there is none to grade.

    Attributes:
        student: the name, of which no two submissions have the same.
        status: "missing", "refused" or "unreadable" when there is no notebook; else nothing.
        reason: why there is none.
        lms_id: what the platform calls the student: Canvas's user, Moodle's participant,
            Gradescope's student id.
        late: whether the platform says that it came late; None when it says nothing.
        submitted_at: when it was handed in; None when nothing says so.
        notes: how the name was resolved, and which of several files counts.
    """

    student: str
    status: str = ""
    reason: str = ""
    lms_id: str = ""
    late: bool | None = None
    submitted_at: datetime | None = None
    notes: tuple[str, ...] = ()
    entry: Entry | None = field(default=None, repr=False)

    def read(self) -> NotebookNode:
        """The notebook.

        Raises:
            NotebookError: there is none, or it is not one.
        """
        if self.entry is None:
            raise NotebookError(self.reason)
        return parse(self.entry.read(), self.entry.name)


def intake(given: Path, assignment: Path, out: Path | None = None) -> list[Submission]:
    """What was handed in, sorted by the students' names.

    Args:
        given: a folder of submissions, or a zip.
        assignment: the notebook of solutions; its name tells which of several notebooks is meant.
        out: a folder that holds results, in case it lies among the submissions.

    Raises:
        CourseError: there is no such folder, nothing in it, or no zip.
        UsageError: the assignment itself lies among the submissions.

    Example:
        >>> intake(Path("no_such_folder"), Path("03_modules.ipynb"))
        Traceback (most recent call last):
        pytorch_lab.errors.CourseError: expected a folder or a zip of submissions at ...
    """
    handed = _handed(given, assignment, out)
    refuse_assignment(handed, given, assignment)
    by_folder = any(layouts.is_in_named(one, assignment) for one in handed)
    students: dict[tuple[str, str], list[Handed]] = {}
    for one in handed:
        who = (one.layout, one.lms_id) if one.lms_id else ("", key(one.student))
        students.setdefault(who, []).append(one)
    made = [_settled(group, assignment, by_folder) for group in students.values()]
    if not made:
        raise CourseError(
            f"expected <student>.ipynb, <student>/<assignment>/*.ipynb or a platform's zip in "
            f"{given}, found nothing; give the folder that holds the submissions."
        )
    return sorted(_told_apart(made), key=lambda one: one.student)


def _handed(given: Path, assignment: PurePath, out: Path | None) -> list[Handed]:
    """Every file, and whose it is; the zips of a whole class are looked into."""
    if given.is_file():
        try:
            return layouts.sort_out(_unwrapped(in_zip(given, given.name), assignment))
        except NotebookError as error:
            raise CourseError(
                f"expected a folder or a zip of submissions at {given}, but {error}; "
                "give the folder, or export the zip again."
            ) from None
    if not given.is_dir():
        came = "a device or a pipe" if given.exists() else "nothing"
        raise CourseError(
            f"expected a folder or a zip of submissions at {given}, found {came}; check the name."
        )
    try:
        entries = in_folder(given, out)
    except OSError as error:
        raise CourseError(
            f"expected to read the submissions in {given}, but got {why_not(error)}; "
            "give a folder that you may read."
        ) from None
    return _of_classes(entries, assignment) or layouts.sort_out(_in_submitted(entries))


def _of_classes(entries: list[Entry], assignment: PurePath) -> list[Handed]:
    """What is in a folder of platforms' zips; nothing for another folder.

    Where anything else lies beside them, a zip is one student's: nobody can pack one that speaks
    for the whole class.
    """
    found: list[Handed] = []
    unread = []
    for entry in entries:
        if entry.parts[1:] or entry.is_folder or not _is_zip(entry.parts[0]):
            return []
        try:
            inside = in_zip(entry.path or entry, entry.name)
        except NotebookError:
            unread.append(entry)
            continue
        handed = layouts.sort_out(_unwrapped(inside, assignment))
        if not layouts.is_platform(handed):
            return []
        found += handed
    return found + layouts.sort_out(unread) if found else []


def _unwrapped(entries: list[Entry], assignment: PurePath) -> list[Entry]:
    """The entries without the one folder that all lie in, unless it is a student's."""
    tops = {entry.parts[0] for entry in entries}
    inside = [entry for entry in entries if len(entry.parts) > 1]
    if len(tops) != 1 or not inside or any(e.fault and len(e.parts) == 1 for e in entries):
        return entries
    stem = assignment.stem.casefold()
    if layouts.is_platform(layouts.sort_out(entries)) or any(
        layouts.is_for(entry.parts[1], assignment) or entry.parts[1].casefold() == stem
        for entry in inside
    ):
        return entries
    return [replace(entry, parts=entry.parts[1:]) for entry in inside]


def _in_submitted(entries: list[Entry]) -> list[Entry]:
    """What was handed in of a course of nbgrader's, which has other folders as well."""
    tops = {entry.parts[0] for entry in entries}
    if "submitted" not in tops or not tops & {"source", "release", "gradebook.db"}:
        return entries
    inside = [e for e in entries if e.parts[0] == "submitted" and len(e.parts) > 1]
    return [replace(entry, parts=entry.parts[1:]) for entry in inside]


def _settled(group: list[Handed], assignment: PurePath, by_folder: bool) -> Submission:
    """The one file of a student that counts."""
    first = group[0]
    notes: list[str] = []
    files = [found for one in group for found in _looked_into(one, notes) if not _is_stamp(found)]
    notebooks = [one for one in files if one.own.lower().endswith(".ipynb")]
    places = sorted({shown(one.place) for one in notebooks})
    chosen, status, reason = None, "", ""
    if not notebooks:
        status, reason = _nothing(files, first, notes)
    elif len(places) > 1 and not first.lms_id and not _same(notebooks):
        said = ", ".join(places[:_SHOWN])
        status, reason = (
            "refused",
            f"{len(places)} submissions carry this name, {said}; keep one",
        )
    elif meant := _meant(notebooks, assignment, by_folder):
        chosen, status, reason = _only(meant, assignment, notes)
        if chosen and (doubt := looks_like_a_class(chosen, files, assignment)):
            chosen, status, reason = None, "refused", doubt
    else:
        status, reason = "missing", f"no notebook for {assignment.stem}; found {_names(notebooks)}"
    if chosen and chosen.entry.fault:
        status, reason = "refused", f"{chosen.entry.name} {chosen.entry.fault}"
    student = shown(first.student)
    if student != unicodedata.normalize("NFC", first.student):
        notes.append("what cannot be shown of the name was left out")
    return Submission(
        student,
        status,
        reason,
        lms_id=first.lms_id,
        late=(chosen or first).late,
        submitted_at=_at(chosen, group) if chosen else None,
        notes=tuple(dict.fromkeys(notes)),
        entry=None if status else chosen and chosen.entry,
    )


def _looked_into(one: Handed, notes: list[str]) -> list[Handed]:
    """The file, or what is in it when it is a zip; a zip in that is not opened."""
    if one.entry.is_folder:
        return []
    if not _is_zip(one.own) or one.entry.fault:
        return [one]
    try:
        entries = in_zip(one.entry, shown(one.own))
    except NotebookError as error:
        notes.append(str(error))
        return []
    notes.append(f"taken out of {shown(one.own)}")
    return [
        replace(one, entry=entry, own=entry.parts[-1], within=(*one.within, *entry.parts[:-1]))
        for entry in entries
        if not entry.is_folder
    ]


def _nothing(files: list[Handed], first: Handed, notes: list[str]) -> tuple[str, str]:
    """Why a student has no notebook."""
    fault = next((one.entry for one in files if one.entry.fault), None)
    if fault:
        return "refused", f"{fault.name} {fault.fault}"
    if len(files) == 1:
        return "unreadable", f"{shown(files[0].own)} is not a notebook"
    if files:
        return "unreadable", f"no notebook among {_names(files)}"
    if notes:
        return "unreadable", notes.pop()
    return "missing", f"no notebook in the folder {shown(first.entry.parts[0])}"


def _meant(notebooks: list[Handed], assignment: PurePath, by_folder: bool) -> list[Handed]:
    """Those that are for the assignment; others only where nothing else tells what they are for."""
    named = [one for one in notebooks if layouts.is_for(one.own, assignment)]
    inside = [one for one in notebooks if layouts.is_in_named(one, assignment)]
    both = [one for one in named if one in inside]
    elsewhere = [one for one in notebooks if by_folder and one.layout == "folder" and one.within]
    return both or inside or named or [one for one in notebooks if one not in elsewhere]


def _only(
    meant: list[Handed], assignment: PurePath, notes: list[str]
) -> tuple[Handed | None, str, str]:
    """The one of several notebooks that counts, or the status and the reason why none does."""
    if len(meant) < 2:
        return meant[0], "", ""
    if _same(meant):
        notes.append(f"{len(meant)} files with the same content")
        return meant[0], "", ""
    names = _names(meant)
    several = len({one.entry.source for one in meant}) > 1
    ranks = [
        (
            one.upload,
            one.entry.modified if several else 0.0,
            layouts.times_uploaded(one.own, assignment),
        )
        for one in meant
    ]
    alike = all(layouts.is_for(one.own, assignment) for one in meant)
    alike = alike or len({key(one.own) for one in meant}) == 1
    if not alike or ranks.count(max(ranks)) > 1:
        return None, "refused", f"{len(meant)} notebooks could be meant: {names}"
    chosen = meant[ranks.index(max(ranks))]
    why = (
        "uploaded last" if chosen.upload else "downloaded last" if several else "the highest number"
    )
    rest = _names([one for one in meant if one is not chosen])
    notes.append(f"{len(meant)} files: {shown(chosen.own)} counts ({why}), not {rest}")
    return chosen, "", ""


def _same(files: list[Handed]) -> bool:
    """Whether all hold the same."""
    if len(files) > _SHOWN or len({one.entry.size for one in files}) > 1:
        return False
    try:
        return len({hashlib.sha256(one.entry.read()).digest() for one in files}) == 1
    except NotebookError:
        return False


def _at(chosen: Handed, group: list[Handed]) -> datetime | None:
    """When it was handed in: from the platform, or from what nbgrader wrote beside it."""
    if chosen.at or chosen.layout != "folder":
        return chosen.at
    for one in group:
        beside = one.within == chosen.within[: len(one.within)]
        if _is_stamp(one) and beside and one.entry.size < 1000:
            try:
                return layouts.time_in(one.entry.read().decode())
            except (NotebookError, UnicodeDecodeError):
                return None
    return None


def _told_apart(made: list[Submission]) -> list[Submission]:
    """The submissions with a name for each that no other has."""
    by_name: dict[str, list[Submission]] = {}
    for one in made:
        by_name.setdefault(key(one.student), []).append(one)
    keys = set(by_name)
    told = []
    for name_key, same in by_name.items():
        if len(same) == 1:
            told.append(_doubted(same[0], keys))
            continue
        keys.discard(name_key)
        for one in sorted(same, key=lambda one: one.lms_id):
            name = unused(f"{one.student} ({one.lms_id})" if one.lms_id else one.student, keys)
            keys.add(key(name))
            note = f"{len(same)} students are called {one.student}"
            told.append(replace(one, student=name, notes=(*one.notes, note)))
    return told


def _doubted(one: Submission, keys: set[str]) -> Submission:
    """A student by hand whose name is another's and a number: that may be a second file."""
    base = re.sub(r"(-\d{1,3}| ?\(\d{1,3}\))$", "", one.student)
    if one.lms_id or base == one.student or key(base) not in keys:
        return one
    return replace(one, notes=(*one.notes, f"perhaps a second file of {base}"))


def _is_stamp(one: Handed) -> bool:
    """Whether it is what nbgrader writes beside a notebook."""
    return one.own == "timestamp.txt" and one.layout == "folder"


def _is_zip(name: str) -> bool:
    return name.lower().endswith(".zip")


def _names(files: list[Handed]) -> str:
    """The first few, as they can be shown."""
    names = [shown(one.own) for one in files]
    return ", ".join(names[:_SHOWN]) + (", …" if len(names) > _SHOWN else "")
