"""A value as plain JSON: what crosses from the kernel that ran the learner's code to its judge.

    >>> encode(0.5)
    {'is': 'float', 'value': 0.5}
    >>> encode([True, None])
    {'is': 'list', 'items': [{'is': 'bool', 'value': True}, {'is': 'None'}]}

Everything is tagged with its type, so that `1`, `1.0` and `True` stay apart in any JSON library.
Only exact types are taken: an object whose class is made up can say of itself what it likes
(`__eq__`, `__torch_function__`, `tolist`), so it is refused by name. A tensor's numbers are read
from a fresh copy of the base class `torch.Tensor`, through the methods of that class.

| value                               | what is kept                                              |
| ----------------------------------- | --------------------------------------------------------- |
| tensor, `nn.Parameter`, `nn.Buffer` | shape, dtype, device type, layout, requires_grad, numbers |
| `None` `bool` `int` `float` `complex` `str` | type and value                                    |
| `list` `tuple` `torch.Size` `dict`  | type and parts; an `OrderedDict` is a dict                |
| `torch.dtype` `torch.device`        | its name; of a device only the type                       |

`class` notes whether a tensor is a Parameter. It is not compared, because `p + 0` and `p` hold the
same numbers; who wants to know asks for it: `reveal("registered", isinstance(x, nn.Parameter))`.
"""

import math
from collections import OrderedDict
from typing import Any

from pytorch_lab.errors import UsageError

MAX_PARTS = 10_000  # elements, list items and characters of one value, all together
MAX_DEPTH = 20
_SAFE_INT = 2**53  # beyond, some JSON libraries round or refuse
_MAX_BITS = 1024

FLOATS = ("float16", "bfloat16", "float32", "float64")
COMPLEX = ("complex32", "complex64", "complex128")
INTEGERS = ("uint8", "uint16", "uint32", "uint64", "int8", "int16", "int32", "int64")


class _Encoder:
    """One walk through a value; counts its parts."""

    def __init__(self) -> None:
        self.parts = 0

    def count(self, parts: int) -> None:
        self.parts += parts
        if self.parts > MAX_PARTS:
            raise UsageError(
                f"expected a value of at most {MAX_PARTS:,} numbers, got at least {self.parts:,}; "
                "reveal less of it: a slice, a sum, or its shape."
            )

    def encode(self, value: Any, depth: int = 0) -> dict[str, Any]:
        """The tagged form of one value; `depth` counts the containers around it."""
        if depth > MAX_DEPTH:
            raise UsageError(
                f"expected at most {MAX_DEPTH} containers inside each other, got more; "
                "does a list hold itself?"
            )
        self.count(1)
        kind = type(value)
        if value is None:
            return {"is": "None"}
        if kind is bool:
            return {"is": "bool", "value": value}
        if kind is str:
            self.count(len(value))
            # A lone surrogate is legal in Python and in no message.
            return {"is": "str", "value": value.encode("utf-8", "backslashreplace").decode()}
        if kind in (int, float, complex):
            return {"is": kind.__name__, "value": _number(value)}
        if kind in (list, tuple):
            return {"is": kind.__name__, "items": [self.encode(x, depth + 1) for x in value]}
        if kind in (dict, OrderedDict):
            return {
                "is": "dict",
                "items": [[self.key(k), self.encode(v, depth + 1)] for k, v in value.items()],
            }
        return self.torch(value)

    def key(self, key: Any) -> dict[str, Any]:
        """The tagged form of a dict's key."""
        if type(key) not in (str, int):
            raise UsageError(
                f"expected a dict with keys of type str or int, got {_name(type(key))}."
            )
        return self.encode(key)

    def torch(self, value: Any) -> dict[str, Any]:
        """The tagged form of what only torch knows."""
        import torch

        kind = type(value)
        if kind is torch.Size:
            return {"is": "Size", "items": [self.encode(int(x), 1) for x in value]}
        if kind is torch.dtype:
            return {"is": "dtype", "value": str(value).removeprefix("torch.")}
        if kind is torch.device:
            return {"is": "device", "value": value.type}
        if kind in (torch.Tensor, torch.nn.Parameter, torch.nn.Buffer):
            return self.tensor(value)
        raise UsageError(f"expected {_KNOWN}, got {_name(kind)}{_advice(value)}.")

    def tensor(self, value: Any) -> dict[str, Any]:
        """The tagged form of a tensor."""
        import torch

        dtype = str(value.dtype).removeprefix("torch.")
        if dtype not in (*FLOATS, *COMPLEX, *INTEGERS, "bool"):
            raise UsageError(
                f"expected a tensor of a common dtype, got {dtype}; "
                "convert it with .to(torch.float32)."
            )
        if value.is_nested or value.device.type == "meta":
            what = "a nested one" if value.is_nested else "one on the meta device"
            raise UsageError(f"expected a tensor with a shape and numbers, got {what}.")
        # Through the class: an attribute of the object may stand in front of a method.
        self.count(torch.Tensor.numel(value))
        layout = str(value.layout).removeprefix("torch.")
        try:
            plain = torch.Tensor.detach(value).cpu().clone()
            plain = plain if layout == "strided" else plain.to_dense()
            values = _values(plain, dtype)
        except RuntimeError as error:
            raise UsageError(
                f"expected a tensor whose numbers can be read, got {str(error)[:80]!r}."
            ) from error
        return {
            "is": "tensor",
            "class": type(value).__name__,
            "shape": list(plain.shape),
            "dtype": dtype,
            "device": value.device.type,
            "layout": layout,
            "requires_grad": value.requires_grad,
            "values": values,
        }


