"""A small graph of single numbers, with all that is needed to work out its derivatives by hand.

Each step knows its value, how fast it moves with each of its inputs (the local derivative on each
edge), and how fast the result moves with it (its gradient). All three come from autograd itself:
the local derivative is what the step's own node hands back for a gradient of 1.

The idea of learning backpropagation on numbers small enough to check is Andrej Karpathy's, in his
micrograd (2020).
"""

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.autograd.graph import GradientEdge
from torch.overrides import TorchFunctionMode

from pytorch_lab.errors import UsageError

MOST_STEPS = 12  # more do not fit a picture that one fills in by hand

INFIX = {
    "add": "{} + {}", "sub": "{} - {}", "mul": "{} * {}", "div": "{} / {}", "pow": "{} ** {}",
    "__rsub__": "{1} - {0}", "__rpow__": "{1} ** {0}", "__rdiv__": "{} * {}", "neg": "-{}",
}  # fmt: skip


class Step(NamedTuple):
    """A leaf, or one op on numbers."""

    name: str  # "a" for a leaf, "v1" between, "L" for the result
    text: str  # "a * b"; empty for a leaf
    value: float
    inputs: tuple[int, ...]  # places of earlier steps; one that is used twice stands here twice
    slopes: tuple[float, ...]  # the derivative of this step by each of `inputs`
    gradient: float  # the derivative of the result by this step
    node: str  # "MulBackward0"; empty for a leaf
    operands: tuple[str, ...]  # what the op worked on, numbers included: ("a", "2")


def work_out(fn: Callable[..., Tensor], leaves: dict[str, float], where: str) -> tuple[Step, ...]:
    """The steps that `fn` takes from the leaves to its result, in the order of the graph.

    Example:
        >>> steps = work_out(lambda a, b: a * b + b, {"a": 2.0, "b": -3.0}, "here")
        >>> [(step.name, step.text, step.value) for step in steps]
        [('a', '', 2.0), ('b', '', -3.0), ('v1', 'a * b', -6.0), ('L', 'v1 + b', -9.0)]
        >>> steps[2].slopes, steps[1].gradient
        ((-3.0, 2.0), 3.0)

    Args:
        fn: takes the leaves by name, each a scalar tensor of float64, and returns a scalar tensor.
        leaves: their values; the result depends on all of them.
        where: the call as the author wrote it, for messages.

    Raises:
        UsageError: the function raised, or what it computed is no graph of single numbers with at
            most twelve steps and finite derivatives.
    """
    tensors = {
        name: torch.tensor(float(value), dtype=torch.float64, requires_grad=True)
        for name, value in leaves.items()
    }
    seen = _Watch()
    try:
        with torch.enable_grad(), seen:
            result = fn(**tensors)
    except Exception as error:
        raise UsageError(
            f"{where} expected a function of {', '.join(leaves)} that runs, got "
            f"{type(error).__name__}: {error}"
        ) from error
    nodes = _nodes(where, result, tensors)
    return _steps(where, result, nodes, tensors, seen.made)


class _Made(NamedTuple):
    """What is known of the op that made a node."""

    value: float
    op: str
    numbers: tuple[float, ...]  # its arguments that were no steps


