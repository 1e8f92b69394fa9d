"""Is a partial derivative wrong, or is its numeric estimate no good?

Where both agree nothing more is asked. Where they don't, the slope is looked at from the right and
from the left, with several steps. Two slopes that differ however small the step are a kink, such as
that of ReLU at 0: there any value between them is a fair answer. Slopes that jump about with the
step are noise: the function computes in low precision somewhere inside, or its values are so large
that a small step drowns in their rounding.
"""

import math
import statistics

import torch
from torch import Tensor

from pytorch_lab.customop.jacobians import Jacobians, moved
from pytorch_lab.customop.record import KINK, RIGHT, UNSURE, WRONG
from pytorch_lab.customop.subject import Subject

STEPS = (1.0, 0.7, 0.4)  # of eps: from noise to slope
NEAR = 0.01  # of eps: past a kink that lies closer than eps
FLOAT32, FLOAT64 = 2.0**-24, 2.0**-53  # relative rounding


def agree(analytic: Tensor, numeric: Tensor, atol: float, rtol: float) -> Tensor:
    """Where the two are equal within the tolerance of `torch.allclose`, which gradcheck uses."""
    return (analytic - numeric).abs() <= atol + rtol * numeric.abs()


def judge(
    subject: Subject,
    analytic: Jacobians,
    numeric: Jacobians,
    base: list[Tensor],
    eps: float,
    tolerance: tuple[float, float],
) -> list[list[list[list[str]]]]:
    """The state of each partial derivative: of each output, input, row and column."""
    rounding = [unit_rounding(subject, place) for place in range(len(base))]
    states = [
        [_first(a, n, tolerance) for a, n in zip(*pair, strict=True)]
        for pair in zip(analytic, numeric, strict=True)
    ]
    for place, start in enumerate(subject.starts):
        for column in range(start.numel()):
            doubted = [
                (k, row)
                for k, of_output in enumerate(states)
                for row, found in enumerate(of_output[place])
                if found[column] == WRONG
            ]
            if not doubted:
                continue
            slopes = _Slopes(subject, place, column, base, eps, rounding)
            for k, row in doubted:
                value = float(analytic[k][place][row, column])
                states[k][place][row][column] = slopes.state(k, row, value, tolerance)
    return states


def _first(analytic: Tensor, numeric: Tensor, tolerance: tuple[float, float]) -> list[list[str]]:
    right = agree(analytic, numeric, *tolerance)
    return [[RIGHT if one else WRONG for one in row] for row in right.tolist()]


class _Slopes:
    """All outputs along one input element, to both sides, at several steps."""

    def __init__(
        self,
        subject: Subject,
        place: int,
        column: int,
        base: list[Tensor],
        eps: float,
        rounding: list[float],
    ) -> None:
        self.eps, self.rounding = eps, rounding
        self.start = float(subject.starts[place].reshape(-1)[column])
        self.values = [one.tolist() for one in base]

        def slopes(share: float) -> list[list[float]]:
            ends = moved(subject, place, column, share * eps, base)
            both = zip(ends, base, strict=True)
            return [((end - one) / (share * eps)).tolist() for end, one in both]

        self.right = [slopes(share) for share in STEPS]
        self.left = [slopes(-share) for share in STEPS]
        self.near = [slopes(NEAR), slopes(-NEAR)]

    def state(self, output: int, row: int, value: float, tolerance: tuple[float, float]) -> str:
        """What is said of backward's `value`."""
        right, left, near = (
            [one[output][row] for one in side] for side in (self.right, self.left, self.near)
        )
        if not all(map(math.isfinite, (self.start, *right, *left))):
            return UNSURE
        middle = statistics.fmean((*right, *left))
        steepest = max(abs(value), abs(middle)) if math.isfinite(value) else abs(middle)
        rounding = self._rounding(output, row, steepest)
        room = tolerance[0] + tolerance[1] * abs(middle) + rounding
        spread = max(max(side) - min(side) for side in (right, left))
        low, high = sorted(map(statistics.fmean, (right, left)))
        if spread <= room and high - low > room and low - room <= value <= high + room:
            return KINK
        slope = statistics.fmean(near)
        if not self.rounding[output] and abs(value - slope) <= tolerance[0] + tolerance[1] * abs(
            slope
        ):
            return KINK  # it lies closer than eps, and past it both agree
        is_lost = 3 * spread if spread > room else rounding
        return UNSURE if abs(value - middle) <= is_lost else WRONG

    def _rounding(self, output: int, row: int, slope: float) -> float:
        """How far a slope may be off by rounding: in double too, where a number is large."""
        held = abs(self.values[output][row]) + abs(self.start) * slope
        return 4 * max(self.rounding[output], FLOAT64) * held / (STEPS[-1] * self.eps)


def unit_rounding(subject: Subject, place: int) -> float:
    """The relative rounding of an output that was computed in float32 or less; 0 for double.

    Numbers that were float32 on the way have no digits behind float32's last. Such that change
    with the inputs and all fit into float32, but not into a few bits, as whole numbers do, were.
    """
    values = subject.copies()
    with torch.no_grad():
        one = list(subject.outputs(values).values())[place]
        for value in values:
            value.mul_(1.001).add_(0.001)
        other = list(subject.outputs(values).values())[place]
    if one.dtype != torch.float64:
        return torch.finfo(one.dtype).eps / 2
    if one.shape != other.shape:
        return 0.0
    changed = torch.cat([one[one != other], other[one != other]])
    few_bits = (changed == changed.bfloat16().double()).all()
    return FLOAT32 if not few_bits and (changed == changed.float().double()).all() else 0.0
