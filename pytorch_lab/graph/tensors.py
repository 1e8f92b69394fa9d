"""Which tensor is this? Values by identity and version, without keeping any tensor alive.

A tensor is known by its `id`, together with a weak reference: ids are given again when a tensor
dies. Its memory is known by the address of its storage, together with a weak count on the storage,
which keeps the address (but not the memory) from being given again. Both are dropped at the end.

This runs for every op, so it is written for speed: tuples instead of objects, one look-up for all
that equal tensors have in common.
"""

import weakref
from collections.abc import Iterable
from typing import Any

import torch

from pytorch_lab.graph.naming import Names
from pytorch_lab.graph.record import Shape, Value
from pytorch_lab.graph.rows import Row
from pytorch_lab.graph.stats import numbers_of, summarise

# What is known of a living tensor: reference, version, requires_grad, its value, its storage
Known = tuple[Any, int | None, bool, int, int]
Look = tuple[Shape, str, str, Shape, int]  # shape, dtype, device, stride, bytes

ATOM, TENSOR, HOLDER = range(3)
_kinds: dict[type, int] = {}


def kind_of_type(kind: type) -> int:
    """Whether an argument of this type is a tensor, may hold some, or neither."""
    if issubclass(kind, torch.Tensor):
        found = TENSOR
    elif issubclass(kind, list | tuple | dict) and kind is not torch.Size:
        found = HOLDER
    else:
        found = ATOM
    if kind.__module__ in ("builtins", "torch", "torch.nn.parameter"):  # those that never die
        _kinds[kind] = found
    return found


