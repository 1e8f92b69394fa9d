"""Where the course's files are: in a checkout beside the package, in a wheel inside it."""

from pathlib import Path

from pytorch_lab.errors import CourseError

_PACKAGE = Path(__file__).parent


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
