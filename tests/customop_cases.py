"""Functions with a backward of their own: right ones, and one for each mistake."""

import inspect
from collections.abc import Callable
from typing import Any, NamedTuple

import torch
from torch.autograd import Function
from torch.autograd.function import once_differentiable


def function(forward: Any, backward: Any, name: str = "Own") -> Any:
    """A Function made of two functions."""
    static = {"forward": staticmethod(forward), "backward": staticmethod(backward)}
    return type(name, (Function,), static)


def saving(compute: Callable[..., Any]) -> Callable[..., Any]:
    """A forward that saves its tensors and computes."""

    def forward(ctx, *args):
        ctx.save_for_backward(*(a for a in args if torch.is_tensor(a)))
        return compute(*args)

    ctx = inspect.Parameter("ctx", inspect.Parameter.POSITIONAL_ONLY)
    own = inspect.signature(compute).parameters.values()
    forward.__signature__ = inspect.Signature([ctx, *(p.replace(kind=ctx.kind) for p in own)])
    return forward


def square(backward: Any) -> Any:
    """`x * x` with the backward given as a function of x and grad_output."""
    return function(saving(lambda x: x * x), lambda ctx, g: backward(*ctx.saved_tensors, g))


def product(backward: Any) -> Any:
    """`x @ w` with the backward given as a function of x, w and grad_output."""
    return function(saving(lambda x, w: x @ w), lambda ctx, g: backward(*ctx.saved_tensors, g))


def mean_square(backward: Any) -> Any:
    """The mean of `x * x`."""
    return function(saving(lambda x: (x * x).mean()), lambda c, g: backward(*c.saved_tensors, g))


def softmax(backward: Any) -> Any:
    """A softmax over a vector, with the backward as a function of its output."""

    def forward(ctx, x):
        y = x.softmax(-1)
        ctx.save_for_backward(y)
        return y

    return function(forward, lambda ctx, g: backward(*ctx.saved_tensors, g))


def relu(backward: Any) -> Any:
    return function(saving(lambda x: x.clamp(min=0)), lambda c, g: backward(*c.saved_tensors, g))


def _saved_by_hand(ctx, x):
    ctx.y = x.exp()
    ctx.y.add_(1)
    return ctx.y.clone()


def _overwritten(ctx, x):
    y = x.exp()
    ctx.save_for_backward(y)
    return y


def _writes(ctx, x):
    x.mul_(2)
    return x + 1


def _grad_in_place(ctx, g):
    g.mul_(2 * ctx.saved_tensors[0])
    return g


def _only_with_the_first(ctx, g):
    a, b = ctx.saved_tensors
    first = ctx.needs_input_grad[0]
    return g * b if first else None, g * a if first else None


def _two_if_two(ctx, g):
    a, b = ctx.saved_tensors
    return (g * b, g * a) if all(ctx.needs_input_grad) else (g * b,)


class Counts:
    """Something else at each call."""

    def __init__(self):
        self.calls = 0

    def __call__(self, x):
        self.calls += 1
        return x * self.calls


X = torch.tensor([0.5, -1.25, 2.0])
M, W = torch.linspace(-1, 2, 6).view(2, 3), torch.linspace(1, -2, 9).view(3, 3).sin()
S = torch.tensor([[0.3, -1.2, 0.8], [1.1, 0.4, -0.7], [2.0, -0.2, 0.9]])


class Case(NamedTuple):
    """A function with a mistake, or without."""

    fn: Any
    inputs: tuple[Any, ...]
    code: str = ""  # of the problem; "" for a right one
    says: str = ""
    gradcheck_sees_it: bool = True


