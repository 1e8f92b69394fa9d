"""From the notebook of solutions to marks.

| for an instructor                       |                                                        |
| --------------------------------------- | ------------------------------------------------------ |
| `release(solutions, out)`               | the students' version                                  |
| `grade(folder, assignment, out, ...)`   | marks for a folder of submissions                      |

| for a learner and an author             |                                                        |
| --------------------------------------- | ------------------------------------------------------ |
| `check(notebook)`                       | the visible checks without a browser                   |
| `run(notebook)`                         | a lesson from top to bottom, saved with clean outputs  |

Nothing here imports torch: it is the kernels that run the code.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from pytorch_lab.grading import lean  # noqa: F401  # before anybody imports nbformat

if TYPE_CHECKING:
    from pytorch_lab.grading.authoring.mutants import Mutant
    from pytorch_lab.grading.authoring.release import release
    from pytorch_lab.grading.book.marks import GradedClass, Row
    from pytorch_lab.grading.grader import grade
    from pytorch_lab.grading.unmarked.headless import Verdict, check
    from pytorch_lab.grading.unmarked.lessons import run

__all__ = ["GradedClass", "Mutant", "Row", "Verdict", "check", "grade", "release", "run"]

# Loaded on first use: the process that runs notebooks needs neither a database nor pages.
_HOMES = {
    "GradedClass": "book.marks",
    "Mutant": "authoring.mutants",
    "Row": "book.marks",
    "Verdict": "unmarked.headless",
    "check": "unmarked.headless",
    "grade": "grader",
    "release": "authoring.release",
    "run": "unmarked.lessons",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"pytorch_lab.grading has no {name!r}; see help(pytorch_lab.grading).")
    value = getattr(import_module(f"pytorch_lab.grading.{_HOMES[name]}"), name)
    globals()[name] = value
    return value
