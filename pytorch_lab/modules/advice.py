"""Why is it invisible, and what to write instead? The sentences of an `Invisible`.

Everything here is wording: which container torch offers for which plain one, and what goes wrong
if nothing is done.
"""

from typing import Any

import torch

ROWS = ("list", "tuple", "deque", "set", "namedtuple")  # what nn.ModuleList replaces
LOST = {
    "module": "parameters(), to(), train() and state_dict() never reach it",
    "parameter": "parameters(), to() and state_dict() never reach it, so it is not trained",
    "tensor": "to() leaves it on its device and in its dtype, and state_dict() leaves it out",
}
MOST_COMPARED = 1_000_000  # elements, when looking for the buffer that a tensor was copied from


def why(value: Any, kind: str, holders: tuple[str, ...], stale: str | None) -> str:
    """One sentence: where it is kept, and what that costs."""
    if stale:
        return (
            f"It was the buffer `{stale}` once; to() or a conversion put a new tensor there, and "
            f"this {_noun(holders)} still holds the old one."
        )
    if kind == "parameter" and value.grad_fn is not None:
        return (
            "It is the result of a computation, not a leaf: the parameter it came from is "
            "registered nowhere, so it is not trained."
        )
    return f"{_REASONS.get(_outer(holders), _REASONS['object'])}: {LOST[kind]}."


_CONTAINER = "nn.Module does not look into a plain {}"
_REASONS = {
    **{name: _CONTAINER.format(name) for name in ("list", "tuple", "deque", "set", "dict")},
    "namedtuple": _CONTAINER.format("namedtuple"),
    "dataclass": _CONTAINER.format("dataclass"),
    "partial": _CONTAINER.format("functools.partial"),
    "object": "nn.Module does not look into an object that is not an nn.Module itself",
    "method": "nn.Module does not look into an object that is not an nn.Module itself",
    "attribute": "A plain tensor attribute is not registered",
    "class": "An attribute of the class is not registered with the instances",
    "default": "A default argument belongs to the function, not to the module",
    "closure": "A variable of the surrounding function belongs to that function",
    "global": "A global variable belongs to the file, not to the module",
    "forward": "It is made anew in every call of forward",
    "elsewhere": "Forward uses it, but no attribute of the module leads to it",
}


def _outer(holders: tuple[str, ...]) -> str:
    known = [holder for holder in holders if holder != "function"]
    return known[0] if known else "attribute"


def _noun(holders: tuple[str, ...]) -> str:
    outer = _outer(holders)
    return outer if outer in (*ROWS, "dict", "dataclass", "object") else "attribute"


def fix(value: Any, kind: str, holders: tuple[str, ...], attribute: str, stale: str | None) -> str:
    """One sentence with the code to write."""
    outer = _outer(holders)
    if stale:
        return f"Read it where it is registered, in forward: `self.{stale}`."
    if kind == "parameter" and value.grad_fn is not None:
        return (
            f"Compute first and wrap last: `self.{attribute} = nn.Parameter(...)` around the "
            "finished values."
        )
    if outer in ("default", "closure", "global", "class", "forward", "elsewhere"):
        return _fix_by_moving(kind, outer, attribute)
    if kind == "tensor":
        return _fix_by_buffer(holders, attribute)
    if not holders:
        return _fix_attribute(kind, attribute)
    return _fix_by_container(kind, tuple(h for h in holders if h != "function"), attribute)


def _fix_by_moving(kind: str, outer: str, attribute: str) -> str:
    what = {
        "module": "Make it in __init__ and assign it: `self.name = ...`",
        "parameter": "Make it in __init__ and assign it: `self.name = nn.Parameter(...)`",
        "tensor": "Register it in __init__: `self.name = nn.Buffer(tensor)`",
    }[kind]
    if outer == "class":
        return what.replace("name", attribute) + "."
    return f"{what}, and use `self.name` in forward."


def _fix_by_buffer(holders: tuple[str, ...], attribute: str) -> str:
    if not holders:
        return f"Register it: `self.{attribute} = nn.Buffer(tensor)`."
    return (
        f"Register each of them, `self.register_buffer(f'{attribute}_{{i}}', tensor)`, and read "
        "it in forward with getattr."
    )


def _fix_attribute(kind: str, attribute: str) -> str:
    if kind == "parameter":
        return f"Wrap it: `self.{attribute} = nn.Parameter(...)`."
    return f"Assign it as an attribute: `self.{attribute} = ...`."


def _fix_by_container(kind: str, holders: tuple[str, ...], attribute: str) -> str:
    if any(holder in ("dataclass", "object", "partial", "method") for holder in holders):
        wrap = "nn.Parameter(...)" if kind == "parameter" else "..."
        return (
            f"Let the class that holds it derive from nn.Module, or assign the {kind} to the "
            f"module as well: `self.name = {wrap}`."
        )
    code = "..."
    for depth, holder in enumerate(reversed(holders)):
        innermost = depth == 0 and kind == "parameter"
        row, table = ("Parameter",) * 2 if innermost else ("Module",) * 2
        code = f"nn.{row}List([{code}])" if holder in ROWS else f"nn.{table}Dict({{'key': {code}}})"
    return f"Use a container that registers: `self.{attribute} = {code}`."


def stale_name(value: torch.Tensor, module: torch.nn.Module) -> str | None:
    """The buffer of `module` that `value` is an outdated copy of: equal but for dtype or device."""
    for name, buffer in module._buffers.items():
        if buffer is None or buffer.is_meta or value.is_meta or value.layout != buffer.layout:
            continue
        same = (buffer.dtype, buffer.device) == (value.dtype, value.device)
        if same or buffer.shape != value.shape or value.numel() > MOST_COMPARED:
            continue
        if _equal(value, buffer):
            return name
    return None


def _equal(left: torch.Tensor, right: torch.Tensor) -> bool:
    try:
        narrow = min(left.dtype, right.dtype, key=lambda dtype: dtype.itemsize)
        pair = [side.detach().to("cpu").to(narrow) for side in (left, right)]
        return torch.equal(*pair)
    except (RuntimeError, NotImplementedError):  # layouts that cannot be compared
        return False
