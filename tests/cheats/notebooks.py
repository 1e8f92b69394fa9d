"""Attacks by the notebook itself: its metadata, its cells, its size, its name."""

import nbformat

from tests.assignments import cell_of, code
from tests.cheats.bank import Cheat

SCRIPT = "<script>window.had = 1</script><img src=x onerror='window.had = 1'>"


def edited_checks(notebook):
    """Locked cells say something else, and are worth more."""
    for grade_id in ("04-1-check", "04-1-hidden", "04-2-hidden"):
        cell_of(notebook, grade_id).source = "assert True"
        cell_of(notebook, grade_id).metadata["nbgrader"] |= {"points": 100, "locked": False}
    cell_of(notebook, "04-1").metadata["nbgrader"] |= {"grade": True, "points": 1000}


def deleted_checks(notebook):
    for grade_id in ("04-1-hidden", "04-2-hidden"):
        notebook.cells.remove(cell_of(notebook, grade_id))
    cell_of(notebook, "04-3-hidden").cell_type = "markdown"


def own_check(notebook):
    """A graded cell of the student's own, for an exercise that does not exist and one that does."""
    for name in ("04-9-hidden", "04-1-hidden"):
        notebook.cells.append(code("assert True", name, grade=True, points=500))


def skip_tags(notebook):
    cell_of(notebook, "04-1").metadata["tags"] = ["nbval-skip"]
    cell_of(notebook, "04-2").metadata["tags"] = ["raises-exception"]
    cell_of(notebook, "04-3-hidden").metadata["tags"] = ["skip-execution"]


def foreign_kernel(notebook):
    notebook.metadata["kernelspec"] = {
        "name": "bash", "display_name": "x", "language": "bash", "argv": ["touch", "{secret}"],
    }  # fmt: skip
    notebook.metadata["language_info"] = {"name": "bash"}


def ready_outputs(notebook):
    """Outputs that were there before anything ran."""
    value = {"label": "seven numbers", "value": {"is": "int", "value": 1}}
    bundle = {"application/vnd.pytorch-lab.value+json": value, "text/html": SCRIPT}
    for cell in notebook.cells:
        if cell.cell_type == "code":
            cell.execution_count = 1
            cell.outputs = [nbformat.v4.new_output("display_data", bundle)]


CHEATS = [
    Cheat("edited-checks", "locked cells and points of their own", change=edited_checks),
    Cheat("deleted-checks", "no hidden checks at all", change=deleted_checks),
    Cheat("own-check", "a graded cell of the student's own", change=own_check),
    Cheat(
        "skip-tags",
        "tags by which nbval and nbclient would skip a cell",
        change=skip_tags,
        ends={
            "04.1": ("refused", r".*holds the tag nbval-skip, which would keep it from.*"),
            "04.2": ("refused", r".*holds the tag raises-exception, which would keep it from.*"),
        },
    ),
    Cheat(
        "nbval-comments",
        "comments by which nbval would skip a cell or excuse it",
        {
            "04.1": "# NBVAL_SKIP\n1 / 0",
            "04.2": "#NBVAL_RAISES_EXCEPTION\n1 / 0",
            "04.3": "x = 1\n  # PYTEST_SKIP",
        },
        ends={
            "04.1": ("refused", r".*holds the control comment NBVAL_SKIP, which would keep.*"),
            "04.2": ("refused", r".*comment NBVAL_RAISES_EXCEPTION, which would keep.*"),
            "04.3": ("refused", r".*comment PYTEST_SKIP, which would keep.*"),
        },
    ),
    Cheat("foreign-kernel", "a kernel of its own choice", change=foreign_kernel),
    Cheat("ready-outputs", "outputs that were there before", change=ready_outputs),
    Cheat(
        "bad-magic",
        "a magic that does not exist, behind which nothing runs",
        {"04.1": "%%nosuchcellmagic\nassert False", "04.2": "%notmagic\nraise TypeError"},
        ends={
            "04.1": ("raised|failed", r".*"),
            "04.2": ("raised|failed", r".*"),
        },
    ),
    Cheat(
        "injection",
        "HTML, scripts, ANSI and line breaks in what it raises",
        {
            "04.1": f"def standardize(x):\n    raise ValueError({SCRIPT!r})",
            "04.2": "def slope(w, x, y):\n"
            "    raise ValueError('\\x1b[2J\\x1b]0;had\\x07\\r\\n=cmd()\\u202e,passed')",
        },
        ends={
            "04.1": ("raised", r"ValueError in line 2, .*"),
            "04.2": ("raised", r"ValueError in line 2, .*"),
        },
    ),
    Cheat("=cmd()|' /C calc'!A0", "a name that a spreadsheet takes for a formula"),
]
