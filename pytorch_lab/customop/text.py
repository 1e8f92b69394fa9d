"""A gradient check as text: what was compared, the worst derivative, and the remarks."""

import math
from collections.abc import Iterator

from pytorch_lab import words
from pytorch_lab.customop.record import WRONG, Block, GradientCheck
from pytorch_lab.remark import remark_lines

NAME, SHAPE = 26, 18
WORDS = {"right": "right", "wrong": "wrong", "undecided": "can't be decided"}
MOST_BLOCKS = 12


def render(found: GradientCheck) -> str:
    """The whole text, at most 80 columns wide.

    Example:
        >>> import torch
        >>> from pytorch_lab import customop
        >>> print(customop.check(torch.sin, torch.zeros(2)))
        Gradient of sin: right
        by input                  shape              derivatives  wrong
        x                         (2,)                         4      0
    """
    lines = words.wrap(headline(found), indent="  ")
    if found.blocks:
        lines += _table(found)
        lines += _worst(found)
    if found.remarks:
        lines += ["", *remark_lines(found.remarks)]
    if found.second:
        lines += ["", *render(found.second).splitlines()]
    return "\n".join(line.rstrip() for line in lines)


def headline(found: GradientCheck) -> str:
    """The verdict in one line."""
    name = found.function
    start = (
        name[:1].upper() + name[1:] if name.startswith("the gradient") else f"Gradient of {name}"
    )
    return f"{start}: {WORDS[found.own_verdict]}"


def short(value: float, zero: float) -> str:
    """A derivative in four digits; below `zero` it is nothing but rounding.

    Example:
        >>> short(-0.123456, 1e-5), short(3e-11, 1e-5), short(2.0000000001, 1e-5)
        ('-0.1235', '0', '2')
    """
    return "0" if math.isfinite(value) and abs(value) < zero else f"{value:.4g}"


def _table(found: GradientCheck) -> Iterator[str]:
    several = len(found.outputs) > 1
    head = "output by input" if several else "by input"
    yield f"{words.pad(head, NAME)}{words.pad('shape', SHAPE)} derivatives  wrong"
    for block in found.blocks[:MOST_BLOCKS]:
        name = f"{block.output.name} by {block.input.name}" if several else block.input.name
        shape = str(block.input.shape)
        yield (
            f"{words.pad(words.clip(name, NAME - 1), NAME)}"
            f"{words.pad(words.clip(shape, SHAPE - 1), SHAPE)} "
            f"{_size(block):11,}{wrong_in(block):7,}"
        )
    if len(found.blocks) > MOST_BLOCKS:
        yield f"and {words.count(len(found.blocks) - MOST_BLOCKS, 'pair')} more"


def _size(block: Block) -> int:
    return sum(len(row) for row in block.states)


def wrong_in(block: Block) -> int:
    """How many derivatives of a block are wrong."""
    return sum(row.count(WRONG) for row in block.states)


def _worst(found: GradientCheck) -> Iterator[str]:
    worst = found.worst
    if worst:
        yield ""
        yield from words.wrap(
            f"d {worst.output} / d {worst.input}: backward {short(worst.analytic, found.atol)}, "
            f"numeric {short(worst.numeric, found.atol)}, off by "
            f"{short(worst.difference, found.atol)}",
            indent="  ",
        )