class _Watch(TorchFunctionMode):
    """Remembers for each node what it stands for."""

    def __init__(self) -> None:
        super().__init__()
        self.made: dict[Any, _Made] = {}

    def __torch_function__(
        self, func: Any, types: Any, args: Any = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        result = func(*args, **(kwargs or {}))
        if isinstance(result, Tensor) and result.grad_fn is not None and result.dim() == 0:
            name = getattr(func, "__name__", "op")
            numbers = tuple(float(arg) for arg in args if _is_number(arg))
            self.made.setdefault(result.grad_fn, _Made(result.item(), name, numbers))
        return result


def _is_number(arg: Any) -> bool:
    if isinstance(arg, Tensor):
        return arg.dim() == 0 and not arg.requires_grad
    return isinstance(arg, int | float)


def _nodes(where: str, result: Any, tensors: dict[str, Tensor]) -> list[Any]:
    """The nodes behind the result, every one behind all that it reads."""
    if not isinstance(result, Tensor) or result.numel() != 1 or not result.is_floating_point():
        shown = f"shape {tuple(result.shape)}" if isinstance(result, Tensor) else repr(result)
        raise UsageError(f"{where} expected a function that returns one number, got {shown:.60}.")
    if result.grad_fn is None:
        raise UsageError(
            f"{where} expected a result that depends on {', '.join(tensors)}, got one without a "
            "graph; compute it from the arguments, without detach() or no_grad."
        )
    order: dict[Any, None] = {}
    todo = [(result.grad_fn, False)]
    while todo:
        node, is_done = todo.pop()
        if is_done:
            order[node] = None
        elif node not in order:
            todo.append((node, True))
            todo += [(next, False) for next, _ in reversed(node.next_functions) if next is not None]
    found = [node for node in order if not hasattr(node, "variable")]
    if len(found) > MOST_STEPS:
        raise UsageError(
            f"{where} expected at most {MOST_STEPS} steps, got {len(found)}; nobody likes to work "
            "out more by hand."
        )
    _all_used(where, order, tensors)
    return found


def _all_used(where: str, order: dict[Any, None], tensors: dict[str, Tensor]) -> None:
    used = [node.variable for node in order if hasattr(node, "variable")]
    for name, tensor in tensors.items():
        if not any(tensor is variable for variable in used):
            raise UsageError(
                f"{where} expected a result that depends on all leaves, got one that does not "
                f"depend on {name!r}; leave it out."
            )
    for variable in used:
        if not any(tensor is variable for tensor in tensors.values()):
            raise UsageError(
                f"{where} expected no other leaves than {', '.join(tensors)}, got a tensor from "
                "outside that asks for a gradient; make it an argument."
            )


def _steps(
    where: str, result: Tensor, nodes: list[Any], tensors: dict[str, Tensor], made: dict[Any, _Made]
) -> tuple[Step, ...]:
    known = [_known(where, node, made) for node in nodes]
    ends = [*tensors.values(), *(GradientEdge(node, 0) for node in nodes)]
    gradients = [g.item() for g in torch.autograd.grad(result, ends, retain_graph=True)]
    names = [*tensors, *_names(len(nodes), set(tensors))]
    places: dict[Any, int] = {node: len(tensors) + at for at, node in enumerate(nodes)}
    steps = [
        Step(name, "", tensor.item(), (), (), gradients[at], "", ())
        for at, (name, tensor) in enumerate(tensors.items())
    ]
    for at, (node, its) in enumerate(zip(nodes, known, strict=True), len(tensors)):
        ends = [_place(next, places, tensors) for next, _ in node.next_functions]
        slopes = [0.0 if slope is None else slope for slope in _slopes(where, node)]
        numbers = iter(map(_short, its.numbers))
        operands = [next(numbers, "?") if end is None else names[end] for end in ends]
        operands += numbers
        kept = [(end, slope) for end, slope in zip(ends, slopes, strict=True) if end is not None]
        inputs, slopes = zip(*kept, strict=True)
        text = _text(its.op, operands)
        plain = _plain(node)
        steps.append(
            Step(names[at], text, its.value, inputs, slopes, gradients[at], plain, tuple(operands))
        )
    for step in steps:
        if not all(map(math.isfinite, (step.value, step.gradient, *step.slopes))):
            raise UsageError(
                f"{where} expected finite values and derivatives, got the value "
                f"{_short(step.value)} at {step.name}{step.text and f' = {step.text}'}, where the "
                f"result moves with {_short(step.gradient)}; choose other leaf values."
            )
    return tuple(steps)


def _place(node: Any, places: dict[Any, int], tensors: dict[str, Tensor]) -> int | None:
    if node is None or node in places:
        return places.get(node)
    return next(at for at, tensor in enumerate(tensors.values()) if tensor is node.variable)


def _plain(node: Any) -> str:
    return node.name().rpartition("::")[2]


def _known(where: str, node: Any, made: dict[Any, _Made]) -> _Made:
    """What is known of a node; of the inner nodes of a composite op only what they saved."""
    if node in made:
        return made[node]
    op = _plain(node).partition("Backward")[0]
    result = getattr(node, "_saved_result", None)  # 1 / x is reciprocal, then mul
    if isinstance(result, Tensor) and result.dim() == 0:
        return _Made(result.item(), op.lower(), ())
    raise UsageError(_TOO_MUCH.format(where=where, op=op))


_TOO_MUCH = (
    "{where} expected steps that torch takes one at a time, each on single numbers, got {op} "
    "inside of another op or on more numbers; write it in simpler ops."
)


def _slopes(where: str, node: Any) -> list[float | None]:
    """What the node hands back to each input for a gradient of 1."""
    one = torch.ones((), dtype=torch.float64)
    with torch.no_grad():
        given = node(one)
    given = given if isinstance(given, tuple) else (given,)
    if any(gradient is not None and gradient.numel() != 1 for gradient in given):
        raise UsageError(_TOO_MUCH.format(where=where, op=_plain(node).partition("Backward")[0]))
    return [None if gradient is None else gradient.item() for gradient in given]


def _names(count: int, taken: set[str]) -> list[str]:
    letter = next(one for one in "vuwz" if not any(name.startswith(one) for name in taken))
    last = next(one for one in ("L", "out", "result") if one not in taken)
    return [*(f"{letter}{k}" for k in range(1, count)), last]


def _text(op: str, operands: list[str]) -> str:
    form = INFIX.get(op.rstrip("_") if not op.endswith("__") else op)
    if form is not None and len(operands) == 2 - (form.count("{") == 1):
        return form.format(*operands)
    return f"{op.strip('_')}({', '.join(operands)})"


def _short(number: float) -> str:
    return f"{number:.6g}"
