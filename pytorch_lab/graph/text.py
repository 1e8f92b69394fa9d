"""A record as text that reads well at 80 columns and is the same in every run.

One line for each op: its number, its name, the shape it gave, what it read, the line that called it
and the bytes that it keeps for backward. Where a loop or equal blocks repeat the same lines, they
stand there once, with `×12` above them. A mark says what is special:

    !  writes in place          ~  a view: shares memory with what it read
    ×  no graph from here on    ✗  it raised    ▸  runs inside the op above
"""

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from pytorch_lab.graph.graph_record import GraphRecord
from pytorch_lab.graph.schema import Op, Value
from pytorch_lab.graph.walking.memory import kept_bytes
from pytorch_lab.modules.text import spell_bytes
from pytorch_lab.words import WIDTH, clip, columns, count, pad, wrap

NUMBER, NAME, SHAPE, READS, LINE, KEEPS = 5, 20, 15, 19, 13, 8  # widths of the columns
MOST_LINES = 60  # of ops
LONGEST_PERIOD = 200  # lines of a loop's body
LEAST_TIMES = 3


class _Line(NamedTuple):
    key: tuple[object, ...]  # equal for lines that say the same
    text: str


def render(record: GraphRecord) -> str:
    """The ops, and what the graph is.

    Example:
        >>> import torch
        >>> from pytorch_lab.graph import record
        >>> x = torch.ones(3, requires_grad=True)
        >>> print(render(record(lambda: (x * 2).relu())).splitlines()[0])
        <lambda>: 2 ops, 3 nodes
    """
    sizes = f": {count(len(record.ops), 'op')}, {count(len(record.nodes), 'node')}"
    lines = [clip(record.function, WIDTH - columns(sizes)) + sizes]
    if record.ops:
        lines += [_row("#", "op", "result", "reads", "line", "keeps"), "─" * WIDTH]
        lines += _shorten(list(_folded(list(_lines(record)))))
        lines.append("─" * WIDTH)
    lines += _totals(record)
    return "\n".join(line.rstrip() for line in lines)


def _lines(record: GraphRecord) -> Iterator[_Line]:
    module = None
    for op in record.ops:
        if op.module != module and op.call is not None:
            call = record.calls[op.call]
            path = op.module or record.function
            yield _Line(("call", _pattern(path), call.type), clip(f"{path}: {call.type}", WIDTH))
        elif op.module != module and module:
            yield _Line(("out",), clip(record.function, WIDTH))
        module = op.module
        yield _op_line(record, op)


def _op_line(record: GraphRecord, op: Op) -> _Line:
    results = [record.values[place] for place in op.outputs]
    shape = " ".join(str(value.shape).replace(" ", "") for value in results[:2])
    if len(results) > 2:
        shape = f"{len(results)} × {str(results[0].shape).replace(' ', '')}"
    name = f"{'▸ ' * _depth(record, op)}{op.name}{_mark(op, results)}"
    reads = " ".join(_spell(record.values[place]) for place in op.inputs)
    keeps = spell_bytes(op.saved_bytes) if op.saved_bytes else ""
    where = op.site.where.removeprefix("cell ")  # the head of the column says what it is
    text = _row(str(op.index), name, shape, reads, where, keeps)
    return _Line((name, shape, op.site, _pattern(op.module)), text)


def _depth(record: GraphRecord, op: Op) -> int:
    depth = 0
    while op.inside is not None and depth < 3:
        op, depth = record.ops[op.inside], depth + 1
    return depth


def _mark(op: Op, results: Sequence[Value]) -> str:
    if op.kind in ("detach", "exit") or op.grad_mode != "grad":
        return " ×"
    if op.kind == "op" and not results:
        return " ✗"
    if op.in_place:
        return " !"
    return " ~" if any(value.view_of is not None for value in results) else ""


def _spell(value: Value) -> str:
    """A value by its name, else by the op that made it."""
    if value.name and value.kind != "result":
        return value.name.rpartition(".")[2]
    return f"#{value.op}" if value.op is not None else value.kind


def _pattern(path: str) -> str:
    """A path with its numbers left out: equal for the blocks of a stack."""
    return re.sub(r"\d+", "", path)


def _row(number: str, name: str, shape: str, reads: str, line: str, keeps: str) -> str:
    room = LINE + KEEPS - len(keeps)  # `1023.9 KiB` takes some of the line's
    cells = (
        f"{number:>{NUMBER - 1}} ",
        pad(clip(name, NAME - 1), NAME),
        pad(clip(shape, SHAPE - 1), SHAPE),
        pad(clip(reads, READS - 1), READS),
        pad(clip(line, min(LINE, room) - 1, end=True), room),
        keeps,
    )
    return "".join(cells)


def _folded(lines: Sequence[_Line]) -> Iterator[str]:
    """Lines that repeat, once."""
    numbers: dict[tuple[object, ...], int] = {}
    keys = [numbers.setdefault(line.key, len(numbers)) for line in lines]
    here = 0
    while here < len(lines):
        period, times = _repeats(keys, here)
        if times >= LEAST_TIMES:
            body = count(period, "line")
            yield (
                f"     ×{times}: the next {body}" if period > 1 else f"     ×{times}: the next line"
            )
            yield from (line.text for line in lines[here : here + period])
            here += period * times
        else:
            yield lines[here].text
            here += 1


def _repeats(keys: Sequence[int], start: int) -> tuple[int, int]:
    """The shortest run of keys that comes again at once, and how often it is there."""
    first = keys[start]
    for period in range(1, min(LONGEST_PERIOD, (len(keys) - start) // LEAST_TIMES) + 1):
        if keys[start + period] != first:
            continue
        body = keys[start : start + period]
        times = 1
        while keys[start + period * times : start + period * (times + 1)] == body:
            times += 1
        if times >= LEAST_TIMES:
            return period, times
    return 1, 1


def _shorten(lines: list[str]) -> list[str]:
    if len(lines) <= MOST_LINES:
        return lines
    tail = MOST_LINES // 4
    head = MOST_LINES - tail - 1
    left = count(len(lines) - head - tail, "line")
    return [*lines[:head], f"     … {left} left out …", *lines[-tail:]]


def _totals(record: GraphRecord) -> Iterator[str]:
    leaves = [node.parameter or "unnamed" for node in record.nodes if node.kind == "accumulate"]
    if record.nodes:
        kept = spell_bytes(kept_bytes(record.nodes))
        yield from _fact("Graph", f"{count(len(record.nodes), 'node')}, {kept} kept")
        yield from _fact("Leaves", ", ".join(_several(leaves, 8)) or "none")
    else:
        yield from _fact("Graph", "none")
    if record.backward_order:
        added = [how for _, how in record.accumulated].count("added")
        text = f"{count(len(record.backward_order), 'node')} ran"
        if record.accumulated:
            text += f", {count(len(record.accumulated), 'gradient')} accumulated"
            text += f", {added} of them added to what was there" if added else ""
        yield from _fact("Backward", text)
    for note in record.notes:
        yield from _fact("Note", note)
    if record.error:
        yield from _fact("Error", record.error)


def _several(names: Sequence[str], most: int) -> list[str]:
    more = len(names) - most
    return [*names[:most], *([f"{more} more"] if more > 0 else [])]


def _fact(head: str, text: str) -> list[str]:
    return wrap(text, f"{head:10}", " " * 10)
