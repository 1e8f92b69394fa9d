"""How a line is called: by its file, or by the number of its cell."""

from types import SimpleNamespace

import IPython
from ipykernel.compiler import XCachingCompiler

from pytorch_lab.modules.lines import spell_file, spell_line


def test_a_cell_is_called_by_the_number_beside_it(monkeypatch):
    compiler = XCachingCompiler()
    cell = compiler.cache("loss.backward()", 7)
    monkeypatch.setattr(IPython, "get_ipython", lambda: SimpleNamespace(compile=compiler))
    assert spell_line(cell, 12) == "cell [7] line 12"
    assert spell_file(cell) == "cell [7]"
    compiler.cache("loss.backward()", 9)  # the same cell, run again
    assert spell_line(cell, 12) == "cell [9] line 12"
    assert spell_line("/tmp/ipykernel_3/5.py", 12) == "cell line 12"  # of another kernel


def test_outside_of_a_notebook_there_is_no_number():
    assert spell_line("<stdin>", 1) == "cell line 1"
    assert spell_line("/home/ada/model.py", 3) == "model.py:3"
    assert spell_file("/home/ada/model.py") == "model.py"
