"""The graph behind a result that exists already: nodes alone, because its ops are past.

graph.of(loss)
"""

import inspect
import sys
import types
from collections.abc import Callable

import torch

from pytorch_lab.errors import UsageError
from pytorch_lab.graph.collector import collector_rests
from pytorch_lab.graph.graph_record import GraphRecord, Parts
from pytorch_lab.graph.naming import Names
from pytorch_lab.graph.walking.autograd import walk
from pytorch_lab.graph.walking.frozen import Identity, NodeRows, Reader, nodes_of

_NOTEBOOK = ("In", "Out", "exit", "quit", "get_ipython")  # what IPython puts beside the reader's


def of(tensor: torch.Tensor) -> GraphRecord:
    """The autograd graph behind a result, as a record without ops.

    Leaves are named by the variables of the caller, so that a parameter of `net` is
    `net.fc.weight`. `backward()` and `stepper()` of the record work while the caller keeps the
    result.

    Args:
        tensor: any result, of any shape.

    Raises:
        UsageError: it is not a tensor, or no graph is behind it.

    Example:
        >>> import torch
        >>> net = torch.nn.Linear(3, 1)
        >>> loss = net(torch.ones(2, 3)).mean()
        >>> rec = of(loss)
        >>> rec
        GraphRecord(loss: 0 ops, 5 nodes)
        >>> [node.parameter or node.name for node in rec.nodes]
        ['MeanBackward0', 'AddmmBackward0', 'net.bias', 'TBackward0', 'net.weight']
    """
    if not isinstance(tensor, torch.Tensor):
        raise UsageError(
            f"graph.of(tensor) expected a tensor, got {type(tensor).__name__}; to see what a "
            f"function or a model does, call graph.record(fn, ...)"
        )
    if not tensor.requires_grad:
        raise UsageError(
            "graph.of(tensor) expected a result with a graph behind it, got a tensor that does "
            "not require a gradient: it was made of none that does, or under no_grad, or detached"
        )
    names = _variables(sys._getframe(1))
    with collector_rests():
        reader = _Storages(lambda leaf: names.tensors.get(id(leaf), ("", ""))[1])
        rows = NodeRows()
        rows.read(walk([tensor]), reader)
        nodes = nodes_of(rows.made())
    name = names.tensors.get(id(tensor), ("", ""))[1]
    record = GraphRecord(function=name or "tensor", parts=Parts(nodes=nodes), roots=(0,))
    record.keep([tensor], 0, strongly=False)
    return record


class _Storages(Reader):
    """Numbers the memory that the nodes of a living graph keep."""

    def __init__(self, name: Callable[[torch.Tensor], str]) -> None:
        super().__init__(name)
        self._numbers: dict[int, int] = {}

    def identify(self, tensor: torch.Tensor, op: int | None) -> Identity:
        """See `Reader`."""
        shape, dtype, size, _, _ = super().identify(tensor, op)
        try:
            address = tensor.untyped_storage()._cdata
        except (RuntimeError, NotImplementedError):  # sparse
            return shape, dtype, size, None, None
        return shape, dtype, size, self._numbers.setdefault(address, len(self._numbers)), None


def _variables(frame: types.FrameType) -> Names:
    """What the caller's variables call things; its own before those of its module."""
    names = Names()
    local = frame.f_locals
    for variables in (local, frame.f_globals):
        for name, value in list(variables.items()):
            if not name.startswith("_") and name not in _NOTEBOOK:
                names.value(name, value, "constant")
    if sys.version_info < (3, 13) and frame.f_code.co_flags & inspect.CO_OPTIMIZED:
        local.clear()  # the frame keeps this copy of its variables, and so what they held
    return names
