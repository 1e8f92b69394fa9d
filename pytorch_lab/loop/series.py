"""Numbers that a loop logs, turn by turn; tensors on an accelerator are read when it is time to."""

import math
from typing import Any

import torch

from pytorch_lab.errors import UsageError


class Series:
    """The numbers logged under one name.

    Example:
        >>> series = Series("loss")
        >>> series.add(torch.tensor(0.5), turn=1)
        >>> series.add(float("nan"), turn=2)
        >>> series.settled(), series.broken
        ([0.5, nan], (2, nan))
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self.broken: tuple[int, float] | None = None  # the first turn whose number is none
        self._numbers: list[float] = []
        self._waiting: list[tuple[int, torch.Tensor]] = []  # (turn, of one number)

    def add(self, number: Any, turn: int) -> None:
        """Log a number or a tensor of one number; its graph is not kept."""
        if isinstance(number, torch.Tensor):
            if number.numel() != 1:
                raise UsageError(
                    f"log({self.name}=...) expected a single number, got a tensor of shape "
                    f"{tuple(number.shape)}; log its .mean()."
                )
            if number.is_complex():
                raise UsageError(
                    f"log({self.name}=...) expected a real number, got a complex one; log its "
                    ".abs()."
                )
            number = number.detach()
            if number.device.type != "cpu":  # reading it would wait for the device
                self._waiting.append((turn, number.reshape(())))
                return
        try:
            self._take(float(number), turn)
        except (TypeError, ValueError, OverflowError, RuntimeError) as error:
            raise UsageError(
                f"log({self.name}=...) expected a number or a tensor of one, got {number!r:.60}."
            ) from error

    def settled(self) -> list[float]:
        """All numbers so far."""
        if self._waiting:
            turns, tensors = zip(*self._waiting, strict=True)
            self._waiting = []
            for turn, number in zip(turns, torch.stack(tensors).tolist(), strict=True):
                self._take(number, turn)
        return self._numbers

    def _take(self, number: float, turn: int) -> None:
        self._numbers.append(number)
        if self.broken is None and not math.isfinite(number):
            self.broken = (turn, number)
