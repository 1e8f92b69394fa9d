"""What does a module hold that `parameters()`, `to()`, `train()` and `state_dict()` don't see?

`nn.Module` registers a parameter, a buffer or a module when it is assigned to an attribute, and
only then: it looks into no list, dict, dataclass or plain object. This walk does look, and reports
what it finds there unless it is registered as well (under its identity or sharing its memory), or
is the result of a computation on registered parameters, or a cache that forward itself fills.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import torch

from pytorch_lab.modules import advice
from pytorch_lab.modules.functions import (
    assigned_by_forward,
    depends_on_mode,
    forward_functions,
    parts_of_function,
    plain_function,
)
from pytorch_lab.modules.lines import line_of_attribute, spell_line
from pytorch_lab.modules.reach import (
    Part,
    module_attributes,
    parts,
    written_here,
)
from pytorch_lab.modules.record import Invisible
from pytorch_lab.modules.registered import (
    Registry,
    is_lazy,
    join,
    own_tensors,
    register,
    shape_of,
    storage_of,
    type_name,
)


@dataclass(frozen=True)
class Place:
    """Where a value was met: its path, and the holders on the way from the module's attribute."""

    path: str
    holders: tuple[str, ...]  # outermost first; empty: the attribute itself
    module: torch.nn.Module
    attribute: str
    line: str = ""  # where a function begins, if this was met in one

    def inside(self, part: Part) -> "Place":
        """The place of a part of what lies here."""
        return replace(self, path=self.path + part.step, holders=(*self.holders, part.holder))


@dataclass(frozen=True)
class Found:
    """An invisible thing while it is alive, with its record."""

    value: Any
    place: Place
    record: Invisible
    harmless: bool  # a module without tensors and modes: nothing is lost with it


class Known:
    """The tensors and modules that are accounted for: by identity, and by the memory they use."""

    def __init__(self, registry: Registry) -> None:
        self.registry = registry
        self.ids: set[int] = set(registry.by_id) | set(registry.seen)
        self.memory: set[int] = set()
        self.alive: list[Any] = []  # an id is only good while its object lives
        for slot in registry.slots:
            self._add_memory(slot.tensor)

    def _add_memory(self, tensor: torch.Tensor) -> None:
        storage = storage_of(tensor)
        if storage and storage[1]:
            self.memory.add(storage[0])

    def add(self, value: Any) -> None:
        """Account for a tensor, or for a module and all that it registers."""
        self.alive.append(value)
        if isinstance(value, torch.Tensor):
            self.ids.add(id(value))
            self._add_memory(value)
            return
        inside = register(value)
        self.ids.update(inside.seen)
        for slot in inside.slots:
            self.ids.add(id(slot.tensor))
            self._add_memory(slot.tensor)

    def has(self, value: Any) -> bool:
        """Whether a tensor or module is accounted for."""
        if id(value) in self.ids:
            return True
        if not isinstance(value, torch.Tensor):
            return False
        storage = storage_of(value)
        return storage is not None and storage[0] in self.memory


class Search:
    """One walk over all that a module holds; `found` in the order of modules and attributes."""

    def __init__(self, registry: Registry) -> None:
        self.registry = registry
        self.known = Known(registry)
        self.found: list[Found] = []
        self._visited: dict[int, Any] = {}
        self._caches: dict[type, frozenset[str]] = {}  # what forward assigns, by class
        self._names = {name for slot in registry.slots for name in slot.names}
        self._stack: list[tuple[Any, Place]] = []

    def run(self) -> list[Found]:
        """Walk every registered module, and what is met on the way."""
        for seen in self.registry.modules:
            self._open_module(seen.module, seen.paths[0])
            while self._stack:
                self._visit(*self._stack.pop())
        self.found = _without_harmless_groups(self.found)
        return self.found

    def _open_module(self, module: torch.nn.Module, path: str) -> None:
        """Put a module's attributes, and what its forward can see, on the stack."""
        if isinstance(module, torch.jit.ScriptModule):
            return
        held: list[tuple[Any, Place]] = []
        cls = type(module)
        if cls not in self._caches:
            self._caches[cls] = assigned_by_forward(cls)
            held.extend(self._class_parts(cls, module, path))
        for name, value in module_attributes(module).items():
            if not (name in self._caches[cls] and _is_plain_tensor(value)):
                place = Place(join(path, name), (), module, name)
                held.append((value, place))
        self._stack.extend(reversed(held))

    def _class_parts(
        self, cls: type, module: torch.nn.Module, path: str
    ) -> Iterator[tuple[Any, Place]]:
        """What the class holds: attributes of its own, and what forward's functions see."""
        for base in cls.__mro__:
            if base is torch.nn.Module:
                break
            if written_here(base):
                for name, value in vars(base).items():
                    if not name.startswith("__") and plain_function(value) is None:
                        yield value, Place(join(path, name), ("class",), module, name)
        for name, function in forward_functions(cls).items():
            yield function, Place(join(path, name), ("function",), module, name)

    def _visit(self, value: Any, place: Place) -> None:
        if issubclass(type(value), torch.Tensor):
            self._judge_tensor(value, place)
            return
        if issubclass(type(value), torch.nn.Module):
            self._judge_module(value, place)
            return
        inside = list(self._inside(value, place))
        if not inside or id(value) in self._visited:
            return
        self._visited[id(value)] = value
        self._stack.extend(reversed(inside))

    def _inside(self, value: Any, place: Place) -> Iterator[tuple[Any, Place]]:
        if isinstance(value, dict) and self._is_saved_state(value, place.module):
            return
        function = plain_function(value)
        if function is None:
            for part in parts(value):
                yield part.value, place.inside(part)
            return
        owner = getattr(value, "__self__", None)
        if owner is not None:
            yield owner, place.inside(Part(".__self__", "method", owner))
        code = function.__code__
        there = replace(place, line=spell_line(code.co_filename, code.co_firstlineno))
        for part in parts_of_function(function):
            yield part.value, there.inside(part)

    def _is_saved_state(self, value: dict[Any, Any], module: torch.nn.Module) -> bool:
        """Whether a dict is a copy of a state dict: kept on purpose, to go back to."""
        if not value or not all(isinstance(item, torch.Tensor) for item in dict.values(value)):
            return False
        if "_metadata" in getattr(value, "__dict__", {}):
            return True
        prefix = self.registry.path_of(module) or ""
        keys = list(dict.keys(value))
        return all(isinstance(key, str) and join(prefix, key) in self._names for key in keys)

    def _judge_module(self, value: torch.nn.Module, place: Place) -> None:
        if self.known.has(value) or "_modules" not in vars(value):
            return
        inside = register(value)
        self.known.add(value)
        if id(self.registry.root) not in inside.seen and id(place.module) not in inside.seen:
            self._report(value, place)
            for seen in inside.modules:
                self._open_module(seen.module, join(place.path, seen.paths[0]).rstrip("."))

    def _judge_tensor(self, value: torch.Tensor, place: Place) -> None:
        if self.known.has(value):
            return
        if value.grad_fn is not None and self._is_computed_from_registered(value):
            return
        if _is_made_by_a_hook(place):
            return
        self.known.add(value)
        self._report(value, place)

    def _is_computed_from_registered(self, value: torch.Tensor) -> bool:
        return any(id(leaf) in self.known.ids for leaf in leaves(value))

    def _report(self, value: Any, place: Place) -> None:
        record = describe_found(value, place, self.registry)
        self.found.append(Found(value, place, record, _is_harmless(value)))


