"""The formulas are computed exactly as they are written and compared with what torch hands back.

`compute` turns the notation of a school book into Python; nothing in it knows any derivative. A
case names an op, its inputs, and the letters of the formula that are not inputs. `WORDS` lists the
formulas that are sentences and cannot be computed.
"""

import math
import re
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pytest
import torch
from torch import Tensor
from torch.nn import functional as F

from pytorch_lab.graph.formulas import Formula, formula, known

# ------------------------------------------------------------------- from school book to Python

SIGNS = {
    "·": "*", "−": "-", "^": "**", "²": "**2", "³": "**3", "½": "0.5", "√": "sqrt", "∞": "inf",
    "⁻¹": ".inverse()", "⁻ᵀ": ".inverse().mT", "ᵀ": ".mT", ", …": "",
    "₁": "1", "₂": "2", "≤": "<=", "≥": ">=", "not ": "~",
}  # fmt: skip


def to_python(text: str) -> str:
    """`dL/dy · [x > 0]` as `dy*iverson(x > 0)`."""
    text = re.sub(r"dL/d(\w)", r"d\1", text)
    text = re.sub(r"\|([^|]+)\|", r"abs(\1)", text)
    text = re.sub(r"(?<![\w)])\[([^\]]*)\]", lambda m: f"iverson({_equals(m[1])})", text)
    for sign in sorted(SIGNS, key=len, reverse=True):
        text = text.replace(sign, SIGNS[sign])
    return text


def _equals(condition: str) -> str:
    return re.sub(r"(?<![<>=!≤≥]) = ", " == ", condition)


def definitions(text: str) -> tuple[str, dict[str, str]]:
    """What stands before the first semicolon, and the letters that are explained after it."""
    first, *rest = text.split("; ")
    found = (re.fullmatch(r"(\w|dL/d\w) = (.+)", part) for part in rest)
    return first, {to_python(m[1]): m[2] for m in found if m}


def compute(text: str, names: dict[str, Any], letters: dict[str, str]) -> Any:
    """The value of a formula; letters are computed when they are met."""

    class Names(dict[str, Any]):
        def __missing__(self, name: str) -> Any:
            if name not in letters:
                raise KeyError(name)
            self[name] = eval(to_python(letters[name]), {"__builtins__": {}}, self)
            return self[name]

    return eval(to_python(text), {"__builtins__": {}}, Names(names))


def _put(like: Tensor) -> Callable[[Tensor, Any], Tensor]:
    def put(given: Tensor, index: Any) -> Tensor:
        into = torch.zeros_like(like)
        places = torch.arange(like.numel()).reshape(like.shape)[index].flatten().tolist()
        for place, number in zip(places, given.flatten().tolist(), strict=True):
            into.view(-1)[place] += number
        return into

    return put


def _scatter_add(like: Tensor) -> Callable[[Tensor, Tensor], Tensor]:
    def scatter_add(given: Tensor, index: Tensor) -> Tensor:  # along the last of two dimensions
        into = torch.zeros_like(like)
        for row in range(index.shape[0]):
            for column in range(index.shape[1]):
                into[row, index[row, column]] += given[row, column]
        return into

    return scatter_add


def _unpool(like: Tensor) -> Callable[[Tensor, Tensor], Tensor]:
    def unpool(given: Tensor, index: Tensor) -> Tensor:
        into = torch.zeros_like(like)
        for n in range(given.shape[0]):
            for c in range(given.shape[1]):
                for place, number in zip(index[n, c].flatten(), given[n, c].flatten(), strict=True):
                    into[n, c].view(-1)[place] += number
        return into

    return unpool


def _windows(x: Tensor, size: int) -> list[tuple[int, int, Tensor]]:
    """Row, column and content of each window of an image (n, c, h, w), stride 1."""
    height, width = x.shape[2] - size + 1, x.shape[3] - size + 1
    return [
        (i, j, x[:, :, i : i + size, j : j + size]) for i in range(height) for j in range(width)
    ]


def conv(x: Tensor, w: Tensor) -> Tensor:
    size = w.shape[2]
    y = torch.zeros(len(x), len(w), x.shape[2] - size + 1, x.shape[3] - size + 1, dtype=x.dtype)
    for i, j, window in _windows(x, size):
        for o in range(len(w)):
            y[:, o, i, j] = (window * w[o]).sum((1, 2, 3))
    return y


def conv_transpose(g: Tensor, w: Tensor) -> Tensor:
    size = w.shape[2]
    x = torch.zeros(len(g), w.shape[1], g.shape[2] + size - 1, g.shape[3] + size - 1, dtype=g.dtype)
    for i in range(g.shape[2]):
        for j in range(g.shape[3]):
            for o in range(len(w)):
                x[:, :, i : i + size, j : j + size] += w[o] * g[:, o, i, j].view(-1, 1, 1, 1)
    return x


