"""Which mistake has this shape? Says of a wrong block what can be measured in it.

An ordered list of small finders: each is given both matrices and says a sentence or nothing, and
the first that speaks is heard. Nothing is guessed: a sentence holds for every derivative of the
block within `CLOSE`.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import torch
from torch import Tensor

from pytorch_lab.customop.record import Argument, Remark
from pytorch_lab.words import count

CLOSE = 1e-3  # relative, of a ratio
SMALL = 1e-5  # what counts as zero, of the largest


@dataclass(frozen=True)
class Case:
    """One wrong block, and what stands beside it."""

    input: Argument
    output: Argument
    analytic: Tensor  # (outputs, inputs)
    numeric: Tensor  # (outputs, inputs)
    wrong: Tensor  # bool, (outputs, inputs)
    others: dict[str, Tensor]  # the numeric block of each other input of this output
    missing: bool  # backward gives None

    @property
    def name(self) -> str:
        """The input, as it is written in a sentence."""
        return f"`{self.input.name}`"

    def equals(self, other: Tensor) -> bool:
        """Whether backward gives `other` instead."""
        if other.shape != self.analytic.shape:
            return False
        return bool(((self.analytic - other).abs() <= self.zero + CLOSE * other.abs()).all())

    @property
    def zero(self) -> float:
        """Below this a derivative counts as 0."""
        sizes = torch.cat([self.analytic.reshape(-1), self.numeric.reshape(-1)]).abs()
        return SMALL * max(1.0, float(sizes[sizes.isfinite()].max()) if sizes.numel() else 1.0)


def mistake(case: Case) -> Remark:
    """What is wrong with the derivatives of a block."""
    for finder in FINDERS:
        for code, text in finder(case):
            return Remark(code, "problem", text)
    many, all_of = int(case.wrong.sum()), case.wrong.numel()
    return Remark(
        "wrong", "problem",
        f"{many:,} of {count(all_of, 'derivative')} with respect to {case.name} "
        f"{'is' if many == 1 else 'are'} wrong{_range(case)}.",
    )  # fmt: skip


def _range(case: Case) -> str:
    """By which factors, where none of them should be 0."""
    numeric = case.numeric[case.wrong]
    if (numeric.abs() <= case.zero).any():
        return ""
    ratios = case.analytic[case.wrong] / numeric
    low, high = (f"{float(one):.3g}" for one in (ratios.min(), ratios.max()))
    return (
        f": {low} times the right one" if low == high else f", {low} to {high} times the right ones"
    )


Said = Iterator[tuple[str, str]]


def _not_finite(case: Case) -> Said:
    bad = ~case.analytic.isfinite() & case.wrong
    if bad.any():
        yield (
            "not_finite",
            f"Backward gives inf or nan for {count(int(bad.sum()), 'derivative')} with respect to "
            f"{case.name}, where the forward has a finite slope.",
        )


def _nothing(case: Case) -> Said:
    if (case.analytic == 0).all():
        what = "`None`: no gradient" if case.missing else "0"
        yield (
            "none" if case.missing else "zero",
            f"Backward gives {what} for {case.name}, but the output depends on it.",
        )


def _flat(case: Case) -> Said:
    if (case.numeric.abs() <= case.zero).all():
        yield (
            "flat",
            f"Backward gives a gradient of {case.name}, but the forward is flat here: a small "
            "change of the input changes nothing. If a straight-through gradient is what you want, "
            "no difference can confirm it.",
        )


def _factor(case: Case) -> Said:
    live = case.numeric.abs() > case.zero
    ratios = (case.analytic / case.numeric)[live]
    quiet = (case.analytic[~live].abs() <= case.zero).all()
    if not (quiet and ratios.numel() and ratios.isfinite().all()):
        return
    factor = float(ratios.median())
    if ((ratios - factor).abs() > CLOSE * abs(factor)).any() or abs(factor) <= SMALL:
        return
    if abs(factor + 1) <= CLOSE:
        yield "sign", f"Every derivative with respect to {case.name} has the wrong sign."
        return
    text = f"Every derivative with respect to {case.name} is {factor:.4g} times the right one"
    yield "factor", text + (_sizes(case, factor) or ".")


def _sizes(case: Case, factor: float) -> str:
    """Whether the factor is a size, as where a sum was taken for a mean."""
    if case.input.shape == case.output.shape:
        return ""  # nothing was summed
    known: list[tuple[int, str]] = []
    for argument in (case.input, case.output):
        whole = torch.Size(argument.shape).numel()
        known += [(whole, f"the number of elements of `{argument.name}`")]
        known += [(n, f"the size {n} in the shape of `{argument.name}`") for n in argument.shape]
    for size, what in known:
        if size > 1 and abs(factor / size - 1) <= CLOSE:
            return f", and {size} is {what}: a sum where a mean is differentiated?"
        if size > 1 and abs(factor * size - 1) <= CLOSE:
            return f", and {size} is {what}: a mean where a sum is differentiated?"
    return ""


def _transposed(case: Case) -> Said:
    if len(case.input.shape) == 2:
        rows, columns = case.input.shape
        turned = case.numeric.view(-1, rows, columns).transpose(1, 2).reshape(len(case.numeric), -1)
        if rows == columns and case.equals(turned):
            yield "transposed", f"The gradient of {case.name} comes out transposed."
    if case.equals(case.numeric.T):
        yield (
            "transposed_jacobian",
            f"Backward multiplies by the Jacobian with respect to {case.name} from the wrong side: "
            "what it gives is the transposed one. `grad_output @ W` where `grad_output @ W.T` is "
            "right, or the other way round?",
        )


def _swapped(case: Case) -> Said:
    for name, block in case.others.items():
        if case.equals(block):
            yield (
                "swapped",
                f"What backward gives for {case.name} is the gradient of `{name}`: return the "
                "gradients in the order of forward's arguments.",
            )


def _part(case: Case) -> Said:
    wrong = case.wrong
    if (case.analytic[wrong] == 0).all():
        diagonal = torch.eye(*wrong.shape, dtype=torch.bool)
        of_itself = wrong.shape[0] == wrong.shape[1] and not (wrong & diagonal).any()
        text = f"{int(wrong.sum())} of {count(wrong.numel(), 'derivative')} with respect to "
        text += f"{case.name} are 0, but shouldn't be"
        if of_itself and (case.analytic[~diagonal] == 0).all():
            yield (
                "only_diagonal",
                f"{text}: only what an element does to the output in its own place is there, and "
                "what it does to the others is missing.",
            )
        else:
            yield "missing", f"{text}: a term is missing."
    elif (case.numeric[wrong].abs() <= case.zero).all():
        yield (
            "extra",
            f"{int(wrong.sum())} of {count(wrong.numel(), 'derivative')} with respect to "
            f"{case.name} should be 0: the output doesn't depend on these elements there. A mask "
            "that the forward applies and backward doesn't?",
        )


FINDERS: tuple[Callable[[Case], Said], ...] = (
    _not_finite, _nothing, _flat, _factor, _transposed, _swapped, _part,
)  # fmt: skip
