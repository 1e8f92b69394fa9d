"""Two encoded values side by side: equal, or the smallest thing that differs.

    >>> difference({"is": "int", "value": 0}, {"is": "int", "value": 4}, "number of parameters")
    'number of parameters: expected 4, got 0'

Compared in this order, first difference wins: type, shape, dtype, device, layout, requires_grad,
numbers. Shape comes before numbers because (8,) and (8, 1) broadcast to something that looks fine.
`difference` is plain Python on plain JSON: it runs where the learner's code never ran, and takes
whatever arrives there, also what nobody's `encode` would have written.

Numbers are close when `|got - expected| <= atol + rtol * |expected|`, NaN equals NaN, and each
infinity only itself. The tolerances are the defaults of `torch.testing.assert_close`
(https://docs.pytorch.org/docs/stable/testing.html); a test compares the table with torch's own:

| dtype               | rtol   | atol |     | dtype                | rtol | atol |
| ------------------- | ------ | ---- | --- | -------------------- | ---- | ---- |
| float16, complex32  | 1e-3   | 1e-5 |     | float64, complex128  | 1e-7 | 1e-7 |
| bfloat16            | 1.6e-2 | 1e-5 |     | Python float, complex | 1e-7 | 1e-7 |
| float32, complex64  | 1.3e-6 | 1e-5 |     | bool and all integers | 0    | 0    |
"""

import math
from typing import Any

from pytorch_lab.checks.encode import encode, flaw
from pytorch_lab.errors import UsageError

__all__ = ["TOLERANCES", "difference", "encode"]

TOLERANCES = {
    "float16": (1e-3, 1e-5),
    "bfloat16": (1.6e-2, 1e-5),
    "float32": (1.3e-6, 1e-5),
    "float64": (1e-7, 1e-7),
    "complex32": (1e-3, 1e-5),
    "complex64": (1.3e-6, 1e-5),
    "complex128": (1e-7, 1e-7),
}
_NOT_FINITE = {"nan": math.nan, "inf": math.inf, "-inf": -math.inf}
_CONTAINERS = ("list", "tuple", "Size")


def difference(got: Any, want: Any, name: str) -> str | None:
    """The smallest difference between two encoded values, as one sentence; None when equal.

    Example:
        >>> half, quarter = {"is": "float", "value": 0.5}, {"is": "float", "value": 0.25}
        >>> difference(quarter, half, "the loss")
        'the loss: expected 0.5, got 0.25'
        >>> difference(half, half, "the loss") is None
        True

    Args:
        got: the learner's value, encoded; anything else is a difference, never an error.
        want: the reference value, encoded.
        name: what the value is called, for the sentence.

    Raises:
        UsageError: `want` is not an encoded value.
    """
    if broken := flaw(want):
        raise UsageError(f"difference() expected `want` to come from encode(), but {broken}.")
    if broken := flaw(got):
        return f"{name}: expected {_describe(want)}, got something unreadable ({broken})"
    return _differ(got, want, name)


def _differ(got: Any, want: Any, name: str) -> str | None:
    kind = want["is"]
    if got["is"] != kind:
        return f"{name}: expected {_describe(want)}, got {_describe(got)}"
    if kind == "tensor":
        return _differ_tensor(got, want, name)
    if kind in _CONTAINERS:
        return _differ_items(got["items"], want["items"], name)
    if kind == "dict":
        return _differ_dict(got["items"], want["items"], name)
    if kind == "None":
        return None
    return _differ_scalar(got["value"], want["value"], kind, name)


def _differ_items(got: list[Any], want: list[Any], name: str) -> str | None:
    if len(got) != len(want):
        return f"{name}: expected {_items(want)}, got {_items(got)}"
    pairs = enumerate(zip(got, want, strict=True))
    return next((d for i, (g, w) in pairs if (d := _differ(g, w, f"{name}[{i}]"))), None)


def _differ_dict(got: list[Any], want: list[Any], name: str) -> str | None:
    """Dicts are equal in any order of their keys."""
    mine = {(k["is"], k["value"]): v for k, v in got}
    theirs = {(k["is"], k["value"]): v for k, v in want}
    for key in theirs:
        if key not in mine:
            return f"{name}: the key {_quote(key[1])} is missing"
    for key in mine:
        if key not in theirs:
            return f"{name}: the key {_quote(key[1])} was not expected"
    pairs = theirs.items()
    return next(
        (d for k, w in pairs if (d := _differ(mine[k], w, f"{name}[{_quote(k[1])}]"))), None
    )


