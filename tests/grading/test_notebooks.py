"""Reading what strangers hand in, and writing it back byte for byte."""

import json
from pathlib import Path

import nbformat
import pytest

from pytorch_lab.errors import CourseError, NotebookError
from pytorch_lab.grading.notebooks import (
    MAX_BYTES,
    MAX_DEPTH,
    MAX_PARTS,
    exercise_id,
    facts,
    grade_id,
    parse,
    read,
    replace,
    text,
    write,
)

CELL = {"cell_type": "code", "source": ["a = 1\n", "b = 2"]}


def notebook(**entries):
    return json.dumps({"nbformat": 4, "nbformat_minor": 5, "cells": [], "metadata": {}} | entries)


def nested(depth):
    """Lists in each other, this many."""
    made: list = []
    for _ in range(depth - 1):
        made = [made]
    return made


def test_read_gives_every_cell_what_the_grader_relies_on(tmp_path: Path):
    file = tmp_path / "a.ipynb"
    file.write_text("\ufeff" + notebook(cells=[CELL]), "utf-8")
    (cell,) = read(file).cells
    assert cell.source == "a = 1\nb = 2"
    assert (cell.metadata, cell.outputs, cell.execution_count) == ({}, [], None)


@pytest.mark.parametrize(
    ("content", "says"),
    [
        ("{", r"expected a Jupyter notebook in .*a\.ipynb, got broken JSON in line 1 .*; save it"),
        ("", "broken JSON in line 1"),
        ("[" * 100_000, "cannot be read"),
        ('{"nbformat": ' + "9" * 5000 + "}", "cannot be read"),
        ('"text"', "got JSON without an 'nbformat' number"),
        ('{"cells": []}', "got JSON without an 'nbformat' number"),
        (notebook(nbformat=5), "in notebook format 4, got format 5; open it in JupyterLab"),
        (notebook(nbformat=2), "in notebook format 4, got format 2; open it in JupyterLab"),
        (notebook(nbformat=3), "got a notebook of format 3 that is none"),
        (notebook(nbformat=True), "got JSON without an 'nbformat' number"),
        (notebook(x=[0] * (MAX_PARTS - 2)), f"got JSON of more than {MAX_PARTS} parts"),
        (notebook(x=nested(MAX_DEPTH)), f"got JSON nested more than {MAX_DEPTH} deep"),
        (notebook(cells=None), "without a list of cells"),
        (notebook(cells=[1]), "a cell 1 that is no cell"),
        (notebook(cells=[CELL, {"cell_type": "x"}]), "a cell 2 of the unknown type 'x'"),
        (notebook(cells=[CELL | {"metadata": 1}]), "a cell 1 whose metadata is no object"),
        (notebook(cells=[CELL | {"source": [1]}]), "a cell 1 whose source is no text"),
        (notebook(cells=[CELL | {"source": "\ud800"}]), "got half a character"),
        (notebook(metadata={"\udfff": 1}), "got half a character"),
        (notebook(metadata=[]), "a notebook whose metadata is no object"),
        (notebook(metadata={"kernelspec": "python3"}), "whose kernelspec is no object"),
    ],
)
def test_what_is_no_notebook_is_refused_in_one_sentence(tmp_path: Path, content, says):
    file = tmp_path / "a.ipynb"
    file.write_text(content, "utf-8")
    with pytest.raises(NotebookError, match=says) as caught:
        read(file)
    assert "\n" not in str(caught.value)


def test_whole_characters_outside_the_first_plane_and_null_metadata_are_fine(tmp_path: Path):
    file = tmp_path / "a.ipynb"
    file.write_text(notebook(cells=[CELL | {"source": "\U0001f600"}], metadata=None), "utf-8")
    made = read(file)
    assert (made.cells[0].source, made.metadata) == ("\U0001f600", {})


def test_outputs_are_joined_and_odd_ones_do_no_harm(tmp_path: Path):
    stream = {"output_type": "stream", "name": "stdout", "text": ["a\n", "b"]}
    for outputs, text_of in (([stream], "a\nb"), ([7, stream], ["a\n", "b"])):
        file = tmp_path / "a.ipynb"
        file.write_text(notebook(cells=[CELL | {"outputs": outputs}]), "utf-8")
        assert read(file).cells[0].outputs[-1].text == text_of


def test_files_that_cannot_be_read(tmp_path: Path):
    with pytest.raises(NotebookError, match=r"expected a notebook at .*b\.ipynb, but there is no"):
        read(tmp_path / "b.ipynb")
    with pytest.raises(NotebookError, match=r"got 'Is a directory'; give the path of an \.ipynb"):
        read(tmp_path)
    for encoding, says in (
        ("utf-16", "UTF-16 where UTF-8 is needed"),
        ("latin-1", "no UTF-8 text"),
    ):
        (tmp_path / "c.ipynb").write_bytes(notebook(x="é").replace("\\u00e9", "é").encode(encoding))
        with pytest.raises(NotebookError, match=says):
            read(tmp_path / "c.ipynb")
    with (tmp_path / "d.ipynb").open("wb") as huge:
        huge.truncate(MAX_BYTES + 1)
    with pytest.raises(NotebookError, match="got 50 MB"):
        read(tmp_path / "d.ipynb")


