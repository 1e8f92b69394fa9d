"""A class of thirty, and the same answers in the format of each grader.

One assignment (standardize a tensor, the gradient of a loss, train a linear model with an
optimizer; 10 points), answered right in several styles, wrong, with an error, or not at all. Every
format asks the same questions of the same inputs; only how it asks differs.
"""

import copy
from typing import Any

import nbformat
from nbformat import NotebookNode

SOLUTIONS = {
    "q1": "def standardize(x):\n    return (x - x.mean(0)) / x.std(0)",
    "q2": (
        "def gradient(w, x, y):\n    w = w.detach().clone().requires_grad_()\n"
        "    ((x @ w - y) ** 2).mean().backward()\n    return w.grad"
    ),
    "q3": (
        "def train(x, y, steps=200):\n    model = torch.nn.Linear(x.shape[1], 1)\n"
        "    with torch.no_grad():\n        model.weight.zero_(); model.bias.zero_()\n"
        "    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)\n"
        "    for _ in range(steps):\n        optimizer.zero_grad()\n"
        "        loss = ((model(x).squeeze(1) - y) ** 2).mean()\n        loss.backward()\n"
        "        optimizer.step()\n    return model"
    ),
}
POINTS = {"q1": 2, "q2": 3, "q3": 5}
STUBS = {
    "q1": "def standardize(x):",
    "q2": "def gradient(w, x, y):",
    "q3": "def train(x, y, steps=200):",
}
ANSWERS = {
    "q1": {
        "right": SOLUTIONS["q1"],
        "pairs": (
            "def standardize(x):\n    m, s = x.mean(dim=0, keepdim=True), x.std(dim=0)\n"
            "    return torch.div(x - m, s)"
        ),
        "one mean for all": "def standardize(x):\n    return (x - x.mean()) / x.std()",
        "biased": "def standardize(x):\n    return (x - x.mean(0)) / x.std(0, unbiased=False)",
        "raises": "def standardize(x):\n    return (x - x.means(0)) / x.std(0)",
    },
    "q2": {
        "right": SOLUTIONS["q2"],
        "formula": "def gradient(w, x, y):\n    return 2 / len(y) * x.T @ (x @ w - y)",
        "sum": "def gradient(w, x, y):\n    return 2 * x.T @ (x @ w - y)",
        "raises": "def gradient(w, x, y):\n    return torch.autograd.grad(w, x)",
    },
    "q3": {
        "right": SOLUTIONS["q3"],
        "same in a class": SOLUTIONS["q3"].replace("zero_grad()", "zero_grad(set_to_none=True)"),
        "never zeroed": SOLUTIONS["q3"].replace("optimizer.zero_grad()", "pass"),
    },
}
TESTS = {
    "q1": (
        "torch.manual_seed(1)\nx = torch.randn(20, 3) * 4 + 2\n",
        ["standardize(x)", "standardize(x[:5])"],
    ),
    "q2": (
        "torch.manual_seed(2)\nw, x, y = torch.randn(3), torch.randn(9, 3), torch.randn(9)\n",
        ["gradient(w, x, y)", "gradient(w * 2, x, y)"],
    ),
    "q3": (
        "torch.manual_seed(3)\nx = torch.randn(40, 2)\ny = x @ torch.tensor([1.5, -2.0]) + 0.5\n",
        ["train(x, y).weight", "train(x, y, steps=3).bias"],
    ),
}
# Who answers what; "" leaves the stub. Eighteen are right throughout.
CLASS = [
    *[("right", "right", "right")] * 8, *[("pairs", "formula", "same in a class")] * 7,
    *[("right", "formula", "right")] * 3, *[("one mean for all", "right", "right")] * 2,
    ("biased", "formula", "right"), ("right", "sum", "right"), ("pairs", "sum", "never zeroed"),
    ("right", "right", "never zeroed"), ("raises", "right", "right"), ("right", "raises", "right"),
    ("one mean for all", "", ""), ("right", "right", ""), *[("", "", "")] * 2,
]  # fmt: skip
assert len(CLASS) == 30


def _stub(question: str) -> str:
    return f"{STUBS[question]}\n    # YOUR CODE HERE\n    raise NotImplementedError()"


def answers_of(number: int) -> dict[str, str]:
    """The source of each answer cell of a student."""
    given = zip(ANSWERS, CLASS[number], strict=True)
    return {q: ANSWERS[q][name] if name else _stub(q) for q, name in given}


def points_of(number: int) -> float:
    """What a student has earned."""
    right = {"right", "pairs", "formula", "same in a class"}
    given = zip(ANSWERS, CLASS[number], strict=True)
    return float(sum(POINTS[q] for q, name in given if name in right))


