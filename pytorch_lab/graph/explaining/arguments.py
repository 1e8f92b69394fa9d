"""What the `why_...` questions can be asked about: wrong arguments are named alike by all."""

from typing import Any

import torch

from pytorch_lab.errors import UsageError
from pytorch_lab.graph.graph_record import GraphRecord


def expect_tensor(asker: str, parameter: Any, which: str) -> None:
    """Stop unless the thing in question is a tensor.

    Args:
        asker: the question, `why_none`.
        parameter: what was given.
        which: what the tensor is like.

    Raises:
        UsageError: it is none.
    """
    if not isinstance(parameter, torch.Tensor):
        raise UsageError(
            f"{asker} expected a tensor {which}, got {type(parameter).__name__}; pass the "
            "parameter itself, such as net.fc.weight"
        )


def expect_loss(asker: str, loss: Any, *, records: bool) -> None:
    """Stop unless there is something to look for the gradient in.

    Args:
        asker: the question.
        loss: what was given.
        records: whether a recording is enough: it keeps no graph that could be walked back.

    Raises:
        UsageError: it is neither a tensor nor a function, nor a record where that is enough.

    Example:
        >>> try:
        ...     expect_loss("why_gradient", 3, records=False)
        ... except UsageError as error:
        ...     print(error)
        why_gradient expected a loss tensor or a function that computes it, got int; write
        why_gradient(w, lambda: loss_fn(net(x), y))
    """
    is_record = isinstance(loss, GraphRecord)
    if isinstance(loss, torch.Tensor) or (is_record and records):
        return
    if callable(loss) and not is_record:
        return
    kinds = "a loss tensor, a record or a function that computes the loss"
    wanted = kinds if records else "a loss tensor or a function that computes it"
    how = "write"
    if is_record:
        how = "a record keeps no graph to go back through: give the function that was recorded:"
    raise UsageError(
        f"{asker} expected {wanted}, got {type(loss).__name__}; {how} {asker}(w, lambda: "
        "loss_fn(net(x), y))"
    )


def expect_optional(asker: str, name: str, given: Any, kind: type, called: str) -> None:
    """Stop if an argument by name is of another kind.

    Args:
        asker: the question.
        name: of the argument.
        given: what was given.
        kind: what it is to be, if it is not None.
        called: the kind in words, with its article.

    Raises:
        UsageError: it is of another kind.
    """
    if given is not None and not isinstance(given, kind):
        raise UsageError(
            f"{asker} expected {name}= to be {called} or None, got {type(given).__name__}; "
            f"leave it out or pass {called}"
        )
