"""What in a student's code could forge the verdict of a test that runs in the same kernel.

Only asked for tests that judge from inside (`foreign`); where values are compared outside, code may
do all of this. Nothing here is proof: a mark is withheld until a person has looked. So it asks for
a person too often rather than too seldom: a module, a special method or a computed name that is not
known to be harmless is enough, unless the assignment itself uses it.

| asked of the student's cells                                                | finder        |
| --------------------------------------------------------------------------- | ------------- |
| do they import only what cannot reach the shell or the tests                | `imports`    |
| is there a word of power: the shell, frames, `__dict__`, a special method   | `words`      |
| is one of `type`, `getattr`, `vars` called in another than its plain form   | `_careful`    |
| is a module handed on, so that nobody sees what happens to it               | `_handed_on`  |
| is somebody else's object changed, or a method made that the tests call     | `_changed`    |
| is a name bound anew that the tests take from outside                       | `_rebound`    |
"""

import ast
import builtins
from collections.abc import Iterable, Iterator, Sequence

from pytorch_lab.grading.running.bindings import (
    bound,
    called,
    defined,
    looked_up,
    members,
    members_of,
    origins,
    root,
)
from pytorch_lab.grading.running.powers import (
    NAMES,
    PARTS,
    SHOWN_MODULES,
    SPECIAL,
    SUBMODULES,
    imports,
    words,
)
from pytorch_lab.grading.running.python_cells import parsed

_SHOWN_BY = ("print", "help", "dir")
_TORCH_MODULES = ("torch.nn", "torch.nn.functional", "torch.optim", "torch.linalg", "torch.testing")


def suspicion(
    sources: Sequence[str], checks: Iterable[str], given: Iterable[str], answers: Iterable[str] = ()
) -> str:
    r"""The first thing in a student's cells that could forge a verdict; "" if there is none.

    Args:
        sources: the student's cells.
        checks: the tests that will judge them.
        given: the assignment's other cells but for the answers; what they use may be used.
        answers: its own answers.

    Example:
        >>> suspicion(["def add(a, b):\n    return a + b"], ["assert add(1, 2) == 3"], [])
        ''
        >>> suspicion(["import numpy as np\nnp.allclose = lambda *a: True"], [], [])
        'changes `np.allclose`'
        >>> suspicion(["all = lambda x: True"], ["assert all([add(1, 2) == 3])"], [])
        'redefines `all`, which the test uses'
    """
    scan = Scan(sources, checks, given, answers)
    return next(filter(None, map(scan, sources)), "")


