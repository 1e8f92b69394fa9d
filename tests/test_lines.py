"""How a line is called: by its file, or by the number of its cell."""

from types import SimpleNamespace

import IPython
import pytest
from ipykernel.compiler import XCachingCompiler

from pytorch_lab.modules.lines import spell_file, spell_line


@pytest.fixture
def shell(monkeypatch):
    """What a kernel keeps of its cells: here, cell 7."""
    compiler = XCachingCompiler()
    history = SimpleNamespace(input_hist_parsed=["", *"abcdef", "loss.backward()"])
    found = SimpleNamespace(compile=compiler, history_manager=history)
    monkeypatch.setattr(IPython, "get_ipython", lambda: found)
    return found


def test_a_cell_is_called_by_the_number_beside_it(shell):
    cell = shell.compile.cache("loss.backward()\n", 7)
    assert spell_line(cell, 12) == "cell [7] line 12"
    assert spell_file(cell) == "cell [7]"
    shell.compile.cache("loss.backward()\n", 8)  # the same cell, run again
    shell.history_manager.input_hist_parsed.append("loss.backward()")
    assert spell_line(cell, 12) == "cell [8] line 12"
    assert spell_line("/tmp/ipykernel_3/5.py", 12) == "cell line 12"  # of another kernel


def test_where_no_history_is_stored_every_cell_would_have_the_same_number(shell):
    cell = shell.compile.cache("x = 1", 7)
    assert spell_line(cell, 12) == "cell line 12"


def test_outside_of_a_notebook_there_is_no_number():
    assert spell_line("<stdin>", 1) == "cell line 1"
    assert spell_line("/home/ada/model.py", 3) == "model.py:3"
    assert spell_file("/home/ada/model.py") == "model.py"
