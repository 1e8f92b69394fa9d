"""`customop.check`: the verdict is gradcheck's own, the numbers are those of torch.func, and the
sentence names the mistake that was planted."""

import functools
import json
import math
import random
import warnings

import numpy
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn

from pytorch_lab import customop
from pytorch_lab.errors import ModelError, UsageError
from tests.customop_cases import (
    BY_HAND,
    HELD_STILL,
    ONCE,
    RIGHT,
    WRONG,
    Counts,
    X,
    function,
    product,
)

doubles = st.floats(0.25, 4).filter(lambda c: abs(c - 1) > 0.05)


def gradcheck(fn, inputs, check=torch.autograd.gradcheck) -> bool:
    """What torch says of the same function on the same numbers."""
    call = fn.apply if isinstance(fn, type) else fn
    given = [t.detach().double().clone().requires_grad_() for t in inputs]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return check(call, given, raise_exception=False)
        except (RuntimeError, AttributeError):
            return False


# ----------------------------------------------------------------------------- right or wrong


@pytest.mark.parametrize("name", RIGHT)
def test_a_right_gradient_is_called_right_as_gradcheck_calls_it(name):
    case = RIGHT[name]
    found = customop.check(case.fn, *case.inputs)
    assert (found.verdict, found.problems, found.worst) == ("right", (), None)
    if name != "flat":  # gradcheck asks for an output that depends on its input
        assert gradcheck(case.fn, case.inputs)


@pytest.mark.parametrize("name", WRONG)
def test_each_mistake_is_named_and_gradcheck_finds_it_too(name):
    case = WRONG[name]
    found = customop.check(case.fn, *case.inputs)
    assert found.verdict == "wrong"
    said = [problem.text for problem in found.problems if problem.code == case.code]
    assert any(case.says in text for text in said), found.problems
    fresh = Counts() if isinstance(case.fn, Counts) else case.fn
    assert gradcheck(fresh, case.inputs) is not case.gradcheck_sees_it


def test_every_code_of_a_problem_is_tried():
    said = {case.code for case in WRONG.values()}
    assert len(said) >= 20
    assert {"factor", "sign", "transposed", "missing", "number", "shape", "alone"} <= said


@given(factor=doubles, rows=st.integers(1, 3), columns=st.integers(1, 3))
@settings(max_examples=25)
def test_a_factor_is_measured(factor, rows, columns):
    """Whatever the factor and the sizes: it is said of the input that has it, and of no other."""
    x, w = torch.linspace(0.5, 2, 2 * rows).view(rows, 2), torch.linspace(1, 3, 2 * columns)
    wrong = product(lambda x, w, g: (g @ w.T, factor * (x.T @ g)))
    found = customop.check(wrong, x, w.view(2, columns))
    (problem,) = found.problems
    assert problem.text.startswith(
        f"Every derivative with respect to `w` is {factor:.4g} times the right one"
    )
    assert {one.input[0] for one in found.partials()} == {"w"}


# ----------------------------------------------------------------------------- the numbers


def test_both_jacobians_are_those_of_torch_func():
    def right(x, w):
        return torch.tanh(x @ w)

    x, w = torch.linspace(-1, 1, 6).view(2, 3), torch.linspace(0.2, 2, 6).view(3, 2)
    found = customop.check(right, x, w)
    assert [(one.output.name, one.input.name) for one in found.blocks] == [
        ("out", "x"),
        ("out", "w"),
    ]
    want = torch.func.jacrev(right, (0, 1))(x.double(), w.double())
    for block, jacobian in zip(found.blocks, want, strict=True):
        jacobian = jacobian.reshape(4, 6)
        torch.testing.assert_close(torch.tensor(block.analytic).double(), jacobian)
        numeric = torch.tensor(block.numeric, dtype=torch.float64)
        torch.testing.assert_close(numeric, jacobian, rtol=0, atol=1e-8)


def test_the_worst_derivative_is_named_by_its_elements():
    found = customop.check(WRONG["half"].fn, X)
    worst = found.worst
    assert (worst.output, worst.input, worst.state) == ("out[2]", "x[2]", "x")
    assert worst.analytic == pytest.approx(2.0)
    assert worst.numeric == pytest.approx(4.0, abs=1e-7)
    assert worst.difference == pytest.approx(-2.0, abs=1e-7)
    assert [one.input for one in found.partials()] == ["x[0]", "x[1]", "x[2]"]


def test_what_is_given_in_single_precision_is_checked_in_double():
    found = customop.check(torch.sin, X)
    assert found.inputs[0].dtype == "float32"
    assert found.outputs[0].dtype == "float64"
    assert found.blocks[0].numeric[0][0] == pytest.approx(float(X[0].double().cos()), abs=1e-9)
    for dtype in (torch.bfloat16, torch.float16):
        assert customop.check(torch.sin, X.to(dtype)).ok


