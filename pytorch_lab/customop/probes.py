"""What a Jacobian can't show: how the function behaves when it is called in other ways.

Backward is a linear map: it is given `v` and gives `v @ jacobian`. With one element of `v` set at a
time a Jacobian is read off it, and a backward that ignores `v` may pass for a function with a
single output. So it is asked again with numbers drawn at random, with twice as many, and with only
one input that needs a gradient.
"""

from collections.abc import Iterator, Sequence

import torch
from torch import Tensor

from pytorch_lab.customop.jacobians import Analytic, BackwardFailed, flat_outputs, vjp
from pytorch_lab.customop.record import Remark
from pytorch_lab.customop.subject import Subject
from pytorch_lab.customop.torch_private import is_changed
from pytorch_lab.errors import ModelError

CLOSE = 1e-5  # relative


def changes_inputs(subject: Subject) -> Iterator[Remark]:
    """Whether the forward writes to what it was given."""
    values = subject.copies()
    flat_outputs(subject, values)
    for argument, value, start in zip(subject.inputs, values, subject.starts, strict=True):
        if not _same(value, start):
            yield Remark(
                "changes_input", "problem",
                f"The forward changes its input `{argument.name}` in place: the caller's tensor is "
                "another one afterwards, and so is what other operations saved of it. Work on a "
                "copy.",
            )  # fmt: skip


def draws(subject: Subject) -> Iterator[Remark]:
    """Whether two calls give the same; where they draw random numbers, from now on the same ones.

    Only sets `subject.seeded`; what it says is a note, or a problem that ends the check.
    """
    if _repeats(subject):
        return
    subject.seeded = True
    if _repeats(subject):
        yield Remark(
            "draws", "note",
            "The forward draws random numbers; each call was given the same ones.",
        )  # fmt: skip
        return
    yield Remark(
        "random", "problem",
        "Two calls with the same inputs give different outputs, also with the same random numbers: "
        "the function keeps something between calls. Nothing can be compared.",
    )  # fmt: skip


def _repeats(subject: Subject) -> bool:
    first, second = (flat_outputs(subject, subject.copies()) for _ in range(2))
    if [one.shape for one in first] != [one.shape for one in second]:
        return False
    # A sum on a GPU may come in another order each time, and differ in its last digits.
    return all(_close(one, other, CLOSE) for one, other in zip(first, second, strict=True))


def _same(one: Tensor, other: Tensor) -> bool:
    return one.shape == other.shape and torch.allclose(one, other, rtol=0, atol=0, equal_nan=True)


def linear(subject: Subject, found: Analytic) -> Iterator[tuple[str, Remark]]:
    """Whether backward makes of `v` what its own Jacobian says; with the input's name."""
    leaves = subject.copies(grad=True)
    outputs = list(subject.outputs(leaves).values())
    for k, output in enumerate(outputs):
        v = _random(output)
        once, again, twice = (vjp(output, leaves, seed) for seed in (v, v.clone(), 2 * v))
        for place, argument in enumerate(subject.inputs):
            grad, repeated, doubled = (_flat(one[place]) for one in (once, again, twice))
            want = _row(v) @ found.jacobians[k][place]
            if grad is None or not want.isfinite().all():
                continue
            remark = _of_map(argument.name, (grad, want, repeated, doubled), _close_to(output))
            if remark:
                yield argument.name, remark


def _of_map(name: str, grads: Sequence[Tensor | None], close: float) -> Remark | None:
    """What is wrong with a gradient; beside it what it should be, once more, and for `2 * v`."""
    grad, want, repeated, doubled = grads
    if not _close(grad, repeated, close):
        return Remark(
            "random_backward", "problem",
            f"Backward gives another gradient of `{name}` each time it is called.",
        )  # fmt: skip
    if _close(grad, want, close):
        return None
    if _close(grad, doubled, close):
        return Remark(
            "ignores_grad_output", "problem",
            f"The gradient of `{name}` is the same for every `grad_output`: it is to be multiplied "
            "by it. For a loss whose own gradient is 1 the fault is hidden; inside a larger "
            "function it isn't.",
        )  # fmt: skip
    return Remark(
        "not_linear", "problem",
        f"The gradient of `{name}` for several elements of `grad_output` at once isn't the sum of "
        "those for each: backward must be linear in `grad_output`.",
    )  # fmt: skip


def alone(subject: Subject, found: Analytic) -> Iterator[Remark]:
    """Whether each input gets the same gradient when no other needs one."""
    for place, argument in enumerate(subject.inputs):
        if len(subject.inputs) == 1:
            return
        leaves = subject.copies(grad=True, only=place)
        try:
            outputs = list(subject.outputs(leaves).values())
            for k, output in enumerate(outputs):
                v = _random(output)
                grad = _flat(vjp(output, leaves, v)[place])
                want = _row(v) @ found.jacobians[k][place]
                grad = torch.zeros_like(want) if grad is None else grad
                if not _close(grad, want, _close_to(output)):
                    yield _differs_alone(argument.name)
                    break
        except (BackwardFailed, ModelError) as error:
            said = str(error).removeprefix("RuntimeError: ")
            yield Remark(
                "alone", "problem",
                f"When only `{argument.name}` needs a gradient, it fails: {said}",
            )  # fmt: skip


def _differs_alone(name: str) -> Remark:
    return Remark(
        "alone", "problem",
        f"When only `{name}` needs a gradient it gets another one: look at what depends on "
        "`ctx.needs_input_grad`.",
    )  # fmt: skip


def saved_by_hand(subject: Subject) -> Iterator[str]:
    """Tensors that a Function keeps as `ctx.name`, past `save_for_backward`, and changed since."""
    for output in subject.outputs(subject.copies(grad=True)).values():
        held = getattr(output.grad_fn, "__dict__", {})
        for name, value in held.items():
            if isinstance(value, Tensor) and is_changed(value):
                yield name


def is_once_only(subject: Subject) -> bool:
    """Whether torch would raise for a backward through this: `once_differentiable` marks it so."""
    outputs = subject.outputs(subject.copies(grad=True)).values()
    return any(one.grad_fn is not None and "Error" in one.grad_fn.name() for one in outputs)


def _close_to(output: Tensor) -> float:
    """How far, of the largest, two gradients of an output may be apart."""
    return max(CLOSE, 100 * torch.finfo(output.dtype).eps)


def _random(output: Tensor) -> Tensor:
    generator = torch.Generator("cpu").manual_seed(0)
    v = torch.randn(output.shape, generator=generator, dtype=torch.float64, device="cpu")
    return v.to(output.device, output.dtype)


def _row(v: Tensor) -> Tensor:
    return v.to("cpu", torch.float64).reshape(-1)


def _flat(grad: Tensor | None) -> Tensor | None:
    return None if grad is None else _row(grad.detach())


def _close(one: Tensor | None, other: Tensor | None, close: float) -> bool:
    """Whether two gradients are the same but for rounding; the function may use float32 inside."""
    if one is None or other is None:
        return one is other
    finite = other[other.isfinite()].abs()
    scale = float(finite.max()) if finite.numel() else 0.0
    return torch.allclose(one, other, rtol=0, atol=close * (scale + 1e-6), equal_nan=True)
