"""What does a module register? Its submodules, parameters and buffers, each once, with all names.

`torch`'s own `named_modules()` and `named_parameters()` recurse and drop the second name of what is
shared. This walk uses a stack, so depth does not matter, and keeps every name.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import torch

from pytorch_lab.modules.record import ModuleInfo, TensorInfo

_LAZY = (torch.nn.parameter.UninitializedParameter, torch.nn.parameter.UninitializedBuffer)
MOST_NAMES = 20_000  # of all things together; shared parts inside shared parts multiply


@dataclass(eq=False)
class Slot:
    """A registered tensor while it is being looked at."""

    tensor: torch.Tensor
    kind: str
    persistent: bool
    names: list[str]
    owners: list["Seen"]
    places: set[tuple[int, str]] = field(default_factory=set)  # (id of an owner, name in it)


@dataclass(eq=False)
class Seen:
    """A registered module while it is being looked at."""

    module: torch.nn.Module
    paths: list[str]
    depth: int
    slots: list[Slot] = field(default_factory=list)  # its own tensors that are first named here
    parents: list["Seen"] = field(default_factory=list)
    places: set[tuple[int, str]] = field(default_factory=set)  # (id of a parent, name in it)


@dataclass(eq=False)
class Registry:
    """All that is registered below a root; `modules` in the order of `named_modules()`."""

    modules: list[Seen]
    slots: list[Slot]
    by_id: dict[int, Slot]
    seen: dict[int, Seen]

    @property
    def root(self) -> torch.nn.Module:
        """The module that was given."""
        return self.modules[0].module

    def path_of(self, module: torch.nn.Module) -> str | None:
        """The first path of a registered module; None for another one."""
        found = self.seen.get(id(module))
        return found.paths[0] if found else None


def join(path: str, name: str) -> str:
    """`join("a", "b")` is `"a.b"`, and the root's path is empty."""
    return f"{path}.{name}" if path else name


def children(module: torch.nn.Module) -> list[tuple[str, torch.nn.Module]]:
    """The registered children of one module that are not None."""
    return [(name, child) for name, child in module._modules.items() if child is not None]


def own_tensors(module: torch.nn.Module) -> Iterator[tuple[str, str, torch.Tensor, bool]]:
    """Name, kind, tensor and persistence of what one module itself registers."""
    for name, tensor in module._parameters.items():
        if tensor is not None:
            yield name, "parameter", tensor, True
    left_out = getattr(module, "_non_persistent_buffers_set", ())
    for name, tensor in module._buffers.items():
        if tensor is not None:
            yield name, "buffer", tensor, name not in left_out


def register(root: torch.nn.Module) -> Registry:
    """Walk what is registered below `root`."""
    registry = Registry([], [], {}, {})
    budget = MOST_NAMES
    stack: list[tuple[str, torch.nn.Module, Seen | None, frozenset[int]]] = [
        ("", root, None, frozenset())
    ]
    while stack:
        path, module, parent, above = stack.pop()
        seen = registry.seen.get(id(module))
        if seen is None:
            depth = 0 if parent is None else parent.depth + 1
            seen = Seen(module, [path], depth)
            registry.seen[id(module)] = seen
            registry.modules.append(seen)
            inner: frozenset[int] = frozenset()
        else:
            budget -= 1
            if id(module) in above or budget < 0:
                continue
            seen.paths.append(path)
            inner = above | {id(module)}
        if parent is not None:
            seen.places.add((id(parent), path.rpartition(".")[2]))
            if parent not in seen.parents:
                seen.parents.append(parent)
        _add_tensors(registry, seen, path)
        for name, child in reversed(children(module)):
            stack.append((join(path, name), child, seen, inner))
    return registry


def _add_tensors(registry: Registry, seen: Seen, path: str) -> None:
    for name, kind, tensor, persistent in own_tensors(seen.module):
        full = join(path, name)
        slot = registry.by_id.get(id(tensor))
        if slot is None:
            slot = Slot(tensor, kind, persistent, [full], [seen])
            registry.by_id[id(tensor)] = slot
            registry.slots.append(slot)
            seen.slots.append(slot)
        else:
            slot.names.append(full)
            if seen not in slot.owners:
                slot.owners.append(seen)
        slot.places.add((id(seen), name))


def is_lazy(tensor: torch.Tensor) -> bool:
    """Whether a parameter or buffer waits for its first input to get a shape."""
    return issubclass(type(tensor), _LAZY)  # isinstance is slow here: Parameter has a metaclass


def shape_of(tensor: torch.Tensor) -> tuple[int, ...] | None:
    """The shape as plain numbers; None while lazy, and for a nested tensor, which has several."""
    if is_lazy(tensor) or tensor.is_nested:
        return None
    return tuple(int(size) for size in tensor.shape)


def storage_of(tensor: torch.Tensor) -> tuple[int, int] | None:
    """A key and the bytes of the memory behind a tensor; None where there is no single one."""
    if is_lazy(tensor):
        return None
    try:
        storage = tensor.untyped_storage()
        return storage._cdata, storage.nbytes()
    except (RuntimeError, NotImplementedError, AttributeError):  # sparse, nested, wrapped
        return None


