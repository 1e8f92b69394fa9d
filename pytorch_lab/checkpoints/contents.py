"""From what a pickle would make, or from a live dict, to rows: the things in a checkpoint.

Both kinds of value end as `Item`s: what it is, what it is called, and for a tensor where its
elements lie. Nothing is made here either: torch's functions that build tensors are known by name,
and what they would build is read off their arguments.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy
import torch

from pytorch_lab.checkpoints.unrun import Global, Kept, Made, Row, Table

DEEPEST = 40
MOST_ITEMS = 100_000
LONG_LIST = 8  # from here on, of a list of plain values only the first are spelled
PLAIN = (bool, int, float, complex, str, bytes, type(None))


@dataclass(eq=False, slots=True)
class Item:
    """One thing, with the things in it."""

    name: str
    path: str = ""
    kind: str = "value"
    type: str = ""
    value: Any = None  # a plain value, or what the kids were read from
    text: str = ""
    shape: tuple[int, ...] | None = None
    stride: tuple[int, ...] = ()
    offset: int = 0
    dtype: str = ""
    device: str = ""
    requires_grad: bool = False
    storage: str = ""
    stored_bytes: int = 0
    kids: list["Item"] = field(default_factory=list)

    @property
    def bytes(self) -> int:
        """What its elements need."""
        return math.prod(self.shape) * itemsize(self.dtype) if self.shape is not None else 0

    def walk(self) -> Iterator["Item"]:
        """This and all below it, from top to bottom."""
        waiting: list[Item] = [self]
        while waiting:
            one = waiting.pop()
            yield one
            waiting.extend(one.kids[::-1])

    def kid(self, name: str) -> "Item | None":
        """The kid of a name."""
        return next((kid for kid in self.kids if kid.name == name), None)


def itemsize(dtype: str) -> int:
    """Bytes of one element.

    Example:
        >>> itemsize("float32"), itemsize("bfloat16"), itemsize("no such type")
        (4, 2, 1)
    """
    found = getattr(torch, dtype, None)
    return found.itemsize if isinstance(found, torch.dtype) else 1


class Reader:
    """Makes items of values; each value once, so that a file of loops ends."""

    def __init__(self) -> None:
        self.seen: dict[int, str] = {}  # of what can hold itself: where it came first
        self.alive: list[Any] = []  # an id is only good while its object lives
        self.count = 0

    def item(self, value: Any, name: str = "", path: str = "", depth: int = 0) -> Item:
        """The item of a value, and of all in it."""
        self.count += 1
        if self.count > MOST_ITEMS or depth > DEEPEST:
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
        return _read_tensor(value, Item(name, path, "tensor", "Tensor", value))

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
        return _made(value, Item(name, path, "object", "", value))

    def parts(self, value: Any) -> list[tuple[str, Any]]:
        """What is in a value: the step of the path to it, and the thing."""
        if isinstance(value, Table):
            return [(f"[{spell_key(key)}]", one) for key, one in value.pairs]
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
            item.kids.append(self.item(one, _name(step), item.path + step, depth + 1))
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


def spell_key(key: Any) -> str:
    """A key of a dict as it would stand between brackets."""
    return repr(key) if isinstance(key, PLAIN) else f"<{type_name(key)}>"


def type_name(value: Any) -> str:
    """What a value of a pickle is called."""
    if isinstance(value, Made):
        return value.name or "object"
    if isinstance(value, Row):
        return value.kind
    return {Table: "dict", Global: "name", Kept: "storage"}.get(type(value), type(value).__name__)


def spell(value: Any, longest: int = 48) -> str:
    """A plain value in few letters.

    Example:
        >>> spell(0.1), spell("a" * 100, 10), spell(b"abc")
        ('0.1', "'aaaaaaaa…", '3 bytes')
    """
    if isinstance(value, bytes):
        return f"{len(value):,} bytes"
    if isinstance(value, int) and value.bit_length() > 200:
        return f"a number of {value.bit_length():,} bits"
    text = repr(value[: longest + 1] if isinstance(value, str) else value)
    return text if len(text) <= longest else text[: longest - 1] + "…"


def plain(value: Any, name: str, path: str) -> Item:
    """The item of a plain value."""
    return Item(name, path, "value", type(value).__name__, value, text=spell(value))


# --- what torch, numpy and Python would make ------------------------------------------------------


def _read_tensor(made: Made, item: Item) -> Item | None:
    """Fill in what one of torch's functions would build; None if it is none of them."""
    function = made.name.rpartition(".")[2] if made.name.startswith("torch._") else ""
    if made.name == "torch.nn.parameter.Parameter" or function.startswith("_rebuild_parameter"):
        return _read_parameter(made, item)
    if function == "_rebuild_from_type_v2":
        return _read_subclass(made, item)
    if function in ("_rebuild_tensor_v2", "_rebuild_tensor", "_rebuild_tensor_v3"):
        return _read_strided(made, item, function)
    if function == "_rebuild_qtensor":
        return _read_strided(made, item, function)
    if function in ("_rebuild_sparse_tensor", "_rebuild_nested_tensor"):
        item.kids = []
        item.type = "sparse Tensor" if "sparse" in function else "nested Tensor"
        return item
    if function == "_rebuild_meta_tensor_no_storage":
        item.dtype, item.device = _dtype(made.arg(0)), "meta"
        item.shape, item.requires_grad = _sizes(made.arg(1)), bool(made.arg(3))
        return item
    if function == "_rebuild_device_tensor_from_cpu_tensor":
        return _read_moved(made, item)
    return None


