"""The training loop: run its steps in any order and see what that does; watch a loop of one's own.

>>> from pytorch_lab import loop
>>> wrong = loop.run(["forward", "loss", "backward", "step"], turns=20)   # no zero_grad
>>> print(wrong.problems[0].text[:47])
Gradients add up: nothing clears them. In turn
"""

from pytorch_lab.loop.progress import progress
from pytorch_lab.loop.record import Failure, LoopRun, LoopRuns, Remark
from pytorch_lab.loop.running import compare, run
from pytorch_lab.loop.steps import RIGHT, STEPS, Here, lines

__all__ = [
    "RIGHT",
    "STEPS",
    "Failure",
    "Here",
    "LoopRun",
    "LoopRuns",
    "Remark",
    "compare",
    "lines",
    "progress",
    "run",
]
