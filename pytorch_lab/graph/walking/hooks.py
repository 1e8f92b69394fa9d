"""Whether a graph that was recorded can have hooks on it.

Torch gives no way to find a hook on a node or on a tensor that is not at hand. But it numbers the
handles of all hooks that are put anywhere, so that none came while the number stands still. What
can have been there before are the nodes of leaves, which are asked; and `retain_grad` gives no
handle, so the tensors that outlived the recording are asked as well.
"""

import weakref
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import torch
from torch.utils.hooks import RemovableHandle

from pytorch_lab.graph.schema import Node
from pytorch_lab.graph.walking.autograd import Live, edge_of
from pytorch_lab.graph.walking.frozen import nothing


class Recorded:
    """The live graph of a recording during which no hook was put anywhere.

    Args:
        live: the graph, its places those of the record.
        nodes: the records, one for each place.
        tensors: with a graph, that were alive when the recording ended.
    """

    def __init__(
        self, live: Live, nodes: Sequence[Node], tensors: Sequence[weakref.ref[torch.Tensor]]
    ) -> None:
        self.live = live
        self.nodes = tuple(nodes)
        self._tensors = tensors
        self._handles = handles_made()

    def may_have_hooks(self, root: torch.Tensor) -> bool:
        """Whether a hook can have come since, or the graph of `root` is another one now.

        Args:
            root: where backward shall begin.
        """
        edge = edge_of(root)
        if handles_made() != self._handles or edge is None or edge[0] not in self.live.place:
            return True
        if torch.distributed.is_available() and torch.distributed.is_initialized():
            return True  # data-parallel models put hooks on leaves that Python doesn't see
        alive = [one() for one in self._tensors]
        return any(tensor is not None and tensor.retains_grad for tensor in alive)


def handles_made() -> int:
    """How many handles of hooks torch has made by now for others than us.

    Example:
        >>> import torch
        >>> before = handles_made()
        >>> handle = torch.ones(2, requires_grad=True).register_hook(print)
        >>> handles_made() - before
        1
    """
    return RemovableHandle.next_id - _Ours.made


class _Ours:
    made = 0


@contextmanager
def our_handles() -> Iterator[None]:
    """What is put on a node or a module in here is ours, and will be gone.

    Example:
        >>> import torch
        >>> before = handles_made()
        >>> with our_handles():
        ...     torch.ones(2, requires_grad=True).register_hook(print).remove()
        >>> handles_made() - before
        0
    """
    before = RemovableHandle.next_id
    try:
        yield
    finally:
        _Ours.made += RemovableHandle.next_id - before


def recorded_without_hooks(
    live: Live,
    nodes: Sequence[Node],
    tensors: Sequence[weakref.ref[torch.Tensor]],
    handles: int,
) -> Recorded | None:
    """What a recording leaves, if there cannot be a hook on its graph; else None.

    Args:
        live: the graph.
        nodes: its records, one for each place.
        tensors: those with a graph that are alive.
        handles: `handles_made()` before the recording.
    """
    if handles_made() != handles:
        return None
    leaves = []
    for node in nodes:
        if node.kind != "accumulate":
            if node.op is None:
                return None  # it was there before, or made where nobody looked
        else:
            leaves.append(live.nodes[node.index])
    with our_handles():
        if any(map(_is_hooked, leaves)):
            return None
    return Recorded(live, nodes, tensors)


def _is_hooked(leaf: torch.autograd.graph.Node) -> bool:
    """Whether there are hooks on the node of a leaf: with one more there would be two."""
    for register in (leaf.register_prehook, leaf.register_hook):
        probe = register(nothing)
        hooks = probe.hooks_dict_ref()
        probe.remove()
        if hooks:
            return True
    return False
