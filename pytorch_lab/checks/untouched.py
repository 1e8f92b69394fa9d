"""Is an answer still the stub? Known from the cells that this kernel has run.

The last cell that defines one of the stub's names is the learner's answer. Compared are the two
programs, not their texts: a comment more, or a blank line, is no answer yet.
"""

import ast
import sys


def is_untouched(stub: str) -> bool:
    r"""Whether the answer that stands in the kernel is the stub as it was given.

    False where nobody can know: outside of IPython, or where the kernel keeps no history.

    Args:
        stub: the cell as it was given.

    Example:
        >>> is_untouched("def double(x):\n    return x")
        False
    """
    given = _parsed(stub)
    if given is None:
        return False
    names = _defined(given)
    for cell in reversed(_history()):
        answer = _parsed(cell)
        if answer is not None and names & _defined(answer):
            return ast.dump(answer) == ast.dump(given)
    return False


def _history() -> list[str]:
    """The cells that have run, the oldest first, as Python reads them."""
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython is not None else None
    return [] if shell is None else list(shell.history_manager.input_hist_parsed)


def _parsed(source: str) -> ast.Module | None:
    try:
        return ast.parse(source)
    except (SyntaxError, ValueError):
        return None


def _defined(program: ast.Module) -> set[str]:
    """The names that a cell gives to functions, classes and values."""
    found: set[str] = set()
    for node in program.body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            found.add(node.name)
        elif isinstance(node, ast.Assign | ast.AnnAssign):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            found |= {n.id for t in targets for n in ast.walk(t) if isinstance(n, ast.Name)}
    return found
