"""What came out of a module: shapes as text, and the tensors in whatever was returned."""

import dataclasses
from typing import Any

import torch

from pytorch_lab.modules.reach import ATOMS, attributes
from pytorch_lab.modules.registered import shape_of

MOST_ITEMS = 6  # of one container, when spelled


def spell_outputs(output: Any) -> tuple[str, ...]:
    """One text for each item of a tuple or list, else one text.

    Example:
        >>> spell_outputs((torch.ones(2, 10), {"h": torch.ones(3)}))
        ('(2, 10)', "{'h': (3,)}")
    """
    if type(output) in (tuple, list):
        return tuple(spell(item) for item in output) or (spell(output),)
    return (spell(output),)


def spell(value: Any, depth: int = 3) -> str:
    """A value with each tensor replaced by its shape, or by why it has none."""
    if isinstance(value, torch.Tensor):
        shape = shape_of(value)
        return "nested or lazy" if shape is None else str(shape)
    if depth == 0:
        return type(value).__name__
    if isinstance(value, dict):
        return f"{{{_items([f'{k!r}: {spell(v, depth - 1)}' for k, v in value.items()])}}}"
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        pairs = zip(type(value)._fields, value, strict=True)  # pyright: ignore[reportAttributeAccessIssue]
        return f"{type(value).__name__}({_items([f'{k}={spell(v, depth - 1)}' for k, v in pairs])})"
    if isinstance(value, list | tuple):
        left, right = "[]" if isinstance(value, list) else "()"
        return left + _items([spell(item, depth - 1) for item in value]) + right
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        pairs = ((f.name, getattr(value, f.name, None)) for f in dataclasses.fields(value))
        return f"{type(value).__name__}({_items([f'{k}={spell(v, depth - 1)}' for k, v in pairs])})"
    return repr(value) if type(value) in ATOMS else type(value).__name__


def _items(texts: list[str]) -> str:
    more = len(texts) - MOST_ITEMS
    return ", ".join([*texts[:MOST_ITEMS], *([f"{more} more"] if more > 0 else [])])


def tensors_of(*values: Any) -> list[torch.Tensor]:
    """All tensors in nested containers and objects, whoever wrote their classes."""
    found: list[torch.Tensor] = []
    seen: dict[int, Any] = {}
    stack = list(reversed(values))
    while stack:
        value = stack.pop()
        if isinstance(value, torch.Tensor):
            found.append(value)
            continue
        if type(value) in ATOMS or id(value) in seen or isinstance(value, type | torch.nn.Module):
            continue
        seen[id(value)] = value
        if type(value) not in (dict, list, tuple):
            stack.extend(attributes(value).values())
        if isinstance(value, dict):
            stack.extend(reversed(list(value.values())))
        elif isinstance(value, list | tuple | set | frozenset):
            stack.extend(reversed(list(value)))
    return found