# -------------------------------------------------------------- where no estimate can be trusted


def test_a_kink_is_no_mistake():
    at_the_kink = torch.tensor([0.0, 1.0, 3e-7])
    found = customop.check(torch.relu, at_the_kink)
    assert found.ok
    assert not gradcheck(torch.relu, (at_the_kink,))  # which takes the slopes' mean for the truth
    assert [one.input for one in found.partials("^")] == ["x[0]", "x[2]"]
    assert "2 derivatives at a kink" in str(found)
    beside = customop.check(function(lambda c, x: x.abs(), lambda c, g: 3 * g), torch.zeros(1))
    assert beside.verdict == "wrong"  # 3 lies outside of -1 to 1


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16])
def test_low_precision_inside_is_said_and_not_called_wrong(dtype):
    found = customop.check(lambda x: x.to(dtype).sin(), X)
    assert found.verdict in ("undecided", "right")
    hidden = customop.check(lambda x: x.to(torch.float32).sin().double(), X)
    assert hidden.verdict == "undecided"
    assert "computes in less than double" in hidden.remarks[0].text
    assert customop.check(lambda x: x.float().sin(), X, eps=1e-2, atol=1e-2).ok


def test_low_precision_hides_no_large_mistake():
    wrong = function(lambda c, x: (10 * x).float(), lambda c, g: -500 * g.double())
    assert customop.check(wrong, X).verdict == "wrong"


def test_the_edge_of_a_domain_is_undecided():
    found = customop.check(torch.sqrt, torch.tensor([0.0]))
    assert found.verdict == "undecided"
    assert "not finite, or jump about" in str(found)


def test_random_numbers_are_the_same_in_each_call():
    found = customop.check(lambda x: nn.functional.dropout(x, 0.5), X)
    assert found.ok
    assert [remark.code for remark in found.remarks] == ["draws"]


# ----------------------------------------------------------------------------- kinds of functions


def test_a_module_is_checked_with_its_parameters():
    net = nn.Sequential(nn.Linear(3, 2), nn.BatchNorm1d(2), nn.Tanh())
    net[0].bias.requires_grad_(False)
    found = customop.check(net, torch.linspace(-1, 2, 12).view(4, 3).sin())
    assert found.ok
    assert [one.name for one in found.inputs] == ["input", "0.weight", "1.weight", "1.bias"]


def test_only_what_requires_grad_is_checked_where_something_does():
    one, other = X.clone().requires_grad_(), X + 1
    found = customop.check(lambda first, second, times: first * second * times, one, other, 3)
    assert [a.name for a in found.inputs] == ["first"]
    both = customop.check(torch.mul, X, other)
    assert [a.name for a in both.inputs] == ["input 0", "input 1"]


def test_names_come_from_forward_with_and_without_ctx():
    class New(torch.autograd.Function):
        @staticmethod
        def forward(x, weight):
            return x * weight

        @staticmethod
        def setup_context(ctx, inputs, output):
            ctx.save_for_backward(*inputs)

        @staticmethod
        def backward(ctx, grad_output):
            x, weight = ctx.saved_tensors
            return grad_output * weight, grad_output * x

    for fn in (New, New.apply):
        found = customop.check(fn, X, X + 1)
        assert (found.function, [a.name for a in found.inputs]) == ("New", ["x", "weight"])
        assert found.ok


def test_an_output_that_is_not_differentiated_is_left_out():
    found = customop.check(lambda x: (x * 2, x.detach().mean()), X)
    assert found.ok
    assert [one.name for one in found.outputs] == ["out 0"]
    assert "`out 1` doesn't require grad" in found.remarks[0].text
    assert gradcheck(lambda x: (x * 2, x.detach().mean()), (X,))


def test_what_has_no_effect_is_noted():
    """The sign of a number is flat, and autograd says so too: both are right, nothing learns."""
    found = customop.check(lambda x, threshold: x * torch.sign(x - threshold).relu(), X, X - 1)
    assert found.ok
    (note,) = found.remarks
    assert note.text.startswith("All derivatives by `threshold` are 0, in both")


