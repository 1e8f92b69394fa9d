"""The gradient of a function, as a function that can be checked in its turn.

Its inputs are those of the function and `grad_output`, which it is linear in, as
`torch.autograd.gradgradcheck` has it; its outputs are the gradients.
"""

from collections.abc import Sequence

import torch
from torch import Tensor

from pytorch_lab.customop.record import Argument
from pytorch_lab.customop.subject import Subject


def gradient_of(subject: Subject, outputs: Sequence[Argument]) -> Subject:
    """What backward computes.

    Args:
        subject: the function.
        outputs: what it returns.

    Example:
        >>> from pytorch_lab.customop.subject import subject_of
        >>> sine = subject_of(torch.sin, [torch.zeros(1)])
        >>> deeper = gradient_of(sine, [Argument("out", (1,), "float64")])
        >>> [one.name for one in deeper.inputs], list(deeper.outputs(deeper.copies()))
        (['x', 'grad_output'], ['grad x'])
    """
    many = len(subject.inputs)
    live = subject.outputs(subject.copies(grad=True)).values()
    seeds = [
        torch.linspace(0.5, 1.5, one.numel(), dtype=one.dtype, device=one.device).view(one.shape)
        for one in live
    ]
    names = [
        Argument("grad_output" if len(seeds) == 1 else f"grad_{one.name}", one.shape, one.dtype)
        for one in outputs
    ]

    def gradient(values: Sequence[Tensor]) -> dict[str, Tensor]:
        leaves = [v if v.requires_grad else v.detach().requires_grad_() for v in values[:many]]
        with torch.enable_grad():
            grads = torch.autograd.grad(
                list(subject.outputs(leaves).values()), leaves, values[many:],
                create_graph=True, allow_unused=True, materialize_grads=True,
            )  # fmt: skip
        return {f"grad {a.name}": g for a, g in zip(subject.inputs, grads, strict=True)}

    inputs = (*subject.inputs, *names)
    return Subject(f"the gradient of {subject.name}", inputs, [*subject.starts, *seeds], gradient)
