"""What in a student's code could forge the verdict of a test that runs in the same kernel.

Only asked for tests that judge from inside (`foreign`); where values are compared outside, code may
do all of this. Nothing here is proof: a mark is withheld until a person has looked.
"""

import ast
import builtins
from collections.abc import Iterable, Iterator

from IPython.core.inputtransformer2 import TransformerManager

# By these the shell, the interpreter or somebody else's objects can be changed.
_AS_NAMES = (
    "get_ipython builtins __builtins__ __import__ __main__ exec eval compile setattr delattr "
    "globals vars gc inspect atexit ctypes importlib linecache signal threading multiprocessing "
    "subprocess pytorch_lab AssertionError"
)
_AS_PARTS = (
    "InteractiveShell ast_transformers input_transformers_post showtraceback set_custom_exc "
    "displayhook excepthook __eq__ __ne__ __getattribute__ __builtins__ __globals__ __subclasses__ "
    "__self__ __code__ __closure__ settrace setprofile _getframe f_globals f_back tb_frame "
    "sys.modules"
)
_NAMES, _PARTS = frozenset(_AS_NAMES.split()), frozenset(_AS_PARTS.split())


def suspicion(sources: Iterable[str], checks: Iterable[str], given: Iterable[str]) -> str:
    r"""The first thing in a student's cells that could forge a verdict; "" if there is none.

    Args:
        sources: the student's cells.
        checks: the tests that will judge them.
        given: all cells of the assignment; what they use may be used.

    Example:
        >>> suspicion(["def add(a, b):\n    return a + b"], ["assert add(1, 2) == 3"], [])
        ''
        >>> suspicion(["import numpy as np\nnp.allclose = lambda *a: True"], [], [])
        'changes `np.allclose`'
        >>> suspicion(["all = lambda x: True"], ["assert all([add(1, 2) == 3])"], [])
        'redefines `all`, which the test uses'
    """
    allowed, theirs = set(), set(vars(builtins))
    for tree in _trees(given):
        allowed |= set(_powers(tree))
        theirs |= set(_imported(tree))
    used = {name for tree in _trees(checks) for name in _looked_up(tree)} & theirs
    for tree in _trees(sources):
        for word in _powers(tree):
            if word not in allowed:
                return f"uses `{word}`"
        for changed in _changed(tree, theirs | set(_imported(tree))):
            return f"changes `{changed}`"
        for name in _bound(tree):
            if name in used:
                return f"redefines `{name}`, which the test uses"
    return ""


def _trees(sources: Iterable[str]) -> Iterator[ast.AST]:
    """The cells that are Python; one that is not does nothing when it is run."""
    for source in sources:
        # A magic is a call of get_ipython(); what a student may do with it is little.
        bare = "\n".join(
            "" if line.lstrip().startswith(("%", "!")) else line for line in source.split("\n")
        )
        try:
            yield ast.parse(TransformerManager().transform_cell(bare))
        except (SyntaxError, ValueError, RecursionError):
            continue


def _powers(tree: ast.AST) -> Iterator[str]:
    """Every word of a cell that gives it power over the shell or the test."""
    for node in ast.walk(tree):
        names, parts = [], []
        if isinstance(node, ast.Name):
            names = [node.id]
        elif isinstance(node, ast.Attribute):
            parts = [node.attr, ast.unparse(node)]
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            parts = [node.name]
        elif isinstance(node, ast.Import | ast.ImportFrom):
            module = f"{node.module}." if isinstance(node, ast.ImportFrom) else ""
            whole = [f"{module}{alias.name}" for alias in node.names]
            names, parts = [name.split(".")[0] for name in whole], [*whole]
            parts += [name.split(".")[-1] for name in whole]
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            parts = [node.value]
        yield from (word for word in names if word in _NAMES | _PARTS)
        yield from (word for word in parts if word in _PARTS)


def _changed(tree: ast.AST, theirs: set[str]) -> Iterator[str]:
    """The attributes that a cell sets on somebody else's objects, and classes it exchanges."""
    for node in ast.walk(tree):
        if not isinstance(node, ast.Attribute) or isinstance(node.ctx, ast.Load):
            continue
        root = node.value
        while isinstance(root, ast.Attribute):
            root = root.value
        if node.attr == "__class__" or (isinstance(root, ast.Name) and root.id in theirs):
            yield ast.unparse(node)


def _imported(tree: ast.AST) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import | ast.ImportFrom):
            yield from (alias.asname or alias.name.split(".")[0] for alias in node.names)


def _looked_up(tree: ast.AST) -> set[str]:
    """The names that a test takes from outside of itself."""
    names = [node for node in ast.walk(tree) if isinstance(node, ast.Name)]
    made = {node.id for node in names if isinstance(node.ctx, ast.Store)}
    return {node.id for node in names if isinstance(node.ctx, ast.Load)} - made


def _bound(tree: ast.AST, *, inside: bool = False) -> Iterator[str]:
    """The names that a cell binds for all cells: at its top, or declared global."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.Global):
            yield from node.names
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            if not inside:
                yield node.name
            yield from _bound(node, inside=True)
        elif isinstance(node, ast.Lambda | ast.ListComp | ast.SetComp | ast.DictComp):
            continue
        else:
            if not inside and isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
                yield node.id
            yield from _bound(node, inside=inside)
