"""Which tensor is this? Values by identity and version, without keeping any tensor alive.

A tensor is known by its `id`, together with a weak reference: ids are given again when a tensor
dies. Its memory is known by the address of its storage, together with a weak count on the storage,
which keeps the address (but not the memory) from being given again. Both are dropped at the end.

This runs for every op, so it is written for speed: tuples instead of objects, one look-up for all
that equal tensors have in common.
"""

import weakref
from collections.abc import Iterable, Sequence
from typing import Any

import torch

from pytorch_lab.graph.naming import Names
from pytorch_lab.graph.recording.rows import OUTPUTS, Row, Rows
from pytorch_lab.graph.schema import NOWHERE
from pytorch_lab.graph.stats import numbers_of, size_of, sizes_of, summarise
from pytorch_lab.graph.walking.frozen import Look
from pytorch_lab.graph.walking.letting_go import hold_next, is_chosen

# What is known of a living tensor: reference, version, requires_grad, its value, its storage
Known = tuple[Any, int | None, bool, int, int]

# Where the row of a value keeps what is asked for again
NAME, LOOK, VERSION, STORAGE, VIEW_OF, OP, ORIGIN = 2, 3, 6, 7, 8, 9, 10

_reference = weakref.ref
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
        rows: `(place, kind, name, look, requires_grad, is_leaf, version, storage, view_of, op,
            origin)`. The origin is the number of its node, as torch counts them; -1 less the `id`
            of a leaf that asks for a gradient; else None. Nodes are not held: they hold all they
            saved.
        figures: of each row its statistics and its numbers; empty with `values="none"`.
        storage_bytes: of each storage.
        writer: the last op that wrote to a storage.
        late: results of ops that showed only when they were used; see `_maker`.
        known: the tensors that were met, by their `id`.
        devices: on which they are.
    """

    def __init__(self, names: Names, values: str, started: int, ops: Rows) -> None:
        self.rows: list[Row] = []
        self.figures: list[tuple[Any, Any]] = []
        self.storage_bytes: list[int] = []
        self.writer: dict[int, int] = {}
        self.late: dict[int, list[int]] = {}
        self.addresses: dict[int, int] = {}  # of a storage, to its number
        self.known: dict[int, Known] = {}
        self.devices: set[str] = set()
        self._weak: list[Any] = []  # counts on storages
        self._looks: dict[Any, Look] = {}
        self._names = names
        self._values = values
        self.started = started
        self._ops = ops
        self._makers: dict[int, int] = {}  # from the number of a Function's node to its op
        self._transform: int | None = None  # one whose results nobody has met yet

    def read(self, arguments: Iterable[Any], found: list[Known]) -> None:
        """Find the tensors among arguments: what is known of each goes to `found`."""
        table = self.known
        for argument in arguments:
            entry = table.get(id(argument))
            if (
                entry is not None
                and entry[0]() is argument
                and entry[1] is not None
                and entry[1] == argument._version
                and entry[2] is argument.requires_grad
            ):
                found.append(entry)
                continue
            kind = _kinds.get(type(argument))
            if kind is None:
                kind = kind_of_type(type(argument))
            if kind == TENSOR:
                found.append(self.met(argument))
            elif kind == HOLDER:
                self.read(argument.values() if isinstance(argument, dict) else argument, found)

    def met(self, tensor: torch.Tensor) -> Known:
        """The value that a tensor is now; a new row if it changed or was never seen."""
        old = self.known.get(id(tensor))
        if old is None or old[0]() is not tensor:
            return self._first_met(tensor)
        version = version_of(tensor)
        if version == old[1] and tensor.requires_grad is old[2]:
            return old
        op = self._maker(tensor.grad_fn)
        if op is None:
            op = self.writer.get(old[4])
        return self._late(self._again(tensor, old, self.rows[old[3]][NAME], op), op)

    def _first_met(self, tensor: torch.Tensor) -> Known:
        kind, name = self._names.tensors.get(id(tensor), ("constant", ""))
        op = None
        if kind == "constant" and not name:
            node = tensor.grad_fn
            op = self._maker(node) if node is not None else self._transform
            if op is not None or (node is not None and node._sequence_nr() >= self.started):
                kind = "result"
        return self._late(self._new(tensor, kind, name, (), op), op)

    def _late(self, known: Known, op: int | None) -> Known:
        if op is not None and known[3] not in self._ops.ops[op][OUTPUTS]:
            self.late.setdefault(op, []).append(known[3])
        return known

    # What a custom Function or a transform gives is not seen by a function mode. It shows when it
    # is used: by its node, or as the first unknown tensor after the transform.

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
        if sequence < self.started:
            return None
        op = self._makers.get(sequence)
        if op is None:
            name = type(node).__name__.removesuffix("Backward")
            kind = "compiled" if name == "CompiledFunction" else "function"
            op = self._makers[sequence] = self._ops.add(
                name, kind, NOWHERE, "", None, (), (), sequence, sequence + 1, 0, None
            )
        return op

    def made(
        self,
        tensor: torch.Tensor,
        op: int,
        inputs: Sequence[Known],
        origin: int | None = None,
        name: str = "",
    ) -> Known:
        """A tensor that an op returned; the same value if it is an unchanged input.

        Args:
            tensor: the result.
            op: which made it.
            inputs: of that op; the result is a view if it shares the memory of one.
            origin: the number of its node, if it has one and that is known already.
            name: for a tensor that has none.
        """
        old = self.known.get(id(tensor))
        if old is None or old[0]() is not tensor:
            return self._new(tensor, "result", name, inputs, op, origin)
        if version_of(tensor) == old[1] and tensor.requires_grad is old[2]:
            return old
        return self._again(tensor, old, self.rows[old[3]][NAME] or name, op)

    def _again(self, tensor: torch.Tensor, old: Known, name: str, op: int | None) -> Known:
        """A known tensor that is not what it was."""
        return self._new(tensor, "result", name, (), op, None, old)

    def _new(
        self,
        tensor: torch.Tensor,
        kind: str,
        name: str,
        inputs: Sequence[Known],
        op: int | None,
        origin: int | None = None,
        old: Known | None = None,
    ) -> Known:
        """A row for a tensor that was not known, or is not what it was.

        Args:
            tensor: as it is now.
            kind: as in `schema.Value`.
            name: the reader's, or "".
            inputs: of the op that made it; it is a view if it shares the memory of one.
            op: which made it.
            origin: the number of its node, if it has one, and if that is known already.
            old: what was known of it.
        """
        if old is None:
            storage, view_of = self._memory(tensor, inputs)
        else:
            storage, view_of = old[4], self.rows[old[3]][VIEW_OF]
        try:
            version = tensor._version
            look = self._looks[tensor.shape, tensor.stride(), tensor.dtype, tensor.device]
        except KeyError as missing:
            version, look = tensor._version, self._look_of(tensor)
            self._looks[missing.args[0]] = look
        except (RuntimeError, NotImplementedError):  # an inference tensor, sparse, inside vmap
            version, look = version_of(tensor), self._look_of(tensor)
        asks = tensor.requires_grad
        leaf = not asks
        if leaf:
            origin = None
        elif origin is None:
            node = tensor.grad_fn
            leaf = node is None
            origin = -1 - id(tensor) if node is None else node._sequence_nr()
            if node is not None and is_chosen(origin):
                hold_next(node)
        place, reference = len(self.rows), old[0] if old else _reference(tensor)
        known = self.known[id(tensor)] = (reference, version, asks, place, storage)
        self.rows.append(
            (place, kind, name, look, asks, leaf, version, storage, view_of, op, origin)
        )
        if self._values != "none":
            numbers = numbers_of(tensor) if self._values == "full" else None
            self.figures.append((summarise(tensor), numbers))
        return known

    def _memory(self, tensor: torch.Tensor, inputs: Sequence[Known]) -> tuple[int, int | None]:
        """The number of its storage, and which of the inputs it is a view of."""
        try:
            memory = tensor.untyped_storage()
            address, size = memory._cdata, memory.nbytes()
        except (RuntimeError, NotImplementedError):  # sparse, inside vmap
            self.storage_bytes.append(size_of(tensor))
            return len(self.storage_bytes) - 1, None
        storage = self.addresses.get(address)
        if storage is not None:
            return storage, _sharing(inputs, storage)
        storage = self.addresses[address] = len(self.storage_bytes)
        self.storage_bytes.append(size)
        self._weak.append(memory._weak_ref())
        return storage, None

    def _look_of(self, tensor: torch.Tensor) -> Look:
        try:
            stride = () if tensor.is_nested else tensor.stride()
        except (RuntimeError, NotImplementedError):  # sparse
            stride = ()
        dtype, device = str(tensor.dtype).removeprefix("torch."), str(tensor.device)
        self.devices.add(device)
        return sizes_of(tensor), dtype, device, stride, size_of(tensor)

    def origins(self) -> list[int | None]:
        """The node of each value; see `rows`."""
        return [row[ORIGIN] for row in self.rows]

    def living(self) -> list[torch.Tensor]:
        """The tensors with a graph that are still alive, in the order in which they were met."""
        alive = [known[0]() for known in self.known.values() if known[2]]
        return [tensor for tensor in alive if tensor is not None and tensor.grad_fn is not None]

    def number(self, tensor: torch.Tensor) -> int | None:
        """The number of a tensor's storage; None if none of its tensors was met."""
        try:
            return self.addresses.get(tensor.untyped_storage()._cdata)
        except (RuntimeError, NotImplementedError):  # sparse
            return None

    def release(self) -> None:
        """Give back the addresses; afterwards nothing of torch is held."""
        free = torch.UntypedStorage._free_weak_ref
        for weak in self._weak:
            free(weak)
        self._weak.clear()
        self.known.clear()


def tensors_in(value: Any) -> list[torch.Tensor]:
    """The tensors in what a torch function returned: alone, in tuples, lists and dicts."""
    if isinstance(value, torch.Tensor):
        return [value]
    if isinstance(value, dict):
        value = value.values()
    elif not isinstance(value, list | tuple):
        return []
    return [tensor for one in value for tensor in tensors_in(one)]


def _sharing(inputs: Sequence[Known], storage: int) -> int | None:
    for known in inputs:
        if known[4] == storage:
            return known[3]
    return None


def version_of(tensor: torch.Tensor) -> int | None:
    """How often a tensor was written to; None for an inference tensor, which does not count."""
    try:
        return tensor._version
    except RuntimeError:
        return None
