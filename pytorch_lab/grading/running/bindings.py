"""Which names a cell binds, imports, calls and looks up."""

import ast
from collections.abc import Iterator


def root(node: ast.AST) -> str:
    """The name that a chain of attributes and items begins with."""
    while isinstance(node, ast.Attribute | ast.Subscript):
        node = node.value
    return node.id if isinstance(node, ast.Name) else ""


def origins(tree: ast.AST) -> Iterator[tuple[str, str]]:
    """The names that imports bind, and what each of them is."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                root = alias.name.split(".")[0]
                yield (alias.asname, alias.name) if alias.asname else (root, root)
        elif isinstance(node, ast.ImportFrom):
            for alias in node.names:
                yield alias.asname or alias.name, f"{node.module}.{alias.name}"


def called(tree: ast.AST) -> set[str]:
    """The attributes that a test calls."""
    calls = [node.func for node in ast.walk(tree) if isinstance(node, ast.Call)]
    return {called.attr for called in calls if isinstance(called, ast.Attribute)}


def members(tree: ast.AST) -> Iterator[str]:
    """The attributes that a cell defines in classes or sets."""
    for node in ast.walk(tree):
        if isinstance(node, ast.ClassDef):
            yield from members_of(node)
        elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
            yield node.attr


def members_of(node: ast.ClassDef) -> Iterator[str]:
    """The methods and attributes that a class defines."""
    for statement in node.body:
        yield from bound(ast.Module([statement], []))
        if isinstance(statement, ast.AnnAssign) and isinstance(statement.target, ast.Name):
            yield statement.target.id


def defined(tree: ast.AST) -> Iterator[str]:
    """The functions and classes that a cell defines at its top."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield node.name


def looked_up(tree: ast.AST) -> set[str]:
    """The names that a test takes from outside of itself."""
    names = [node for node in ast.walk(tree) if isinstance(node, ast.Name)]
    made = {node.id for node in names if isinstance(node.ctx, ast.Store)}
    return {node.id for node in names if isinstance(node.ctx, ast.Load)} - made


def bound(tree: ast.AST, *, inside: bool = False) -> Iterator[str]:
    """The names that a cell binds for all cells: at its top, or declared global."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.Global):
            yield from node.names
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            if not inside:
                yield node.name
            yield from bound(node, inside=True)
        elif isinstance(node, ast.Lambda):
            continue
        elif isinstance(node, ast.ListComp | ast.SetComp | ast.DictComp | ast.GeneratorExp):
            walrus = [one for one in ast.walk(node) if isinstance(one, ast.NamedExpr)]
            yield from (one.target.id for one in walrus if not inside)
        else:
            yield from () if inside else _bound_by(node)
            yield from bound(node, inside=inside)


def _bound_by(node: ast.AST) -> Iterator[str]:
    """The names that one piece of a cell binds."""
    if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
        yield node.id
    elif isinstance(node, ast.Import | ast.ImportFrom):
        yield from (name for name, _ in origins(node))
    elif isinstance(node, ast.ExceptHandler | ast.MatchAs | ast.MatchStar) and node.name:
        yield node.name
