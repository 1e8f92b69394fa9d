"""Two Jacobians of the same function: from its backward, and from differences of its forward.

The step and the formula of the differences are those of `torch.autograd.gradcheck`: central, with
`eps` to both sides. Matrices have a row for each element of the output and a column for each of the
input.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from pytorch_lab.customop.subject import MOST_PARTIALS, Subject
from pytorch_lab.errors import UsageError
from pytorch_lab.words import message_of

Jacobians = list[list[Tensor]]  # one matrix for each output and each input


class BackwardFailed(Exception):
    """Backward raised; `str()` is what it said."""


@dataclass
class Analytic:
    """What backward gives.

    Attributes:
        jacobians: of each output, of each input.
        missing: pairs of output and input for which backward gives None, or which have no graph.
        cut: outputs without a graph, although they are made from the inputs.
        touched: whether backward wrote to its `grad_output`.
    """

    jacobians: Jacobians
    missing: set[tuple[int, int]]
    cut: list[int]
    touched: bool = False


def analytic(subject: Subject) -> Analytic:
    """Row by row: the gradient of each output element.

    Raises:
        BackwardFailed: it raised.
        UsageError: there are too many partial derivatives.
    """
    leaves = subject.copies(grad=True)
    outputs = list(subject.outputs(leaves).values())
    _refuse_many(outputs, leaves)
    found = Analytic([], set(), [])
    for place, output in enumerate(outputs):
        rows: list[list[Tensor]] = [[] for _ in leaves]
        if not output.requires_grad:
            found.cut.append(place)
        for element in range(output.numel()):
            seed = torch.zeros_like(output, memory_format=torch.contiguous_format)
            seed.view(-1)[element] = 1.0
            before = seed.clone()
            for k, grad in enumerate(vjp(output, leaves, seed)):
                if grad is None:
                    found.missing.add((place, k))
                rows[k].append(_flat(grad, leaves[k]))
            found.touched |= not torch.equal(seed, before)
        found.jacobians.append(
            [
                torch.stack(row) if row else torch.zeros(0, leaf.numel(), dtype=torch.float64)
                for row, leaf in zip(rows, leaves, strict=True)
            ]
        )
    return found


def vjp(output: Tensor, leaves: Sequence[Tensor], v: Tensor) -> list[Tensor | None]:
    """What backward makes of `v`, for each input; None where it gives none.

    Raises:
        BackwardFailed: it raised.
    """
    if not output.requires_grad:
        return [None for _ in leaves]
    wanted = [leaf for leaf in leaves if leaf.requires_grad]
    try:
        grads = list(torch.autograd.grad(output, wanted, v, retain_graph=True, allow_unused=True))
    except Exception as error:
        raise BackwardFailed(f"{type(error).__name__}: {message_of(error)}") from error
    found = [grads.pop(0) if leaf.requires_grad else None for leaf in leaves]
    # That of an Embedding may be sparse.
    return [one.to_dense() if one is not None and one.is_sparse else one for one in found]


def _flat(grad: Tensor | None, leaf: Tensor) -> Tensor:
    if grad is None:
        return torch.zeros(leaf.numel(), dtype=torch.float64, device="cpu")
    return grad.detach().to("cpu", torch.float64).reshape(-1)


def _refuse_many(outputs: Sequence[Tensor], leaves: Sequence[Tensor]) -> None:
    rows, columns = (sum(one.numel() for one in group) for group in (outputs, leaves))
    if rows * columns > MOST_PARTIALS:
        raise UsageError(
            f"check(fn, *inputs) compares each partial derivative, and {rows:,} outputs by "
            f"{columns:,} inputs are {rows * columns:,}: more than {MOST_PARTIALS:,}. Give smaller "
            "inputs: a formula that is right for 3 rows is right for 3,000."
        )


def flat_outputs(subject: Subject, values: Sequence[Tensor]) -> list[Tensor]:
    """Each output in a row, in double precision, without a graph.

    Raises:
        UsageError: an output changes its shape with the values.
    """
    with torch.no_grad():
        outputs = subject.outputs(values)
    return [one.detach().to("cpu", torch.float64).reshape(-1) for one in outputs.values()]


def moved(
    subject: Subject, place: int, column: int, step: float, like: list[Tensor]
) -> list[Tensor]:
    """The outputs where one element of one input is moved by `step`.

    Raises:
        UsageError: an output has another size than in `like`.
    """
    values = subject.copies()
    values[place][subject.inputs[place].index(column)] += step  # not view: it may be strided
    outputs = flat_outputs(subject, values)
    if [one.numel() for one in outputs] != [one.numel() for one in like]:
        raise UsageError(
            f"check(fn, *inputs) expected {subject.name} to return the same shapes for inputs that "
            "are close together, and they change with the numbers: such an output has no Jacobian."
        )
    return outputs


def numeric(subject: Subject, eps: float, like: list[Tensor]) -> Jacobians:
    """Column by column: central differences."""
    columns: list[list[list[Tensor]]] = [[[] for _ in subject.starts] for _ in like]
    for place, start in enumerate(subject.starts):
        for column in range(start.numel()):
            up = moved(subject, place, column, eps, like)
            down = moved(subject, place, column, -eps, like)
            for k, (high, low) in enumerate(zip(up, down, strict=True)):
                columns[k][place].append((high - low) / (2 * eps))
    return [
        [
            torch.stack(column, 1) if column else torch.zeros(one.numel(), 0, dtype=torch.float64)
            for column in of_output
        ]
        for one, of_output in zip(like, columns, strict=True)
    ]