def _read_parameter(made: Made, item: Item) -> Item | None:
    data = made.arg(0)
    inner = _read_tensor(data, item) if isinstance(data, Made) else None
    if inner is not None:
        inner.type, inner.requires_grad = "Parameter", bool(made.arg(1, True))
    return inner


def _read_subclass(made: Made, item: Item) -> Item | None:
    args = made.arg(2)
    inner = Made(made.arg(0), args)
    found = _read_tensor(inner, item)
    if found is not None and isinstance(made.arg(1), Global):
        found.type = made.arg(1).name.rpartition(".")[2]
    return found


def _read_moved(made: Made, item: Item) -> Item | None:
    data = made.arg(0)
    found = _read_tensor(data, item) if isinstance(data, Made) else None
    if found is not None:
        found.dtype, found.device = _dtype(made.arg(1)), str(made.arg(2))
        found.requires_grad = bool(made.arg(3))
    return found


def _read_strided(made: Made, item: Item, function: str) -> Item:
    kept, offset, size, stride = (made.arg(i) for i in range(4))
    key, dtype, device, stored = storage_of(kept)
    item.shape, item.stride = _sizes(size), _sizes(stride)
    item.offset = offset if isinstance(offset, int) else 0
    item.dtype = dtype
    if function == "_rebuild_tensor_v3":
        item.dtype = _dtype(made.arg(6)) or dtype
    place = 5 if function == "_rebuild_qtensor" else 4
    item.requires_grad = made.arg(place) is True
    item.device, item.storage, item.stored_bytes = device, key, stored
    return item


def storage_of(kept: Any) -> tuple[str, str, str, int]:
    """Key, dtype, device and bytes of what a tensor's first argument names."""
    parts = kept.id.items if isinstance(kept, Kept) and isinstance(kept.id, Row) else []
    if len(parts) < 5 or not isinstance(parts[1], Global):
        return "", "", "", 0
    dtype = _storage_dtype(parts[1].name)
    count = parts[4] if isinstance(parts[4], int) else 0
    return _text(parts[2]), dtype, _text(parts[3]), count * itemsize(dtype)


def _text(value: Any) -> str:
    return value.decode("ascii", "replace") if isinstance(value, bytes) else str(value)


