"""Which tensor is this? Values by identity and version, without keeping any tensor alive.

A tensor is known by its `id`, together with a weak reference: ids are given again when a tensor
dies. Its memory is known by the address of its storage, together with a weak count on the storage,
which keeps the address (but not the memory) from being given again. Both are dropped at the end.
"""

import weakref
from typing import Any

import torch

from pytorch_lab.graph.naming import Names
from pytorch_lab.graph.stats import numbers_of, summarise

KINDS = {"parameter": "parameter", "buffer": "buffer", "input": "input", "constant": "constant"}


class Known:
    """What is known of one living tensor."""

    __slots__ = ("asks", "place", "ref", "storage", "version")

    def __init__(self, tensor: torch.Tensor, version: int | None, asks: bool) -> None:
        self.ref = weakref.ref(tensor)
        self.version = version
        self.asks = asks
        self.place = -1  # in `rows`
        self.storage = -1


class Tensors:
    """All values of one recording, as rows in the order of `record.Value`, without its index."""

    def __init__(self, names: Names, values: str, started: int) -> None:
        self.rows: list[tuple[Any, ...]] = []
        self.grad_fns: list[Any] = []  # of each row: a node, a leaf that asks for a gradient, None
        self.storage_bytes: list[int] = []
        self.storages: dict[int, int] = {}  # address to number
        self.writer: dict[int, int] = {}  # storage to the last op that wrote to it
        self._known: dict[int, Known] = {}
        self._weak: list[tuple[Any, Any]] = []
        self._names = names
        self._values = values
        self._started = started
        self._shared: dict[Any, Any] = {}

    def met(self, tensor: torch.Tensor) -> Known:
        """The value that a tensor is at this moment; a new row if it changed or was never seen."""
        known = self._known.get(id(tensor))
        if known is None or known.ref() is not tensor:
            return self._first_met(tensor)
        version = None if known.version is None else tensor._version
        if version != known.version or tensor.requires_grad is not known.asks:
            old = self.rows[known.place]
            known.version = version
            known.asks = tensor.requires_grad
            writer = self.writer.get(known.storage)
            self._add(tensor, known, "result", old[1], old[11], writer)
        return known

    def _first_met(self, tensor: torch.Tensor) -> Known:
        kind, name = self._names.tensors.get(id(tensor), ("constant", ""))
        known = self._know(tensor)
        node = tensor.grad_fn
        if kind == "constant" and node is not None and node._sequence_nr() >= self._started:
            kind = "result"
        self._add(tensor, known, kind, name, None, None)
        return known

    def made(self, tensor: torch.Tensor, op: int, inputs: list[Known]) -> Known:
        """A tensor that an op returned; the same value if it is an unchanged input."""
        known = self._known.get(id(tensor))
        if known is not None and known.ref() is tensor:
            version = None if known.version is None else tensor._version
            if version == known.version and tensor.requires_grad is known.asks:
                return known
            known.version = version
            known.asks = tensor.requires_grad
            self._add(tensor, known, "result", "", self.rows[known.place][11], op)
            return known
        known = self._know(tensor)
        view_of = None
        for other in inputs:
            if other.storage == known.storage:
                view_of = other.place
                break
        self._add(tensor, known, "result", "", view_of, op)
        return known

    def _know(self, tensor: torch.Tensor) -> Known:
        version = None if tensor.is_inference() else tensor._version
        known = self._known[id(tensor)] = Known(tensor, version, tensor.requires_grad)
        known.storage = self._storage(tensor)
        return known

    def _storage(self, tensor: torch.Tensor) -> int:
        try:
            storage = tensor.untyped_storage()
            address = storage._cdata
        except (NotImplementedError, RuntimeError):  # sparse, inside vmap, nested
            self.storage_bytes.append(size_of(tensor))
            return len(self.storage_bytes) - 1
        number = self.storages.get(address)
        if number is None:
            number = self.storages[address] = len(self.storage_bytes)
            self.storage_bytes.append(storage.nbytes())
            self._weak.append((type(storage), storage._weak_ref()))
        return number

    def _add(
        self,
        tensor: torch.Tensor,
        known: Known,
        kind: str,
        name: str,
        view_of: int | None,
        op: int | None,
    ) -> None:
        shared = self._shared
        shape = tuple(tensor.shape)
        dtype, device = tensor.dtype, tensor.device
        try:
            stride = tensor.stride()
        except (RuntimeError, NotImplementedError):  # sparse
            stride = ()
        leaf = tensor.is_leaf
        node = tensor.grad_fn
        known.place = len(self.rows)
        self.grad_fns.append(tensor if leaf and known.asks else node)
        self.rows.append(
            (
                kind,
                name,
                shared.get(shape) or shared.setdefault(shape, shape),
                shared.get(dtype) or shared.setdefault(dtype, str(dtype).removeprefix("torch.")),
                shared.get(device) or shared.setdefault(device, str(device)),
                shared.get(stride) or shared.setdefault(stride, stride),
                size_of(tensor),
                known.asks,
                leaf,
                known.version,
                known.storage,
                view_of,
                op,
                None if self._values == "none" else summarise(tensor),
                numbers_of(tensor) if self._values == "full" else None,
            )
        )

    def release(self) -> None:
        """Give back the addresses; afterwards nothing of torch is held."""
        for kind, weak in self._weak:
            kind._free_weak_ref(weak)
        self._weak.clear()
        self._known.clear()
        self.grad_fns.clear()


def size_of(tensor: torch.Tensor) -> int:
    """Bytes of a tensor's elements; of a sparse one, of what it stores."""
    try:
        if tensor.layout is torch.strided:
            return tensor.nbytes
        if tensor.layout is torch.sparse_coo:
            return tensor._values().nbytes + tensor._indices().nbytes
        return tensor.values().nbytes
    except (RuntimeError, NotImplementedError):
        return 0