def bytes_of(tensor: torch.Tensor) -> int:
    """Bytes of the elements that are really there: an expanded tensor counts its memory."""
    if is_lazy(tensor):
        return 0
    if tensor.layout is torch.sparse_coo:
        return bytes_of(tensor._indices()) + bytes_of(tensor._values())
    if tensor.layout in (torch.sparse_csr, torch.sparse_bsr):
        inside = (tensor.crow_indices(), tensor.col_indices(), tensor.values())
        return sum(bytes_of(part) for part in inside)
    if tensor.layout in (torch.sparse_csc, torch.sparse_bsc):
        inside = (tensor.ccol_indices(), tensor.row_indices(), tensor.values())
        return sum(bytes_of(part) for part in inside)
    size = tensor.numel() * tensor.element_size()
    storage = storage_of(tensor)
    return min(size, storage[1]) if storage else size


def tensor_info(slot: Slot) -> TensorInfo:
    """The record of one registered tensor."""
    tensor = slot.tensor
    return TensorInfo(
        path=slot.names[0],
        kind=slot.kind,
        shape=shape_of(tensor),
        dtype=str(tensor.dtype).removeprefix("torch."),
        device=str(tensor.device),
        requires_grad=tensor.requires_grad,
        bytes=bytes_of(tensor),
        persistent=slot.persistent,
        aliases=tuple(slot.names[1:]),
    )


@dataclass(slots=True)
class Sums:
    """Elements and bytes of a module and of all below it."""

    n_parameters: int = 0
    n_trainable: int = 0
    bytes: int = 0

    def add(self, other: "Sums") -> None:
        """Add another's numbers to these."""
        self.n_parameters += other.n_parameters
        self.n_trainable += other.n_trainable
        self.bytes += other.bytes


def _numel(tensor: torch.Tensor) -> int:
    return 0 if is_lazy(tensor) else tensor.numel()


def _items(registry: Registry) -> Iterator[tuple[Sums, list[Seen]]]:
    """Each number to be counted once, with the modules that own it."""
    memory: dict[Any, tuple[int, int, list[Seen]]] = {}
    for slot in registry.slots:
        if slot.kind == "parameter":
            count = _numel(slot.tensor)
            yield Sums(count, count if slot.tensor.requires_grad else 0, 0), slot.owners
        size, storage = bytes_of(slot.tensor), storage_of(slot.tensor)
        key, whole = storage if storage else (slot.names[0], size)
        so_far, _, owners = memory.get(key, (0, whole, []))
        memory[key] = (so_far + size, whole, [*owners, *slot.owners])
    for size, whole, owners in memory.values():
        yield Sums(0, 0, min(size, whole)), owners


def sums(registry: Registry) -> dict[int, Sums]:
    """The sums of every module by id: each tensor once, whatever number of ways leads to it.

    What has one owner on one way down is added up from the leaves; only what is shared, or lies
    inside something shared, has to look for all the modules above it.
    """
    found = {id(seen.module): Sums() for seen in registry.modules}
    many_ways: set[int] = set()  # modules that more than one way leads to
    for seen in registry.modules:
        if len(seen.parents) > 1 or any(id(p.module) in many_ways for p in seen.parents):
            many_ways.add(id(seen.module))
    shared = []
    for item, owners in _items(registry):
        if len(owners) == 1 and id(owners[0].module) not in many_ways:
            found[id(owners[0].module)].add(item)
        else:
            shared.append((item, owners))
    for seen in reversed(registry.modules[1:]):  # children stand after their parents
        if seen.parents and id(seen.module) not in many_ways:
            found[id(seen.parents[0].module)].add(found[id(seen.module)])
    for item, owners in shared:
        for seen in _with_all_above(owners):
            found[id(seen.module)].add(item)
    return found


def _with_all_above(owners: list[Seen]) -> list[Seen]:
    """Some modules and all that contain them, each once."""
    above: dict[int, Seen] = {}
    stack = list(owners)
    while stack:
        seen = stack.pop()
        if id(seen) not in above:
            above[id(seen)] = seen
            stack.extend(seen.parents)
    return list(above.values())


def module_infos(registry: Registry) -> tuple[ModuleInfo, ...]:
    """The record of every registered module, as far as looking goes."""
    totals = sums(registry)
    infos = []
    for seen in registry.modules:
        total = totals[id(seen.module)]
        infos.append(
            ModuleInfo(
                path=seen.paths[0],
                type=type_name(seen.module),
                depth=seen.depth,
                training=bool(seen.module.training),
                tensors=tuple(tensor_info(slot) for slot in seen.slots),
                n_parameters=total.n_parameters,
                n_trainable=total.n_trainable,
                bytes=total.bytes,
                lazy=any(is_lazy(slot.tensor) for slot in seen.slots),
                aliases=tuple(seen.paths[1:]),
                extra=extra_of(seen.module),
            )
        )
    return tuple(infos)


def type_name(module: torch.nn.Module) -> str:
    """The class name; a scripted module's is that of its source."""
    if isinstance(module, torch.jit.ScriptModule):
        return str(module.original_name)
    return type(module).__name__


def extra_of(module: torch.nn.Module) -> str:
    """The module's own one-line description; empty if it has none or cannot give it."""
    try:
        return " ".join(str(module.extra_repr()).split())
    except Exception:  # noqa: BLE001 - the learner's code may do anything here
        return ""
