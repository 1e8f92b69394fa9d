"""Which line of the learner's code made this? Names such as `model.py:12`, the same in every run.

A notebook's cell lives in a file whose name changes with the process, so it is written as the
notebook shows it: `cell [7] line 12` is the twelfth line of the cell that has run as number 7.
"""

import ast
import functools
import inspect
import linecache
import sys
import textwrap
import types
from pathlib import Path
from typing import Any

from pytorch_lab.modules.functions import plain_function
from pytorch_lab.modules.reach import is_library_file, written_here


def spell_line(file: str, line: int) -> str:
    """How a line is written: its file as `spell_file` has it, and the number.

    Example:
        >>> spell_line("/home/ada/model.py", 12), spell_line("/tmp/ipykernel_9/271.py", 12)
        ('model.py:12', 'cell line 12')
    """
    name = spell_file(file)
    return f"{name} line {line}" if is_cell(file) else f"{name}:{line}"


def spell_file(file: str) -> str:
    """A file's name without its folder; a cell of this process's notebook by its number."""
    if not is_cell(file):
        return Path(file).name
    number = _number_of_cell(file)
    return f"cell [{number}]" if number else "cell"


def is_cell(file: str) -> bool:
    """Whether a source file is a notebook's cell, or what was typed into a terminal."""
    name = Path(file).name
    return "ipykernel_" in file or (name.startswith("<") and name != "<string>")


def _number_of_cell(file: str) -> str:
    """The number beside a cell: where in the kernel's history the text of the file stands.

    IPython itself would say `Cell In[7]`, and goes wrong where a front end stores no history.
    """
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython is not None else None
    label = shell.compile.format_code_name(file) if shell is not None else None
    if shell is None or label is None:
        return ""
    number = label[1].removeprefix("In[").removesuffix("]")
    cells = dict(enumerate(shell.history_manager.input_hist_parsed))
    text = "".join(linecache.getlines(file)).rstrip("\n")
    return number if cells.get(int(number)) == text else ""


def line_of_caller(frame: types.FrameType | None) -> str:
    """The innermost line of the learner's code, seen from `frame`; empty if there is none."""
    while frame is not None:
        if not is_library_file(frame.f_code.co_filename):
            return spell_line(frame.f_code.co_filename, frame.f_lineno)
        frame = frame.f_back
    return ""


@functools.lru_cache(maxsize=1024)
def line_of_attribute(cls: type, name: str) -> str:
    """The line that assigns `self.<name>` (or the class attribute `<name>`) first, if found."""
    for base in cls.__mro__:
        if not written_here(base):
            continue
        # The source of a class in a notebook cannot be found by its name, that of a method can.
        for source in (*filter(None, map(plain_function, vars(base).values())), base):
            line = _first_assignment(source, name)
            if line:
                return line
    return ""


def _first_assignment(source: Any, name: str) -> str:
    try:
        file = inspect.getsourcefile(source)
        text, first = inspect.getsourcelines(source)
        tree = ast.parse(textwrap.dedent("".join(text)))
    except (OSError, TypeError, SyntaxError):  # typed into a terminal, built in, or a lambda
        return ""
    statements = (node for node in ast.walk(tree) if isinstance(node, ast.stmt))
    lines = [node.lineno for node in statements if _assigns(node, name)]
    return spell_line(file, first + min(lines) - 1) if file and lines else ""


def _assigns(node: ast.stmt, name: str) -> bool:
    if isinstance(node, ast.Assign):
        targets = [t for target in node.targets for t in ast.walk(target)]
    elif isinstance(node, ast.AnnAssign | ast.AugAssign):
        targets = [node.target]
    else:
        return False
    return any(
        (isinstance(t, ast.Attribute) and t.attr == name)
        or (isinstance(t, ast.Name) and t.id == name)
        for t in targets
    )
