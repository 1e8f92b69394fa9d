"""Optimizers and schedules: the rate of every step, the race of optimizers, who is in which group.

>>> import torch
>>> from pytorch_lab import optim
>>> sgd = torch.optim.SGD([torch.zeros(1)], lr=1.0)
>>> optim.trace_schedule(torch.optim.lr_scheduler.ExponentialLR(sgd, 0.5), 4).rates
((1.0, 0.5, 0.25, 0.125),)
"""

from pytorch_lab.optim.curve import LrCurve, Remark
from pytorch_lab.optim.grouping import groups
from pytorch_lab.optim.param_groups import ParamGroups
from pytorch_lab.optim.path import Racer, StepPath
from pytorch_lab.optim.race import trace_optimizer
from pytorch_lab.optim.schedule import trace_schedule
from pytorch_lab.optim.surfaces import Surface, surface
from pytorch_lab.optim.watching import Watch, watch_schedule

__all__ = [
    "LrCurve",
    "ParamGroups",
    "Racer",
    "Remark",
    "StepPath",
    "Surface",
    "Watch",
    "groups",
    "surface",
    "trace_optimizer",
    "trace_schedule",
    "watch_schedule",
]
