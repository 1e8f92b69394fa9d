"""What a training step changes, put back: weights, gradients, modes, the optimizer's state.

The step is run for the sake of its time only. What it uses is found by following the names in its
code: globals, closures, the object of a method, and the reader's own functions that it calls.
"""

import contextlib
import copy
import functools
import types
from collections.abc import Callable, Iterator
from typing import Any

import torch

DEPTH = 4
LIBRARIES = ("torch", "numpy", "builtins")


@contextlib.contextmanager
def kept(step: Callable[..., Any] | None) -> Iterator[None]:
    """Afterwards the modules and optimizers that a step uses are as they were.

    Example:
        >>> net = torch.nn.Linear(1, 1)
        >>> def step(batch):
        ...     with torch.no_grad():
        ...         net.weight.add_(1)
        >>> before = net.weight.item()
        >>> with kept(step):
        ...     step(None)
        >>> net.weight.item() == before
        True
    """
    found = used_by(step)
    modules = [one for one in found if isinstance(one, torch.nn.Module)]
    tensors = {id(t): t for m in modules for t in (*m.parameters(), *m.buffers())}
    of_tensors = [_Tensor(one) for one in tensors.values() if not _is_lazy(one)]
    modes = [(part, part.training) for module in modules for part in module.modules()]
    others = [one for one in found if not isinstance(one, torch.nn.Module)]
    states = [copy.deepcopy(one.state_dict()) for one in others]
    try:
        yield
    finally:
        for one in of_tensors:
            one.put_back()
        for part, training in modes:
            part.training = training
        for one, state in zip(others, states, strict=True):
            one.load_state_dict(state)


class _Tensor:
    """A parameter or buffer, what it held, and what its gradient held."""

    def __init__(self, tensor: torch.Tensor) -> None:
        self.tensor, self.value = tensor, _aside(tensor)
        self.grad = tensor.grad
        self.slope = None if self.grad is None else _aside(self.grad)

    def put_back(self) -> None:
        with torch.no_grad():
            self.tensor.copy_(self.value)
            if self.grad is not None and self.slope is not None:
                self.grad.copy_(self.slope)
        self.tensor.grad = self.grad


def _aside(tensor: torch.Tensor) -> torch.Tensor:
    return tensor.detach().to("cpu", copy=True)  # not on the device, which may be full


def _is_lazy(tensor: torch.Tensor) -> bool:
    return torch.nn.parameter.is_lazy(tensor)


def used_by(step: Callable[..., Any] | None) -> list[Any]:
    """The modules, optimizers, schedulers and scalers that a step reaches.

    Example:
        >>> net = torch.nn.Linear(1, 1)
        >>> [type(one).__name__ for one in used_by(lambda batch: net(batch))]
        ['Linear']
    """
    seen: set[int] = set()
    found: list[Any] = []
    level: list[Any] = [step]
    for _ in range(DEPTH):
        below: list[Any] = []
        for one in level:
            if one is None or id(one) in seen:
                continue
            seen.add(id(one))
            if _has_state(one):
                found.append(one)
            below.extend(_below(one))
        level = below
    return found


def _has_state(thing: Any) -> bool:
    if isinstance(thing, type | types.ModuleType):
        return False
    try:
        return callable(thing.state_dict) and callable(thing.load_state_dict)
    except AttributeError:
        return False


def _below(thing: Any) -> list[Any]:
    if isinstance(thing, types.MethodType):
        return [thing.__self__, thing.__func__]
    if isinstance(thing, functools.partial):
        return [thing.func, *thing.args, *thing.keywords.values()]
    if isinstance(thing, types.FunctionType):
        return _named_in(thing)
    if isinstance(thing, list | tuple):
        return list(thing[:64])
    if isinstance(thing, dict):
        return list(thing.values())[:64]
    if _has_state(thing) or _of_library(type(thing)):
        return []
    return [*getattr(thing, "__dict__", {}).values(), vars(type(thing)).get("__call__")]


def _of_library(thing: Any) -> bool:
    return str(getattr(thing, "__module__", "")).partition(".")[0] in LIBRARIES


def _named_in(function: types.FunctionType) -> list[Any]:
    if _of_library(function):
        return []
    cells = []
    for cell in function.__closure__ or ():
        with contextlib.suppress(ValueError):  # not yet filled
            cells.append(cell.cell_contents)
    named = [function.__globals__.get(name) for name in function.__code__.co_names]
    defaults = [*(function.__defaults__ or ()), *(function.__kwdefaults__ or {}).values()]
    return [*cells, *named, *defaults]