def _is_plain_tensor(value: Any) -> bool:
    return isinstance(value, torch.Tensor) and not (value.is_leaf and value.requires_grad)


def _is_harmless(value: Any) -> bool:
    """Whether nothing goes wrong when a module is overlooked: no tensors, no modes."""
    if not isinstance(value, torch.nn.Module):
        return False
    inside = register(value)
    return not inside.slots and not any(depends_on_mode(seen.module) for seen in inside.modules)


def _is_made_by_a_hook(place: Place) -> bool:
    """Whether torch's own hooks compute this attribute: pruning, the older norms."""
    if place.holders:
        return False
    registered = {name for name, *_ in own_tensors(place.module)}
    name = place.attribute
    return bool(registered & {f"{name}_orig", f"{name}_v", f"{name}_bar"})


def _without_harmless_groups(found: list[Found]) -> list[Found]:
    """Drop what is harmless, unless the same attribute also holds something that is not."""
    hurt = {(id(f.place.module), f.place.attribute) for f in found if not f.harmless}
    return [f for f in found if (id(f.place.module), f.place.attribute) in hurt]


def leaves(*outputs: torch.Tensor) -> Iterator[torch.Tensor]:
    """The leaf tensors that a result's graph leads to."""
    stack: list[Any] = [t.grad_fn for t in outputs if t.grad_fn is not None]
    visited = set()
    while stack:
        node = stack.pop()
        if node in visited:
            continue
        visited.add(node)
        variable = getattr(node, "variable", None)
        if isinstance(variable, torch.Tensor):
            yield variable
        stack.extend(following for following, _ in node.next_functions if following is not None)


def describe_found(value: Any, place: Place, registry: Registry) -> Invisible:
    """The record of an invisible thing: what it is, why it is invisible, what to write instead."""
    kind = kind_of(value)
    n_parameters = count_of(value)
    stale = advice.stale_name(value, place.module) if kind == "tensor" else None
    return Invisible(
        path=place.path,
        kind=kind,
        holder=place.holders[-1] if place.holders else "attribute",
        type=type_name(value) if isinstance(value, torch.nn.Module) else type(value).__name__,
        shape=None if isinstance(value, torch.nn.Module) else shape_of(value),
        n_parameters=n_parameters,
        why=advice.why(value, kind, place.holders, stale),
        fix=advice.fix(value, kind, place.holders, place.attribute, stale),
        line=place.line or line_of_attribute(type(place.module), place.attribute),
    )


def kind_of(value: Any) -> str:
    """`module`, `parameter` (also a bare tensor that asks for gradients) or `tensor`."""
    if isinstance(value, torch.nn.Module):
        return "module"
    learns = isinstance(value, torch.nn.Parameter) or value.requires_grad
    return "parameter" if learns else "tensor"


def count_of(value: Any) -> int:
    """The elements that the optimizer never sees."""
    if isinstance(value, torch.nn.Module):
        slots = register(value).slots
        tensors = [slot.tensor for slot in slots if slot.kind == "parameter"]
        return sum(0 if is_lazy(tensor) else tensor.numel() for tensor in tensors)
    if kind_of(value) != "parameter" or is_lazy(value):
        return 0
    return value.numel()
