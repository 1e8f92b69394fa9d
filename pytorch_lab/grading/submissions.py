"""Whose notebook is which: a folder as it arrives from a class.

Either `<student>.ipynb`, or nbgrader's `<student>/<assignment>/*.ipynb`. Whatever lies in the
folder appears among the marks: a file that is no notebook, or a student with two, is a row with a
reason and never silently left out.
"""

from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from pytorch_lab.errors import CourseError


@dataclass(frozen=True)
class Submission:
    """One student's notebook, or the reason why there is none to grade."""

    student: str
    path: Path | None
    status: str = ""
    reason: str = ""
    lms_id: str = ""
    submitted_at: datetime | None = None
    late: bool | None = None


def submissions(folder: Path, assignment: Path, out: Path | None = None) -> list[Submission]:
    """What was handed in, by the names of the students.

    Args:
        folder: where the submissions are.
        assignment: the notebook of solutions; its name tells which of several notebooks is meant.
        out: a folder that holds results, in case it lies among the submissions.

    Raises:
        CourseError: there is no such folder, or nothing in it.

    Example:
        >>> submissions(Path("no_such_folder"), Path("03_modules.ipynb"))
        Traceback (most recent call last):
        pytorch_lab.errors.CourseError: expected a folder of submissions at no_such_folder, ...
    """
    if not folder.is_dir():
        came = "a file" if folder.exists() else "nothing"
        raise CourseError(
            f"expected a folder of submissions at {folder}, found {came}; check the name."
        )
    found: dict[str, list[Submission]] = {}
    for entry in sorted(folder.iterdir()):
        if entry.name.startswith(".") or (out and entry.resolve() == out.resolve()):
            continue
        one = _one(entry, assignment)
        found.setdefault(one.student, []).append(one)
    if not found:
        raise CourseError(
            f"expected <student>.ipynb or <student>/<assignment>/*.ipynb in {folder}, found "
            "nothing; give the folder that holds the submissions."
        )
    return [_only(student, same) for student, same in sorted(found.items())]


def _only(student: str, same: list[Submission]) -> Submission:
    if len(same) == 1:
        return same[0]
    return Submission(
        student,
        None,
        "refused",
        f"{len(same)} submissions carry this name, a folder and a file; keep one",
    )


def _one(entry: Path, assignment: Path) -> Submission:
    if entry.is_symlink():
        return Submission(entry.stem, None, "refused", f"{entry.name} is a link, not a file")
    if entry.is_dir():
        return _of_folder(entry, assignment)
    if entry.suffix != ".ipynb":
        return Submission(entry.name, None, "unreadable", f"{entry.name} is not a notebook")
    return Submission(entry.stem, entry)


def _of_folder(entry: Path, assignment: Path) -> Submission:
    """The notebook in a student's folder; which of several is told by the assignment's name."""
    every = [
        path
        for path in sorted([*entry.glob("*.ipynb"), *entry.glob("*/*.ipynb")])
        if ".ipynb_checkpoints" not in path.parts
    ]
    named = [path for path in every if path.name == assignment.name]
    in_named = [path for path in every if path.parent.name == assignment.stem]
    chosen = named or in_named or every
    if not chosen:
        return Submission(entry.name, None, "missing", f"no notebook in the folder {entry.name}")
    if len(chosen) > 1:
        names = ", ".join(str(path.relative_to(entry)) for path in chosen[:5])
        return Submission(
            entry.name, None, "refused", f"{len(chosen)} notebooks could be meant: {names}"
        )
    path = chosen[0]
    if path.is_symlink() or path.parent.is_symlink():
        return Submission(entry.name, None, "refused", f"{path.name} is a link, not a file")
    return Submission(entry.name, path)
