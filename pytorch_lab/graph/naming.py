"""What the reader calls things: `fc.weight` in a model, `net.fc.weight` in a function that uses it.

Names come from what the recorded callable can reach: the module itself (its path is ""), else the
modules and tensors in its bound `self`, its arguments, its closure, its defaults and the globals it
reads. Whatever has two names, such as a tied weight, gets the first.
"""

import functools
import inspect
import types
from collections.abc import Callable, Iterator
from typing import Any

import torch

from pytorch_lab.modules.functions import parts_of_function, plain_function
from pytorch_lab.modules.reach import attributes, is_open_box, parts

MOST_ITEMS = 200  # of one list or dict of the reader's


class Names:
    """Names by identity; holds what it names, so that no identity is given away twice."""

    def __init__(self) -> None:
        self.modules: dict[int, str] = {}
        self.tensors: dict[int, tuple[str, str]] = {}  # kind and name
        self._held: list[Any] = []

    def tensor(self, kind: str, name: str, tensor: torch.Tensor) -> None:
        """Name one tensor, if it has no name yet."""
        if self.tensors.setdefault(id(tensor), (kind, name)) == (kind, name):
            self._held.append(tensor)

    def module(self, path: str, root: torch.nn.Module) -> None:
        """Name a module and all that it registers."""
        if id(root) in self.modules:
            return
        self._held.append(root)
        for name, module in root.named_modules():
            here = _join(path, name)
            self.modules.setdefault(id(module), here)
            for key, parameter in module._parameters.items():
                if parameter is not None:
                    self.tensors.setdefault(id(parameter), ("parameter", _join(here, key)))
            for key, buffer in module._buffers.items():
                if isinstance(buffer, torch.Tensor):
                    self.tensors.setdefault(id(buffer), ("buffer", _join(here, key)))

    def stranger(self, module: torch.nn.Module, caller: str) -> str:
        """The path of a module that nobody named: called inside `caller`, named by its class."""
        path = _join(caller, type(module).__name__)
        self.module(path, module)
        return path

    def value(self, name: str, value: Any, kind: str, depth: int = 2) -> None:
        """Name a variable of the reader's: a tensor, a module, or what a container holds."""
        if isinstance(value, torch.nn.Module):
            self.module(name, value)
        elif isinstance(value, torch.Tensor):
            tensor_kind = "parameter" if isinstance(value, torch.nn.Parameter) else kind
            self.tensor(tensor_kind, name, value)
        elif depth and isinstance(value, dict | list | tuple):
            for i, part in enumerate(parts(value)):
                if i == MOST_ITEMS:
                    break
                self.value(name + part.step, part.value, kind, depth - 1)
        elif depth and is_open_box(type(value)):
            for key, inner in attributes(value).items():
                self.value(f"{name}.{key}", inner, kind, depth - 1)


def names_for(fn: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Names:
    """Everything that the callable can reach, named as its author names it.

    Example:
        >>> net = torch.nn.Linear(2, 1)
        >>> names = names_for(lambda x: net(x), (torch.ones(2),), {})
        >>> sorted(name for kind, name in names.tensors.values())
        ['net.bias', 'net.weight', 'x']

    Args:
        fn: what will be called.
        args: with these arguments.
        kwargs: and these by name.
    """
    names = Names()
    if isinstance(fn, torch.nn.Module):
        names.module("", fn)
    for name, value in _bound(fn, args, kwargs):
        names.value(name, value, "input")
    for name, value in _reached(fn):
        names.value(name, value, "constant")
    return names


def function_name(fn: Callable[..., Any]) -> str:
    """`Net` of a module, `train.<locals>.step` is `step`."""
    if isinstance(fn, torch.nn.Module):
        return type(fn).__name__
    if isinstance(fn, functools.partial):
        return function_name(fn.func)
    return getattr(fn, "__name__", type(fn).__name__)


def _bound(
    fn: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
) -> Iterator[tuple[str, Any]]:
    """Each argument with the name of the parameter that takes it."""
    function: Any = fn.forward if isinstance(fn, torch.nn.Module) else fn
    arguments: dict[str, Any]
    try:
        bound = inspect.signature(function).bind(*args, **kwargs)
        arguments = bound.arguments
        kinds = {name: p.kind for name, p in bound.signature.parameters.items()}
    except (TypeError, ValueError):  # built in, or called wrongly: fn itself will say so
        arguments = {f"args[{i}]": value for i, value in enumerate(args)} | kwargs
        kinds = {}
    for name, value in arguments.items():
        if kinds.get(name) is inspect.Parameter.VAR_KEYWORD:
            yield from value.items()
        else:
            yield name, value


def _reached(fn: Any) -> Iterator[tuple[str, Any]]:
    if isinstance(fn, functools.partial):
        yield from _reached(fn.func)
        return
    if isinstance(fn, torch.nn.Module):
        return
    owner = getattr(fn, "__self__", None)
    function = plain_function(fn)
    if function is None and not isinstance(fn, type):  # an object with __call__
        owner, function = fn, plain_function(_class_attribute(type(fn), "__call__"))
    if isinstance(owner, torch.nn.Module):
        yield "", owner
    elif owner is not None and is_open_box(type(owner)):
        yield from attributes(owner).items()
    if function is not None:
        for part in parts_of_function(_typed_in(function)):
            yield (
                part.step.strip("().=") if part.holder != "default" else part.step[1:-2],
                part.value,
            )


def _typed_in(function: types.FunctionType) -> types.FunctionType:
    """A doctest's function says it is of the module tested; it is the reader's all the same."""
    if not function.__code__.co_filename.startswith("<"):
        return function
    same = types.FunctionType(
        function.__code__,
        function.__globals__,
        function.__name__,
        function.__defaults__,
        function.__closure__,
    )
    same.__kwdefaults__ = function.__kwdefaults__
    same.__module__ = "__main__"
    return same


def _class_attribute(cls: type, name: str) -> Any:
    return next((vars(base)[name] for base in cls.__mro__ if name in vars(base)), None)


def _join(path: str, name: str) -> str:
    return f"{path}.{name}" if path and name else path or name
