"""What a module's forward can see beyond `self`: defaults, closures, globals.

Only functions written by the learner are read, and of a class only those that forward leads to
(`forward` and the methods it names, and so on), so that a default argument of `__init__` or a
helper for plotting is nobody's business.
"""

import dis
import functools
import types
from collections.abc import Iterator
from typing import Any

import torch

from pytorch_lab.modules.reach import Part, is_library, written_here

NOTHING = object()


def plain_function(value: Any) -> types.FunctionType | None:
    """The function inside a method, a property, a class method; None if there is none."""
    if isinstance(value, property):
        value = value.fget
    if isinstance(value, staticmethod | classmethod | types.MethodType):
        value = value.__func__
    return value if isinstance(value, types.FunctionType) else None


@functools.lru_cache(maxsize=4096)
def _codes(code: types.CodeType) -> tuple[types.CodeType, ...]:
    """A code object and the comprehensions, lambdas and inner functions written in it."""
    found, stack = [], [code]
    while stack:
        found.append(stack.pop())
        stack.extend(c for c in found[-1].co_consts if isinstance(c, types.CodeType))
    return tuple(found)


@functools.lru_cache(maxsize=4096)
def _named(code: types.CodeType, opcode: str) -> frozenset[str]:
    """The names that instructions of one kind use: `LOAD_GLOBAL`, `STORE_ATTR`."""
    return frozenset(
        step.argval
        for part in _codes(code)
        for step in dis.get_instructions(part)
        if step.opname == opcode
    )


def forward_functions(cls: type) -> dict[str, types.FunctionType]:
    """The learner's methods that running forward may run, by name."""
    methods: dict[str, types.FunctionType] = {}
    for base in cls.__mro__:
        if base is torch.nn.Module:
            break
        if written_here(base):
            for name, value in vars(base).items():
                function = plain_function(value)
                if function is not None:
                    methods.setdefault(name, function)
    found: dict[str, types.FunctionType] = {}
    stack = ["forward"]
    while stack:
        name = stack.pop()
        if name in methods and name not in found and name != "__init__":
            found[name] = methods[name]
            for code in _codes(methods[name].__code__):
                stack.extend(code.co_names)
    return found


def assigned_by_forward(cls: type) -> frozenset[str]:
    """The attributes that running forward assigns: caches and notes, made anew in each call."""
    stored: set[str] = set()
    for function in forward_functions(cls).values():
        stored |= _named(function.__code__, "STORE_ATTR")
    return frozenset(stored)


def depends_on_mode(module: torch.nn.Module) -> bool:
    """Whether a module's code asks `self.training`: then `eval()` must be able to reach it."""
    for base in type(module).__mro__:
        forward = plain_function(vars(base).get("forward"))
        if forward is not None:
            return any("training" in code.co_names for code in _codes(forward.__code__))
    return False


def parts_of_function(function: types.FunctionType) -> Iterator[Part]:
    """What a function of the learner's holds: defaults, closure cells, the globals it names."""
    if is_library(function.__module__ or "builtins"):
        return
    code = function.__code__
    defaults = function.__defaults__ or ()
    takes_default = code.co_varnames[: code.co_argcount][code.co_argcount - len(defaults) :]
    for argument, value in zip(takes_default, defaults, strict=True):
        yield Part(f"({argument}=)", "default", value)
    for argument, value in (function.__kwdefaults__ or {}).items():
        yield Part(f"({argument}=)", "default", value)
    for variable, cell in zip(code.co_freevars, function.__closure__ or (), strict=True):
        value = _content(cell)
        if value is not NOTHING:
            yield Part(f"().{variable}", "closure", value)
    for variable in sorted(_named(code, "LOAD_GLOBAL")):
        value = function.__globals__.get(variable, NOTHING)
        if value is not NOTHING and not isinstance(value, type | types.ModuleType):
            yield Part(f"().{variable}", "global", value)


def _content(cell: types.CellType) -> Any:
    try:
        return cell.cell_contents
    except ValueError:  # the variable has no value yet
        return NOTHING