def test_an_operator_of_ones_own_is_checked_like_a_function():
    @torch.library.custom_op("pytorchlab::square", mutates_args=())
    def own(x: torch.Tensor, times: float) -> torch.Tensor:
        return x * x * times

    without = customop.check(own, X, 2.0)
    assert "no autograd formula was registered" in without.problems[0].text
    own.register_autograd(
        lambda ctx, g: (4 * ctx.saved_tensors[0] * g, None),
        setup_context=lambda ctx, inputs, output: ctx.save_for_backward(inputs[0]),
    )
    assert customop.check(own, X, 2.0).function == "pytorchlab::square"
    assert customop.check(own, X, 2.0).ok
    assert "is 2 times the right one" in customop.check(own, X, 1.0).problems[0].text


def test_the_name_of_a_partial_is_that_of_its_function():
    assert customop.check(functools.partial(torch.softmax, dim=0), X).function == "softmax"


def test_outputs_may_have_names():
    found = customop.check(lambda x: {"loss": x.sum(), "top": x.argmax()}, X)
    assert [one.name for one in found.outputs] == ["loss"]


def test_a_tensor_kept_by_hand_is_noted():
    notes = [remark.text for remark in customop.check(BY_HAND, X).remarks if remark.level == "note"]
    assert "`ctx.y` has been changed in place" in notes[0]


# ------------------------------------------------------------------------- the second derivative


@pytest.mark.parametrize(
    ("fn", "code"),
    [(torch.sin, ""), (ONCE, "once_only"), (HELD_STILL, "none"), (RIGHT["product"].fn, "")],
)
def test_the_gradients_own_gradient_agrees_with_gradgradcheck(fn, code):
    inputs = RIGHT["product"].inputs if fn is RIGHT["product"].fn else (X,)
    assert customop.check(fn, *inputs).ok
    found = customop.check(fn, *inputs, second=True)
    assert found.own_verdict == "right"
    assert found.verdict == ("wrong" if code else "right")
    assert [one.code for one in found.second.problems] == ([code] if code else [])
    assert gradcheck(fn, inputs, torch.autograd.gradgradcheck) is (not code)
    assert "The gradient of" in str(found)


def test_a_wrong_gradient_is_not_differentiated_further():
    assert customop.check(WRONG["half"].fn, X, second=True).second is None


# ----------------------------------------------------------------------------- left as found


def test_nothing_is_left_behind():
    net = nn.Sequential(nn.Linear(3, 3), nn.BatchNorm1d(3), nn.Dropout(0.5))
    x = torch.linspace(-1, 2, 6).view(2, 3).requires_grad_()
    x.grad, net[0].bias.grad = torch.ones(2, 3), torch.ones(3)
    held = []
    net[0].register_forward_hook(lambda *_: held.append(1))
    before = [
        x.clone(), x.grad.clone(), net[0].bias.grad.clone(), net[1].num_batches_tracked.clone(),
        *[p.clone() for p in net.parameters()], net[1].running_mean.clone(), torch.get_rng_state(),
    ]  # fmt: skip
    others = random.getstate(), numpy.random.get_state()[1].tolist()  # noqa: NPY002
    with torch.no_grad():
        customop.check(net, x, second=True)
        assert not torch.is_grad_enabled()
    after = [
        x, x.grad, net[0].bias.grad, net[1].num_batches_tracked,
        *net.parameters(), net[1].running_mean, torch.get_rng_state(),
    ]  # fmt: skip
    assert all(torch.equal(a, b) for a, b in zip(before, after, strict=True))
    assert others == (random.getstate(), numpy.random.get_state()[1].tolist())  # noqa: NPY002
    assert net[0].weight.grad is None
    assert net.training


def test_what_a_function_keeps_is_put_back():
    counts = Counts()
    customop.check(counts, X)
    assert counts.calls == 0


def test_inputs_of_a_function_that_writes_to_them_are_unchanged():
    x = X.clone()
    customop.check(WRONG["input changed"].fn, x)
    assert torch.equal(x, X)


# ----------------------------------------------------------------------------- text and record

TEXT = """\
Gradient of Own: wrong
by input                  shape              derivatives  wrong
x                         (1, 2)                       2      0
w                         (2, 1)                       2      2

d out[0, 0] / d w[1, 0]: backward -6, numeric 2, off by -8

✗ Every derivative with respect to `w` is -3 times the right one."""


def test_the_text_says_what_can_be_worked_out_by_hand():
    """`out = 1 * 3 + 2 * 4`, so the derivatives by w are 1 and 2."""
    wrong = product(lambda x, w, g: (g @ w.T, -3 * x.T @ g))
    found = customop.check(wrong, torch.tensor([[1.0, 2.0]]), torch.tensor([[3.0], [4.0]]))
    assert str(found) == TEXT