def _storage_dtype(name: str) -> str:
    known = {
        "FloatStorage": "float32", "DoubleStorage": "float64", "HalfStorage": "float16",
        "BFloat16Storage": "bfloat16", "LongStorage": "int64", "IntStorage": "int32",
        "ShortStorage": "int16", "CharStorage": "int8", "ByteStorage": "uint8",
        "BoolStorage": "bool", "ComplexFloatStorage": "complex64",
        "ComplexDoubleStorage": "complex128", "QInt8Storage": "qint8", "QUInt8Storage": "quint8",
        "QInt32Storage": "qint32", "UntypedStorage": "uint8",
    }  # fmt: skip
    return known.get(name.rpartition(".")[2], "uint8")


def _dtype(value: Any) -> str:
    return value.name.removeprefix("torch.") if isinstance(value, Global) else ""


def _sizes(value: Any) -> tuple[int, ...]:
    """The sizes of a tuple or `torch.Size`."""
    while isinstance(value, Made):
        value = value.arg(0)
    items = value.items if isinstance(value, Row) else []
    return tuple(one for one in items if isinstance(one, int) and one >= 0)


def _made(made: Any, item: Item) -> Item:
    """An object: its class by name, and what is known of numpy's."""
    name = type_name(made)
    short = name.removeprefix("builtins.").removeprefix("collections.")
    item.type = short
    if name in ("collections.OrderedDict", "collections.defaultdict", "collections.Counter"):
        item.kind = "dict"
    elif name in ("builtins.set", "builtins.frozenset", "collections.deque"):
        item.kind = "list"
    elif name.endswith("multiarray.scalar"):
        _numpy_scalar(made, item)
    elif name.endswith(("multiarray._reconstruct", "numeric._frombuffer")):
        _numpy_array(made, item)
    elif name.endswith("copyreg._reconstructor") and isinstance(made.arg(0), Global):
        item.type = made.arg(0).name
    return item


def _numpy_dtype(made: Any) -> numpy.dtype | None:
    code = made.arg(0) if isinstance(made, Made) and made.name == "numpy.dtype" else None
    try:
        found = numpy.dtype(code) if isinstance(code, str) else None
    except TypeError:
        return None
    state = made.state.items if isinstance(made.state, Row) else []
    swapped = len(state) > 1 and state[1] == ">"
    return found.newbyteorder(">") if found is not None and swapped else found


def _numpy_scalar(made: Made, item: Item) -> None:
    dtype, raw = _numpy_dtype(made.arg(0)), _raw(made.arg(1))
    item.kind, item.type = "value", f"numpy.{dtype or 'scalar'}"
    if dtype is not None and dtype.kind in "biufc" and len(raw) == dtype.itemsize:
        item.value = numpy.frombuffer(raw, dtype)[0].item()
        item.text = spell(item.value)


def _raw(value: Any) -> bytes:
    """Bytes, also as protocol 2 writes them: `_codecs.encode(text, 'latin1')`."""
    if isinstance(value, Made) and value.name == "_codecs.encode" and isinstance(value.arg(0), str):
        return value.arg(0).encode("latin1", "replace")
    return value if isinstance(value, bytes) else b""


def _numpy_array(made: Made, item: Item) -> None:
    item.kind, item.type = "array", "numpy.ndarray"
    state = made.state.items if isinstance(made.state, Row) else []
    shape, dtype = (state[1], state[2]) if len(state) > 2 else (made.arg(2), made.arg(1))
    item.shape = _sizes(shape)
    item.dtype = str(_numpy_dtype(dtype) or "")
    item.device = "numpy"


def _parts_of_made(made: Made) -> Iterator[tuple[str, Any]]:
    """What is in an object: its items, its attributes, else the arguments it is made from."""
    for key, value in made.pairs:
        yield f"[{spell_key(key)}]", value
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
            yield f".{key}" if isinstance(key, str) else f"[{spell_key(key)}]", value
