"""Signs that `grade` was given a folder above, or beside, that of the submissions."""

from pathlib import Path, PurePath

from pytorch_lab.errors import UsageError
from pytorch_lab.grading.intake.layouts import Handed, is_in_named
from pytorch_lab.grading.intake.names import shown


def refuse_assignment(handed: list[Handed], given: Path, assignment: Path) -> None:
    """The solutions are nobody's submission: where they lie, it is hardly the right folder."""
    solutions = assignment.resolve()
    if not any(one.entry.path and one.entry.path.resolve() == solutions for one in handed):
        return
    folders = sorted({one.entry.parts[0] for one in handed if len(one.entry.parts) > 1})
    below = f", such as {given / shown(folders[0])}" if folders else ""
    raise UsageError(
        f"expected only submissions in {given}, found the assignment {assignment.name} itself; "
        f"give the folder of what was handed in{below}."
    )


def looks_like_a_class(chosen: Handed, files: list[Handed], assignment: PurePath) -> str:
    """Why one notebook among several folders and zips may be another person's; or nothing."""
    if chosen.layout != "folder" or not chosen.within or is_in_named(chosen, assignment):
        return ""
    notebooks = [one for one in files if one.own.lower().endswith(".ipynb")]
    places = {one.within[:1] or (one.entry.source,) for one in notebooks if _is_below(one)}
    if len(places) < 2:
        return ""
    return (
        f"notebooks in {len(places)} folders or zips under one name; if these are students, give "
        f"'grade' the folder {shown(chosen.student)}, else name the right one {assignment.stem}"
    )


def _is_below(one: Handed) -> bool:
    """Whether a file lies in a folder or a zip of what is the student's."""
    return bool(one.within or one.entry.source)
