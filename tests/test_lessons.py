"""What every lesson keeps to: the anatomy of the syllabus, and outputs that were really made.

The lessons themselves are run by `pytest --nbval-lax notebooks`, which compares the cells that are
tagged for it. nbval never compares a cell that was not executed, so that is tested here.
"""

import ast
import re
from pathlib import Path

import nbformat
import pytest
from nbformat import NotebookNode

from pytorch_lab import colab, course
from pytorch_lab.grading.unmarked.lessons import WIDGET_VIEW

ROOT = course.root()
LESSONS = sorted((ROOT / "notebooks").glob("*.ipynb"))
COMPARED = "nbval-check-output"
STEERING = re.compile(
    r"nbval-(skip|ignore-output|raises-exception)|raises-exception|skip-execution"
)
PIECES = ("card", "predict", "order", "clinic", "recall")
MAX_BYTES = 400_000
MAX_LINES = 16  # of code, blank ones not counted: about twelve, and the imports
MAX_FOLDED = 30  # plumbing that nobody has to read

each = pytest.mark.parametrize("path", LESSONS, ids=lambda path: path.stem)


def cells(path: Path, kind: str = "code") -> list[NotebookNode]:
    return [cell for cell in nbformat.read(path, 4).cells if cell.cell_type == kind]


def calls(path: Path) -> list[tuple[NotebookNode, str, ast.Call]]:
    """Every cell that ends with `lab.something(...)`."""
    found = []
    for cell in cells(path):
        if cell.source == colab.SETUP_CELL:
            continue
        last = ast.parse(cell.source).body[-1]
        if isinstance(last, ast.Expr) and isinstance(last.value, ast.Call):
            function = last.value.func
            if isinstance(function, ast.Attribute) and ast.unparse(function.value) == "lab":
                found.append((cell, function.attr, last.value))
    return found


def pieces(path: Path, name: str) -> list[ast.Call]:
    return [call for _, function, call in calls(path) if function == name]


def given(call: ast.Call) -> dict[str, object]:
    """The arguments of a piece, by name; the first is called "id"."""
    named = {word.arg: ast.literal_eval(word.value) for word in call.keywords if word.arg}
    return {"id": ast.literal_eval(call.args[0])} | named


def test_there_are_lessons():
    assert "03_modules" in [path.stem for path in LESSONS]


@each
def test_it_was_run_from_top_to_bottom(path: Path):
    counts = [cell.execution_count for cell in cells(path)]
    assert counts == list(range(1, len(counts) + 1)), "run: pytorch-lab run notebooks/..."
    kinds = [output.output_type for cell in cells(path) for output in cell.outputs]
    assert "error" not in kinds
    streams = [o.name for cell in cells(path) for o in cell.outputs if o.output_type == "stream"]
    assert set(streams) <= {"stdout"}, "a warning was kept in the outputs"


@each
def test_it_tells_nothing_of_the_machine_that_ran_it(path: Path):
    text = path.read_text("utf-8")
    assert WIDGET_VIEW not in text
    assert "widget-state" not in text
    outputs = [re.sub(r"base64,[\w+/=]+", "", str(cell.outputs)) for cell in cells(path)]
    for said in outputs:
        assert not re.search(r"/home/|/root\b|/Users/|/tmp/|site-packages|0x[0-9a-f]{6,}", said)
    assert len(text.encode()) <= MAX_BYTES


@each
def test_nbval_compares_some_of_it(path: Path):
    compared = [cell for cell in cells(path) if COMPARED in cell.metadata.get("tags", [])]
    assert len(compared) >= 3
    assert all(cell.outputs for cell in compared)
    for cell in cells(path):
        assert not any(STEERING.fullmatch(tag) for tag in cell.metadata.get("tags", []))
        assert not re.search(r"#\s*(NBVAL|PYTEST)_", cell.source)


@each
def test_it_begins_and_ends_like_every_lesson(path: Path):
    number = path.stem[:2]
    first, second = nbformat.read(path, 4).cells[:2]
    assert first.source.startswith(f"# {number} · ")
    assert f"(../exercises/{path.name})" in first.source
    assert second.source == colab.SETUP_CELL
    opening, closing = (given(pieces(path, "card")[at]) for at in (0, -1))
    assert set(opening) == {"id", "goal", "minutes", "needs", "changed"}
    assert 45 <= int(str(opening["minutes"])) <= 60
    assert closing["lesson"] == number
    assert calls(path)[0][1] == calls(path)[-1][1] == "card"
    assert calls(path)[-1][0] == cells(path)[-1]


@each
def test_it_has_the_parts_of_a_lesson(path: Path):
    assert 25 <= len(nbformat.read(path, 4).cells) <= 35
    assert len(pieces(path, "predict")) >= 3
    assert len(pieces(path, "show")) >= 2
    assert len(pieces(path, "order")) >= 1
    assert len(pieces(path, "clinic")) == 2
    (recall,) = pieces(path, "recall")
    assert len(ast.literal_eval(recall.args[1])) == 3
    targets = "".join(cell.source for cell in cells(path, "markdown")).count("**Your target:**")
    assert targets >= len(pieces(path, "show"))
    ids = [given(c)["id"] for name in PIECES[1:] for c in pieces(path, name)]
    assert len(set(ids)) == len(ids)
    assert all(str(id).startswith(f"{path.stem[:2]}.") for id in ids)


@each
def test_a_guess_is_not_spoiled(path: Path):
    """The source of a piece holds its answer, the next output shows it: both are folded."""
    named = {cell.id: function for cell, function, _ in calls(path)}
    lesson = cells(path)
    for cell, following in zip(lesson, [*lesson[1:], None], strict=True):
        if named.get(cell.id) in PIECES:
            assert cell.metadata["jupyter"]["source_hidden"] is True
            assert cell.metadata["cellView"] == "form"  # the same, on Colab
        if named.get(cell.id) == "predict":
            assert following is not None
            assert following.metadata["jupyter"]["outputs_hidden"] is True


@each
def test_each_cell_holds_one_idea(path: Path):
    named = {cell.id: function for cell, function, _ in calls(path)}
    for cell in cells(path):
        if named.get(cell.id) not in PIECES:
            folded = cell.metadata.get("jupyter", {}).get("source_hidden")
            lines = [line for line in cell.source.splitlines() if line.strip()]
            assert len(lines) <= (MAX_FOLDED if folded else MAX_LINES), cell.id
    for cell in cells(path, "markdown"):
        assert len(cell.source.split()) <= 120, cell.id


@each
def test_chance_is_seeded(path: Path):
    source = "\n".join(cell.source for cell in cells(path))
    if re.search(r"torch\.rand|nn\.Linear", source):
        assert "torch.manual_seed(" in source


@each
def test_links_lead_somewhere(path: Path):
    for cell in cells(path, "markdown"):
        for link in re.findall(r"\]\(([^)#]+)\)", cell.source):
            assert not re.match(r"\w+:", link), f"{link}: a lesson works offline"
            assert (path.parent / link).exists(), link
