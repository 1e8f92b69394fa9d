"""The record of a gradient check: every partial derivative twice, and what is said of them.

`check` fills these classes; the text and the picture read nothing else. A Jacobian is cut into
blocks, one for each output and each input: row `r` is the output's element number `r`, counted row
by row, column `c` the input's.
"""

import math
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any

from pytorch_lab.remark import Remark, problems

RIGHT, WRONG, KINK, UNSURE = "=", "x", "^", "?"  # what is said of one partial derivative


@dataclass(frozen=True, slots=True)
class Argument:
    """A tensor that goes in or comes out."""

    name: str  # as the function calls it; "out" or "out 1" of what it returns
    shape: tuple[int, ...]
    dtype: str  # as it was given; "float32"

    def element(self, place: int) -> str:
        """What the element number `place` is called.

        Example:
            >>> Argument("x", (2, 3), "float32").element(4), Argument("t", (), "float32").element(0)
            ('x[1, 1]', 't')
        """
        index = self.index(place)
        return f"{self.name}[{', '.join(map(str, index))}]" if index else self.name

    def index(self, place: int) -> tuple[int, ...]:
        """Where the element number `place` stands."""
        index: list[int] = []
        for size in reversed(self.shape):
            place, rest = divmod(place, size)
            index.append(rest)
        return tuple(reversed(index))


@dataclass(frozen=True, slots=True)
class Block:
    """The derivatives of one output by one input."""

    output: Argument
    input: Argument
    analytic: tuple[tuple[float, ...], ...]  # what backward gives; (outputs, inputs)
    numeric: tuple[tuple[float, ...], ...]  # what differences of forward give
    states: tuple[str, ...]  # of each row: a sign for each column


@dataclass(frozen=True, slots=True)
class Partial:
    """One partial derivative: of one output element by one input element."""

    output: str  # "out[1]"
    input: str  # "x[0, 2]"
    analytic: float  # what backward gives
    numeric: float  # what a difference of forward gives
    state: str  # RIGHT, WRONG, KINK or UNSURE

    @property
    def difference(self) -> float:
        """How far backward is off."""
        return self.analytic - self.numeric


@dataclass(frozen=True, slots=True)
class GradientCheck:
    """What `check` found."""

    function: str  # "Square"
    inputs: tuple[Argument, ...]  # those that have a gradient
    outputs: tuple[Argument, ...]
    blocks: tuple[Block, ...]  # outputs by inputs; none where backward raised
    eps: float  # the step of the differences
    atol: float
    rtol: float
    remarks: tuple[Remark, ...] = ()
    second: "GradientCheck | None" = None  # the same of the gradient itself

    @property
    def problems(self) -> tuple[Remark, ...]:
        """The remarks that say the gradient is wrong."""
        return problems(self.remarks)

    @property
    def verdict(self) -> str:
        """Either "right", "wrong", or "undecided" where no numeric estimate can be trusted."""
        found = (self.own_verdict, self.second.own_verdict if self.second else "right")
        return next((one for one in ("wrong", "undecided") if one in found), "right")

    @property
    def own_verdict(self) -> str:
        """The same without the gradient's own gradient."""
        if self.problems:
            return "wrong"
        unsure = any(UNSURE in row for block in self.blocks for row in block.states)
        return "undecided" if unsure else "right"

    @property
    def ok(self) -> bool:
        """Whether every derivative is right."""
        return self.verdict == "right"

    def partials(self, state: str = WRONG) -> Iterator[Partial]:
        """The single derivatives of one state, block by block.

        Example:
            >>> import torch
            >>> from pytorch_lab.customop import check
            >>> [one.input for one in check(torch.sin, torch.zeros(2)).partials("=")]
            ['x[0]', 'x[1]', 'x[0]', 'x[1]']
        """
        for block in self.blocks:
            for r, row in enumerate(block.states):
                for c, found in enumerate(row):
                    if found == state:
                        yield partial(block, r, c)

    @property
    def worst(self) -> Partial | None:
        """The wrong derivative that is off the most."""
        wrong = list(self.partials())
        return max(wrong, key=lambda one: _size(one.difference)) if wrong else None

    def to_dict(self) -> dict[str, Any]:
        """The record as plain dicts, lists, numbers and strings."""
        return asdict(self) | {"verdict": self.verdict}

    def __str__(self) -> str:
        from pytorch_lab.customop.text import render

        return render(self)


def partial(block: Block, row: int, column: int) -> Partial:
    """One derivative of a block."""
    return Partial(
        block.output.element(row),
        block.input.element(column),
        block.analytic[row][column],
        block.numeric[row][column],
        block.states[row][column],
    )


def _size(difference: float) -> float:
    return abs(difference) if math.isfinite(difference) else math.inf
