"""Run somebody's model and leave it as it was found.

    with left_as_found(model, inputs) as guard:
        model(*inputs)

A forward may change more than one thinks: BatchNorm counts, a cache grows, a list of losses gets
longer, an embedding renormalises its weight, a layer draws random numbers. Everything that the
model or the inputs hold is noted first and put back afterwards, also when forward raises:
attributes, containers, hooks, modes, buffers, parameters, `.grad`, `requires_grad`, closure cells,
the random number generators of torch, numpy and Python, grad mode and default dtype.

Tensors are copied first while they are small together; large ones only when an operation is about
to write to them (`Guard.before`), so that looking at a model of many gigabytes doesn't need them
twice. Not put back: numpy arrays above that size and nested tensors, and what the model changes
outside of itself, such as files, and globals that it rebinds.
"""

import collections
import functools
import random
import sys
import types
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy
import torch

from pytorch_lab import surroundings
from pytorch_lab.modules.copies import COPY_AT_ONCE_BYTES, Guard, undo_all
from pytorch_lab.modules.functions import forward_functions, parts_of_function, plain_function
from pytorch_lab.modules.reach import (
    ATOMS,
    CLOSED,
    attributes,
    is_library,
    is_open_box,
    parts,
    written_here,
)

SHUT = ("torch", "numpy")  # packages whose plain objects stay closed


class _Holdings:
    """Everything mutable that is reached from some roots, with a shallow copy of each."""

    def __init__(self, roots: Iterable[Any]) -> None:
        self.parameters: dict[int, torch.Tensor] = {}
        self.tensors: dict[int, torch.Tensor] = {}
        self._seen: dict[int, Any] = {}
        self._undo: list[Any] = []
        stack = list(roots)
        while stack:
            value = stack.pop()
            atom = type(value) in ATOMS and not isinstance(value, type)
            if not atom and id(value) not in self._seen:
                self._seen[id(value)] = value
                stack.extend(self._open(value))

    def _open(self, value: Any) -> list[Any]:
        """Note what can be put back later; the values inside."""
        if isinstance(value, torch.Tensor):
            self._note_tensor(value)
            return []
        if isinstance(value, _GENERATORS):
            self._undo.append((_set_generator, value, _generator_state(value)))
            return []
        function = plain_function(value)
        if function is not None:
            return [getattr(value, "__self__", None), *self._open_function(function)]
        if isinstance(value, numpy.ndarray):
            if value.dtype != object and value.nbytes <= COPY_AT_ONCE_BYTES:
                self._undo.append((_refill_array, value, value.copy()))
            return []
        return [*self._open_container(value), *self._open_object(value)]

    def _open_container(self, value: Any) -> list[Any]:
        base = _container(type(value))
        if base is None:
            return [part.value for part in parts(value)]
        content = _content(base, value)
        self._undo.append((_refill, value, content))
        if issubclass(base, dict):
            return [item for pair in content for item in pair]
        return content

    def _note_tensor(self, tensor: torch.Tensor) -> None:
        group = self.parameters if isinstance(tensor, torch.nn.Parameter) else self.tensors
        group[id(tensor)] = tensor
        if tensor.is_leaf and tensor.grad is not None:
            self.parameters[id(tensor.grad)] = tensor.grad

    def _open_function(self, function: types.FunctionType) -> list[Any]:
        if is_library(function.__module__ or "builtins"):
            return []
        for cell in function.__closure__ or ():
            try:
                self._undo.append((_set_cell, cell, cell.cell_contents))
            except ValueError:  # no value yet
                continue
        return [part.value for part in parts_of_function(function)]

    def _open_object(self, value: Any) -> list[Any]:
        if isinstance(value, type):
            return self._open_class(value)
        is_module = isinstance(value, torch.nn.Module)
        if isinstance(value, torch.jit.ScriptModule) or not (is_module or _may_open(type(value))):
            return []
        held = attributes(value)
        if held:
            self._undo.append((_set_attributes, value, held))
        return [*held.values(), type(value)] if is_module else list(held.values())

    def _open_class(self, cls: type) -> list[Any]:
        if not written_here(cls):
            return []
        content = {k: v for k, v in vars(cls).items() if not k.startswith("__")}
        self._undo.append((_set_class, cls, content))
        held = [v for v in content.values() if plain_function(v) is None]
        return [*held, *forward_functions(cls).values(), *cls.__bases__]

    def restore(self) -> None:
        """Put everything back."""
        undo_all(functools.partial(undo, value, content) for undo, value, content in self._undo)


