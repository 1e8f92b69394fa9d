"""What would a call in a pickle make? Read off the arguments of the functions that are known.

torch builds a tensor from a storage, an offset, sizes and strides; numpy an array from bytes; an
OrderedDict is filled with items. None of these functions is called.
"""

from typing import Any

import numpy

from pytorch_lab.checkpoints.item import MOST, Item, itemsize, spell
from pytorch_lab.checkpoints.unrun import Global, Kept, Made, Row, Table, printable

MOST_SIZES = 64  # dimensions, as torch has it
DEEPEST = 20  # calls inside each other that would make one tensor; torch writes three


def type_name(value: Any) -> str:
    """What a value of a pickle is called."""
    if isinstance(value, Made):
        return value.name or "object"
    if isinstance(value, Row):
        return value.kind
    return {Table: "dict", Global: "name", Kept: "storage"}.get(type(value), type(value).__name__)


def read_tensor(made: Made, item: Item, depth: int = 0) -> Item | None:
    """Fill in what one of torch's functions would build; None if it is none of them."""
    if depth > DEEPEST:  # a file can hand a call its own result
        return None
    function = made.name.rpartition(".")[2] if made.name.startswith("torch._") else ""
    if made.name == "torch.nn.parameter.Parameter" or function.startswith("_rebuild_parameter"):
        return _read_parameter(made, item, depth)
    if function == "_rebuild_from_type_v2":
        return _read_subclass(made, item, depth)
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
        return _read_moved(made, item, depth)
    return None


def _read_parameter(made: Made, item: Item, depth: int) -> Item | None:
    data = made.arg(0)
    inner = read_tensor(data, item, depth + 1) if isinstance(data, Made) else None
    if inner is not None:
        inner.type, inner.requires_grad = "Parameter", bool(made.arg(1, True))
    return inner


def _read_subclass(made: Made, item: Item, depth: int) -> Item | None:
    args = made.arg(2)
    inner = Made(made.arg(0), args)
    found = read_tensor(inner, item, depth + 1)
    if found is not None and isinstance(made.arg(1), Global):
        found.type = made.arg(1).name.rpartition(".")[2]
    return found


def _read_moved(made: Made, item: Item, depth: int) -> Item | None:
    data = made.arg(0)
    found = read_tensor(data, item, depth + 1) if isinstance(data, Made) else None
    if found is not None:
        found.dtype, found.device = _dtype(made.arg(1)), str(made.arg(2))
        found.requires_grad = bool(made.arg(3))
    return found


def _read_strided(made: Made, item: Item, function: str) -> Item:
    kept, offset, size, stride = (made.arg(i) for i in range(4))
    key, dtype, device, stored = storage_of(kept)
    item.shape, item.stride = _sizes(size), _sizes(stride)
    item.offset = max(0, min(offset, MOST)) if isinstance(offset, int) else 0
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
    count = max(0, min(parts[4], MOST)) if isinstance(parts[4], int) else 0
    return _text(parts[2]), dtype, _text(parts[3]), count * itemsize(dtype)


def _text(value: Any) -> str:
    return printable(value.decode("ascii", "replace") if isinstance(value, bytes) else str(value))


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
    value = value.arg(0) if isinstance(value, Made) else value
    items = value.items[:MOST_SIZES] if isinstance(value, Row) else []
    return tuple(min(one, MOST) for one in items if isinstance(one, int) and one >= 0)


def read_object(made: Any, item: Item) -> Item:
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
    if not isinstance(made, Made) or made.name != "numpy.dtype":
        return None
    code = made.arg(0)
    try:
        found = numpy.dtype(code) if isinstance(code, str) else None
    except (TypeError, ValueError):
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
