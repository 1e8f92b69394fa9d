"""What does an object hold? One step from a value to the values inside it.

The steps read `__dict__`, `__slots__` and the elements of containers, and call no code of the
value's own class, so a property that raises or a `__getattr__` that loops cannot disturb them.
Objects of installed libraries are closed boxes: what a tokenizer or a trainer keeps is its own
affair. `SimpleNamespace`, `functools.partial` and torch's distributions are opened all the same,
because people put layers and tensors into them.
"""

import argparse
import collections
import dataclasses
import functools
import sys
import sysconfig
import types
import weakref
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import torch

ATOMS = frozenset(
    {int, float, str, bool, bytes, complex, type(None), type, torch.dtype, torch.device, torch.Size}
)
CLOSED = (
    types.ModuleType,
    torch.optim.Optimizer,
    torch.optim.lr_scheduler.LRScheduler,
    torch.utils.data.DataLoader,
    torch.utils.data.Dataset,
    torch.Generator,
)
INTERNAL = frozenset(vars(torch.nn.Module()))  # what every module holds: `_parameters`, hooks, ...
_PLACES = tuple({sysconfig.get_path(name) for name in ("stdlib", "platstdlib")})
_OURS = str(Path(__file__).parents[1])
_INSTALLED = ("site-packages", "dist-packages")


class Part(NamedTuple):
    """A value inside another, with the way to it."""

    step: str  # what to append to the holder's path: ".head", "[0]", "['k']"
    holder: str  # "list", "dict", "object", ...
    value: Any


@functools.cache
def is_library(module: str) -> bool:
    """Whether a module's code was installed, rather than written by the learner."""
    if module == "__main__":  # a script or a notebook
        return False
    if module.partition(".")[0] in ("torch", "builtins"):
        return True
    file = getattr(sys.modules.get(module), "__file__", None)
    if file is None:  # made by hand, or built in
        return module in sys.builtin_module_names
    return is_library_file(file)


@functools.cache
def is_library_file(file: str) -> bool:
    """Whether a source file was installed: torch, other packages, Python itself, this package."""
    if any(part in _INSTALLED for part in Path(file).parts):
        return True
    return file.startswith((*_PLACES, _OURS, "<frozen"))


def written_here(cls: type) -> bool:
    """Whether a class is the learner's own; one that was made by a call says it is of `types`."""
    if cls.__module__ == "types":
        return not hasattr(types, cls.__name__)
    return not is_library(cls.__module__ if isinstance(cls.__module__, str) else "builtins")


def attributes(value: Any) -> dict[str, Any]:
    """The instance's own attributes: its `__dict__`, then its filled slots."""
    try:
        found = dict(object.__getattribute__(value, "__dict__"))
    except (AttributeError, TypeError):
        found = {}
    for slot, member in _slots(type(value)):
        try:
            found.setdefault(slot, member.__get__(value))
        except AttributeError:
            continue  # the slot is empty
    return found


@functools.cache
def _slots(kind: type) -> tuple[tuple[str, types.MemberDescriptorType], ...]:
    found = []
    for cls in kind.__mro__:
        names = cls.__dict__.get("__slots__", ())
        for name in (names,) if isinstance(names, str) else tuple(names):
            member = cls.__dict__.get(name)
            if isinstance(member, types.MemberDescriptorType):
                found.append((name, member))
    return tuple(found)


def module_attributes(module: torch.nn.Module) -> dict[str, Any]:
    """The attributes of a module that torch did not put there."""
    return {k: v for k, v in attributes(module).items() if k not in INTERNAL}


def attribute_step(name: str) -> str:
    """How an attribute is written after a path; `attribute_step("head")` is `".head"`."""
    return f".{name}"


def key_step(key: Any) -> str:
    """How a dictionary's key is written after a path, without addresses."""
    if isinstance(key, str | int | float | bool | type(None)):
        return f"[{key!r}]"
    if isinstance(key, tuple) and all(isinstance(k, str | int | float | bool) for k in key):
        return f"[{key!r}]"
    return f"[<{type(key).__name__}>]"


def parts(value: Any) -> Iterator[Part]:
    """The values one step inside `value`; nothing for an atom, a tensor, a module, a closed box.

    Example:
        >>> [(part.step, part.holder) for part in parts({"k": 1, 2: [3]})]
        [("['k']", 'dict'), ('[2]', 'dict')]
    """
    kind = type(value)
    if kind in ATOMS or isinstance(value, CLOSED) or issubclass(kind, (type, *_PROXIES)):
        return
    if issubclass(kind, dict | types.MappingProxyType):
        yield from _entries(value)
    elif issubclass(kind, list | tuple | collections.deque):
        yield from _elements(value, kind)
    elif issubclass(kind, set | frozenset):
        members = sorted(set.__iter__(value) if issubclass(kind, set) else value, key=_rank)
        for i, member in enumerate(members):
            yield Part(f"{{{i}}}", "set", member)
    elif issubclass(kind, functools.partial):
        yield Part(".func", "partial", value.func)
        for part in (*_elements(value.args, tuple), *_entries(value.keywords)):
            yield Part(part.step, "partial", part.value)
    elif is_open_box(kind):
        holder = "dataclass" if dataclasses.is_dataclass(kind) else "object"
        for name, inner in attributes(value).items():
            yield Part(attribute_step(name), holder, inner)


_PROXIES = (weakref.ProxyType, weakref.CallableProxyType, weakref.ReferenceType)


def _entries(value: Any) -> Iterator[Part]:
    items = dict.items(value) if isinstance(value, dict) else value.items()
    for key, inner in list(items):
        yield Part(key_step(key), "dict", inner)


def _elements(value: Any, kind: type) -> Iterator[Part]:
    fields = getattr(kind, "_fields", None) if issubclass(kind, tuple) else None
    base = next(b for b in (list, tuple, collections.deque) if issubclass(kind, b))
    for i, inner in enumerate(list(base.__iter__(value))):
        if fields:
            yield Part(attribute_step(fields[i]), "namedtuple", inner)
        else:
            yield Part(f"[{i}]", base.__name__, inner)


def _rank(member: Any) -> tuple[str, str]:
    """An order for a set's members that is the same in every run, as far as possible."""
    if isinstance(member, torch.nn.Module):
        size = sum(p.numel() for p in member.parameters())
        return type(member).__name__, str(size)
    if isinstance(member, torch.Tensor):
        return type(member).__name__, str(tuple(member.shape))
    return type(member).__name__, repr(member) if type(member) in ATOMS else ""


@functools.cache
def is_open_box(kind: type) -> bool:
    """Whether the attributes of a plain object of this class are looked at."""
    if issubclass(kind, torch.Tensor | torch.nn.Module | types.FunctionType | types.MethodType):
        return False
    opened = types.SimpleNamespace | argparse.Namespace | torch.distributions.Distribution
    opened |= collections.UserDict | collections.UserList
    return issubclass(kind, opened) or written_here(kind)