def _cell(source: str, grade_id: str = "", **known: Any) -> NotebookNode:
    cell = nbformat.v4.new_code_cell(source, id=grade_id or "setup")
    if grade_id:
        facts = {"grade_id": grade_id, "schema_version": 3, "solution": False, "grade": False}
        cell.metadata["nbgrader"] = facts | {"locked": True, "task": False} | known
    return cell


def _notebook(cells: list[NotebookNode]) -> NotebookNode:
    kernel = {"kernelspec": {"name": "python3", "display_name": "Python 3", "language": "python"}}
    return nbformat.v4.new_notebook(cells=cells, metadata=kernel)


def _solution_cell(question: str) -> NotebookNode:
    head, _, body = SOLUTIONS[question].partition("\n")
    source = f"{head}\n    ### BEGIN SOLUTION\n{body}\n    ### END SOLUTION"
    return _cell(source, f"01-{question[1]}", solution=True, locked=False)


def expected(question: str) -> list[Any]:
    """What the tests of a question give for the right answer, as nested lists."""
    import torch

    names: dict[str, Any] = {"torch": torch}
    given, asked = TESTS[question]
    exec(f"{SOLUTIONS[question]}\n{given}", names)
    return [eval(question_, names).tolist() for question_ in asked]


def asserts(question: str) -> str:
    """The tests of a question as assert statements."""
    given, asked = TESTS[question]
    lines = [
        f"torch.testing.assert_close({call}, torch.tensor({value}), check_stride=False)"
        if "train" not in call
        else f"torch.testing.assert_close({call}.detach(), torch.tensor({value}))"
        for call, value in zip(asked, expected(question), strict=True)
    ]
    return given + "\n".join(lines)


def ours() -> NotebookNode:
    """The instructor's notebook in our format."""
    cells = [_cell("import torch\nfrom pytorch_lab import checks")]
    for question, (given, asked) in TESTS.items():
        shown = "".join(f"checks.reveal({f'{call} is'!r}, {call})\n" for call in asked)
        hidden = f"### BEGIN HIDDEN TESTS\n{given}{shown}### END HIDDEN TESTS"
        points = POINTS[question]
        check = _cell(hidden, f"01-{question[1]}-hidden", grade=True, points=points)
        cells += [_solution_cell(question), check]
    return _notebook(cells)


def nbgraders() -> NotebookNode:
    """The instructor's notebook in nbgrader's."""
    cells = [_cell("import torch")]
    for question in TESTS:
        hidden = f"### BEGIN HIDDEN TESTS\n{asserts(question)}\n### END HIDDEN TESTS"
        points = POINTS[question]
        check = _cell(hidden, f"test-{question}", grade=True, points=points)
        cells += [_solution_cell(question), check]
    return _notebook(cells)


def submission(released: NotebookNode, number: int) -> NotebookNode:
    """A released notebook of ours or of nbgrader's with a student's answers in it."""
    made = copy.deepcopy(released)
    for question, source in answers_of(number).items():
        cell = next(c for c in made.cells if c.get("id") == f"01-{question[1]}")
        cell.source = source
    return made


def plain(number: int) -> NotebookNode:
    """A student's notebook with the tests in it, for plain nbval."""
    cells = [_cell("import torch")]
    for question, source in answers_of(number).items():
        cells += [nbformat.v4.new_code_cell(source), nbformat.v4.new_code_cell(asserts(question))]
    return _notebook(cells)


def _raw(source: str) -> NotebookNode:
    return nbformat.v4.new_raw_cell(source)


def otters() -> NotebookNode:
    """The instructor's notebook in otter's format."""
    cells = [_raw("# ASSIGNMENT CONFIG\ngenerate: true\ninit_cell: true\nexport_cell: false")]
    cells.append(_cell("import torch"))
    for question in TESTS:
        config = f"# BEGIN QUESTION\nname: {question}\npoints: {POINTS[question]}"
        body = "\n".join(f"    {line}" for line in asserts(question).split("\n"))
        names = STUBS[question].split("(")[0].split()[1]
        hidden = '""" # BEGIN TEST CONFIG\nhidden: true\n""" # END TEST CONFIG'
        test = f"{hidden}\ndef test({names}):\n{body}"
        solution = nbformat.v4.new_code_cell(
            f"# BEGIN SOLUTION\n{SOLUTIONS[question]}\n# END SOLUTION"
        )
        cells += [_raw(config), _raw("# BEGIN SOLUTION"), solution, _raw("# END SOLUTION")]
        cells += [_raw("# BEGIN TESTS"), nbformat.v4.new_code_cell(test), _raw("# END TESTS")]
        cells.append(_raw("# END QUESTION"))
    return _notebook(cells)


def fill_otters(released: NotebookNode, number: int) -> NotebookNode:
    """An otter student notebook with a student's answers in it."""
    made = copy.deepcopy(released)
    places = [c for c in made.cells if c.cell_type == "code" and c.source.strip() == "..."]
    for cell, source in zip(places, answers_of(number).values(), strict=True):
        cell.source = source
    return made