def encode(value: Any) -> dict[str, Any]:
    """A value as tagged JSON.

    Example:
        >>> import torch
        >>> encode(torch.tensor([0.5, float("nan")]))["values"]
        [0.5, 'nan']

    Args:
        value: a tensor, number, string, bool, None, dtype or device, or a list, tuple or dict
            of them.

    Raises:
        UsageError: `value` holds something else, or more than 10,000 parts.
    """
    return _Encoder().encode(value)


_KNOWN = (
    "a tensor, number, string, bool, None, torch.dtype, torch.Size or torch.device, "
    "or a list, tuple or dict of these"
)


def _name(kind: type) -> str:
    home = kind.__module__
    return kind.__qualname__ if home in ("builtins", "__main__") else f"{home}.{kind.__qualname__}"


def _advice(value: Any) -> str:
    """What to do about a type that people often return."""
    kind = type(value)
    if kind.__module__ == "numpy":
        return "; give a tensor or a Python number: torch.from_numpy(x), x.item()"
    bases = {base.__name__ for base in kind.__mro__[1:]}
    if "Tensor" in bases:
        return ", a subclass of Tensor; give a plain tensor: x.as_subclass(torch.Tensor)"
    if bases & {"tuple", "dict", "list", "int", "float", "str"}:
        return "; give the plain built-in type"
    if hasattr(kind, "__next__"):
        return "; give a list: list(x)"
    return ""


def _number(value: Any) -> Any:
    """A number as JSON has it: not-finite ones and very large integers as text."""
    if type(value) is complex:
        return [_number(value.real), _number(value.imag)]
    if type(value) is float:
        return value if math.isfinite(value) else str(value)
    if value.bit_length() > _MAX_BITS:
        raise UsageError(f"expected an int of at most {_MAX_BITS} bits, got more.")
    return value if abs(value) <= _SAFE_INT else str(value)


def _values(plain: Any, dtype: str) -> list[Any]:
    """The numbers of a tensor in row-major order."""
    import torch

    if dtype in FLOATS:
        plain = plain.to(torch.float64)
    elif dtype in COMPLEX:
        plain = plain.to(torch.complex128)
    flat = plain.resolve_conj().resolve_neg().reshape(-1).tolist()
    return flat if dtype == "bool" else [_number(x) for x in flat]


def flaw(node: Any) -> str | None:
    """What keeps `node` from being an encoded value; None when nothing does.

    Plain Python: this is asked where nothing that arrives is trusted.

    Example:
        >>> flaw({"is": "float", "value": "0.5"})
        "the float has the value '0.5'"
    """
    try:
        left = _check(node, MAX_PARTS, 0)
    except _Flaw as found:
        return str(found)
    return None if left >= 0 else f"it has more than {MAX_PARTS:,} parts"


class _Flaw(Exception):
    """Found by `_check`, told by `flaw`."""