def conv_weight(x: Tensor, g: Tensor) -> Tensor:
    size = x.shape[2] - g.shape[2] + 1
    w = torch.zeros(g.shape[1], x.shape[1], size, size, dtype=g.dtype)
    for i, j, window in _windows(x, size):
        for o in range(len(w)):
            w[o] += (window * g[:, o, i, j].view(-1, 1, 1, 1)).sum(0)
    return w


def _window_sum_back(g: Tensor) -> Tensor:
    """Windows of 2 × 2, stride 2."""
    return g.repeat_interleave(2, 2).repeat_interleave(2, 3)


def _half(x: Tensor) -> Tensor:
    """Half of the lower triangle, mirrored."""
    return (x.tril() + x.tril(-1).mT) / 2


def _onehot(shape: torch.Size) -> Callable[[Tensor], Tensor]:
    def onehot(target: Tensor) -> Tensor:
        into = torch.zeros(shape, dtype=torch.float64)
        for place in range(target.numel()):
            row, rest = divmod(place, target[0].numel())
            into.view(shape[0], shape[1], -1)[row, target.reshape(-1)[place], rest] = 1
        return into

    return onehot


def vocabulary(case: "Case", y: tuple[Tensor, ...]) -> dict[str, Any]:
    """What the formulas may say."""
    first = next(iter(case.inputs.values()))

    def total(t: Tensor) -> Tensor:
        return t.sum(case.dims, keepdim=True) if case.dims else t.sum()

    def mean(t: Tensor) -> Tensor:
        return total(t) / count

    count = math.prod(first.shape[d] for d in case.dims) if case.dims else first.numel()
    two = {"min": torch.minimum, "max": torch.maximum}
    elementwise = {
        name: (lambda a, b, f=f: f(*torch.broadcast_tensors(_t(a), _t(b))))
        for name, f in two.items()
    }
    same = "exp sin cos sinh cosh tanh asin acos atan sign floor ceil round trunc erf erfinv"
    same += " lgamma digamma conj nan_to_num det atan2 outer"
    return elementwise | {name: getattr(torch, name) for name in same.split()} | {
        "abs": abs, "inf": math.inf, "π": math.pi, "Σ": total, "mean": mean, "n": count,
        "var": lambda t: mean((t - mean(t)) ** 2), "prod": torch.prod,
        "sqrt": lambda t: _t(t).sqrt(), "ln": lambda t: _t(t).log(),
        "σ": lambda t: 1 / (1 + (-t).exp()), "Φ": lambda t: (1 + torch.erf(t / math.sqrt(2))) / 2,
        "φ": lambda t: (-(t**2) / 2).exp() / math.sqrt(2 * math.pi),
        "trigamma": lambda t: torch.polygamma(1, t), "I": torch.eye(len(first)).double(),
        "iverson": lambda t: t.double() if t.is_floating_point() else t.to(torch.float64),
        "softmax": lambda t: t.exp() / t.exp().sum(-1, keepdim=True),
        "cross": lambda a, b: torch.stack([
            a[:, 1] * b[:, 2] - a[:, 2] * b[:, 1],
            a[:, 2] * b[:, 0] - a[:, 0] * b[:, 2],
            a[:, 0] * b[:, 1] - a[:, 1] * b[:, 0]], 1),
        "cat": lambda *t: torch.from_numpy(np.concatenate(t, case.axis)),
        "stack": lambda *t: torch.from_numpy(np.stack(t, case.axis)),
        "reshape": lambda t: t.reshape(first.shape),
        "gather": lambda t, i: torch.stack([t[r][i[r]] for r in range(len(t))]),
        "put": _put(first), "scatter_add": _scatter_add(first), "unpool": _unpool(first),
        "window_sum_back": _window_sum_back, "half": _half, "onehot": _onehot(first.shape),
        "conv": conv, "conv_transpose": conv_transpose, "conv_weight": conv_weight,
        "Σ_channel": lambda t: t.sum([d for d in range(t.dim()) if d != 1]),
        "skew": lambda t: (t - t.mT) / 2, "diag": lambda t: torch.eye(len(t)).double() * t,
    }  # fmt: skip


def _t(x: Any) -> Tensor:
    return torch.as_tensor(x, dtype=torch.float64)


# ------------------------------------------------------------------------------------- the cases


class Case(NamedTuple):
    """An op to be run: `run(**inputs)`; `names` are the formula's letters that are no inputs."""

    run: Callable[..., Any]
    inputs: dict[str, Tensor]
    names: dict[str, Any]
    dims: tuple[int, ...] = ()  # over which Σ and mean go; () is all
    axis: int = 0  # along which pieces are joined
    says: bool = True  # whether "y = ..." can be computed too


def case(run: Callable[..., Any], *letters: str | Tensor, **options: Any) -> Case:
    """`case(torch.mul, "a", b=matrix)`: an op and its inputs; a letter alone is a random matrix.

    A number or an index is a letter of the formula that is no input; so is all that `over` names.
    """
    kept = {key: options.pop(key) for key in ("dims", "axis", "says") if key in options}
    over = options.pop("over", {})
    inputs = {}
    for place, letter in enumerate(letters):
        generator = torch.Generator().manual_seed(place)
        inputs[letter] = torch.randn(3, 4, dtype=torch.float64, generator=generator)
    for letter in [key for key, value in options.items() if isinstance(value, Tensor)]:
        if options[letter].is_floating_point() or options[letter].is_complex():
            inputs[letter] = options.pop(letter)
    return Case(run, inputs, options | over, **kept)