_CONTAINERS = (list, collections.OrderedDict, dict, set, collections.deque)
_GENERATORS = (torch.Generator, numpy.random.Generator, numpy.random.RandomState, random.Random)


@functools.cache
def _may_open(kind: type) -> bool:
    """Whether a plain object's attributes are put back: not those of torch and of Python itself."""
    package = kind.__module__.partition(".")[0]
    outside = package not in SHUT and package not in sys.stdlib_module_names
    return is_open_box(kind) or (outside and not issubclass(kind, CLOSED))


@functools.cache
def _container(kind: type) -> type | None:
    return next((base for base in _CONTAINERS if issubclass(kind, base)), None)


def _content(base: Any, value: Any) -> list[Any]:
    return list(base.items(value)) if issubclass(base, dict) else list(base.__iter__(value))


def _refill(container: Any, content: list[Any]) -> None:
    base: Any = _container(type(container))
    if _identical(_content(base, container), content):
        return
    base.clear(container)
    (base.extend if base in (list, collections.deque) else base.update)(container, content)


def _refill_array(array: numpy.ndarray, copy: numpy.ndarray) -> None:
    if array.flags.writeable:
        array[...] = copy


def _identical(now: list[Any], then: list[Any]) -> bool:
    """Whether two contents are the same objects; a dict's content is pairs."""
    if len(now) != len(then):
        return False
    for one, other in zip(now, then, strict=True):
        if one is not other and not _same_pair(one, other):
            return False
    return True


def _same_pair(one: Any, other: Any) -> bool:
    pairs = type(one) is tuple and type(other) is tuple and len(one) == len(other) == 2
    return pairs and one[0] is other[0] and one[1] is other[1]


def _set_attributes(value: Any, held: dict[str, Any]) -> None:
    now = attributes(value)
    if _identical(list(now.items()), list(held.items())):
        return
    own = getattr(value, "__dict__", {})
    own.clear()
    for name, inner in held.items():
        member = getattr(type(value), name, None)
        if isinstance(member, types.MemberDescriptorType):
            member.__set__(value, inner)
        else:
            own[name] = inner


def _set_class(cls: type, content: dict[str, Any]) -> None:
    now = {k: v for k, v in vars(cls).items() if not k.startswith("__")}
    for name in now.keys() - content.keys():
        delattr(cls, name)
    for name, inner in content.items():
        if now.get(name, cls) is not inner:
            setattr(cls, name, inner)


def _set_cell(cell: types.CellType, content: Any) -> None:
    cell.cell_contents = content


def _generator_state(value: Any) -> Any:
    if isinstance(value, torch.Generator | numpy.random.RandomState):
        return value.get_state()
    return value.bit_generator.state if hasattr(value, "bit_generator") else value.getstate()


def _set_generator(value: Any, state: Any) -> None:
    if isinstance(value, torch.Generator | numpy.random.RandomState):
        value.set_state(state)
    elif hasattr(value, "bit_generator"):
        value.bit_generator.state = state
    else:
        value.setstate(state)


@contextmanager
def left_as_found(*roots: Any) -> Iterator[Guard]:
    """Whatever happens inside, `roots` and all they hold are afterwards what they were before.

    Example:
        >>> norm = torch.nn.BatchNorm1d(2)
        >>> with left_as_found(norm):
        ...     _ = norm(torch.ones(3, 2))
        >>> norm.running_mean.tolist(), norm.num_batches_tracked.item()
        ([0.0, 0.0], 0)
    """
    holdings = _Holdings(roots)
    guard = Guard(holdings.tensors.values(), holdings.parameters.values())
    with surroundings.kept():
        try:
            yield guard
        finally:
            holdings.restore()
            with torch.no_grad():
                guard.restore()
