"""Inputs drawn from a seed: the same seed and exercise give the same inputs in every process.

    >>> draw("03.2").integer(2, 6) == draw("03.2").integer(2, 6)
    True

The stream hangs on two things alone, the number given to `seed` (0 by default) and the exercise's
id: not on which exercises ran before, nor on Python's hash seed. An instructor who grades with
another seed changes every hidden input at once. `draw` also seeds torch's, numpy's and Python's own
global generators, so that an answer which uses them gives the same result each time.
"""

import hashlib
from collections.abc import Sequence
from typing import TypeVar

import torch

from pytorch_lab import surroundings
from pytorch_lab.errors import UsageError

T = TypeVar("T")

_seed = 0


def seed(number: int) -> None:
    """Use another seed for every `draw` that follows.

    Example:
        >>> seed(7)
        >>> draw("03.2").integer(0, 10**9) == draw("03.2").integer(0, 10**9)
        True
        >>> seed(0)

    Raises:
        UsageError: `number` is no int.
    """
    global _seed
    if type(number) is not int:
        raise UsageError(f"seed(number) expected an int, got {number!r:.40}.")
    _seed = number


class Draw:
    """A stream of inputs. Tensors are on the CPU and float32, whatever torch's defaults are.

    Attributes:
        generator: the `torch.Generator` behind all of them, for torch functions that take one.
    """

    def __init__(self, start: int) -> None:
        self.generator = torch.Generator("cpu").manual_seed(start)

    def randn(self, *shape: int, dtype: torch.dtype = torch.float32) -> torch.Tensor:
        """Numbers from the standard normal distribution, of this shape."""
        return torch.randn(shape, generator=self.generator, dtype=dtype, device="cpu")

    def rand(self, *shape: int, dtype: torch.dtype = torch.float32) -> torch.Tensor:
        """Numbers evenly from [0, 1), of this shape."""
        return torch.rand(shape, generator=self.generator, dtype=dtype, device="cpu")

    def integer(self, low: int, high: int) -> int:
        """A whole number from `low` to `high - 1`.

        Raises:
            UsageError: there is no such number.
        """
        if low >= high:
            raise UsageError(f"integer(low, high) expected low < high, got {low} and {high}.")
        return int(torch.randint(low, high, (), generator=self.generator, device="cpu"))

    def choice(self, options: Sequence[T]) -> T:
        """One of the options.

        Raises:
            UsageError: there are none.
        """
        if not options:
            raise UsageError("choice(options) expected at least one option, got none.")
        return options[self.integer(0, len(options))]


def draw(exercise: str) -> Draw:
    """The stream of inputs of one exercise, from its start.

    Example:
        >>> inputs = draw("03.2")
        >>> inputs.randn(8, 4).shape
        torch.Size([8, 4])

    Args:
        exercise: its id, such as "03.2".
    """
    start = start_of(exercise)
    surroundings.seed(start)
    return Draw(start)


def start_of(exercise: str) -> int:
    """The number that the stream of an exercise starts from, 63 bits of a digest."""
    digest = hashlib.sha256(f"{_seed}:{exercise}".encode()).digest()
    return int.from_bytes(digest[:8], "big") >> 1
