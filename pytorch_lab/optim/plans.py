"""How many calls of `step()` a scheduler is made for, as far as its settings say it."""

import functools
from typing import Any, NamedTuple

from pytorch_lab.optim.family import known_class
from pytorch_lab.optim.torch_private import milestones, parts


class Plan(NamedTuple):
    """The length that a schedule was given."""

    calls: int
    says: str  # "T_max=10"
    then: str  # what comes after: "raises", "returns" (climbs again) or "stays"


_SETTINGS = {
    "OneCycleLR": ("total_steps", "raises"),
    "CosineAnnealingLR": ("T_max", "returns"),
    "LinearLR": ("total_iters", "stays"),
    "ConstantLR": ("total_iters", "stays"),
    "PolynomialLR": ("total_iters", "stays"),
}


def plan_of(scheduler: Any) -> Plan | None:
    """The plan, or None where there is none, as for StepLR.

    Example:
        >>> import torch
        >>> opt = torch.optim.SGD([torch.zeros(1)], lr=0.1)
        >>> plan_of(torch.optim.lr_scheduler.CosineAnnealingLR(opt, T_max=10))
        Plan(calls=10, says='T_max=10', then='returns')
    """
    name = known_class(scheduler)
    if name in _SETTINGS:
        setting, then = _SETTINGS[name]
        return Plan(
            int(getattr(scheduler, setting)), f"{setting}={getattr(scheduler, setting)}", then
        )
    if name == "MultiStepLR":
        last = max(scheduler.milestones, default=0)
        return Plan(last, f"last milestone {last}", "stays") if last else None
    if name == "SequentialLR":
        return _sequence(scheduler)
    if name == "ChainedScheduler":
        plans = [plan for one in parts(scheduler) if (plan := plan_of(one))]
        return max(plans, default=None)
    if name == "LambdaLR":
        return _of_partial(scheduler.lr_lambdas[0]) if scheduler.lr_lambdas else None
    return None


def _sequence(scheduler: Any) -> Plan | None:
    last = plan_of(parts(scheduler)[-1]) if parts(scheduler) else None
    if last is None or not milestones(scheduler):
        return None
    first = milestones(scheduler)[-1]
    return Plan(first + last.calls, f"{first} + {last.says}", last.then)


def _of_partial(function: Any) -> Plan | None:
    """The schedules of transformers are lambdas that know their number of steps."""
    known = function.keywords if isinstance(function, functools.partial) else {}
    calls = known.get("num_training_steps")
    if not isinstance(calls, int):
        return None
    return Plan(calls, f"num_training_steps={calls}", "stays")
