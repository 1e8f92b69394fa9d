"""A notebook's cell as Python: its magics read, or the reason why they cannot be.

A cell that is no Python at all does nothing when it is run; one whose magics hide Python from us
may do anything.
"""

import ast
import re
import threading
from contextlib import suppress

_TIMED = re.compile(r"^(\s*)%{1,2}(?:time|timeit|capture)\b(?:[ \t]+-\w+(?:[ \t]*\d+)?)*[ \t]*")
_HARMLESS = re.compile(
    r"^\s*%{1,2}(?:matplotlib|precision|pip|conda|who|config InlineBackend|%html|%markdown"
    r"|env|ls|pwd|cd|mkdir)\b[^(]*$"
)
_SHELL = re.compile(r"^\s*!\s*(?:pip|ls|pwd|nvidia-smi|wget|curl|mkdir|cat|head|tail)\b[^(;&|`$]*$")


def parsed(source: str) -> ast.AST | str:
    r"""The cell's tree, or what keeps it from being read.

    Example:
        >>> ast.unparse(parsed("%matplotlib inline\n%time x = 3"))
        'pass\nx = 3'
        >>> parsed("%run other.py")
        'uses `%run other.py`'
        >>> ast.unparse(parsed("def broken(:"))
        ''
    """
    rows, magic = [], False
    for row in source.split("\n"):
        bare = row.lstrip()
        if timed := _TIMED.match(row):
            rows.append(timed[1] + (row[timed.end() :] or "pass"))
        elif _HARMLESS.match(row) or _SHELL.match(row):
            rows.append(f"{row[: len(row) - len(bare)]}pass")
        elif bare.startswith(("%", "!")):
            return f"uses `{bare[:40]}`"
        else:
            rows.append(row)
            continue
        magic = True
    try:
        return _tree("\n".join(rows))
    except (SyntaxError, ValueError, RecursionError):
        return "has magics that hide its Python" if magic else ast.Module([], [])


# In Python 3.11 two threads that parse at once share a count of the depth, and one of them may get
# a SystemError (python/cpython#106905).
_parsing = threading.Lock()


def _tree(source: str) -> ast.AST:
    """The tree of Python, or of what IPython makes Python of."""
    with _parsing:
        with suppress(SyntaxError):
            return ast.parse(source)
        from IPython.core.inputtransformer2 import TransformerManager  # of use for few, and slow

        return ast.parse(TransformerManager().transform_cell(source))