def test_a_notebook_at_the_limits_is_read():
    made = parse(notebook(x=nested(MAX_DEPTH - 1), y=[0] * 1000).encode(), "a.ipynb")
    assert made.cells == []
    with pytest.raises(NotebookError, match=r"in a\.ipynb, got 50 MB"):
        parse(b" " * (MAX_BYTES + 1), "a.ipynb")


def test_a_notebook_of_format_3_is_taken_over_the_same_each_time():
    cells = [
        {"cell_type": "code", "input": ["a = 1\n", "b"], "language": "python", "outputs": [],
         "metadata": {"nbgrader": {"grade_id": "q1", "solution": True}}},
        {"cell_type": "heading", "level": 2, "metadata": {}, "source": ["Title"]},
    ]  # fmt: skip
    sheets = [{"cells": cells[:1], "metadata": {}}, {"cells": cells[1:], "metadata": {}}]
    old = {"nbformat": 3, "nbformat_minor": 0, "metadata": {"name": ""}, "worksheets": sheets}
    made = parse(json.dumps(old).encode(), "a.ipynb")
    assert [cell.source for cell in made.cells] == ["a = 1\nb", "## Title"]
    known = facts(made.cells[0])
    assert known is not None
    assert known.grade_id == "q1"
    assert text(made) == text(parse(json.dumps(old).encode(), "a.ipynb"))


def test_a_notebook_written_and_read_is_the_same_file(tmp_path: Path):
    file = tmp_path / "new" / "a.ipynb"
    cell = nbformat.v4.new_code_cell("ü = 1\n\n2", id="x", metadata={"b": 1, "a": 2})
    made = nbformat.v4.new_notebook(cells=[cell])
    write(file, made)
    first = file.read_bytes()
    write(file, read(file))
    assert file.read_bytes() == first
    assert first.decode() == text(made)
    assert "ü" in first.decode()
    assert first.endswith(b"}\n")
    assert [f.name for f in file.parent.iterdir()] == ["a.ipynb"]


def test_what_cannot_be_written_is_one_sentence_and_nothing_is_half_written(tmp_path: Path):
    (tmp_path / "file").write_text("mine")
    with pytest.raises(
        CourseError, match=r"expected to write .*, but got a file where a folder .*; give"
    ):
        replace(tmp_path / "file" / "a.ipynb", "x")
    (tmp_path / "a.ipynb").mkdir()
    with pytest.raises(CourseError, match="expected to write"):
        replace(tmp_path / "a.ipynb", "x")
    with pytest.raises(UnicodeEncodeError):
        replace(tmp_path / "b.ipynb", "\ud800")
    assert (tmp_path / "file").read_text() == "mine"
    assert sorted(f.name for f in tmp_path.iterdir()) == ["a.ipynb", "file"]


def test_people_say_03_2_and_nbgrader_says_03_dash_2():
    assert grade_id("03.2") == "03-2"
    for cell in ("03-2", "03-2-task", "03-2-check", "03-2-hidden"):
        assert exercise_id(cell) == "03.2"
    assert exercise_id("12-10-hidden") == "12.10"
    assert exercise_id("squares-hidden") == "squares"


@pytest.mark.parametrize(
    ("said", "locked", "points"),
    [
        ({"grade": True, "points": "3", "schema_version": 1}, True, 3.0),
        ({"solution": True, "schema_version": 1}, False, None),
        (
            {"grade": True, "solution": False, "locked": True, "points": 2, "schema_version": 2},
            True,
            2,
        ),
        ({"grade": True, "locked": False, "points": 0, "schema_version": 3}, False, 0),
        ({"grade": True, "points": -1}, True, None),
        ({"grade": True, "points": "many"}, True, None),
        ({"grade": True, "points": float("nan")}, True, None),
        ({"grade": True}, True, None),
    ],
)
def test_nbgraders_metadata_of_any_schema(said, locked, points):
    cell = nbformat.v4.new_code_cell(metadata={"nbgrader": {"grade_id": "q1"} | said})
    found = facts(cell)
    assert found is not None
    assert (found.locked, found.points) == (locked, points)


@pytest.mark.parametrize(
    "said", [{}, {"nbgrader": 1}, {"nbgrader": {}}, {"nbgrader": {"grade_id": 1}}]
)
def test_a_cell_that_is_not_nbgraders_has_no_facts(said):
    assert facts(nbformat.v4.new_code_cell(metadata=said)) is None