@pytest.mark.parametrize("name", [*RIGHT, *WRONG])
def test_every_text_fits_80_columns(name):
    case = (RIGHT | WRONG)[name]
    found = customop.check(case.fn, *case.inputs)
    lines = str(found).splitlines()
    assert lines[0].startswith("Gradient of ")
    assert all(len(line) <= 80 and line == line.rstrip() for line in lines)
    assert json.loads(json.dumps(found.to_dict()))["verdict"] == found.verdict


# ----------------------------------------------------------------------------- errors for people


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ((3, X), "a subclass of torch.autograd.Function, got 'int'"),
        ((torch.sin,), "tensor of floating-point numbers among the inputs, got none"),
        ((torch.sin, torch.tensor([1])), "expected at least one tensor of floating-point numbers"),
        ((torch.sin, X.to(torch.complex64)), "derivatives of real numbers, and `x` is complex"),
        ((lambda x: torch.view_as_complex(x), torch.ones(2, 2)), "returns complex ones"),
        ((torch.sin, X.to_sparse()), "expected dense tensors, got `x` that is torch.sparse_coo"),
        ((torch.sin, X.to("meta")), "expected dense tensors, got `x` that is without numbers"),
        ((lambda x: x.to_sparse(), X), "to return dense tensors; let it end with"),
        ((torch.argmax, X), "expected argmax to return numbers with a derivative, got torch.int64"),
        ((lambda x: "text", X), "expected the lambda to return a tensor, or a tuple"),
        ((lambda x: x[x > 0.5 + 1e-9], X), "to return the same shapes for inputs that are close"),
        ((torch.sin, torch.ones(600)), "600 outputs by 600 inputs are 360,000: more than 250,000"),
    ],
)  # fmt: skip
def test_a_wrong_call_is_a_sentence(arguments, says):
    with pytest.raises(UsageError, match="check") as caught:
        customop.check(*arguments)
    assert says in str(caught.value)


@pytest.mark.parametrize(
    ("name", "value"), [("eps", 0), ("eps", -1), ("atol", "x"), ("rtol", None)]
)
def test_a_wrong_tolerance_is_a_sentence(name, value):
    with pytest.raises(UsageError, match=rf"check\(\.\.\., {name}=\.\.\.\) expected a positive"):
        customop.check(torch.sin, X, **{name: value})


def test_a_forward_that_raises_is_told_with_its_own_words():
    with pytest.raises(ModelError, match="the lambda raised ZeroDivisionError when it was called"):
        customop.check(lambda x: x / (1 // 0), X)
    held = torch.ones(3)
    with pytest.raises(ModelError, match="what else it computes with must be double too") as caught:
        customop.check(lambda x: x @ held, X)
    assert isinstance(caught.value.__cause__, RuntimeError)


def test_it_says_the_same_in_inference_mode():
    with torch.inference_mode():
        inside = customop.check(torch.sin, torch.tensor([0.5, 1.0]))
    assert inside.verdict == "right"
    assert inside == customop.check(torch.sin, torch.tensor([0.5, 1.0]))


@pytest.mark.parametrize("number", [1e12, 1e300, -1e15])
def test_a_number_so_large_that_a_step_is_lost_in_it_decides_nothing(number):
    found = customop.check(torch.sin, torch.tensor([number], dtype=torch.float64))
    assert found.verdict == "undecided"
    assert not found.problems


@pytest.mark.parametrize("number", [math.nan, math.inf])
def test_an_input_that_is_no_number_accuses_nobody(number):
    found = customop.check(torch.sin, torch.tensor([number, 1.0]))
    assert found.verdict == "undecided"


def test_sparse_gradients_are_compared():
    found = customop.check(nn.Embedding(4, 2, sparse=True), torch.tensor([0, 1]))
    assert found.verdict == "right"


@pytest.mark.parametrize(
    ("fn", "given", "says"),
    [
        (torch.sin, nn.UninitializedParameter(), "is lazy"),
        (nn.LazyLinear(2), torch.ones(1, 2), "`weight` is lazy"),
        (lambda x: x.to("meta"), torch.ones(1), "meta device"),
    ],
)
def test_what_has_no_numbers_is_refused_in_words(fn, given, says):
    with pytest.raises(UsageError, match=says):
        customop.check(fn, given)


def test_a_default_device_of_the_readers_is_no_trouble():
    with torch.device("meta"):  # stands for an accelerator
        assert customop.check(torch.sin, torch.ones(2, device="cpu")).verdict == "right"


def test_true_is_no_step():
    with pytest.raises(UsageError, match="eps"):
        customop.check(torch.sin, torch.ones(1), eps=True)


def test_a_norm_at_its_kink_is_not_said_to_be_nothing():
    (note,) = customop.check(torch.norm, torch.zeros(2)).remarks
    assert note.code == "no_effect"
    assert "nothing depends" not in note.text