class Scan:
    """Looks through a student's cells, which may work together, one by one.

    Args: as of `suspicion`.
    """

    def __init__(
        self,
        sources: Iterable[str],
        checks: Iterable[str],
        given: Iterable[str],
        answers: Iterable[str] = (),
    ) -> None:
        tests, open_, ours = trees(checks), trees(given), trees(answers)
        students = trees(sources)
        self.origins = {pair for tree in [*open_, *ours, *tests] for pair in origins(tree)}
        self.modules = {
            name
            for tree in [*open_, *ours, *tests, *students]
            for name, origin in origins(tree)
            if "." not in origin or name in SUBMODULES or origin in _TORCH_MODULES
        }
        self.theirs = set(vars(builtins)) | {name for name, _ in self.origins}
        self.theirs |= {name for tree in students for name, _ in origins(tree)}
        self._follow_aliases(students)
        helpers = {name for tree in [*open_, *tests] for name in defined(tree)}
        helpers -= {name for tree in ours for name in bound(tree)}
        outside = set(vars(builtins)) | {name for name, _ in self.origins} | helpers
        self.used = {name for tree in tests for name in looked_up(tree)} & outside
        self.called = {name for tree in tests for name in called(tree)}
        self.called -= {name for tree in [*open_, *ours] for name in members(tree)}
        self.allowed: set[str] = set()
        self.allowed = {found for tree in [*open_, *ours] for found in self._found(tree)}

    def __call__(self, source: str) -> str:
        """The first thing in a cell; "" if there is none."""
        tree = parsed(source)
        if isinstance(tree, str):
            return tree
        found = [one for one in self._found(tree) if one not in self.allowed]
        return next(iter([*found, *self._rebound(tree)]), "")

    def _found(self, tree: ast.AST) -> Iterator[str]:
        yield from imports(tree)
        yield from words(tree)
        yield from self._careful(tree)
        yield from self._changed(tree)
        yield from self._handed_on(tree)

    def _follow_aliases(self, trees: Sequence[ast.AST]) -> None:
        """Names that a student gives to others' objects: `t = torch` makes `t` theirs."""
        before = -1
        while before != len(self.theirs):
            before = len(self.theirs)
            for node in (node for tree in trees for node in ast.walk(tree)):
                if isinstance(node, ast.Assign) and root(node.value) in self.theirs:
                    names = {one.id for one in node.targets if isinstance(one, ast.Name)}
                    self.theirs |= names
                    if isinstance(node.value, ast.Name) and node.value.id in self.modules:
                        self.modules |= names

    def _careful(self, tree: ast.AST) -> Iterator[str]:
        """`type`, `getattr` and `vars` where they can do more than look at one known thing."""
        plain: set[int] = set()
        for call in (node for node in ast.walk(tree) if isinstance(node, ast.Call)):
            if isinstance(call.func, ast.Name):
                if self._is_plain(call.func.id, call):
                    plain.add(id(call.func))
                if call.func.id in ("isinstance", "issubclass"):
                    plain |= {id(inner) for one in call.args for inner in ast.walk(one)}
        for node in ast.walk(tree):
            if not isinstance(node, ast.Name) or not isinstance(node.ctx, ast.Load):
                continue
            if node.id in ("type", "getattr", "vars") and id(node) not in plain:
                yield f"uses `{node.id}` in an unusual way"

    def _is_plain(self, name: str, call: ast.Call) -> bool:
        first = call.args[0] if call.args else None
        if name == "type":
            return len(call.args) == 1
        if name == "vars":
            return isinstance(first, ast.Name) and first.id not in self.theirs
        named = call.args[1] if name == "getattr" and len(call.args) > 1 else None
        if isinstance(named, ast.JoinedStr) and named.values:  # f"layer{n}"
            named = named.values[0]
        if not isinstance(named, ast.Constant) or not isinstance(named.value, str):
            return False
        return named.value[:1].isalpha() and not {named.value} & (PARTS | NAMES | SHOWN_MODULES)

    def _changed(self, tree: ast.AST) -> Iterator[str]:
        """Attributes set on somebody else's objects, and what the tests would call in their place.

        A switch of a submodule, such as `torch.backends.cudnn.benchmark = True`, is none of these.
        """
        constant = {
            id(target)
            for node in ast.walk(tree)
            if isinstance(node, ast.Assign) and isinstance(node.value, ast.Constant)
            for target in node.targets
        }
        for node in ast.walk(tree):
            if isinstance(node, ast.ClassDef):
                for name in members_of(node):
                    if name in self.called:
                        yield f"defines `{name}`, which the test calls"
            if not isinstance(node, ast.Attribute) or isinstance(node.ctx, ast.Load):
                continue
            chain = ast.unparse(node)
            switch = id(node) in constant and chain.count(".") > 2
            classes = "__class__" in chain or "type(" in chain
            if classes or (root(node) in self.theirs and not switch):
                yield f"changes `{chain}`"
            elif node.attr in self.called and id(node) not in constant:
                yield f"changes `{chain}`, which the test calls"

    def _handed_on(self, tree: ast.AST) -> Iterator[str]:
        """Modules in any place but before a dot, and what modules show of other modules."""
        open_ = _in_plain_sight(tree)
        for node in ast.walk(tree):
            if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load):
                if node.id in self.modules and id(node) not in open_:
                    yield f"hands `{node.id}` on"
            elif isinstance(node, ast.Attribute) and root(node) in self.theirs:
                hidden = node.attr.startswith("_") and node.attr not in SPECIAL
                if hidden or node.attr in SHOWN_MODULES:
                    yield f"uses `{ast.unparse(node)}`"
                elif node.attr in SUBMODULES and id(node) not in open_:
                    yield f"hands `{ast.unparse(node)}` on"

    def _rebound(self, tree: ast.AST) -> Iterator[str]:
        """Names that the tests take from outside of themselves."""
        imported = dict(origins(tree))
        for name in bound(tree):
            if name not in self.used:
                continue
            if name not in imported or (name, imported[name]) not in self.origins:
                yield f"redefines `{name}`, which the test uses"


def trees(sources: Iterable[str]) -> list[ast.AST]:
    """The cells that are Python."""
    return [tree for source in sources if isinstance(tree := parsed(source), ast.AST)]


def _in_plain_sight(tree: ast.AST) -> set[int]:
    """Which expressions stand before a dot, are called, shown, or given a name."""
    found: set[int] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute | ast.Assign):
            found.add(id(node.value))
        elif isinstance(node, ast.Call):
            found.add(id(node.func))
            if isinstance(node.func, ast.Name) and node.func.id in _SHOWN_BY:
                found |= {id(one) for one in node.args}
    return found
