"""A tensor's values in seven numbers: cheap enough to take after every op.

Only `min` and `max` are needed to know that a tensor has no NaN and no inf; the slower count runs
where one of the two is not finite. Nothing here is seen by a mode, moves a random number, or
reaches autograd.
"""

import math

import torch

from pytorch_lab.graph.schema import Shape, Stats
from pytorch_lab.graph.torch_private import plain_torch

_SAFE = 1e-15
MOST_NUMBERS = 64  # elements kept with values="full"


def summarise(tensor: torch.Tensor) -> Stats | None:
    """The figures of one tensor; None where it has none (empty, on no device, inside vmap).

    A complex tensor is measured by its absolute values, a sparse one by what it stores, a boolean
    one as 0 and 1.

    Args:
        tensor: any shape, dtype and device.

    Example:
        >>> summarise(torch.tensor([3.0, 0.0, -4.0, float("inf")]))
        Stats(min=-4.0, max=3.0, mean=-0.333..., norm=5.0, zeros=0.25, nan=0, inf=1)
    """
    with plain_torch(), torch.no_grad():
        try:
            plain = _plain(tensor)
            return None if plain is None else _measure(plain, tensor.numel())
        except (RuntimeError, NotImplementedError, TypeError):  # no kernel, or a wrapper of vmap
            return None


def numbers_of(tensor: torch.Tensor) -> tuple[float, ...] | None:
    """All elements in order, of a tensor with at most `MOST_NUMBERS` of them; else None.

    Example:
        >>> numbers_of(torch.tensor([[1, 2], [3, 4]]))
        (1.0, 2.0, 3.0, 4.0)
    """
    with plain_torch(), torch.no_grad():
        try:
            if tensor.numel() > MOST_NUMBERS or tensor.is_complex():
                return None
            return tuple(float(x) for x in tensor.detach().to_dense().reshape(-1).tolist())
        except (RuntimeError, NotImplementedError, TypeError):
            return None


def _plain(tensor: torch.Tensor) -> torch.Tensor | None:
    """The values as one dense tensor of floating-point numbers."""
    if tensor.is_meta or tensor.numel() == 0:
        return None
    plain = tensor.detach()
    if plain.layout is not torch.strided:
        plain = plain.coalesce()._values() if plain.layout is torch.sparse_coo else plain.values()
    if plain.is_complex():
        plain = plain.abs()
    if plain.dtype not in (torch.float32, torch.float64):
        plain = plain.double() if plain.numel() < 4096 else plain.float()
    return plain if plain.numel() else torch.zeros(1)


def _measure(plain: torch.Tensor, count: int) -> Stats:
    """`count` elements, of which those that are not in `plain` are zeros."""
    low, high = (x.item() for x in torch.aminmax(plain))
    nan = inf = 0
    if not (math.isfinite(low) and math.isfinite(high)):
        nan, inf = int(plain.isnan().sum()), int(plain.isinf().sum())
        plain = plain[plain.isfinite()]
        if plain.numel() == 0:
            return Stats(math.nan, math.nan, math.nan, math.nan, 0.0, nan, inf)
        low, high = (x.item() for x in torch.aminmax(plain))
    largest = max(abs(low), abs(high))
    if largest and not _SAFE < largest < 1 / _SAFE:
        plain = plain.double()  # the squares of such numbers do not fit into float32
    missing = count - plain.numel() - nan - inf
    if missing:
        low, high = min(low, 0.0), max(high, 0.0)
    zeros = missing + plain.numel() - int(torch.count_nonzero(plain))
    mean = plain.sum().item() / max(count - nan - inf, 1)
    return Stats(low, high, mean, torch.linalg.vector_norm(plain).item(), zeros / count, nan, inf)


def sizes_of(tensor: torch.Tensor) -> Shape:
    """The shape, with -1 for what differs between the entries of a nested tensor.

    Example:
        >>> parts = [torch.ones(2, 3), torch.ones(4, 3)]
        >>> sizes_of(torch.nested.nested_tensor(parts, layout=torch.jagged))
        (2, -1, 3)
    """
    if not tensor.is_nested:
        return tuple(tensor.shape)
    return tuple([_size(tensor, place) for place in range(tensor.dim())])


def _size(tensor: torch.Tensor, place: int) -> int:
    try:
        size = tensor.size(place)
    except RuntimeError:  # of the strided layout
        return -1
    return size if type(size) is int else -1  # a symbol in the jagged layout


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
