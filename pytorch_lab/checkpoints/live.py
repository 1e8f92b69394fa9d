"""A dict that is still in memory: what torch.save would write of it, and what it shares.

The tensors of a fresh `state_dict()` are the weights themselves, not copies; a `Watch` knows the
memory of a model's weights and says which tensors of the dict lie in it.
"""

from collections.abc import Mapping
from typing import Any

import numpy
import torch
from torch import nn

from pytorch_lab.checkpoints.contents import Reader
from pytorch_lab.checkpoints.item import Item, plain, spell, spell_key
from pytorch_lab.checkpoints.torch_private import storage_of


class LiveReader(Reader):
    """Makes items of live objects."""

    def __init__(self) -> None:
        super().__init__()
        self.keys: dict[int, str] = {}

    def tensor(self, value: Any, name: str, path: str) -> Item | None:
        """The item of a tensor."""
        if not isinstance(value, torch.Tensor):
            return None
        item = Item(name, path, "tensor", type(value).__name__, value)
        item.dtype = str(value.dtype).removeprefix("torch.")
        item.device, item.requires_grad = str(value.device), value.requires_grad
        if nn.parameter.is_lazy(value):
            item.type = "lazy Parameter"
            return item
        if value.is_nested:
            item.type = f"nested {item.type}"
            return item
        item.shape = tuple(value.shape)
        if value.layout != torch.strided or value.is_meta:
            item.type = item.type if value.is_meta else f"{str(value.layout)[6:]} {item.type}"
            return item
        memory = value.untyped_storage()
        key = self.keys.setdefault(storage_of(memory), str(len(self.keys)))
        self.alive.append(memory)
        item.stride, item.offset = value.stride(), int(value.storage_offset())
        item.storage, item.stored_bytes = key, memory.nbytes()
        return item

    def other(self, value: Any, name: str, path: str) -> Item:
        """The item of anything else."""
        kind = type(value)
        full = kind.__qualname__ if kind.__module__ == "builtins" else ""
        called = full or f"{kind.__module__}.{kind.__qualname__}".removeprefix("collections.")
        if isinstance(value, numpy.generic):
            item = plain(value.item(), name, path) if value.dtype.kind in "biufc" else Item(name)
            item.path, item.type = path, f"numpy.{value.dtype}"
            return item
        if isinstance(value, numpy.ndarray):
            return Item(
                name, path, "array", "numpy.ndarray", value,
                shape=value.shape, dtype=str(value.dtype), device="numpy",
            )  # fmt: skip
        if isinstance(value, Mapping):
            return Item(name, path, "dict", called, value)
        if isinstance(value, list | tuple | set | frozenset):
            return Item(name, path, "list", called, value)
        return Item(name, path, "object", called, value)

    def parts(self, value: Any) -> list[tuple[str, Any]]:
        """What is in a dict or list; of a module, its state_dict."""
        if isinstance(value, nn.Module):
            return [(f"[{key!r}]", one) for key, one in value.state_dict().items()]
        if isinstance(value, Mapping):
            return [(f"[{spell_key(key)}]", one) for key, one in value.items()]
        if isinstance(value, list | tuple | set | frozenset):
            return [(f"[{i}]", one) for i, one in enumerate(value)]
        return []


def refused_by_default(item: Item) -> bool:
    """Whether torch.load would refuse a thing if it were saved, by what it is.

    Example:
        >>> refused_by_default(LiveReader().item({"best": numpy.float64(0.9)}).kids[0])
        True
    """
    if item.kind in ("array", "object"):
        return True
    return item.type.startswith("numpy.") or item.type in ("defaultdict", "deque", "frozenset")


def shared_with(root: Item, model: nn.Module) -> list[tuple[Item, str]]:
    """Tensors of a live dict that lie in a weight of the model: their item and its name."""
    owners: dict[int, str] = {}
    named = [*model.named_parameters(), *model.named_buffers()]
    for name, tensor in named:
        if tensor.layout == torch.strided and not tensor.is_meta and not _lazy(tensor):
            owners.setdefault(storage_of(tensor.untyped_storage()), name)
    found = []
    for item in root.walk():
        tensor = item.value
        if item.kind == "tensor" and item.storage and isinstance(tensor, torch.Tensor):
            name = owners.get(storage_of(tensor.untyped_storage()))
            if name is not None:
                found.append((item, name))
    return found


def _lazy(tensor: torch.Tensor) -> bool:
    return nn.parameter.is_lazy(tensor)


def same_value(saved: Any, live: Any) -> bool:
    """Whether two settings are equal; tensors by their values, others as `==` has it."""
    if isinstance(saved, torch.Tensor) or isinstance(live, torch.Tensor):
        return spell(str(saved)) == spell(str(live))
    try:
        return bool(saved == live)
    except (TypeError, ValueError, RuntimeError):
        return False
