"""What were the tensors before somebody's forward ran? Copies, made early or just in time."""

from collections.abc import Callable, Iterable, Iterator
from typing import Any

import torch

from pytorch_lab.modules.registered import bytes_of, is_lazy, storage_of

COPY_AT_ONCE_BYTES = 64 * 2**20  # up to this size in all, tensors are copied at the start
WRITERS = frozenset({"__setitem__", "__set__", "batch_norm", "instance_norm"})


class Guard:
    """The tensors of a model: what they were, and a copy of what may change."""

    def __init__(self, *groups: Iterable[torch.Tensor]) -> None:
        self._kept: list[_Kept] = []
        self._large: dict[int, list[_Kept]] = {}  # not copied yet, by memory
        for group in groups:
            self._add([_Kept(tensor) for tensor in group])

    def _add(self, group: list["_Kept"]) -> None:
        """Copy a group if it is small; else note where each lies."""
        self._kept.extend(group)
        if sum(bytes_of(kept.tensor) for kept in group) <= COPY_AT_ONCE_BYTES:
            for kept in group:
                kept.copied()
            return
        for kept in group:
            if storage := storage_of(kept.tensor):
                self._large.setdefault(storage[0], []).append(kept)

    def before(self, name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        """Copy what the torch function `name` is about to write to."""
        if not self._large:
            return
        touched = None if name == "backward" else {0}
        if touched and _may_write(name, args, kwargs):
            storages = [storage_of(tensor) for tensor in tensors_in((args, kwargs))]
            touched = {storage[0] for storage in storages if storage}
        for key, group in self._large.items():
            if touched is None or key in touched:
                for kept in group:
                    kept.copied()

    def restore(self) -> None:
        """Put everything back."""
        undo_all([kept.restore for kept in self._kept])


def undo_all(steps: Iterable[Callable[[], None]]) -> None:
    """Take every step; one that fails keeps no other from being taken, and is raised at the end."""
    failed: list[Exception] = []
    for step in steps:
        try:
            step()
        except Exception as error:  # noqa: BLE001 - torch has tensors that refuse nearly anything
            failed.append(error)
    if failed:
        raise failed[0]


class _Kept:
    """One tensor as it was."""

    def __init__(self, tensor: torch.Tensor) -> None:
        self.tensor = tensor
        self.requires_grad, self.is_leaf = tensor.requires_grad, tensor.is_leaf
        self.grad = tensor.grad if tensor.is_leaf else None
        # The same memory, by another object. A nested tensor refuses to give it: it is not kept.
        self.alias = None if is_lazy(tensor) or tensor.is_nested else tensor.data
        self.copy: torch.Tensor | None = None

    def copied(self) -> None:
        if self.copy is None and self.alias is not None and not self.alias.is_meta:
            with torch.no_grad():
                self.copy = self.alias.clone()

    def restore(self) -> None:
        if self.is_leaf and not self.tensor.is_leaf:
            self.tensor.detach_()  # something computed was written into it
        if self.alias is not None:
            self._restore_values(self.alias)
        if self.is_leaf:
            if self.tensor.requires_grad != self.requires_grad:
                self.tensor.requires_grad_(self.requires_grad)
            if self.tensor.grad is not self.grad:
                self.tensor.grad = self.grad

    def _restore_values(self, alias: torch.Tensor) -> None:
        if _moved(self.tensor, alias):
            self.tensor.data = alias
        if self.copy is not None and not _same(alias, self.copy):
            with torch.inference_mode(alias.is_inference()):
                alias.copy_(self.copy)  # not the tensor itself: its version must not move


def _moved(tensor: torch.Tensor, alias: torch.Tensor) -> bool:
    same = tensor.shape == alias.shape and tensor.dtype == alias.dtype
    return not (same and storage_of(tensor) == storage_of(alias))


def _same(left: torch.Tensor, right: torch.Tensor) -> bool:
    try:
        return torch.equal(left, right)
    except (RuntimeError, NotImplementedError):  # a layout without comparison
        return False


def _may_write(name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
    if name in ("embedding", "embedding_bag"):  # with max_norm they renormalise the weight
        return kwargs.get("max_norm", args[3] if len(args) > 3 else None) is not None
    in_place = name.endswith("_") and not name.endswith("__")
    operator = name.startswith("__i") and name.endswith("__")
    return in_place or operator or name in WRITERS or kwargs.get("out") is not None


def tensors_in(value: Any) -> Iterator[torch.Tensor]:
    """The tensors in nested tuples, lists and dicts, as torch functions take them."""
    if isinstance(value, torch.Tensor):
        yield value
    elif isinstance(value, list | tuple):
        for item in value:
            yield from tensors_in(item)
    elif isinstance(value, dict):
        for item in value.values():
            yield from tensors_in(item)
