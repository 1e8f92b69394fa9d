"""The function under test, with copies in double precision of all that has a gradient.

It is called many times: with a new copy of its inputs each time, so that a function which writes
to them disturbs nobody.
"""

import functools
import inspect
import re
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor
from torch.autograd import Function

from pytorch_lab import surroundings
from pytorch_lab.customop.record import Argument
from pytorch_lab.errors import ModelError, UsageError
from pytorch_lab.words import message_of, shortened

MOST_PARTIALS = 250_000


class Subject:
    """What is differentiated.

    Attributes:
        name: of the function.
        inputs: those that have a gradient, in the order of the call; a module's parameters last.
        starts: their values in double precision, without a graph.
        arguments: the names of all that a Function's forward takes; empty for other functions.
        seeded: whether each call is given the same random numbers.
        left_out: names of outputs that are not differentiated.
    """

    def __init__(
        self,
        name: str,
        inputs: Sequence[Argument],
        starts: Sequence[Tensor],
        invoke: Callable[[Sequence[Tensor]], Any],
        arguments: Sequence[str] = (),
    ) -> None:
        self.name = name
        self.inputs = tuple(inputs)
        self.starts = list(starts)
        self.arguments = tuple(arguments)
        self.seeded = False
        self.left_out: set[str] = set()
        self._invoke = invoke

    def copies(self, *, grad: bool = False, only: int | None = None) -> list[Tensor]:
        """The inputs anew; `only` one of them may require a gradient."""
        return [
            start.clone().requires_grad_(grad and only in (None, place))
            for place, start in enumerate(self.starts)
        ]

    def outputs(self, values: Sequence[Tensor]) -> dict[str, Tensor]:
        """What the function makes of these, by name: all tensors with fractions.

        Raises:
            ModelError: the function raised.
            UsageError: it returned something else than tensors.
        """
        if self.seeded:
            surroundings.seed(0)
        try:
            result = self._invoke(values)
        except Exception as error:
            raise ModelError(self._failed(error)) from error
        return self._floating(result)

    def _failed(self, error: Exception) -> str:
        said = shortened(message_of(error)).rstrip(".")
        advice = "."
        if isinstance(error, RuntimeError) and ("dtype" in said or "Double" in said):
            advice = (
                ". Its inputs are copied to double precision for the check: what else it computes "
                "with must be double too, or be given as an input."
            )
        return (
            f"check(fn, *inputs): {self.name} raised {type(error).__name__} when it was called: "
            f"{said}{advice}"
        )

    def _floating(self, result: Any) -> dict[str, Tensor]:
        named = _named(result)
        strange = [value for value in named.values() if not isinstance(value, Tensor)]
        if strange:
            raise UsageError(
                f"check(fn, *inputs) expected {self.name} to return a tensor, or a tuple, list or "
                f"dict of tensors, got {type(strange[0]).__name__}: {strange[0]!r:.40}."
            )
        if any(value.is_complex() for value in named.values()):
            raise UsageError(
                f"check(fn, *inputs) compares derivatives of real numbers, and {self.name} returns "
                "complex ones; torch.autograd.gradcheck knows their two derivatives."
            )
        if any(value.is_meta for value in named.values()):
            raise UsageError(
                f"check(fn, *inputs) expected {self.name} to return numbers, got a tensor on the "
                "meta device, which has none."
            )
        if any(value.layout != torch.strided or value.is_nested for value in named.values()):
            raise UsageError(
                f"check(fn, *inputs) expected {self.name} to return dense tensors; let it end with "
                "`.to_dense()`."
            )
        found = {
            name: value
            for name, value in named.items()
            if value.is_floating_point() and name not in self.left_out
        }
        if not found:
            raise UsageError(
                f"check(fn, *inputs) expected {self.name} to return numbers with a derivative, got "
                f"{', '.join(str(value.dtype) for value in named.values()) or 'nothing'}."
            )
        return found


def _named(result: Any) -> dict[str, Any]:
    if isinstance(result, dict):
        return {str(key): value for key, value in result.items()}
    if isinstance(result, tuple | list):
        several = {f"out {place}": value for place, value in enumerate(result)}
        return {name: value for name, value in several.items() if value is not None}
    return {"out": result}


