"""Everything of torch without a promise that this room uses, and what happens without it.

`Tensor._version` counts writes to a tensor; without it each look at the gradients measures them.
`_saved_*` of a graph's node are the tensors it keeps for its backward; without them a graph is said
to keep no bytes.
"""

import functools
from collections.abc import Iterable, Iterator
from typing import Any

import torch


def versions(tensors: Iterable[torch.Tensor | None]) -> list[Any]:
    """What changes with each write to one of the tensors.

    Example:
        >>> x = torch.zeros(2)
        >>> before = versions([x, None])
        >>> before == versions([x, None]), before == versions([x.add_(1), None])
        (True, False)
    """
    try:
        return [None if tensor is None else tensor._version for tensor in tensors]
    except (AttributeError, RuntimeError):  # made in inference mode: it has none
        return [object()]


def saved(node: Any) -> Iterator[torch.Tensor]:
    """The tensors that a node of the graph keeps; none when backward has freed them.

    Example:
        >>> x = torch.ones(2, requires_grad=True)
        >>> len(list(saved((x * x).grad_fn)))
        2
    """
    for name in _names(type(node)):
        try:
            value = getattr(node, name)
        except RuntimeError:  # freed
            return
        if isinstance(value, torch.Tensor):
            yield value


@functools.cache
def _names(kind: type) -> tuple[str, ...]:
    return tuple(name for name in dir(kind) if name.startswith("_saved_"))
