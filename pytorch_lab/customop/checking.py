"""Compare what backward gives with what differences of forward say, one derivative at a time.

    print(customop.check(MyFunction, x, weight))
    print(customop.check(MyFunction, x, weight, second=True))     # and the gradient's own gradient

All is done with copies in double precision. In single precision a difference of forward is mostly
rounding: with the step 1e-6 not one digit of it can be trusted. `torch.autograd.gradcheck` says
whether a gradient is right; here it is said which derivative is wrong, by how much, and which
mistake has that shape.
"""

import math
import warnings
from collections.abc import Collection, Iterator
from typing import Any

import torch
from torch import Tensor

from pytorch_lab.customop import probes
from pytorch_lab.customop.jacobians import (
    Analytic,
    BackwardFailed,
    Jacobians,
    analytic,
    flat_outputs,
    numeric,
)
from pytorch_lab.customop.judging import judge, unit_rounding
from pytorch_lab.customop.mistakes import Case, mistake
from pytorch_lab.customop.record import (
    KINK,
    UNSURE,
    WRONG,
    Argument,
    Block,
    GradientCheck,
    Remark,
)
from pytorch_lab.customop.refusals import refusal
from pytorch_lab.customop.second import gradient_of
from pytorch_lab.customop.subject import Subject, subject_of
from pytorch_lab.errors import UsageError
from pytorch_lab.modules.patient import left_as_found
from pytorch_lab.remark import problems, problems_first
from pytorch_lab.words import count


def check(
    fn: Any,
    *inputs: Any,
    eps: float = 1e-6,
    atol: float = 1e-5,
    rtol: float = 1e-3,
    second: bool = False,
) -> GradientCheck:
    """Which partial derivatives are wrong, and by how much.

    Example:
        >>> class Twice(torch.autograd.Function):
        ...     @staticmethod
        ...     def forward(ctx, x):
        ...         return 2 * x
        ...
        ...     @staticmethod
        ...     def backward(ctx, grad_output):
        ...         return -2 * grad_output
        >>> found = check(Twice, torch.ones(2))
        >>> found.verdict, found.problems[0].code, found.worst
        ('wrong', 'sign', Partial(output='out[0]', input='x[0]', analytic=-2.0, ...))

    Args:
        fn: a subclass of `autograd.Function` or its `apply`, an `nn.Module`, or any function of
            tensors that returns tensors.
        inputs: of one call, of any shape and precision. Checked are those that require a gradient;
            where none does, all of floating-point numbers; of a module its parameters as well.
        eps: the step of the differences; it is added to an input's numbers.
        atol: the absolute part of the tolerance, as in `torch.allclose`.
        rtol: the part of the tolerance that grows with the numeric derivative.
        second: check the gradient of the gradient too.

    Raises:
        UsageError: there is nothing that can be differentiated, or far too much of it.
        ModelError: the function raised in its forward.
    """
    for name, value in (("eps", eps), ("atol", atol), ("rtol", rtol)):
        is_number = type(value) in (int, float) and math.isfinite(value)
        if not is_number or value < 0 or (name == "eps" and value == 0):
            raise UsageError(f"check(..., {name}=...) expected a positive number, got {value!r}.")
    with (
        left_as_found(fn, inputs),
        torch.inference_mode(False),
        torch.enable_grad(),
        warnings.catch_warnings(),
    ):
        warnings.simplefilter("ignore")
        subject = subject_of(fn, inputs)
        return _Check(subject, eps, (atol, rtol)).run(second)


