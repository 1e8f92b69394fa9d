"""Which line of the learner's code made this? Names such as `model.py:12`, the same in every run.

A notebook's cell lives in a file whose name changes with the process, so it is written `cell:12`.
"""

import ast
import functools
import inspect
import textwrap
import types
from pathlib import Path
from typing import Any

from pytorch_lab.modules.functions import plain_function
from pytorch_lab.modules.reach import is_library_file, written_here


def spell_line(file: str, line: int) -> str:
    """How a line is written: the file's name without its folder, and the number."""
    name = Path(file).name
    if "ipykernel_" in file or name.startswith("<"):
        name = "cell"
    return f"{name}:{line}"


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
