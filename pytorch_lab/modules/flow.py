"""Which parameters have a part in the output? The flow of data through torch's functions.

A `TorchFunctionMode` sees every torch function with its arguments and results. Each call becomes a
node whose parents are the calls (or the parameters, buffers, inputs) that its arguments came from;
at the end the way back from the output shows what had a part in it. Unlike the autograd graph this
also follows frozen parameters, `no_grad`, `detach` and integers. What is read into Python
(`.item()`, an `if` on a tensor) counts as having a part, because nobody can tell what became of it;
and a tensor from an unseen source counts as made of everything before it. So a parameter that is
called unused certainly is.
"""

import sys
import weakref
from collections.abc import Callable, Iterable
from typing import Any

import torch
from torch.overrides import TorchFunctionMode

from pytorch_lab.modules.copies import Guard, tensors_in
from pytorch_lab.modules.lines import line_of_caller

READS = frozenset(
    {"item", "tolist", "numpy", "equal", "allclose", "is_nonzero", "data_ptr", "__array__"}
    | {"__bool__", "__float__", "__int__", "__index__", "__complex__", "__contains__"}
)


class Flow(TorchFunctionMode):
    """Records the calls; `known` are the tensors that exist before, each a source of its own."""

    def __init__(self, known: Iterable[torch.Tensor], guard: Guard) -> None:
        super().__init__()
        self.parents: list[tuple[int, ...]] = []
        self.sources: dict[int, torch.Tensor] = {}  # node -> the tensor that it stands for
        self.foreign: list[tuple[torch.Tensor, str]] = []  # leaves of nobody, and where they serve
        self.touched: dict[int, int] = {}  # ids of known tensors -> the node that first took them
        self._known: dict[int, torch.Tensor] = {}
        self._node_of: dict[int, tuple[Any, int]] = {}  # by id of a tensor, with a weak reference
        self._written: dict[int, tuple[Any, int]] = {}  # the same for memory that views share
        self._before: dict[int, int] = {}  # node that came from nowhere -> nodes before it
        self._read: list[int] = []  # nodes whose values went to Python
        self._guard = guard
        for tensor in known:
            self.know(tensor)

    def know(self, tensor: torch.Tensor) -> None:
        """Make a tensor a source: it exists without any call of this run."""
        if id(tensor) not in self._known:
            self._known[id(tensor)] = tensor
            self.sources[self._add(())] = tensor
            self._node_of[id(tensor)] = (weakref.ref(tensor), len(self.parents) - 1)

    def __torch_function__(
        self,
        func: Callable[..., Any],
        types: Any,
        args: tuple[Any, ...] = (),
        kwargs: dict[str, Any] | None = None,
    ) -> Any:
        """Run the function, and note what came from what."""
        kwargs = kwargs or {}
        name = getattr(func, "__name__", "")
        self._guard.before(name, args, kwargs)
        result = func(*args, **kwargs)
        self._note(name, args, kwargs, result)
        return result

    def _note(self, name: str, args: Any, kwargs: dict[str, Any], result: Any) -> None:
        taken = list(tensors_in((args, kwargs)))
        made = [] if name in READS else list(tensors_in(result))
        writes = [] if made else _written_by(name, args, kwargs)
        if not made and not writes:
            if name in READS:
                self._read.extend(node for tensor in taken for node in self.nodes_of(tensor))
            return  # .shape, .dtype, .size()
        node = self._add({node for tensor in taken for node in self.nodes_of(tensor)})
        inputs = {id(tensor) for tensor in taken}
        for tensor in (*made, *writes):
            self._node_of[id(tensor)] = (weakref.ref(tensor), node)
            if id(tensor) in inputs:  # it comes back: it was written to, or may have been
                cell = _cell(tensor)
                self._written[id(cell)] = (weakref.ref(cell), node)

    def _add(self, parents: Iterable[int]) -> int:
        self.parents.append(tuple(parents))
        return len(self.parents) - 1

    def nodes_of(self, tensor: torch.Tensor) -> list[int]:
        """The nodes that a tensor's present value comes from."""
        found = []
        known = self._node_of.get(id(tensor))
        if known is not None and known[0]() is tensor:
            found.append(known[1])
            if id(tensor) in self._known:
                self.touched.setdefault(id(tensor), len(self.parents))
        else:
            found.append(self._from_nowhere(tensor))
        cell = _cell(tensor)
        written = self._written.get(id(cell))
        if written is not None and written[0]() is cell:
            found.append(written[1])
        return found

    def derive(self, outputs: Iterable[torch.Tensor], sources: Iterable[torch.Tensor]) -> None:
        """Say that `outputs` came from `sources`, by a way that no call shows."""
        node = self._add([node for tensor in sources for node in self.nodes_of(tensor)])
        for tensor in outputs:
            self._node_of[id(tensor)] = (weakref.ref(tensor), node)

    def _from_nowhere(self, tensor: torch.Tensor) -> int:
        """A node for a tensor whose making was not seen: it may depend on all before."""
        node = self._add(())
        self._before[node] = node
        self._node_of[id(tensor)] = (weakref.ref(tensor), node)
        if tensor.is_leaf and tensor.requires_grad and not _is_wrapped(tensor):
            self.foreign.append((tensor, line_of_caller(sys._getframe())))
        return node

    def changed(self, tensor: torch.Tensor) -> bool:
        """Whether a tensor that was there before has been written to."""
        node = self._node_of.get(id(tensor), (None, 0))[1]
        return node not in self.sources or id(_cell(tensor)) in self._written

    def origins(self, outputs: Iterable[torch.Tensor]) -> set[int]:
        """The ids of the known tensors that the outputs were made of."""
        stack = [node for tensor in outputs for node in self.nodes_of(tensor)] + self._read
        reached: set[int] = set()
        all_below = 0
        while stack:
            node = stack.pop()
            if node in reached:
                continue
            reached.add(node)
            stack.extend(self.parents[node])
            all_below = max(all_below, self._before.get(node, 0))
        return {
            id(tensor)
            for node, tensor in self.sources.items()
            if node in reached or self.touched.get(id(tensor), all_below) < all_below
        }


def _cell(tensor: torch.Tensor) -> torch.Tensor:
    """The tensor whose memory this one is a view of."""
    base = tensor._base
    return tensor if base is None else base


def _is_wrapped(tensor: torch.Tensor) -> bool:
    """Whether a tensor is one of `vmap`'s or `torch.func.grad`'s stand-ins."""
    functorch = getattr(torch._C, "_functorch", None)
    return bool(functorch and functorch.is_functorch_wrapped_tensor(tensor))


def _written_by(name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> list[torch.Tensor]:
    """What a function without a result wrote to: `x[0] = y`, `x.data = y`, `_foreach_add_`."""
    in_place = name in ("__setitem__", "__set__") or (name.endswith("_") and name[-2:] != "__")
    return list(tensors_in(args[:1])) if in_place else list(tensors_in(kwargs.get("out")))
