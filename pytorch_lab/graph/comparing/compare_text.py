"""A comparison in 80 columns: the line that made the difference, counts, ops side by side."""

import linecache
from collections import Counter
from collections.abc import Iterator
from typing import TYPE_CHECKING

from pytorch_lab.graph.schema import Op, Site
from pytorch_lab.words import WIDTH, clip, columns, count, pad, wrap

if TYPE_CHECKING:
    from pytorch_lab.graph.comparing.compare import Branch, GraphDiff

_CELL = 38  # of one run, side by side
_CONTEXT = 1  # ops in common that are shown before and after a difference
_MOST_ROWS = 12  # of one difference
_MOST_BRANCHES = 5
_MOST_LINES = 40  # of all differences together


def diff_text(diff: "GraphDiff") -> str:
    """The text of `str(diff)`."""
    lines = [_counts(diff)]
    there = Counter(branch.site for branch in diff.branches)
    first = list({branch.site: branch for branch in reversed(diff.branches)}.values())[::-1]
    for place, branch in enumerate(first[:_MOST_BRANCHES]):
        again = there[branch.site] - 1
        lines += ["", *_branch("They part" if place == 0 else "and", branch, again)]
    if len(first) > _MOST_BRANCHES:
        lines += ["", f"and at {count(len(first) - _MOST_BRANCHES, 'more line')}"]
    quiet = list(dict.fromkeys((b.kind, b.site.where) for b in diff.quiet))
    if quiet:
        places = ", ".join(f"{kind} at {where}" for kind, where in quiet[:_MOST_BRANCHES])
        lines += [
            "",
            *wrap(f"Decided differently, without ops of its own: {places}."),
        ]
    if diff.only_a or diff.only_b:
        lines += ["", *_table(diff)]
    for note in diff.notes:
        lines += ["", *wrap(f"Note: {note}")]
    return "\n".join(lines)


def _counts(diff: "GraphDiff") -> str:
    if not diff.only_a and not diff.only_b:
        many = f"{count(len(diff.ops), 'op')} {'is' if len(diff.ops) == 1 else 'are'}"
        head = f"{clip(diff.a.function, 30)}: {many} the same in both runs"
    else:
        head = (
            f"{clip(diff.a.function, 30)}: {count(len(diff.ops), 'op')} in common, "
            f"{len(diff.only_a)} only in A, {len(diff.only_b)} only in B"
        )
    nodes = (
        f"autograd nodes: {len(diff.nodes)} in common, {len(diff.nodes_only_a)} only in A, "
        f"{len(diff.nodes_only_b)} only in B"
    )
    return f"{head}\n{nodes}"


def _branch(opening: str, branch: "Branch", again: int) -> Iterator[str]:
    name = f"`{branch.kind}`" if branch.kind in _KEYWORDS else _WORDS.get(branch.kind, branch.kind)
    where = branch.site.where or "an unknown line"
    more = f" There they part {count(again, 'more time')}." if again else ""
    yield from wrap(f"{opening} at {where}, {name}: {branch.says}.{more}")
    yield from _source(branch.site)


_KEYWORDS = ("if", "elif", "while", "for", "and", "or", "assert", "case", "except")
_WORDS = {
    "ternary": "the `if` of an expression",
    "comprehension": "a comprehension",
    "raise": "an exception",
    "call": "a call",
    "branch": "a decision",
    "inside": "a call",
}


def _source(site: Site) -> Iterator[str]:
    """The line, and under it what decided."""
    text = linecache.getline(site.file, site.line).rstrip("\n").expandtabs(1)
    if not text.strip():
        return
    indent = len(text) - len(text.lstrip())
    head = f"  {site.line} | "
    room = WIDTH - columns(head)
    yield head + clip(text[indent:], room)
    if site.columns is None:
        return
    start = site.columns[0] - indent
    end = (site.columns[1] if site.end_line == site.line else len(text)) - indent
    if 0 <= start < min(end, room):
        yield f"{'|':>{len(head) - 1}} {' ' * start}{'^' * (min(end, room) - start)}"


def _table(diff: "GraphDiff") -> Iterator[str]:
    """The ops of both runs, what they share folded."""
    yield f"{'A':{_CELL}}    B"
    rows = list(_rows(diff))
    shown = _shown(rows)
    hidden = 0
    for place, (one, two) in enumerate(rows):
        if place not in shown:
            hidden += 1
            continue
        if hidden:
            yield f"  ... {hidden} more"
        hidden = 0
        mark = "=" if one is not None and two is not None else "<" if two is None else ">"
        yield f"{pad(_cell(one), _CELL)} {mark}  {_cell(two)}".rstrip()
    if hidden:
        yield f"  ... {hidden} more"


def _shown(rows: list[tuple[Op | None, Op | None]]) -> set[int]:
    """The first rows of each difference, with a row before and after, up to a limit."""
    shown: set[int] = set()
    count = 0
    for place, (one, two) in enumerate(rows):
        if one is not None and two is not None:
            count = 0
            continue
        count += 1
        if count <= _MOST_ROWS:
            around = range(max(place - _CONTEXT, 0), min(place + _CONTEXT + 1, len(rows)))
            if len(shown.union(around)) > _MOST_LINES:
                break
            shown.update(around)
    return shown


def _rows(diff: "GraphDiff") -> Iterator[tuple[Op | None, Op | None]]:
    next_a = next_b = 0
    for i, j in [*diff.ops, (len(diff.a.ops), len(diff.b.ops))]:
        yield from ((op, None) for op in diff.a.ops[next_a:i])
        yield from ((None, op) for op in diff.b.ops[next_b:j])
        if i < len(diff.a.ops):
            yield diff.a.ops[i], diff.b.ops[j]
        next_a, next_b = i + 1, j + 1


def _cell(op: Op | None) -> str:
    if op is None:
        return ""
    where = clip(op.site.where, 20)
    return f"{clip(op.name, _CELL - 1 - columns(where))} {where}".rstrip()
