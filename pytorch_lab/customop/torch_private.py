"""Everything of torch without a promise that this room uses, and what happens without it.

`Tensor._version` counts writes to a tensor; without it nothing is said of one that a Function keeps
as an attribute of `ctx` and that was changed afterwards.
"""

from torch import Tensor


def is_changed(tensor: Tensor) -> bool:
    """Whether somebody has written to a tensor since it was made.

    Example:
        >>> import torch
        >>> is_changed(torch.ones(2)), is_changed(torch.ones(2).add_(1))
        (False, True)
    """
    try:
        return tensor._version > 0
    except (AttributeError, RuntimeError):  # made in inference mode: it has none
        return False