def rand(*shape: int, low: float = 0.1, high: float = 0.9, seed: int = 5) -> Tensor:
    generator = torch.Generator().manual_seed(seed)
    return torch.rand(shape, dtype=torch.float64, generator=generator) * (high - low) + low


def spd() -> Tensor:
    x = rand(3, 3, low=-1, high=1)
    return x @ x.T + torch.eye(3).double()


def eigen(x: Tensor) -> dict[str, Tensor]:
    values, vectors = torch.linalg.eigh(x)
    gaps = values.view(1, -1) - values.view(-1, 1)
    return {"v": vectors, "E": torch.where(gaps == 0, 0, 1 / gaps)}


def in_place_copy(x: Tensor) -> Tensor:
    return torch.zeros(3, 4, dtype=torch.float64).copy_(x)


MASK = torch.tensor([[True, False, True, False], [False] * 4, [True] * 4])
ROWS = torch.tensor([2, 0, 2])
GATHER = torch.tensor([[0, 0], [3, 1], [2, 2]])
TARGET = torch.tensor([1, 3, 0])
SQUARE = rand(3, 3, low=-1, high=1) + 2 * torch.eye(3).double()
IMAGE = rand(2, 2, 4, 4, low=-1, high=1)
POSITIVE = rand(3, 4, low=0.3, high=3)
UNIT = rand(3, 4)