RIGHT = {
    "sin": Case(torch.sin, (X,)),
    "square": Case(square(lambda x, g: 2 * x * g), (X,)),
    "product": Case(product(lambda x, w, g: (g @ w.T, x.T @ g)), (M, W)),
    "mean": Case(mean_square(lambda x, g: 2 * x * g / x.numel()), (M,)),
    "softmax": Case(softmax(lambda y, g: y * (g - (g * y).sum())), (X,)),
    "unused input": Case(lambda x, y: x * 2, (X, X)),
    "two outputs": Case(lambda x, y: (x * y, x.sum()), (X, X + 1)),
    "no element": Case(torch.sin, (X[:0],)),
    "a number": Case(lambda x: x**3, (torch.tensor(2.0),)),
    "strided": Case(lambda x: x.exp(), (M.T,)),
    "expanded": Case(lambda x: (x * x).sum(0), (X.expand(2, 3),)),
    "flat": Case(lambda x: x.detach().round() * 0 + x * 0, (X,)),
    "unsummed": Case(
        function(lambda ctx, x, b: x + b, lambda ctx, g: (g, g)), (M, X)
    ),  # torch sums what was broadcast
}
WRONG = {
    "half": Case(square(lambda x, g: x * g), (X,), "factor", "is 0.5 times the right one."),
    "sign": Case(square(lambda x, g: -2 * x * g), (X,), "sign", "has the wrong sign."),
    "none": Case(square(lambda x, g: None), (X,), "none", "gives `None`: no gradient for `x`"),
    "zero": Case(square(lambda x, g: 0 * g), (X,), "zero", "Backward gives 0 for `x`"),
    "nan": Case(
        square(lambda x, g: 2 * x * g / (x > 0)), (X,), "not_finite",
        "inf or nan for 3 derivatives with respect to `x`",
    ),
    "varies": Case(
        square(lambda x, g: x.abs() ** 1.5 * g), (X,), "wrong",
        "3 of 9 derivatives with respect to `x` are wrong, -0.559 to 0.707 times the right ones.",
    ),
    "grad_output forgotten": Case(
        mean_square(lambda x, g: 2 * x / x.numel()), (M,), "ignores_grad_output",
        "The gradient of `x` is the same for every `grad_output`",
    ),
    "grad_output forgotten, a vector": Case(
        square(lambda x, g: 2 * x), (X,), "ignores_grad_output", "is the same for every"
    ),
    "not linear": Case(
        mean_square(lambda x, g: 2 * x * g**2 / x.numel()), (M,), "not_linear",
        "backward must be linear", gradcheck_sees_it=False,
    ),
    "sum for mean": Case(
        mean_square(lambda x, g: 2 * x * g), (M,), "factor",
        "is 6 times the right one, and 6 is the number of elements of `x`: a sum where a mean is "
        "differentiated?",
    ),
    "mean for sum": Case(
        function(lambda ctx, x, b: x + b, lambda ctx, g: (g, g.mean(0))), (M, X), "factor",
        "is 0.5 times the right one, and 2 is the size 2 in the shape of `out`: a mean where",
    ),
    "transposed": Case(
        product(lambda x, w, g: (g @ w.T, (x.T @ g).T)), (M, W), "transposed",
        "The gradient of `w` comes out transposed.",
    ),
    "transposed jacobian": Case(
        product(lambda x, w, g: (g @ w, x.T @ g)), (M, W), "transposed_jacobian",
        "multiplies by the Jacobian with respect to `x` from the wrong side",
    ),
    "swapped": Case(
        product(lambda x, w, g: (x.T @ g, g @ w.T)), (S, W), "swapped",
        "What backward gives for `x` is the gradient of `w`",
    ),
    "only the diagonal": Case(
        softmax(lambda y, g: g * y * (1 - y)), (X,), "only_diagonal",
        "6 of 9 derivatives with respect to `x` are 0, but shouldn't be: only what an element",
    ),
    "first row only": Case(
        function(lambda ctx, x, b: x + b, lambda ctx, g: (g, g[0])), (M, X), "missing",
        "3 of 18 derivatives with respect to `b` are 0, but shouldn't be: a term is missing.",
    ),
    "mask forgotten": Case(
        relu(lambda x, g: g), (X,), "extra", "1 of 9 derivatives with respect to `x` should be 0"
    ),
    "straight through": Case(
        function(lambda ctx, x: x.round(), lambda ctx, g: g), (X + 0.1,), "flat",
        "If a straight-through gradient is what you want",
    ),
    "cut": Case(lambda x: (x * 2).detach(), (X,), "cut", "`out` doesn't require grad"),
    "number": Case(
        product(lambda x, w, g: g @ w.T), (M, W), "number",
        "Backward returns 1 gradient, but forward has 2 arguments",
    ),
    "shape, transposed": Case(
        product(lambda x, w, g: (g @ w.T, g.T @ x)), (M, W[:, :2]), "shape",
        "of shape [2, 3] for `w`, which has shape [3, 2]. It is transposed.",
    ),
    "shape, summed": Case(
        square(lambda x, g: (2 * x * g).sum()), (X,), "shape",
        "a gradient of shape [] for `x`, which has shape [3]. It was summed or averaged",
    ),
    "backward raises": Case(
        square(lambda x, g: g.nothing), (X,), "raised",
        "Backward raised AttributeError: 'Tensor' object has no attribute 'nothing'",
    ),
    "saved tensor changed": Case(
        lambda x: function(_overwritten, lambda c, g: g * c.saved_tensors[0]).apply(x).add_(1),
        (X,), "saved_changed", "saved for backward has been changed in place since",
    ),
    "only together": Case(
        function(saving(lambda a, b: a * b), _only_with_the_first), (X, X + 1), "alone",
        "When only `b` needs a gradient it gets another one", gradcheck_sees_it=False,
    ),
    "one gradient short when alone": Case(
        function(saving(lambda a, b: a * b), _two_if_two), (X, X + 1), "alone",
        "When only `a` needs a gradient, it fails: function OwnBackward returned an incorrect",
        gradcheck_sees_it=False,
    ),
    "grad_output changed": Case(
        function(saving(lambda x: x * x), _grad_in_place), (X,), "changes_grad_output",
        "Backward changes its `grad_output` in place", gradcheck_sees_it=False,
    ),
    "input changed": Case(
        function(_writes, lambda ctx, g: 2 * g), (X,), "changes_input",
        "The forward changes its input `x` in place",
    ),
    "remembers": Case(Counts(), (X,), "random", "the function keeps something between calls"),
    "backward by chance": Case(
        square(lambda x, g: 2 * x * g * torch.rand(())), (X,), "random_backward",
        "gives another gradient of `x` each time",
    ),
}  # fmt: skip
BY_HAND = function(_saved_by_hand, lambda ctx, g: g * ctx.y, "ByHand")
ONCE = function(
    saving(lambda x: x * x),
    once_differentiable(lambda ctx, g: 2 * ctx.saved_tensors[0] * g),
    "Once",
)
HELD_STILL = function(
    saving(lambda x: x**3), lambda ctx, g: 3 * ctx.saved_tensors[0].detach() ** 2 * g, "Cube"
)
