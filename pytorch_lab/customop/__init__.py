"""Derivatives that you write yourself: which one is wrong, and by how much.

>>> import torch
>>> from pytorch_lab import customop
>>> class Square(torch.autograd.Function):
...     @staticmethod
...     def forward(ctx, x):
...         ctx.save_for_backward(x)
...         return x * x
...
...     @staticmethod
...     def backward(ctx, grad_output):
...         (x,) = ctx.saved_tensors
...         return grad_output * x  # 2 * x is right
>>> print(customop.check(Square, torch.tensor([1.0, 3.0])).problems[0].text)
Every derivative with respect to `x` is 0.5 times the right one.
"""

from pytorch_lab.customop.checking import check
from pytorch_lab.customop.record import Argument, Block, GradientCheck, Partial, Remark

__all__ = ["Argument", "Block", "GradientCheck", "Partial", "Remark", "check"]