class _Check:
    """One function, step by step."""

    def __init__(self, subject: Subject, eps: float, tolerance: tuple[float, float]) -> None:
        self.subject, self.eps, self.tolerance = subject, eps, tolerance
        self.remarks: list[Remark] = []
        self.outputs: tuple[Argument, ...] = ()
        self.blocks: tuple[Block, ...] = ()

    def run(self, second: bool) -> GradientCheck:
        """The record of everything."""
        self.remarks += probes.draws(self.subject)
        self.remarks += probes.changes_inputs(self.subject)
        self.outputs = self._describe()
        deeper = None
        if not any(remark.code == "random" for remark in self.remarks):
            try:
                self._compare()
            except BackwardFailed as error:
                self.remarks.append(refusal(str(error), self.subject.arguments))
            if second and not self._is_wrong():
                deeper = self._second()
        return self._record(deeper)

    def _record(self, deeper: GradientCheck | None = None) -> GradientCheck:
        atol, rtol = self.tolerance
        return GradientCheck(
            function=self.subject.name,
            inputs=self.subject.inputs,
            outputs=self.outputs,
            blocks=self.blocks,
            eps=self.eps,
            atol=atol,
            rtol=rtol,
            remarks=problems_first(self.remarks),
            second=deeper,
        )

    def _describe(self) -> tuple[Argument, ...]:
        outputs = self.subject.outputs(self.subject.copies(grad=True))
        loose = [name for name, one in outputs.items() if not one.requires_grad]
        if len(loose) < len(outputs):  # then they are meant so; where all are, the graph was cut
            self.subject.left_out.update(loose)
            self.remarks += map(_not_differentiated, loose)
        return tuple(
            Argument(name, tuple(one.shape), str(one.dtype).removeprefix("torch."))
            for name, one in outputs.items()
            if name not in self.subject.left_out
        )

    def _is_wrong(self) -> bool:
        return bool(problems(self.remarks))

    def _compare(self) -> None:
        base = flat_outputs(self.subject, self.subject.copies())
        found = analytic(self.subject)
        slopes = numeric(self.subject, self.eps, base)
        states = judge(self.subject, found.jacobians, slopes, base, self.eps, self.tolerance)
        self.blocks = tuple(self._blocks(found.jacobians, slopes, states))
        odd = {} if found.touched else dict(probes.linear(self.subject, found))
        self.remarks += odd.values()
        self.remarks += self._mistakes(found, slopes, states, odd)
        self.remarks += self._behaviour(found)
        self.remarks += self._notes(len(base))

    def _blocks(self, found: Jacobians, slopes: Jacobians, states: Any) -> Iterator[Block]:
        for k, output in enumerate(self.outputs):
            for place, argument in enumerate(self.subject.inputs):
                yield Block(
                    output,
                    argument,
                    _rows(found[k][place]),
                    _rows(slopes[k][place]),
                    tuple("".join(row) for row in states[k][place]),
                )

    def _mistakes(
        self, found: Analytic, slopes: Jacobians, states: Any, explained: Collection[str]
    ) -> Iterator[Remark]:
        for k, output in enumerate(self.outputs):
            for place, argument in enumerate(self.subject.inputs):
                rows = states[k][place]
                if argument.name in explained or not any(WRONG in row for row in rows):
                    continue
                if k in found.cut:
                    yield _cut(output)
                    break
                names = [one.name for one in self.subject.inputs]
                others = {n: b for n, b in zip(names, slopes[k], strict=True) if n != argument.name}
                yield mistake(
                    Case(
                        argument,
                        output,
                        found.jacobians[k][place],
                        slopes[k][place],
                        torch.tensor([[one == WRONG for one in row] for row in rows]),
                        others,
                        (k, place) in found.missing,
                    )
                )

    def _behaviour(self, found: Analytic) -> Iterator[Remark]:
        if found.touched:
            yield Remark(
                "changes_grad_output", "problem",
                "Backward changes its `grad_output` in place: other branches of the graph are "
                "given the same tensor, so their gradients become wrong. Multiply into a new one.",
            )  # fmt: skip
        elif not self._is_wrong():
            yield from probes.alone(self.subject, found)
        else:
            for name in probes.saved_by_hand(self.subject):
                yield Remark(
                    "saved_by_hand", "note",
                    f"`ctx.{name}` has been changed in place. `ctx.save_for_backward` would have "
                    "noticed that it changed after it was saved; an attribute of ctx doesn't.",
                )  # fmt: skip

    def _notes(self, outputs: int) -> Iterator[Remark]:
        for argument in self.subject.inputs:
            mine = [block for block in self.blocks if block.input == argument]
            if all(_is_still(block) for block in mine) and any(block.states for block in mine):
                yield Remark(
                    "no_effect", "note",
                    f"All derivatives by `{argument.name}` are 0, in both: at these numbers "
                    "it would not learn.",
                )  # fmt: skip
        states = [state for block in self.blocks for row in block.states for state in row]
        kinks, unsure = states.count(KINK), states.count(UNSURE)
        if kinks:
            yield Remark(
                "kink", "note",
                f"{count(kinks, 'derivative')} at a kink, where the slope to the left differs from "
                "the slope to the right: backward gives one between them, which is fair.",
            )  # fmt: skip
        if unsure and any(unit_rounding(self.subject, k) for k in range(outputs)):
            yield Remark(
                "precision", "note",
                f"{count(unsure, 'derivative')} can't be judged: somewhere inside, the function "
                f"computes in less than double, where a step of {self.eps:g} drowns in rounding. "
                "Leave out the cast for the check, or take larger steps: eps=1e-2, atol=1e-2.",
            )  # fmt: skip
        elif unsure:
            yield Remark(
                "unsure", "note",
                f"{count(unsure, 'derivative')} can't be judged: with the step {self.eps:g} the "
                "differences of forward are not finite, or jump about. Try other inputs, or "
                "another eps.",
            )  # fmt: skip

    def _second(self) -> GradientCheck:
        deeper = gradient_of(self.subject, self.outputs)
        found = _Check(deeper, self.eps, self.tolerance)
        if probes.is_once_only(deeper):
            found.remarks.append(_once(self.subject.name))
            return found._record()
        return found.run(second=False)


def _is_still(block: Block) -> bool:
    """Whether backward and the differences of forward both say 0 everywhere."""
    return not any(
        value for side in (block.analytic, block.numeric) for row in side for value in row
    )


def _rows(matrix: Tensor) -> tuple[tuple[float, ...], ...]:
    return tuple(tuple(row) for row in matrix.tolist())


def _not_differentiated(name: str) -> Remark:
    return Remark(
        "not_differentiated", "note",
        f"`{name}` doesn't require grad, so nothing flows back from it; it was left out.",
    )  # fmt: skip


def _cut(output: Argument) -> Remark:
    return Remark(
        "cut", "problem",
        f"`{output.name}` doesn't require grad, but depends on the inputs: the graph was cut by "
        "`detach()`, `no_grad`, `.item()`, `.data` or numpy.",
    )  # fmt: skip


def _once(name: str) -> Remark:
    return Remark(
        "once_only", "problem",
        f"The backward of {name} is marked `once_differentiable`, so its gradient has none.",
    )  # fmt: skip
