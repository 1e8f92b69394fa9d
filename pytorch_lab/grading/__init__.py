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

from pytorch_lab.grading import lean  # noqa: F401  # before anybody imports nbformat

# isort: split
from pytorch_lab.grading.grade import grade
from pytorch_lab.grading.headless import Verdict, check
from pytorch_lab.grading.lessons import run
from pytorch_lab.grading.marks import GradedClass, Row
from pytorch_lab.grading.release import release

__all__ = ["GradedClass", "Row", "Verdict", "check", "grade", "release", "run"]
