"""What a cheat is: a submission whose answers are all wrong, and what it tries to do about it.

Every answer that a cheat does not give itself is `WRONG`: honest work would earn 0 of 10 points.
Code may name `{port}`, where a server of the host listens, and `{secret}`, a file of the host.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import nbformat
from nbformat import NotebookNode

from pytorch_lab.grading.authoring.release import student_version
from tests.assignments import cell_of, code

EXERCISES = ("04.1", "04.2", "04.3")
POINTS = {"04.1": 2, "04.2": 3, "04.3": 5}
RIGHT = {
    "04.1": """\
def standardize(x):
    return (x - x.mean()) / x.std()
""",
    "04.2": """\
def slope(w, x, y):
    w = w.clone().requires_grad_()
    (x @ w - y).square().mean().backward()
    return w.grad
""",
    "04.3": """\
def train(x, y):
    w = torch.zeros(x.shape[1], requires_grad=True)
    optimizer = torch.optim.SGD([w], lr=0.1)
    for _ in range(20):
        optimizer.zero_grad()
        (x @ w - y).square().mean().backward()
        optimizer.step()
    return w.detach()
""",
}
WRONG = {
    "04.1": "def standardize(x):\n    return x",
    "04.2": "def slope(w, x, y):\n    return torch.zeros_like(w)",
    "04.3": "def train(x, y):\n    return torch.zeros(x.shape[1])",
}
HIDDEN = {
    "04.1": """\
draw = checks.draw("04.1")
checks.reveal("seven numbers", standardize(draw.randn(7)))
checks.reveal("a table", standardize(5 * draw.randn(3, 4)))
""",
    "04.2": """\
draw = checks.draw("04.2")
checks.reveal("gradient", slope(draw.randn(3), draw.randn(9, 3), draw.randn(9)))
""",
    "04.3": """\
draw = checks.draw("04.3")
checks.reveal("weights", train(draw.randn(12, 3), draw.randn(12)))
""",
}
FAILED = dict.fromkeys(EXERCISES, ("failed", r".*expected .*, got .*"))


@dataclass(frozen=True)
class Cheat:
    """One submission that tries to get more than it earned.

    Attributes:
        name: of the student.
        tries: what it attempts, in a few words.
        answers: by exercise; the others are `WRONG`.
        before: a cell of the student's own, before the first exercise.
        change: anything else that is done to the notebook.
        ends: by exercise, the status and a pattern of the reason; the others have failed.
    """

    name: str
    tries: str
    answers: dict[str, str] = field(default_factory=dict)
    before: str = ""
    change: Callable[[NotebookNode], Any] | None = None
    ends: dict[str, tuple[str, str]] = field(default_factory=dict)

    def notebook(self, port: int, secret: str) -> NotebookNode:
        """The submission, ready to be handed in."""
        made = handed_in(WRONG | self.answers)
        if self.before:
            made.cells.insert(2, code(self.before))
        for cell in made.cells:
            cell.source = cell.source.replace("{port}", str(port)).replace("{secret}", secret)
        if self.change is not None:
            self.change(made)
        return made

    def expected(self) -> dict[str, tuple[str, str]]:
        """Status and reason of every exercise."""
        return FAILED | self.ends


def solution() -> NotebookNode:
    """The instructor's notebook: three exercises, 10 points."""
    setup = code("import torch\nfrom pytorch_lab import checks")
    setup.id = "setup"
    title = nbformat.v4.new_markdown_cell("# Cheats", id="title")
    notebook = nbformat.v4.new_notebook(cells=[title, setup])
    for exercise in EXERCISES:
        name = exercise.replace(".", "-")
        answer = f"### BEGIN SOLUTION\n{RIGHT[exercise]}### END SOLUTION"
        hidden = f"### BEGIN HIDDEN TESTS\n{HIDDEN[exercise]}### END HIDDEN TESTS"
        notebook.cells += [
            code(answer, name, solution=True, locked=False),
            code("assert True", f"{name}-check"),
            code(hidden, f"{name}-hidden", grade=True, points=POINTS[exercise]),
        ]
    return notebook


def handed_in(answers: dict[str, str]) -> NotebookNode:
    """A submission with these answers."""
    notebook = student_version(solution())
    for exercise, answer in answers.items():
        cell_of(notebook, exercise.replace(".", "-")).source = answer.strip("\n")
    return notebook