class Tensors:
    """All values of one recording, as rows.

    Attributes:
        rows: `(kind, name, look, requires_grad, is_leaf, version, storage, view_of, op)`.
        origins: of each row its `grad_fn`; the `id` of a leaf that asks for a gradient; else None.
        figures: of each row its statistics and its numbers; empty with `values="none"`.
        storage_bytes: of each storage.
        writer: the last op that wrote to a storage.
        late: results of ops that showed only when they were used; see `_maker`.
    """

    def __init__(self, names: Names, values: str, started: int, ops: list[Row]) -> None:
        self.rows: list[tuple[Any, ...]] = []
        self.origins: list[Any] = []
        self.figures: list[tuple[Any, Any]] = []
        self.storage_bytes: list[int] = []
        self.writer: dict[int, int] = {}
        self.late: dict[int, list[int]] = {}
        self.addresses: dict[int, int] = {}  # of a storage, to its number
        self._known: dict[int, Known] = {}
        self._weak: list[tuple[Any, Any]] = []
        self._looks: dict[Any, Look] = {}
        self._names = names
        self._values = values
        self._started = started
        self._ops = ops
        self._makers: dict[int, int] = {}  # from the number of a Function's node to its op
        self._transform: int | None = None  # one whose results nobody has met yet

    def read(
        self, arguments: Iterable[Any], tensors: list[torch.Tensor], known: list[Known]
    ) -> None:
        """Find the tensors among arguments, and what is known of each."""
        table = self._known
        for argument in arguments:
            kind = _kinds.get(type(argument))
            if kind is None:
                kind = kind_of_type(type(argument))
            if kind == TENSOR:
                entry = table.get(id(argument))
                if (
                    entry is None
                    or entry[0]() is not argument
                    or entry[1] is None
                    or entry[1] != argument._version
                    or entry[2] is not argument.requires_grad
                ):
                    entry = self.met(argument)
                tensors.append(argument)
                known.append(entry)
            elif kind == HOLDER:
                held = argument.values() if isinstance(argument, dict) else argument
                self.read(held, tensors, known)

    def met(self, tensor: torch.Tensor) -> Known:
        """The value that a tensor is now; a new row if it changed or was never seen."""
        old = self._known.get(id(tensor))
        if old is None or old[0]() is not tensor:
            return self._first_met(tensor)
        version = version_of(tensor)
        if version == old[1] and tensor.requires_grad is old[2]:
            return old
        before = self.rows[old[3]]
        op = self._maker(tensor.grad_fn)
        if op is None:
            op = self.writer.get(old[4])
        return self._late(self._add(tensor, old, "result", before[1], before[7], op), op)

    def _first_met(self, tensor: torch.Tensor) -> Known:
        kind, name = self._names.tensors.get(id(tensor), ("constant", ""))
        op = None
        if kind == "constant" and not name:
            node = tensor.grad_fn
            op = self._maker(node) if node is not None else self._transform
            if op is not None or (node is not None and node._sequence_nr() >= self._started):
                kind = "result"
        return self._late(self._add(tensor, None, kind, name, None, op), op)

    def _late(self, known: Known, op: int | None) -> Known:
        if op is not None and known[3] not in self._ops[op].outputs:
            self.late.setdefault(op, []).append(known[3])
        return known

    # What a custom Function or a transform gives is not seen by a function mode. It shows when it is
    # used: by its node, or as the first unknown tensor after the transform.

    def open_region(self, op: int, sequence: int | None) -> None:
        """A region begins; `sequence` is the number of its node, if it has one."""
        self._transform = None
        if sequence is not None:
            self._makers[sequence] = op

    def close_region(self, op: int, kind: str) -> None:
        """A region is over."""
        self._transform = op if kind == "transform" else None

    def _maker(self, node: Any) -> int | None:
        """The op of the Function that a node belongs to; made now if nothing in it was seen."""
        if not isinstance(node, torch.autograd.function.BackwardCFunction):
            return None
        sequence = node._sequence_nr()
        if sequence < self._started:
            return None
        op = self._makers.get(sequence)
        if op is None:
            op = self._makers[sequence] = len(self._ops)
            name = node.name().removesuffix("Backward")
            kind = "compiled" if name == "CompiledFunction" else "function"
            row = (
                name,
                kind,
                None,
                None,
                (),
                (),
                sequence,
                sequence + 1,
                False,
                "grad",
                None,
                None,
                0,
            )
            self._ops.append(Row(*row))
        return op

    def made(self, tensor: torch.Tensor, op: int, inputs: list[Known], name: str = "") -> Known:
        """A tensor that an op returned; the same value if it is an unchanged input."""
        old = self._known.get(id(tensor))
        if old is None or old[0]() is not tensor:
            return self._add(tensor, None, "result", name, inputs, op)
        if version_of(tensor) == old[1] and tensor.requires_grad is old[2]:
            return old
        before = self.rows[old[3]]
        return self._add(tensor, old, "result", before[1] or name, before[7], op)

    def _add(
        self,
        tensor: torch.Tensor,
        old: Known | None,
        kind: str,
        name: str,
        view_of: Any,  # a value, or the inputs among which it may be
        op: int | None,
    ) -> Known:
        place = len(self.rows)
        node = tensor.grad_fn
        asks = node is not None or tensor.requires_grad
        version = version_of(tensor)
        if old is None:
            storage, is_new = self._storage(tensor)
            if type(view_of) is list:
                view_of = None if is_new else _sharing(view_of, storage)
            entry = (weakref.ref(tensor), version, asks, place, storage)
        else:
            storage = old[4]
            entry = (old[0], version, asks, place, storage)
        self._known[id(tensor)] = entry
        self.origins.append(node if node is not None else id(tensor) if asks else None)
        look = self._look(tensor)
        self.rows.append((kind, name, look, asks, node is None, version, storage, view_of, op))
        if self._values != "none":
            numbers = numbers_of(tensor) if self._values == "full" else None
            self.figures.append((summarise(tensor), numbers))
        return entry

    def _storage(self, tensor: torch.Tensor) -> tuple[int, bool]:
        """The number of its storage, and whether it was given now."""
        number = len(self.storage_bytes)
        try:
            storage = tensor.untyped_storage()
            address = storage._cdata
        except (NotImplementedError, RuntimeError):  # sparse, inside vmap
            self.storage_bytes.append(size_of(tensor))
            return number, True
        known = self.addresses.get(address)
        if known is not None:
            return known, False
        self.addresses[address] = number
        self.storage_bytes.append(storage.nbytes())
        self._weak.append((type(storage), storage._weak_ref()))
        return number, True

    def last(self, tensor: torch.Tensor) -> Known | None:
        """What was known last of a tensor; None if it was never met."""
        known = self._known.get(id(tensor))
        return known if known is not None and known[0]() is tensor else None

    def number(self, tensor: torch.Tensor) -> int | None:
        """The number of a tensor's storage; None if none of its tensors was met."""
        try:
            return self.addresses.get(tensor.untyped_storage()._cdata)
        except (RuntimeError, NotImplementedError):  # sparse
            return None

    def _look(self, tensor: torch.Tensor) -> Look:
        try:
            key: Any = (tensor.shape, tensor.stride(), tensor.dtype, tensor.device)
        except (RuntimeError, NotImplementedError):  # sparse: no stride, and bytes of its own
            return (*_spelled(tensor), (), size_of(tensor))
        look = self._looks.get(key)
        if look is None:
            look = self._looks[key] = (*_spelled(tensor), key[1], size_of(tensor))
        return look

    def values(self, node_of: list[int | None]) -> tuple[Value, ...]:
        """The rows as records, given the node of each."""
        figures = self.figures or [(None, None)] * len(self.rows)
        new, kind = tuple.__new__, Value
        return tuple(
            [
                new(kind, (i, *row[:2], *row[2], *row[3:], node, *two))
                for i, (row, node, two) in enumerate(zip(self.rows, node_of, figures, strict=True))
            ]
        )

    def release(self) -> None:
        """Give back the addresses; afterwards nothing of torch is held."""
        for kind, weak in self._weak:
            kind._free_weak_ref(weak)
        self._weak.clear()
        self._known.clear()
        self.origins.clear()


def tensors_in(value: Any) -> list[torch.Tensor]:
    """The tensors in what a torch function returned: alone, in tuples, lists and dicts."""
    if isinstance(value, torch.Tensor):
        return [value]
    if isinstance(value, dict):
        value = value.values()
    elif not isinstance(value, list | tuple):
        return []
    return [tensor for one in value for tensor in tensors_in(one)]


def _spelled(tensor: torch.Tensor) -> tuple[Shape, str, str]:
    return tuple(tensor.shape), str(tensor.dtype).removeprefix("torch."), str(tensor.device)


def _sharing(inputs: list[Known], storage: int) -> int | None:
    return next((known[3] for known in inputs if known[4] == storage), None)


def version_of(tensor: torch.Tensor) -> int | None:
    """How often a tensor was written to; None for an inference tensor, which does not count."""
    try:
        return tensor._version
    except RuntimeError:
        return None


def size_of(tensor: torch.Tensor) -> int:
    """Bytes of a tensor's elements; of a sparse one, of what it stores."""
    try:
        if tensor.layout is torch.strided:
            return tensor.numel() * tensor.element_size()
        if tensor.layout is torch.sparse_coo:
            return tensor._values().nbytes + tensor._indices().nbytes
        return tensor.values().nbytes
    except (RuntimeError, NotImplementedError):
        return 0
