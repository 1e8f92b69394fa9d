"""Which schedulers and optimizers belong to a scheduler, and how it is spelled."""

import inspect
from collections.abc import Iterator
from typing import Any

from torch.optim import Optimizer
from torch.optim.lr_scheduler import LRScheduler


def family(scheduler: Any) -> list[Any]:
    """The scheduler itself, then those inside it, such as a chain's.

    Example:
        >>> import torch
        >>> from torch.optim import lr_scheduler
        >>> opt = torch.optim.SGD([torch.zeros(1)], lr=0.1)
        >>> parts = [lr_scheduler.ConstantLR(opt), lr_scheduler.ExponentialLR(opt, 0.9)]
        >>> [type(one).__name__ for one in family(lr_scheduler.ChainedScheduler(parts))]
        ['ChainedScheduler', 'ConstantLR', 'ExponentialLR']
    """
    found, waiting = [], [scheduler]
    while waiting:
        one = waiting.pop(0)
        if not any(one is known for known in found):
            found.append(one)
            waiting.extend(_inside(one))
    return found


def _inside(scheduler: Any) -> Iterator[Any]:
    for value in vars(scheduler).values():
        items = value.values() if isinstance(value, dict) else value
        for item in items if isinstance(value, list | tuple | dict) else (value,):
            steps = callable(getattr(item, "step", None)) and not isinstance(item, type)
            if isinstance(item, LRScheduler) or (
                steps and isinstance(getattr(item, "optimizer", None), Optimizer)
            ):
                yield item


def optimizers_of(schedulers: list[Any]) -> list[Optimizer]:
    """The optimizers whose rates these schedulers set, each once."""
    found: list[Optimizer] = []
    for scheduler in schedulers:
        optimizer = getattr(scheduler, "optimizer", None)
        if isinstance(optimizer, Optimizer) and not any(optimizer is one for one in found):
            found.append(optimizer)
    return found


def spell(scheduler: Any) -> str:
    """A scheduler as one would write it, with the settings that are plain numbers or names.

    Example:
        >>> import torch
        >>> opt = torch.optim.SGD([torch.zeros(1)], lr=0.1)
        >>> spell(torch.optim.lr_scheduler.StepLR(opt, step_size=30))
        'StepLR(step_size=30, gamma=0.1)'
    """
    inner = [spell(one) for one in _inside(scheduler)]
    settings = [f"{name}={_plain(value)}" for name, value in settings_of(scheduler).items()]
    inner += [name_of_lambda(scheduler)] if name_of_lambda(scheduler) else []
    return f"{type(scheduler).__name__}({', '.join([*inner, *settings])})"


def settings_of(scheduler: Any) -> dict[str, Any]:
    """The plain attributes that one would give to the constructor."""
    wanted = [*inspect.signature(type(scheduler)).parameters]
    held = vars(scheduler)
    names = [name for name in wanted if name in held and name not in ("optimizer", "last_epoch")]
    return {name: held[name] for name in names if _is_plain(held[name])}


def _is_plain(value: Any) -> bool:
    if isinstance(value, list | tuple):
        return len(value) <= 4 and all(isinstance(one, int | float) for one in value)
    return isinstance(value, bool | int | float | str) or type(value).__name__ == "Counter"


def _plain(value: Any) -> str:
    if type(value).__name__ == "Counter":  # MultiStepLR's milestones
        return str(sorted(value.elements()))
    return f"{value:g}" if isinstance(value, float) else repr(value)


def known_class(scheduler: Any) -> str:
    """The nearest class of torch, whose settings a subclass inherits; else its own."""
    for cls in type(scheduler).__mro__:
        if cls.__module__ in ("torch.optim.lr_scheduler", "torch.optim.swa_utils"):
            return cls.__name__
    return type(scheduler).__name__


def name_of_lambda(scheduler: Any) -> str:
    """How the function of a LambdaLR is called; empty where there is none."""
    functions = getattr(scheduler, "lr_lambdas", None) or ()
    if not functions:
        return ""
    function = getattr(functions[0], "func", functions[0])  # of a functools.partial
    name = getattr(function, "__name__", type(function).__name__)
    return "lr_lambda" if name == "<lambda>" else name