def subject_of(fn: Any, inputs: Sequence[Any]) -> Subject:
    """The function and its inputs, made ready.

    Args:
        fn: a subclass of `autograd.Function` or its `apply`, a module, or any function.
        inputs: of one call. Checked are the tensors that require a gradient; where none does, all
            that hold fractions; of a module its parameters as well.

    Raises:
        UsageError: nothing here can be differentiated.
    """
    function = _function_class(fn)
    call: Callable[..., Any] = function.apply if function else fn
    if not callable(call):
        raise UsageError(
            f"check(fn, *inputs) expected a function, a module or a subclass of "
            f"torch.autograd.Function, got {type(fn).__name__!r}."
        )
    names = _argument_names(fn, function, len(inputs))
    for name, value in zip(names, inputs, strict=True):
        _refuse(name, value)
    floating = [
        place
        for place, value in enumerate(inputs)
        if isinstance(value, Tensor) and value.is_floating_point()
    ]
    chosen = [place for place in floating if inputs[place].requires_grad] or floating
    parameters = _parameters(fn)
    if not chosen and not parameters:
        raise UsageError(
            "check(fn, *inputs) expected at least one tensor of floating-point numbers among the "
            f"inputs, got {', '.join(type(value).__name__ for value in inputs) or 'none'}."
        )
    given = {names[place]: inputs[place] for place in chosen} | parameters
    fixed = [_double(v) if p in floating and p not in chosen else v for p, v in enumerate(inputs)]

    def invoke(values: Sequence[Tensor]) -> Any:
        args = [value.clone() if isinstance(value, Tensor) else value for value in fixed]
        for place, value in zip(chosen, values, strict=False):
            args[place] = value
        if not isinstance(fn, torch.nn.Module):
            return call(*args)
        own = dict(zip(parameters, values[len(chosen) :], strict=True))
        held = [*fn.named_parameters(), *fn.named_buffers()]
        rest = {name: _double(tensor) for name, tensor in held if name not in own}
        return torch.func.functional_call(fn, own | rest, tuple(args))

    arguments = [_argument(name, value) for name, value in given.items()]
    starts = [_double(value) for value in given.values()]
    return Subject(_name(function or fn), arguments, starts, invoke, names if function else ())


def _function_class(fn: Any) -> Any:
    """The subclass of `autograd.Function`, also when its `apply` is given."""
    owner = fn if isinstance(fn, type) else getattr(fn, "__self__", None)
    return owner if isinstance(owner, type) and issubclass(owner, Function) else None


def _argument_names(fn: Any, function: Any, many: int) -> list[str]:
    """As the function's own signature calls them; no name twice."""
    has_forward = function is not None or isinstance(fn, torch.nn.Module)
    try:
        signature = inspect.signature((function or fn).forward if has_forward else fn)
    except (TypeError, ValueError):  # some of torch's builtins have none
        signature = inspect.Signature()
    parameters = list(signature.parameters.values())
    if function is not None and function.setup_context is Function.setup_context:
        parameters = parameters[1:]  # ctx
    names = []
    for place in range(many):
        rest = parameters and parameters[-1].kind is inspect.Parameter.VAR_POSITIONAL
        fits = place < len(parameters) - bool(rest)
        if fits and parameters[place].kind in (
            inspect.Parameter.POSITIONAL_ONLY,
            inspect.Parameter.POSITIONAL_OR_KEYWORD,
        ):
            names.append(parameters[place].name)
        else:
            names.append("x" if many == 1 else f"input {place}")
    return names


def _name(fn: Any) -> str:
    if isinstance(fn, torch.nn.Module):
        return type(fn).__name__
    while isinstance(fn, functools.partial):
        fn = fn.func
    registered = re.fullmatch(r"<CustomOpDef\((.+)\)>", repr(fn))  # of torch.library.custom_op
    name = registered[1] if registered else getattr(fn, "__name__", "") or type(fn).__name__
    return "the lambda" if name == "<lambda>" else name


def _refuse(name: str, value: Any) -> None:
    if not isinstance(value, Tensor):
        return
    if torch.nn.parameter.is_lazy(value):
        raise UsageError(
            f"check(fn, *inputs) expected tensors with a shape, and `{name}` is lazy: send one "
            "batch through its module first."
        )
    if value.is_complex():
        raise UsageError(
            f"check(fn, *inputs) compares derivatives of real numbers, and `{name}` is complex; "
            "torch.autograd.gradcheck knows their two derivatives."
        )
    if value.layout != torch.strided or value.is_nested or value.is_meta:
        kind = "nested" if value.is_nested else "without numbers" if value.is_meta else value.layout
        raise UsageError(f"check(fn, *inputs) expected dense tensors, got `{name}` that is {kind}.")


def _parameters(fn: Any) -> dict[str, Tensor]:
    if not isinstance(fn, torch.nn.Module):
        return {}
    found: dict[str, Tensor] = {name: p for name, p in fn.named_parameters() if p.requires_grad}
    for name, parameter in found.items():
        _refuse(name, parameter)
    return found


def _double(tensor: Tensor) -> Tensor:
    copy = tensor.detach().clone()
    return copy.to(torch.float64) if copy.is_floating_point() else copy


def _argument(name: str, tensor: Tensor) -> Argument:
    return Argument(name, tuple(tensor.shape), str(tensor.dtype).removeprefix("torch."))
