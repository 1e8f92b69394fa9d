"""An axis: from numbers to pixels, with round numbers to write beside it."""

import math


class Axis:
    """A stretch of numbers, linear or logarithmic, laid over a stretch of pixels.

    Example:
        >>> axis = Axis(0.0, 0.9, 200, 0)
        >>> axis.ticks()
        [0.0, 0.2, 0.4, 0.6, 0.8, 1.0]
        >>> axis.at(0.5)
        100.0

    Args:
        low: the smallest number; on a logarithmic axis above 0.
        high: the largest.
        start: the pixel of the smallest number.
        end: the pixel of the largest.
        log: one power of ten is as long as the next.
        round_ends: let the axis begin and end at a round number.
    """

    def __init__(
        self,
        low: float,
        high: float,
        start: float,
        end: float,
        *,
        log: bool = False,
        round_ends: bool = True,
    ) -> None:
        self.start, self.end, self.log = start, end, log
        if log:
            self.low, self.high = math.floor(math.log10(low)), math.ceil(math.log10(high))
            self.high = max(self.high, self.low + 1)
            self.step = float(max(1, math.ceil((self.high - self.low) / 5)))
            return
        self.step = round_up((high - low) / 5 or abs(high) or 1.0)
        self.low, self.high = low, max(high, low + self.step * 1e-3)
        if round_ends:
            self.low = math.floor(low / self.step + 1e-9) * self.step
            self.high = max(math.ceil(high / self.step - 1e-9) * self.step, self.low + self.step)

    def at(self, number: float) -> float:
        """The pixel of a number, to a tenth; what is too low for its logarithm is at the end."""
        if self.log:
            number = math.log10(number) if number > 0 else self.low
            number = max(number, self.low)
        share = (number - self.low) / (self.high - self.low)
        return round(self.start + share * (self.end - self.start), 1)

    def ticks(self) -> list[float]:
        """The round numbers."""
        first = math.ceil(self.low / self.step - 1e-9)
        last = math.floor(self.high / self.step + 1e-9)
        places = [round(k * self.step, 12) + 0.0 for k in range(first, last + 1)]
        return [10.0**place for place in places] if self.log else places


def round_up(number: float) -> float:
    """The next of 1, 2, 5 times a power of ten.

    Example:
        >>> round_up(0.03), round_up(0.18), round_up(7)
        (0.05, 0.2, 10.0)
    """
    power = 10.0 ** math.floor(math.log10(number))
    found = next(f for f in (1, 2, 5, 10) if power * f >= number * (1 - 1e-9))
    return float(f"{power * found:.3g}")
