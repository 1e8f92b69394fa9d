"""Which `if`, `for`, `while` or ternary is this instruction? From an offset to the source's words.

Python knows the columns of each instruction, but for a decision these are those of the condition in
one place and of the whole statement in another; the syntax tree of the file tells which.
"""

import ast
import dis
import functools
import linecache
import types
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

from pytorch_lab.graph.recording.sites import decode
from pytorch_lab.graph.schema import Site

_Span = tuple[int, int, int, int]  # first line, column, last line, one past the last column


@dataclass(frozen=True)
class Decider:
    """A place in the source where a run goes one way or another.

    Attributes:
        kind: "if", "elif", "while", "for", "ternary", "comprehension", "and", "or", "assert",
            "case", "except"; "branch" where there is no source to look into.
        site: its head, from the keyword to the end of the condition.
        condition: the words that were decided upon, without a `not` in front: `x.sum() > 0`; of a
            `for` what it goes over.
        exact: whether that is all that this instruction looked at. Python does not always say
            which part of an `a or b` it was.
    """

    kind: str
    site: Site
    condition: str
    exact: bool


class _Found(NamedTuple):
    whole: _Span
    test: _Span
    kind: str
    compound: bool  # the condition is an `and` or an `or`


def decider_at(code: types.CodeType, offset: int) -> Decider:
    """What the instruction at `offset` decides.

    Example:
        >>> code = compile("while n > 3: n -= 1", "loop.py", "exec")
        >>> offset = next(i.offset for i in dis.get_instructions(code) if "JUMP" in i.opname)
        >>> decider_at(code, offset).kind  # the file's text is not to be had
        'branch'
    """
    site = decode(code, offset)
    found = _find(site) if site.columns else None
    here = _span_of(site)
    if found is None:
        return Decider("branch", site, _text(here, site.file), False)
    within = _inside(here, found.test)
    head = (*found.whole[:2], *found.test[2:])
    words = _text(here if within else found.test, site.file)
    exact = not found.compound or (within and here != found.test)
    return Decider(found.kind, _site_at(site, head), words, exact)


def truth_of(code: types.CodeType, offset: int, went_to: int, decider: Decider) -> bool | None:
    """Whether the condition held (a `for`: whether there was another turn); None if unknown."""
    jump = next(i for i in dis.get_instructions(code) if i.offset == offset)
    jumped = went_to == jump.argval
    if jump.opname.startswith("FOR_ITER"):
        return not jumped
    if not decider.exact:
        return None
    if jump.opname.endswith("NONE"):
        is_none = jumped is not jump.opname.endswith("NOT_NONE")
        return is_none is not (" is not " in decider.condition)
    return jumped is ("IF_TRUE" in jump.opname)


def _span_of(site: Site) -> _Span:
    start, end = site.columns or (0, 0)
    return site.line, start, site.end_line, end


def _site_at(site: Site, span: _Span) -> Site:
    return site._replace(line=span[0], columns=(span[1], span[3]), end_line=span[2])


def _inside(inner: _Span, outer: _Span) -> bool:
    return outer[:2] <= inner[:2] and inner[2:] <= outer[2:]


def _text(span: _Span, file: str) -> str:
    """The source of a span on one line."""
    lines = [linecache.getline(file, n).rstrip("\n") for n in range(span[0], span[2] + 1)]
    if not any(lines):
        return ""
    lines[-1] = lines[-1][: span[3]]
    lines[0] = lines[0][span[1] :]
    return " ".join(line.strip() for line in lines)


def _find(site: Site) -> _Found | None:
    """The decider of a position: the one that it is, else the smallest whose condition it is in."""
    here = _span_of(site)
    candidates = _deciders(site.file, "".join(linecache.getlines(site.file)))
    same = [
        one
        for one in candidates
        if one.whole == here or (one.whole[:2] == here[:2] and one.kind in _STATEMENTS)
    ]
    if same:
        return min(same, key=lambda one: _size(one.whole))
    around = [c for c in candidates if c.kind not in ("and", "or") and _inside(here, c.test)]
    return min(around, key=lambda one: _size(one.test)) if around else None


_STATEMENTS = ("if", "elif", "while", "for", "assert", "case", "except")


def _size(span: _Span) -> tuple[int, int]:
    return span[2] - span[0], span[3] - span[1]


@functools.lru_cache(maxsize=32)
def _deciders(file: str, text: str) -> tuple[_Found, ...]:
    """All deciders of a file. `file` only keys the cache."""
    try:
        tree = ast.parse(text)
    except SyntaxError:  # a notebook's cell with magics is compiled from another text
        return ()
    lines = text.splitlines()
    return tuple(
        _found(whole, test, kind, lines)
        for node in ast.walk(tree)
        for whole, test, kind in _of_node(node, lines)
    )


_Node = ast.expr | ast.stmt | ast.pattern | ast.ExceptHandler


def _of_node(node: ast.AST, lines: list[str]) -> Iterator[tuple[_Node, _Node, str]]:
    if isinstance(node, ast.If):
        elif_ = lines[node.lineno - 1].encode()[node.col_offset :].startswith(b"elif")
        yield node, node.test, "elif" if elif_ else "if"
    elif isinstance(node, ast.While | ast.Assert | ast.IfExp):
        ternary = isinstance(node, ast.IfExp)
        yield node, node.test, "ternary" if ternary else type(node).__name__.lower()
    elif isinstance(node, ast.For):
        yield node, node.iter, "for"
    elif isinstance(node, ast.BoolOp):
        yield node, node, type(node.op).__name__.lower()
    elif isinstance(node, ast.ExceptHandler):
        yield node, node.type or node, "except"
    elif isinstance(node, ast.match_case):
        yield node.pattern, node.pattern, "case"
        if node.guard:
            yield node.guard, node.guard, "case"
    elif isinstance(node, ast.ListComp | ast.SetComp | ast.DictComp | ast.GeneratorExp):
        yield node, node, "comprehension"
        for generator in node.generators:
            yield from ((test, test, "comprehension") for test in generator.ifs)


def _found(whole: _Node, test: _Node, kind: str, lines: list[str]) -> _Found:
    while isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        test = test.operand  # what Python looks at
    compound = isinstance(test, ast.BoolOp)
    return _Found(_span(whole, lines), _span(test, lines), kind, compound)


def _span(node: _Node, lines: list[str]) -> _Span:
    """Python counts columns in bytes; a reader counts characters."""
    end_line = node.end_lineno or node.lineno
    start = _count(lines, node.lineno, node.col_offset)
    return node.lineno, start, end_line, _count(lines, end_line, node.end_col_offset or 0)


def _count(lines: list[str], line: int, column: int) -> int:
    text = lines[line - 1]
    return column if text.isascii() else len(text.encode()[:column].decode(errors="ignore"))