def _check(node: Any, left: int, depth: int) -> int:
    """Raise `_Flaw`, or return how many parts may still come after this node."""
    if left < 0:
        return left
    if depth > MAX_DEPTH + 1:
        raise _Flaw("its containers are nested too deep")
    if type(node) is not dict or type(node.get("is")) is not str:
        raise _Flaw(f"{_cut(node)} is not a tagged value")
    kind = node["is"]
    if kind == "None":
        return left - 1
    if kind == "tensor":
        return left - _check_tensor(node)
    if kind in ("list", "tuple", "Size", "dict"):
        return _check_items(node, left, depth)
    if kind not in _IS_VALUE or not _IS_VALUE[kind](node.get("value")):
        raise _Flaw(f"the {_cut(kind, quote=False)} has the value {_cut(node.get('value'))}")
    return left - (len(node["value"]) + 1 if kind == "str" else 1)


def _check_items(node: dict[str, Any], left: int, depth: int) -> int:
    kind, items = node["is"], node.get("items")
    if type(items) is not list:
        raise _Flaw(f"a {kind} has the items {_cut(items)}")
    left -= 1
    for item in items:
        if kind != "dict":
            left = _check(item, left, depth + 1)
            continue
        if type(item) is not list or len(item) != 2:
            raise _Flaw(f"a dict has the item {_cut(item)}")
        left = _check(item[1], _check(item[0], left, depth + 1), depth + 1)
        if item[0]["is"] not in ("str", "int"):
            raise _Flaw(f"a dict has the key {_cut(item[0])}")
    return left


def _check_tensor(node: dict[str, Any]) -> int:
    shape, dtype, values = node.get("shape"), node.get("dtype"), node.get("values")
    if type(shape) is not list or not all(type(n) is int and 0 <= n <= _SAFE_INT for n in shape):
        raise _Flaw(f"a tensor has the shape {_cut(shape)}")
    if type(dtype) is not str or dtype not in _ELEMENT:
        raise _Flaw(f"a tensor has the dtype {_cut(dtype)}")
    for field, kind in (("class", str), ("device", str), ("layout", str), ("requires_grad", bool)):
        if type(node.get(field)) is not kind:
            raise _Flaw(f"a tensor has the {field} {_cut(node.get(field))}")
    # Any size of 0 first: the product of the others need not be computed.
    count = 0 if 0 in shape else math.prod(shape) if len(shape) < 64 else -1
    if type(values) is not list or len(values) != count:
        many = len(values) if type(values) is list else _cut(values)
        raise _Flaw(f"a tensor has {many} values, not those of its shape")
    wrong = [x for x in values if not _IS_VALUE[_ELEMENT[dtype]](x)]
    if wrong:
        raise _Flaw(f"a tensor of dtype {dtype} has the value {_cut(wrong[0])}")
    return count + 1


def _is_float(x: Any) -> bool:
    return (type(x) is float and math.isfinite(x)) or (
        type(x) is str and x in ("nan", "inf", "-inf")
    )


def _is_int(x: Any) -> bool:
    if type(x) is str:
        return len(x) < 320 and x.isascii() and x.removeprefix("-").isdigit()
    return type(x) is int and abs(x) <= _SAFE_INT


_IS_VALUE = {
    "bool": lambda x: type(x) is bool,
    "int": _is_int,
    "float": _is_float,
    "complex": lambda x: type(x) is list and len(x) == 2 and all(map(_is_float, x)),
    "str": lambda x: type(x) is str,
    "dtype": lambda x: type(x) is str,
    "device": lambda x: type(x) is str,
}
_ELEMENT = {
    "bool": "bool",
    **dict.fromkeys(INTEGERS, "int"),
    **dict.fromkeys(FLOATS, "float"),
    **dict.fromkeys(COMPLEX, "complex"),
}


def _cut(x: Any, *, quote: bool = True) -> str:
    """A short text of anything that JSON can hold, however deep or long."""
    if type(x) in (dict, list, tuple):
        return f"a {type(x).__name__} of {len(x)}"
    if type(x) is int and x.bit_length() > 64:
        return "a very large int"
    if type(x) is str:
        x = x[:50]
    text = repr(x) if quote else str(x)
    return text if len(text) <= 40 else text[:39] + "…"