def _differ_tensor(got: dict[str, Any], want: dict[str, Any], name: str) -> str | None:
    for field in ("shape", "dtype", "device", "layout", "requires_grad"):
        if got[field] != want[field]:
            join = "=" if field == "requires_grad" else " "
            return f"{name}: expected {field}{join}{_field(want, field)}, got {_field(got, field)}"
    dtype = want["dtype"]
    pairs = enumerate(zip(got["values"], want["values"], strict=True))
    numbers = ((i, _read(g, dtype), _read(w, dtype)) for i, (g, w) in pairs)
    off = [(i, g, w) for i, g, w in numbers if not _close(g, w, dtype)]
    if not off:
        return None
    first, mine, theirs = off[0]
    said = _say_numbers(f"{name}{_index(first, want['shape'])}", mine, theirs, dtype)
    many = len(want["values"])
    return said if many == 1 else f"{said} ({len(off)} of {many} values differ)"


def _differ_scalar(got: Any, want: Any, kind: str, name: str) -> str | None:
    dtype = {"float": "float64", "complex": "complex128", "int": "int64", "bool": "bool"}.get(kind)
    if dtype is None:
        return None if got == want else _say_texts(name, got, want)
    mine, theirs = _read(got, dtype), _read(want, dtype)
    return None if _close(mine, theirs, dtype) else _say_numbers(name, mine, theirs, dtype)


def _read(number: Any, dtype: str) -> Any:
    """A number from its JSON form."""
    if type(number) is list:
        return complex(*(_read(part, "float64") for part in number))
    if type(number) is str:
        return _NOT_FINITE[number] if number in _NOT_FINITE else int(number)
    return number


def _close(got: Any, want: Any, dtype: str) -> bool:
    """What `torch.isclose(got, want, equal_nan=True)` says, in double precision."""
    if got == want or (got != got and want != want):
        return True
    if dtype not in TOLERANCES:
        return False
    rtol, atol = TOLERANCES[dtype]
    error = _size(got - want)
    return math.isfinite(error) and error <= atol + rtol * _size(want)


def _size(number: Any) -> float:
    """The absolute value; of a complex number too large for one, infinity."""
    return math.hypot(number.real, number.imag)


def _say_texts(name: str, got: str, want: str) -> str:
    """Two texts; of long ones the place where they part."""
    if max(len(got), len(want)) <= 60:
        return f"{name}: expected {want!r}, got {got!r}"
    pairs = enumerate(zip(got, want, strict=False))
    start = next((i for i, (g, w) in pairs if g != w), min(len(got), len(want)))
    mine, theirs = (repr(text[start : start + 30]) for text in (got, want))
    return f"{name}, from character {start}: expected {theirs}, got {mine}"


def _say_numbers(where: str, got: Any, want: Any, dtype: str) -> str:
    """Six digits when they tell the two apart, else all of them."""
    short = [f"{x:.6g}" if dtype in TOLERANCES else str(x) for x in (want, got)]
    if short[0] == short[1]:
        short = [str(want), str(got)]
    return f"{where}: expected {short[0]}, got {short[1]}"


def _index(position: int, shape: list[int]) -> str:
    """`[0, 2]` of a position in row-major order; nothing for a tensor without dimensions."""
    index = []
    for size in reversed(shape):
        position, here = divmod(position, size)
        index.append(str(here))
    return f"[{', '.join(reversed(index))}]" if index else ""


def _field(tensor: dict[str, Any], field: str) -> str:
    return str(tuple(tensor["shape"])) if field == "shape" else _short(str(tensor[field]))


def _describe(node: dict[str, Any]) -> str:
    """What kind of thing it is, without what is in it."""
    kind = node["is"]
    if kind == "tensor":
        return f"a tensor of shape {_field(node, 'shape')}"
    if kind in _CONTAINERS:
        return f"a {'torch.Size' if kind == 'Size' else kind} of {_items(node['items'])}"
    words = {"None": "None", "int": "an int", "dtype": "a torch.dtype", "device": "a torch.device"}
    return words.get(kind, f"a {kind}")


def _items(items: list[Any]) -> str:
    return f"{len(items)} item{'' if len(items) == 1 else 's'}"


def _quote(text: Any) -> str:
    return _short(repr(text))


def _short(text: str) -> str:
    return text if len(text) <= 60 else text[:59] + "…"
