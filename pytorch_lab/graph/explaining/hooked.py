"""Where are hooks put on tensors? Torch cannot be asked afterwards, so it is watched."""

import sys
from typing import Any

import torch
from torch.overrides import TorchFunctionMode

from pytorch_lab.graph.recording.sites import Sites
from pytorch_lab.graph.schema import Site
from pytorch_lab.graph.walking.nodes import sequence_of


class HookWatch(TorchFunctionMode):
    """Notes on the results of which nodes hooks are put while it is on.

    Attributes:
        found: by the sequence number of the node, the line that put the hook there.

    Example:
        >>> with HookWatch() as watch:
        ...     y = torch.ones(2, requires_grad=True) * 2
        ...     handle = y.register_hook(lambda grad: grad * 0)
        >>> [site.where for site in watch.found.values()]
        ['cell line 3']
    """

    def __init__(self) -> None:
        super().__init__()
        self.found: dict[int, Site] = {}

    def __torch_function__(
        self, func: Any, types: Any, args: Any = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        """Called by torch for every function."""
        if func is torch.Tensor.register_hook and args[0].grad_fn is not None:
            self.found[sequence_of(args[0].grad_fn)] = Sites().here(sys._getframe(1))
        return func(*args, **(kwargs or {}))
