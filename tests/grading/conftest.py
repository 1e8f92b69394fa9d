"""The small assignment of `tests.assignments`, in memory and as a file."""

from pathlib import Path

import pytest
from nbformat import NotebookNode

from pytorch_lab.grading.notebooks import write
from tests.assignments import make_solution


@pytest.fixture
def solution() -> NotebookNode:
    return make_solution()


@pytest.fixture(scope="module")
def assignment(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The notebook of solutions, as a file."""
    path = tmp_path_factory.mktemp("solutions") / "03_numbers.ipynb"
    write(path, make_solution())
    return path
