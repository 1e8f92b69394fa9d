"""From what a pickle would make, or from a live dict, to rows: the things in a checkpoint.

Both kinds of value end as `Item`s: what it is, what it is called, and for a tensor where its
elements lie. Nothing is made here either: torch's functions that build tensors are known by name,
and what they would build is read off their arguments.
"""

import ast
from collections.abc import Iterator
from typing import Any

from pytorch_lab.checkpoints.item import PLAIN, Item, plain, spell, spell_key
from pytorch_lab.checkpoints.makers import read_object, read_tensor, type_name
from pytorch_lab.checkpoints.unrun import Global, Kept, Made, Row, Table

DEEPEST = 40
MOST_ITEMS = 100_000
MOST_LETTERS = 20_000_000  # of all paths together
LONG_LIST = 8  # from here on, of a list of plain values only the first are spelled


class Reader:
    """Makes items of values; each value once, so that a file of loops ends."""

    def __init__(self) -> None:
        self.seen: dict[int, str] = {}  # of what can hold itself: where it came first
        self.alive: list[Any] = []  # an id is only good while its object lives
        self.count = self.letters = 0

    def item(self, value: Any, name: str = "", path: str = "", depth: int = 0) -> Item:
        """The item of a value, and of all in it."""
        self.count += 1
        self.letters += len(path)
        if self.count > MOST_ITEMS or self.letters > MOST_LETTERS or depth > DEEPEST:
            return Item(name, path, "cut", "…", text="not followed further")
        if type(value) in PLAIN:  # numpy.float64 is a float as well, and not plain
            return plain(value, name, path)
        tensor = self.tensor(value, name, path)
        if tensor is not None:
            return tensor
        if id(value) in self.seen and not isinstance(value, Global):
            where = self.seen[id(value)] or "the whole"
            return Item(name, path, "same", "", value, text=f"same as {where}")
        self.seen[id(value)] = path
        self.alive.append(value)
        item = self.other(value, name, path)
        if item.kind not in ("array", "value"):
            self._fill(item, value, depth)
        return item

    def tensor(self, value: Any, name: str, path: str) -> Item | None:
        """The item of a tensor, or None."""
        if not isinstance(value, Made):
            return None
        return read_tensor(value, Item(name, path, "tensor", "Tensor", value))

    def other(self, value: Any, name: str, path: str) -> Item:
        """The item of anything else, without its kids."""
        if isinstance(value, Table):
            return Item(name, path, "dict", "dict", value)
        if isinstance(value, Row):
            return Item(name, path, "list", value.kind, value)
        if isinstance(value, Global):
            return Item(name, path, "value", "name", value, text=value.name)
        if isinstance(value, Kept):
            return Item(name, path, "value", "storage", value)
        return read_object(value, Item(name, path, "object", "", value))

    def parts(self, value: Any) -> list[tuple[str, Any]]:
        """What is in a value: the step of the path to it, and the thing."""
        if isinstance(value, Table):
            return [(f"[{_spelled(key)}]", one) for key, one in value.pairs]
        if isinstance(value, Row):
            return [(f"[{i}]", one) for i, one in enumerate(value.items)]
        if isinstance(value, Made):
            return list(_parts_of_made(value))
        return []

    def _fill(self, item: Item, value: Any, depth: int) -> None:
        parts = self.parts(value)
        if parts and item.kind == "list" and _all_plain(parts):
            item.kind, item.text = "value", _spell_row([one for _, one in parts], item.type)
            return
        for step, one in parts:
            kid = self.item(one, _name(step), item.path + step, depth + 1)
            kid.key = _key(step)
            item.kids.append(kid)
            if kid.kind == "cut":  # and so would be all that follow
                break
        if item.kind in ("dict", "list") and not item.kids:
            item.text = "empty"


def _spell_row(values: list[Any], kind: str) -> str:
    if len(values) >= LONG_LIST:
        return f"{len(values):,} values: {', '.join(map(spell, values[:4]))}, …"
    inner = ", ".join(map(spell, values))
    return f"({inner})" if kind == "tuple" else f"[{inner}]"


def _all_plain(parts: list[tuple[str, Any]]) -> bool:
    return all(type(one) in PLAIN for _, one in parts)


def _name(step: str) -> str:
    """A key as it is read in a list of names: without brackets and quotes."""
    inner = step[1:-1]
    if step.startswith("[") and inner[:1] in "'\"" and len(inner) > 1:
        return inner[1:-1]
    return step.removeprefix(".")


def _key(step: str) -> str:
    inner = step[1:-1]
    quoted = step.startswith("[") and inner[:1] in ("'", '"') and len(inner) > 1
    return ast.literal_eval(inner) if quoted else _name(step)


def _spelled(key: Any) -> str:
    return spell_key(key, type_name(key))


def _parts_of_made(made: Made) -> Iterator[tuple[str, Any]]:
    """What is in an object: its items, its attributes, else the arguments it is made from."""
    for key, value in made.pairs:
        yield f"[{_spelled(key)}]", value
    for i, value in enumerate(made.items):
        yield f"[{i}]", value
    state = made.state
    if isinstance(state, Row) and len(state.items) == 2 and isinstance(state.items[0], Table):
        state = state.items[0]  # (dict, slots)
    if isinstance(state, Table) and not made.name.startswith("collections."):
        yield from _attributes(state)
    elif state is None and not made.pairs and isinstance(made.args, Row):
        for i, value in enumerate(made.args.items):
            if not isinstance(value, Global):
                yield f".args[{i}]", value


def _attributes(state: Table) -> Iterator[tuple[str, Any]]:
    """Attributes; of an nn.Module what it registers stands under its own name."""
    names = ("_parameters", "_buffers", "_modules")
    is_module = all(isinstance(state.get(name), Table | Made) for name in names)
    for key, value in state.pairs:
        if is_module and key in names:
            for name, one in value.pairs:
                if one is not None:
                    yield f".{name}", one
        elif not (is_module and isinstance(key, str) and key.startswith("_")):
            yield f".{key}" if isinstance(key, str) else f"[{_spelled(key)}]", value
