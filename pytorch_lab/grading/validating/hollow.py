"""Answers that are all there, and whose functions only raise.

A hidden check that passes one of them never calls what the student wrote.
"""

import ast
import copy

from IPython.core.inputtransformer2 import TransformerManager
from nbformat import NotebookNode

from pytorch_lab.checks.regions import solution_text
from pytorch_lab.grading.notebooks import facts

_RAISES = "raise RuntimeError('this function is hollow')"


def hollow(solutions: NotebookNode) -> NotebookNode:
    """The solutions as a student hands them in, each function's body replaced by a `raise`.

    Args:
        solutions: the notebook of solutions, which is only read.
    """
    made = copy.deepcopy(solutions)
    for cell in made.cells:
        known = facts(cell)
        if cell.cell_type == "code" and known and known.is_answer:
            cell.source = hollow_source(solution_text(cell.source))
    return made


def hollow_source(source: str) -> str:
    r"""A cell in which every function only raises; one without functions raises itself.

    Example:
        >>> print(hollow_source("def twice(x):\n    return 2 * x"))
        def twice(x):
            raise RuntimeError('this function is hollow')
        >>> print(hollow_source("x = 3"))
        raise RuntimeError('this function is hollow')
    """
    try:
        tree = ast.parse(TransformerManager().transform_cell(source))
    except SyntaxError:
        return _RAISES
    emptied = _Emptied()
    tree = ast.fix_missing_locations(emptied.visit(tree))
    return ast.unparse(tree) if emptied.any else _RAISES


class _Emptied(ast.NodeTransformer):
    """Replaces the bodies of functions."""

    any = False

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.FunctionDef:
        self.any = True
        node.body = ast.parse(_RAISES).body
        return node

    def visit_AsyncFunctionDef(self, node: ast.AsyncFunctionDef) -> ast.AsyncFunctionDef:
        self.any = True
        node.body = ast.parse(_RAISES).body
        return node

    def visit_Lambda(self, node: ast.Lambda) -> ast.Lambda:
        self.any = True
        node.body = ast.parse("(_ for _ in ()).throw(RuntimeError('hollow'))", mode="eval").body
        return node
