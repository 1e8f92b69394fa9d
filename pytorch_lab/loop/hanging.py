"""How much of the graph hangs on a number that is added up, such as `total += loss`."""

from typing import Any

import torch

from pytorch_lab.loop.torch_private import saved


class Hanging:
    """Counts anew after each turn; what hung there before is not walked again.

    Example:
        >>> x, hanging = torch.ones(3, requires_grad=True), Hanging(set())
        >>> total = (x * x).sum()
        >>> hanging.on(total)     # two operations; x is kept twice, 12 bytes
        (2, 12)
        >>> hanging.on(total + (x * x).sum()), hanging.on(3.0)
        ((5, 12), (0, 0))

    Args:
        own: storages that would be there without the graph: those of the parameters.
    """

    def __init__(self, own: set[int]) -> None:
        self._own = own
        self._root: Any = None
        self._nodes, self._storages = 0, dict[int, int]()

    def on(self, value: Any) -> tuple[int, int]:
        """Operations that hang on this value, and the bytes they keep for their backward."""
        root = getattr(value, "grad_fn", None)
        found, storages, met = self._walked(root)
        if met:
            found, storages = found + self._nodes, self._storages | storages
        self._root, self._nodes, self._storages = root, found, storages
        return found, sum(storages.values())

    def _walked(self, root: Any) -> tuple[int, dict[int, int], bool]:
        """The nodes above the earlier root, what they keep, and whether it was met."""
        seen, stack = set(), [root] if root is not None else []
        storages: dict[int, int] = {}
        count, met = 0, False
        while stack:
            node = stack.pop()
            if node in seen:
                continue
            seen.add(node)
            if node is self._root:
                met = True
                continue
            stack.extend(before for before, _ in node.next_functions if before is not None)
            if hasattr(node, "variable"):  # the entrance of a parameter, not an operation
                continue
            count += 1
            storages |= self._kept(node)
        return count, storages, met

    def _kept(self, node: Any) -> dict[int, int]:
        kept = [one.untyped_storage() for one in saved(node) if one.layout == torch.strided]
        return {s.data_ptr(): s.nbytes() for s in kept if s.data_ptr() not in self._own}