def attention(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    shaped = (t.view(1, 1, *t.shape) for t in (q, k, v))
    return F.scaled_dot_product_attention(*shaped)


CASES: dict[str, Case] = {
    "Add": case(lambda a, b: torch.add(a, b, alpha=3), "a", "b", α=3),
    "Sub": case(lambda a, b: torch.sub(a, b, alpha=3), "a", "b", α=3),
    "Rsub": case(lambda a, b: torch.rsub(a, b, alpha=3), "a", "b", α=3),
    "Mul": case(torch.mul, "a", b=rand(4)),  # broadcast
    "Div": case(torch.div, "a", b=POSITIVE),
    "Mul:1": case(lambda a: torch.ops.aten.mul.Scalar(a, 3), "a", c=3),
    "Div:1": case(lambda a: torch.ops.aten.div.Scalar(a, 3), "a", c=3),
    "Div:2": case(
        lambda a, b: torch.div(a, b, rounding_mode="floor"), "a", b=UNIT, round=torch.floor
    ),
    "Div:3": case(
        lambda a: torch.ops.aten.div.Scalar_mode(a, 0.3, rounding_mode="trunc"),
        "a",
        c=0.3,
        round=torch.trunc,
    ),
    "Neg": case(torch.neg, "x"),
    "Reciprocal": case(torch.reciprocal, x=POSITIVE),
    "Pow": case(lambda x: x**3, "x", n=3),
    "Pow:1": case(torch.pow, x=POSITIVE, n=UNIT),
    "Pow:2": case(lambda n: 2.5**n, "n", c=2.5),
    "Sqrt": case(torch.sqrt, x=POSITIVE),
    "Rsqrt": case(torch.rsqrt, x=POSITIVE),
    "Addcmul": case(lambda x, a, b: torch.addcmul(x, a, b, value=3), "x", "a", "b", c=3),
    "Addcdiv": case(lambda x, a, b: torch.addcdiv(x, a, b, value=3), "x", "a", b=POSITIVE, c=3),
    "Lerp": case(lambda a, b: torch.lerp(a, b, 0.3), "a", "b", w=0.3),
    "Lerp:1": case(torch.lerp, "a", "b", "w"),
    "Hypot": case(torch.hypot, "a", "b"),
    "Atan2": case(torch.atan2, "a", "b"),
    "Fmod": case(lambda a: torch.fmod(a, 0.7), "a", b=0.7),
    "Fmod:1": case(torch.fmod, "a", b=UNIT),
    "Remainder": case(lambda a: torch.remainder(a, 0.7), "a", b=0.7),
    "Remainder:1": case(torch.remainder, "a", b=UNIT),
    "Deg2Rad": case(torch.deg2rad, "x"),
    "Rad2Deg": case(torch.rad2deg, "x"),
    "Exp": case(torch.exp, "x"),
    "Exp2": case(torch.exp2, "x"),
    "Expm1": case(torch.expm1, "x"),
    "Log": case(torch.log, x=POSITIVE),
    "Log2": case(torch.log2, x=POSITIVE),
    "Log10": case(torch.log10, x=POSITIVE),
    "Log1P": case(torch.log1p, x=POSITIVE),
    "Logaddexp": case(torch.logaddexp, "a", "b"),
    "Logit": case(torch.logit, x=UNIT),
    "Xlogy": case(torch.xlogy, "a", b=POSITIVE),
    "Xlogy:1": case(lambda b: torch.xlogy(2.0, b), b=POSITIVE, a=2.0),
    "Xlogy:2": case(lambda a: torch.xlogy(a, 2.0), "a", b=2.0),
    "Sin": case(torch.sin, "x"),
    "Cos": case(torch.cos, "x"),
    "Tan": case(torch.tan, "x"),
    "Asin": case(torch.asin, x=UNIT),
    "Acos": case(torch.acos, x=UNIT),
    "Atan": case(torch.atan, "x"),
    "Sinh": case(torch.sinh, "x"),
    "Cosh": case(torch.cosh, "x"),
    "Asinh": case(torch.asinh, "x"),
    "Acosh": case(torch.acosh, x=POSITIVE + 1),
    "Atanh": case(torch.atanh, x=UNIT),
    "Erf": case(torch.erf, "x"),
    "Erfc": case(torch.erfc, "x"),
    "Erfinv": case(torch.erfinv, x=UNIT),
    "Lgamma": case(torch.lgamma, x=POSITIVE),
    "Digamma": case(torch.digamma, x=POSITIVE),
    "Relu": case(torch.relu, "x"),
    "LeakyRelu": case(lambda x: F.leaky_relu(x, 0.2), "x", α=0.2),
    "LeakyRelu:1": case(lambda x: F.leaky_relu_(x.clone(), 0.2), "x", α=0.2),
    "PreluKernel": case(torch._prelu_kernel, "x", w=rand(1, 1)),
    "Elu": case(F.selu, "x", s=1.0507009873554805, α=1.6732632423543772),
    "Elu:1": case(lambda x: F.elu_(x.clone(), 0.7), "x", s=1, α=0.7),
    "Celu": case(lambda x: F.celu(x, 0.7), "x", α=0.7),
    "Celu:1": case(lambda x: F.celu_(x.clone(), 0.7), "x", α=0.7),
    "Sigmoid": case(torch.sigmoid, "x"),
    "LogSigmoid": case(F.logsigmoid, "x"),
    "Tanh": case(torch.tanh, "x"),
    "Gelu": case(F.gelu, "x"),
    "Silu": case(F.silu, "x"),
    "Mish": case(F.mish, "x"),
    "Softplus": case(lambda x: F.softplus(x, 1.7), "x", β=1.7),
    "Hardtanh": case(lambda x: F.hardtanh(x, -0.5, 0.8), "x", l=-0.5, u=0.8),
    "Hardsigmoid": case(F.hardsigmoid, x=rand(3, 4, low=-5, high=5)),
    "Hardswish": case(F.hardswish, x=rand(3, 4, low=-5, high=5)),
    "Hardshrink": case(F.hardshrink, "x", λ=0.5),
    "Softshrink": case(F.softshrink, "x", λ=0.5),
    "Threshold": case(lambda x: F.threshold(x, 0.3, -2.0), "x", t=0.3, v=-2.0),
    "Glu": case(lambda x: F.glu(x, 1), x=UNIT, axis=1, over={"a": UNIT[:, :2], "b": UNIT[:, 2:]}),
    "Abs": case(torch.abs, "x"),
    "Sign": case(torch.sign, "x"),
    "Sgn": case(torch.sgn, "x"),
    "Floor": case(torch.floor, "x"),
    "Ceil": case(torch.ceil, "x"),
    "Round": case(torch.round, "x"),
    "Trunc": case(torch.trunc, "x"),
    "Frac": case(torch.frac, "x"),
    "Clamp": case(torch.clamp, "x", l=rand(3, 4, low=-1, high=1), u=rand(3, 4, low=-1, seed=9)),
    "Clamp:1": case(lambda x: x.clamp(-0.5, 0.8), "x", l=-0.5, u=0.8),
    "ClampMin": case(lambda x: torch.clamp_min(x, 0.2), "x", l=0.2),
    "ClampMin:1": case(torch.clamp_min, "x", l=UNIT),
    "ClampMax": case(lambda x: torch.clamp_max(x, 0.2), "x", u=0.2),
    "ClampMax:1": case(torch.clamp_max, "x", u=UNIT),
    "Maximum": case(
        torch.maximum, a=torch.tensor([1.0, 2, 3]).double(), b=torch.tensor([1.0, 3, 2]).double()
    ),
    "Minimum": case(
        torch.minimum, a=torch.tensor([1.0, 2, 3]).double(), b=torch.tensor([1.0, 3, 2]).double()
    ),
    "Where": case(lambda a, b: torch.where(MASK, a, b), "a", "b", c=MASK),
    "MaskedFill": case(lambda x, v: x.masked_fill(MASK, v), "x", v=rand(), m=MASK),
    "NanToNum": case(torch.nan_to_num, x=torch.tensor([1.0, math.inf, math.nan]).double()),
    "Fill": case(torch.fill, "x", v=rand(), says=False),
    "Zero": case(lambda x: torch.zero_(x.clone()), "x", says=False),
    "Clone": case(torch.clone, "x"),
    "Alias": case(torch.ops.aten.alias, "x"),
    "ToCopy": case(lambda x: x.to(torch.float32).double(), x=rand(3, 4).float().double()),
    "CopyBackwards": case(in_place_copy, "x"),
    "Conj": case(torch.conj, x=torch.tensor([1 + 2j, 3 - 1j])),
    # ------------------------------------------------------------------------ arrays
    "Mm": case(torch.mm, a=rand(3, 4), b=rand(4, 2)),
    "Bmm": case(torch.bmm, a=rand(2, 3, 4), b=rand(2, 4, 2)),
    "Mv": case(torch.mv, "a", v=rand(4)),
    "Dot": case(torch.dot, a=rand(4), b=rand(4, seed=6)),
    "Addmm": case(
        lambda c, a, b: torch.addmm(c, a, b, beta=2, alpha=3),
        c=rand(2),
        a=rand(3, 4),
        b=rand(4, 2),
        α=3,
        β=2,
    ),
    "Addmv": case(
        lambda c, a, v: torch.addmv(c, a, v, beta=2, alpha=3),
        c=rand(3),
        a=rand(3, 4),
        v=rand(4),
        α=3,
        β=2,
    ),
    "Addr": case(
        lambda c, u, v: torch.addr(c, u, v, beta=2, alpha=3),
        c=rand(3, 4),
        u=rand(3),
        v=rand(4),
        α=3,
        β=2,
    ),
    "Baddbmm": case(
        lambda c, a, b: torch.baddbmm(c, a, b, beta=2, alpha=3),
        c=rand(2, 3, 2),
        a=rand(2, 3, 4),
        b=rand(2, 4, 2),
        α=3,
        β=2,
    ),
    "LinalgCross": case(torch.linalg.cross, a=rand(4, 3), b=rand(4, 3, seed=6)),
    "Sum": case(torch.sum, "x"),
    "Sum:1": case(lambda x: x.sum(1, keepdim=True), "x", dims=(1,)),
    "Mean": case(torch.mean, "x"),
    "Mean:1": case(lambda x: x.mean(1, keepdim=True), "x", dims=(1,)),
    "Nansum": case(torch.nansum, x=torch.tensor([1.0, math.nan, 2.0]).double(), says=False),
    "Prod": case(torch.prod, "x"),
    "Var": case(lambda x: x.var(1, keepdim=True), "x", dims=(1,)),
    "Std": case(lambda x: x.std(1, keepdim=True), "x", dims=(1,)),
    "VarMean": case(lambda x: torch.var_mean(x, 1, keepdim=True), "x", dims=(1,), says=False),
    "StdMean": case(lambda x: torch.std_mean(x, 1, keepdim=True), "x", dims=(1,), says=False),
    "LinalgVectorNorm": case(torch.linalg.vector_norm, "x"),
    "Norm": case(torch.ops.aten.norm.Scalar, "x"),
    "Logsumexp": case(lambda x: x.logsumexp(1, keepdim=True), "x", dims=(1,)),
    "Max": case(lambda x: x.max(1, keepdim=True)[0], "x", says=False),
    "Max:1": case(torch.max, x=torch.tensor([1.0, 4, 4]).double(), says=False),
    "Min": case(lambda x: x.min(1, keepdim=True)[0], "x", says=False),
    "Min:1": case(torch.min, x=torch.tensor([4.0, 1, 1]).double(), says=False),
    "Amax": case(
        lambda x: x.amax(1, True), x=torch.tensor([[1.0, 4, 4]]).double(), dims=(1,), says=False
    ),
    "Amin": case(
        lambda x: x.amin(1, True), x=torch.tensor([[4.0, 1, 1]]).double(), dims=(1,), says=False
    ),
    "Median": case(torch.median, "x", says=False),
    "Median:1": case(lambda x: x.median(1, keepdim=True)[0], "x", says=False),
    "Sort": case(lambda x: x.sort(1)[0], x=UNIT, i=UNIT.argsort(1)),
    "Topk": case(lambda x: x.topk(2, 1)[0], x=UNIT, i=(-UNIT).argsort(1)[:, :2]),
    "Trace": case(torch.trace, x=SQUARE),
    "Softmax": case(lambda x: x.softmax(1), "x", dims=(1,)),
    "LogSoftmax": case(lambda x: x.log_softmax(1), "x", dims=(1,)),
    "NllLoss": case(lambda x: F.nll_loss(x, TARGET), "x", t=TARGET, r=3),
    "NllLoss2D": case(
        lambda x: F.nll_loss(x, TARGET.view(1, 3, 1)),
        x=rand(1, 4, 3, 1),
        t=TARGET.view(1, 3, 1),
        r=3,
    ),
    "MseLoss": case(F.mse_loss, "x", "t", r=12),
    "SmoothL1Loss": case(
        lambda x: F.smooth_l1_loss(x, UNIT, beta=0.6), "x", β=0.6, r=12, over={"t": UNIT}
    ),
    "HuberLoss": case(
        lambda x: F.huber_loss(x, UNIT, delta=0.6), "x", δ=0.6, r=12, over={"t": UNIT}
    ),
    "SoftMarginLoss": case(
        lambda x: F.soft_margin_loss(x, UNIT.sign()), "x", r=12, over={"t": UNIT.sign()}
    ),
    "BinaryCrossEntropy": case(
        lambda x: F.binary_cross_entropy(x, MASK.double()), x=UNIT, r=12, over={"t": MASK.double()}
    ),
    "BinaryCrossEntropyWithLogits": case(
        lambda x: F.binary_cross_entropy_with_logits(x, MASK.double()),
        "x",
        r=12,
        over={"t": MASK.double()},
    ),
    "Convolution": case(
        F.conv2d, x=IMAGE, w=rand(3, 2, 2, 2), b=rand(3), over={"b": rand(3).view(3, 1, 1)}
    ),
    "NativeBatchNorm": case(
        lambda x, w, b: F.batch_norm(x, None, None, w, b, training=True, eps=0.1),
        x=rand(5, 3),
        w=rand(3),
        b=rand(3, seed=6),
        ε=0.1,
        dims=(0,),
    ),
    "NativeLayerNorm": case(
        lambda x, w, b: F.layer_norm(x, (4,), w, b, eps=0.1),
        x=rand(3, 4),
        w=rand(4),
        b=rand(4, seed=6),
        ε=0.1,
        dims=(1,),
        over={"Σ": lambda t: t.sum(0)},
    ),
    "NativeGroupNorm": case(
        lambda x, w, b: F.group_norm(x, 1, w, b, eps=0.1),
        x=rand(3, 4),
        w=rand(4),
        b=rand(4, seed=6),
        ε=0.1,
        dims=(1,),
    ),
    "FusedRmsNorm": case(
        lambda x, w: F.rms_norm(x, (4,), w, 0.1),
        x=rand(3, 4),
        w=rand(4),
        ε=0.1,
        dims=(1,),
        over={"Σ": lambda t: t.sum(0)},
    ),
    "Linear": case(F.linear, "x", w=rand(2, 4), b=rand(2), over={"Σ": lambda t: t.sum(0)}),
    "Embedding": case(lambda w: F.embedding(ROWS, w), "w", i=ROWS),
    "MaxPool2DWithIndices": case(
        lambda x: F.max_pool2d(x, 2),
        x=IMAGE,
        says=False,
        i=F.max_pool2d(IMAGE, 2, return_indices=True)[1],
    ),
    "AdaptiveMaxPool2D": case(
        lambda x: F.adaptive_max_pool2d(x, 2),
        x=IMAGE,
        says=False,
        i=F.max_pool2d(IMAGE, 2, return_indices=True)[1],
    ),
    "AvgPool2D": case(lambda x: F.avg_pool2d(x, 2), x=IMAGE, says=False, n=4),
    "AdaptiveAvgPool2D": case(lambda x: F.adaptive_avg_pool2d(x, 2), x=IMAGE, says=False, n=4),
    "ScaledDotProductFlashAttentionForCpu": case(
        attention,
        q=rand(3, 4, low=-1),
        k=rand(3, 4, seed=6),
        v=rand(3, 4, seed=7),
        c=0.5,
        over={"Σ": lambda t: t.sum(-1, keepdim=True)},
    ),
    "View": case(lambda x: x.view(2, 6), "x", says=False),
    "UnsafeView": case(lambda x: torch.ops.aten._unsafe_view(x, [2, 6]), "x", says=False),
    "ReshapeAlias": case(
        lambda x: torch.ops.aten._reshape_alias(x, [2, 6], [6, 1]), "x", says=False
    ),
    "Squeeze": case(torch.squeeze, x=rand(3, 1, 4), says=False),
    "Unsqueeze": case(lambda x: x.unsqueeze(1), "x", says=False),
    "T": case(torch.t, "x"),
    "Transpose": case(lambda x: x.transpose(0, 1), "x"),
    "Permute": case(
        lambda x: x.permute(2, 0, 1),
        x=rand(3, 4, 2),
        permute=lambda t: t.permute(2, 0, 1),
        unpermute=lambda t: t.permute(1, 2, 0),
    ),
    "Expand": case(lambda x: x.expand(3, 4), x=rand(1, 4), says=False, dims=(0,)),
    "Repeat": case(lambda x: x.repeat(3, 1), x=rand(1, 4), says=False, dims=(0,)),
    "Flip": case(lambda x: x.flip(1), "x", flip=lambda t: t[:, [3, 2, 1, 0]]),
    "Roll": case(
        lambda x: x.roll(1, 1), "x", k=1, roll=lambda t, k: t[:, [(c - k) % 4 for c in range(4)]]
    ),
    "Tril": case(torch.tril, "x", row=torch.arange(3).view(3, 1), column=torch.arange(4)),
    "Triu": case(torch.triu, "x", row=torch.arange(3).view(3, 1), column=torch.arange(4)),
    "Select": case(lambda x: x[1], "x", i=1),
    "Slice": case(lambda x: x[1:3], "x", i=slice(1, 3)),
    "Unbind": case(torch.unbind, x=rand(2, 4), says=False),
    "Split": case(lambda x: x.split(2), x=rand(4, 3), says=False),
    "SplitWithSizes": case(lambda x: x.split([1, 3]), x=rand(4, 3), says=False),
    "Cat": case(
        lambda a, b: torch.cat([a, b]), "a", "b", first=lambda t: t[:3], last=lambda t: t[3:]
    ),
    "Stack": case(
        lambda a, b: torch.stack([a, b]), "a", "b", first=lambda t: t[0], last=lambda t: t[1]
    ),
    "ConstantPadNd": case(lambda x: F.pad(x, (1, 2)), "x", says=False, inner=lambda t: t[:, 1:-2]),
    "Index": case(lambda x: x[ROWS], "x", i=ROWS),
    "IndexSelect": case(lambda x: x.index_select(0, ROWS), "x", i=ROWS),
    "IndexAdd": case(lambda x, s: x.index_add(0, ROWS, s), "x", "s", says=False, i=ROWS),
    "Gather": case(lambda x: x.gather(1, GATHER), "x", i=GATHER),
    "ScatterAdd": case(lambda x, s: x.scatter_add(1, GATHER, s), "x", s=rand(3, 2), i=GATHER),
    "Take": case(lambda x: x.take(ROWS), x=rand(6), i=ROWS),
    "MaskedSelect": case(lambda x: x.masked_select(MASK), "x", m=MASK, says=False),
    "NativeDropout": case(lambda x: torch.native_dropout(x, 0.0, True)[0], "x", m=1, p=0.0),
    "LinalgInvEx": case(torch.linalg.inv, x=SQUARE),
    "LinalgSolveEx": case(torch.linalg.solve, a=SQUARE, b=rand(3, 2)),
    "LinalgSolveTriangular": case(
        lambda a, b: torch.linalg.solve_triangular(a, b, upper=True),
        a=SQUARE.triu(),
        b=rand(3, 2),
        triangle=torch.triu,
    ),
    "LinalgDet": case(torch.linalg.det, x=SQUARE),
    "LinalgSlogdet": case(torch.linalg.slogdet, x=SQUARE, says=False),
    "LinalgCholeskyEx": case(lambda x: torch.linalg.cholesky((x + x.T) / 2), x=spd(), says=False),
    "LinalgQr": case(
        torch.linalg.qr,
        x=SQUARE,
        says=False,
        over=dict(zip("qr", torch.linalg.qr(SQUARE), strict=True)),
        mirror=lambda m: m.triu() + m.triu(1).mT,
    ),
    "LinalgEigh": case(torch.linalg.eigh, x=spd(), says=False, over=eigen(spd())),
}

# Nodes that torch makes on other machines only: here the same function is built of several.
ELSEWHERE = {"FusedRmsNorm", "Linear"}

# The very words of a formula that is computed; no op here makes the node.
TWINS = {
    "MkldnnConvolution": "Convolution",
    "ScaledDotProductEfficientAttention": "ScaledDotProductFlashAttentionForCpu",
    "ScaledDotProductFlashAttention": "ScaledDotProductFlashAttentionForCpu",
}

# Sentences: a reader understands them, a program cannot compute them.
WORDS = {
    "AccumulateGrad", "AsStrided", "Cdist", "CopySlices", "CtcLoss", "CtcLoss:1",
    "Cumprod", "Cumsum",
    "Diagonal", "EmbeddingBag", "GridSampler2D", "Im2Col", "IndexPut", "LinalgMatrixExp",
    "LinalgPinv", "LinalgSvd", "MaskedScatter", "PixelShuffle", "ReflectionPad2D", "Scatter",
    "Unfold", "UpsampleBilinear2D", "UpsampleNearest2D", "ViewAsComplex", "ViewAsReal",
}  # fmt: skip


# ------------------------------------------------------------------------------------- the tests


class Run(NamedTuple):
    """A case that was run: the formula of its node, and what its letters stand for."""

    found: Formula
    letters: dict[str, str]
    names: dict[str, Any]
    outputs: tuple[Tensor, ...]
    gradients: dict[str, Tensor]  # what torch hands back


def ran(name: str) -> Run:
    case = CASES[name]
    leaves = {letter: t.clone().requires_grad_() for letter, t in case.inputs.items()}
    result = case.run(*leaves.values())
    all_outputs = result if isinstance(result, tuple | list) else (result,)
    outputs = tuple(y for y in all_outputs if y.requires_grad)
    given = tuple(
        torch.randn(y.shape, generator=torch.Generator().manual_seed(7), dtype=y.dtype)
        for y in outputs
    )
    wanted = torch.autograd.grad(outputs, tuple(leaves.values()), given)
    node = f"{name}Backward0" if name in ELSEWHERE else _node(outputs[0], name)
    found = formula(node)
    assert found is not None, node
    names = vocabulary(case, outputs) | case.inputs
    names |= {f"y{k}": y.detach() for k, y in enumerate(all_outputs, 1)}
    places = {id(y): k for k, y in enumerate(all_outputs, 1)}
    names |= {f"dy{places[id(y)]}": g for y, g in zip(outputs, given, strict=True)}
    if len(outputs) == 1:
        names |= {"y": outputs[0].detach(), "dy": given[0]}
    letters: dict[str, str] = {}
    for text in (found.says, *found.gradients):
        letters |= definitions(text)[1]
    return Run(found, letters, names | case.names, outputs, dict(zip(leaves, wanted, strict=True)))


def _node(y: Tensor, name: str) -> str:
    """The name of the node that belongs to the op; some ops are built of several."""
    todo, short = [y.grad_fn], name.partition(":")[0]
    while todo:
        node = todo.pop(0)
        if node is not None:
            plain = node.name().rpartition("::")[2]
            if plain.startswith(f"{short}Backward") or plain == short:
                return node.name()
            todo += [other for other, _ in node.next_functions]
    raise AssertionError(f"{name}: no such node behind {y.grad_fn}")


def fits(value: Any, wanted: Tensor) -> bool:
    """Equal, after what was broadcast was summed, and what was summed was spread."""
    if not isinstance(value, Tensor):
        value = torch.as_tensor(value, dtype=wanted.dtype)
    if value.numel() > wanted.numel():
        value = value.sum_to_size(wanted.shape)
    value = value.reshape(wanted.shape) if value.numel() == wanted.numel() else value
    spread = value.broadcast_to(wanted.shape).to(wanted.dtype)
    return torch.allclose(spread, wanted, rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize("name", CASES)
def test_a_gradient_is_what_torch_hands_back(name: str) -> None:
    """And its opposite is not: the comparison can fail."""
    run = ran(name)
    assert run.found.name == name
    assert [line.partition(" = ")[0] for line in run.found.gradients] == [
        f"dL/d{letter}" for letter in run.gradients
    ]
    for line, (letter, wanted) in zip(run.found.gradients, run.gradients.items(), strict=True):
        expression = definitions(line.partition(" = ")[2])[0]
        assert fits(compute(expression, run.names, run.letters), wanted), (letter, line)
        if wanted.any():
            opposite = -1 * compute(expression, run.names, run.letters)
            assert not fits(opposite, wanted), f"{line} and its opposite both fit"


@pytest.mark.parametrize("name", [name for name, case in CASES.items() if case.says])
def test_what_an_op_is_said_to_compute_is_what_it_computes(name: str) -> None:
    run = ran(name)
    left, _, right = definitions(run.found.says)[0].partition(" = ")
    assert left == "y"
    assert fits(compute(right, run.names, run.letters), run.outputs[0].detach()), right


def test_every_formula_is_computed_or_counted_as_words() -> None:
    assert set(CASES) | WORDS | set(TWINS) == set(known())
    assert not WORDS & set(CASES)
    assert len(known()) == 225
    assert len(CASES) == 197
    assert sum(case.says for case in CASES.values()) == 163


def test_twins_have_the_same_words() -> None:
    for name, twin in TWINS.items():
        ours, checked = formula(f"{name}Backward0"), formula(f"{twin}Backward0")
        assert ours is not None
        assert checked is not None
        assert (ours.says, ours.gradients) == (checked.says, checked.gradients)


def torch_nodes() -> dict[str, set[str]]:
    """All built-in nodes, each with the tensors it saves."""
    types = {name: getattr(torch._C._functions, name) for name in dir(torch._C._functions)}
    return {
        name: {key[len("_raw_saved_") :] for key in dir(kind) if key.startswith("_raw_saved_")}
        for name, kind in types.items()
        if isinstance(kind, type) and "Nested" not in name and not name.endswith("_copy")
    }


def test_a_node_needs_what_torch_says_that_it_saves() -> None:
    nodes = {node: formula(node) for node in torch_nodes()}
    unwritten = {"AcoshBackward1", "AsinhBackward1", "AtanhBackward1"}  # torch cannot go back there
    found = {node: set(its.needs) for node, its in nodes.items() if its and node not in unwritten}
    assert len(found) >= 240
    assert found == {node: saved for node, saved in torch_nodes().items() if node in found}


def test_each_name_in_the_book_is_a_node_of_torch() -> None:
    names = {its.name for node in torch_nodes() if (its := formula(node))}
    assert set(known()) == names


def test_a_missing_digit_and_a_namespace_are_tolerated() -> None:
    assert formula("MulBackward") == formula("MulBackward0")
    assert formula("torch::autograd::AccumulateGrad") == formula("AccumulateGrad")
    assert formula("SqueezeBackward4") == formula("SqueezeBackward0")
    assert formula("PowBackward1") != formula("PowBackward0")


@pytest.mark.parametrize(
    "node",
    ["", "Mul", "SigmoidBackwardBackward0", "MyBackward", "SumBackwardAutogradNestedTensor0"],
)
def test_what_is_not_in_the_book_has_no_formula(node: str) -> None:
    assert formula(node) is None
