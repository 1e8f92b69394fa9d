"""Why is `.grad` None? What a loss alone can tell, what a record adds, what is left untouched."""

import gc
import inspect
import re
import warnings
import weakref
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import nn

from pytorch_lab.errors import UsageError
from pytorch_lab.graph import Explanation, record, why_gradient, why_none
from pytorch_lab.graph.explaining import why_bad_number, why_zero

X = torch.linspace(-1, 1, 12).view(4, 3)


def net() -> nn.Sequential:
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.Linear(4, 2))


# ---- the living graph, without a line ------------------------------------------------------------


def result_of_an_op() -> Explanation:
    w = torch.ones(3, requires_grad=True) * 2
    return why_none(w, w.sum())


def retained_and_not_gone_back() -> Explanation:
    w = torch.ones(3, requires_grad=True) * 2
    w.retain_grad()
    return why_none(w, w.sum())


def whole_numbers() -> Explanation:
    return why_none(torch.arange(3), net()(X).sum())


def made_in_inference_mode() -> Explanation:
    with torch.inference_mode():
        w = torch.ones(3)
    return why_none(w, net()(X).sum())


def plain_tensor() -> Explanation:
    return why_none(torch.ones(3), net()(X).sum())


def data_of_a_leaf() -> Explanation:
    model = net()
    return why_none(model[0].weight.data, model(X).sum())


def row_of_a_leaf() -> Explanation:
    model = net()
    return why_none(model[0].weight.detach()[1], model(X).sum())


def loss_made_a_leaf() -> Explanation:
    model = net()
    return why_none(model[0].weight, model(X).detach().sum().requires_grad_())


def loss_of_whole_numbers() -> Explanation:
    model = net()
    return why_none(model[0].weight, model(X).argmax())


def loss_without_gradients() -> Explanation:
    model = net()
    with torch.no_grad():
        return why_none(model[0].weight, model(X).sum())


def nothing_wrong() -> Explanation:
    model = net()
    return why_none(model[0].weight, model(X).sum())


def cleared_since() -> Explanation:
    model = net()
    loss = model(X).square().sum()
    loss.backward()
    model.zero_grad()
    return why_none(model[0].weight, loss)


def copy_of_the_model() -> Explanation:
    return why_none(net()[0].weight, net()(X).sum())


def nowhere_in_the_graph() -> Explanation:
    return why_none(torch.ones(9, requires_grad=True), net()(X).sum())


def gradient_there() -> Explanation:
    model = net()
    loss = model(X).sum()
    loss.backward()
    return why_none(model[0].weight, loss)


def gradient_of_zeros() -> Explanation:
    w = torch.ones(3, requires_grad=True)
    loss = w.round().sum()
    loss.backward()
    return why_none(w, loss)


def gradient_of_nan() -> Explanation:
    w = torch.zeros(3, requires_grad=True)
    loss = (w.sqrt() * 0).sum()
    loss.backward()
    return why_none(w, loss)


def gradient_of_a_parameter_named_slope() -> Explanation:
    """Words of the reader's own stand in the sentence; the cause is not read off it."""
    model = nn.Module()
    model.slope = nn.Parameter(torch.zeros(3))
    loss = (model.slope.sqrt() * 0).sum()
    loss.backward()
    return why_none(model.slope, loss, model=model)


LIVING = {
    result_of_an_op: "non_leaf",
    retained_and_not_gone_back: "backward_not_called",
    whole_numbers: "integer_leaf",
    made_in_inference_mode: "inference",
    plain_tensor: "not_requires_grad",
    data_of_a_leaf: "alias",
    row_of_a_leaf: "alias",
    loss_made_a_leaf: "loss_is_leaf",
    loss_of_whole_numbers: "loss_without_graph",
    loss_without_gradients: "loss_without_graph",
    nothing_wrong: "backward_not_called",
    cleared_since: "cleared",
    copy_of_the_model: "old_copy",
    nowhere_in_the_graph: "not_in_graph",
    gradient_there: "has_grad",
    gradient_of_zeros: "zero_gradient",
    gradient_of_nan: "not_finite",
    gradient_of_a_parameter_named_slope: "not_finite",
}


@pytest.mark.parametrize("case", LIVING, ids=lambda case: case.__name__)
def test_what_a_loss_alone_can_tell(case: Callable[[], Explanation]) -> None:
    answer = case()
    assert answer.cause == LIVING[case], answer
    assert answer.where == ""
    assert all(len(line) <= 80 for line in str(answer).splitlines())


@pytest.mark.parametrize(
    "case", [loss_without_gradients, loss_made_a_leaf, nowhere_in_the_graph, gradient_of_zeros]
)
def test_an_answer_without_a_line_says_how_to_learn_it(case: Callable[[], Explanation]) -> None:
    assert "lambda:" in case().fix


# ---- what a record adds --------------------------------------------------------------------------


def test_a_parameter_has_the_name_that_the_model_gives_it() -> None:
    model = net()
    assert "`2.bias`" in why_none(model[2].bias, model(X).sum(), model=model).says


def test_a_record_is_asked_by_the_parameters_name_in_the_model() -> None:
    model = net()
    rec = record(model, X)
    assert why_none(model[0].weight, rec, model=model).cause == "backward_not_called"


def test_a_record_that_shows_several_such_tensors_needs_the_model() -> None:
    model = nn.Sequential(nn.Linear(3, 3), nn.Linear(3, 3))
    rec = record(model, X)
    with pytest.raises(UsageError, match=r"expected to find a leaf of shape \(3, 3\).*model="):
        why_none(model[0].weight, rec)


class Two(nn.Module):
    """Two layers of one shape, of which the second is never called."""

    def __init__(self, width: int = 3) -> None:
        super().__init__()
        self.x, self.y = nn.Linear(3, 3), nn.Linear(width, 3)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.x(x).sum()


@pytest.mark.parametrize("width", [3, 5])
@pytest.mark.parametrize("backward", [True, False])
def test_a_layer_that_was_never_called_is_not_taken_for_its_like(
    width: int, backward: bool
) -> None:
    model = Two(width)
    rec = record(model, X, backward=backward)
    assert why_none(model.y.weight, rec, model=model).cause == "unused"
    assert why_none(model.y.weight, lambda: model(X), model=model).cause == "unused"


class Namesakes(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.fc, self.sub = nn.Linear(3, 3), nn.Sequential()
        self.sub.add_module("fc", nn.Linear(3, 3))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.sub(x).sum() + self.fc(x).detach().sum()


def test_a_name_is_matched_whole() -> None:
    model = Namesakes()
    for rec in (record(model, X), record(lambda: model(X))):
        assert why_none(model.fc.weight, rec, model=model).cause == "detached"
        assert why_none(model.sub.fc.weight, rec, model=model).cause == "backward_not_called"
    told = why_none(model.fc.weight, record(lambda: model(X)), model=model)
    assert told.evidence[-1] == "in the record it is called `model.fc.weight`"


def test_the_model_may_be_a_part_of_what_was_recorded() -> None:
    model = Namesakes()
    rec = record(model, X)
    assert why_none(model.sub.fc.weight, rec, model=model.sub).cause == "backward_not_called"
    nested = nn.Sequential(nn.Linear(3, 3), nn.Sequential(nn.Linear(3, 3)))
    part = nested[1]
    rec = record(nested, X)
    assert why_none(part[0].weight, rec, model=part).cause == "backward_not_called"
    twins = nn.Sequential(nn.Linear(3, 3), nn.Linear(3, 3))
    with pytest.raises(UsageError, match="pass the model that was recorded"):
        why_none(twins[0].weight, record(twins, X), model=twins[0])


def test_what_is_known_by_its_shape_only_is_said_to_be() -> None:
    w = torch.ones(5, requires_grad=True)
    rec = record(lambda: (w * 2).sum())
    assert "by its shape only" in why_none(w, rec).evidence[-1]
    assert why_none(torch.ones(7, requires_grad=True), rec).cause == "unused"


def test_each_cut_on_the_way_is_listed() -> None:
    w = torch.ones(3, requires_grad=True)

    def loss() -> torch.Tensor:
        one = w.detach()
        two = w.argmax().float()
        return one.sum() + two

    answer = why_none(w, loss)
    assert answer.cause == "detached"
    assert any("argmax" in fact for fact in answer.evidence)


def test_numbers_printed_on_the_way_are_no_cut() -> None:
    w = torch.ones(3, requires_grad=True)

    def loss() -> torch.Tensor:
        value = (w * 2).sum()
        float(value.detach())
        if value.item() < 0:
            return value
        return value.square()

    assert why_none(w, loss).cause == "backward_not_called"


def test_a_value_written_in_place_carries_the_gradient() -> None:
    w = torch.ones(3, requires_grad=True)

    def loss() -> torch.Tensor:
        table = torch.zeros(4)
        table[1:] = w * 2
        return table.sum()

    assert why_none(w, loss).cause == "backward_not_called"


def test_a_view_written_in_place_carries_the_gradient_to_its_base() -> None:
    w = torch.ones(3, requires_grad=True)

    def loss() -> torch.Tensor:
        table = torch.zeros(2, 3)
        table[0].add_(w)
        return table.sum()

    assert why_none(w, loss).cause == "backward_not_called"


def test_two_views_written_one_after_the_other_both_lead_on() -> None:
    w, u = torch.ones(3, requires_grad=True), torch.ones(3, requires_grad=True)

    def loss() -> torch.Tensor:
        table = torch.zeros(2, 3)
        first, second = table[0], table[1]
        first.add_(w.detach())
        second.add_(u)
        return table.sum()

    assert why_none(u, loss).cause == "backward_not_called"
    answer = why_none(w, loss)
    assert answer.cause == "detached"
    assert "its numbers still go into the loss, as constants" in answer.evidence


def test_what_was_computed_from_a_weight_is_told_from_the_weight_itself() -> None:
    w = torch.ones(3, requires_grad=True)
    assert why_none(w, lambda: w.detach().sum()).says.startswith(
        "The graph ends here: `w` is detached"
    )
    answer = why_none(w, lambda: (w * 2).detach().sum())
    assert answer.says.startswith("What was computed from `w` is detached here")


def test_autograd_grad_leaves_grad_alone() -> None:
    w = torch.ones(3, requires_grad=True)

    def step() -> torch.Tensor:
        loss = w.exp().sum()
        torch.autograd.grad(loss, w)
        return loss

    assert why_none(w, step).cause == "went_elsewhere"


def test_a_backward_inside_of_a_transform_is_not_the_readers() -> None:
    w = torch.ones(3, requires_grad=True)
    slope = torch.func.grad(lambda x: (x * w).sum())
    assert why_none(w, lambda: slope(torch.ones(3)).sum()).cause == "backward_not_called"


@pytest.mark.parametrize(
    ("asks", "cause"), [(True, "inside_checkpoint"), (False, "checkpoint_without_grad")]
)
def test_a_reentrant_checkpoint_hides_its_inside(asks: bool, cause: str) -> None:
    layer = nn.Linear(3, 3)
    x = torch.ones(1, 3, requires_grad=asks)

    def loss() -> torch.Tensor:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # torch's own hint
            return torch.utils.checkpoint.checkpoint(layer, x, use_reentrant=True).sum()

    assert why_none(layer.weight, loss).cause == cause


def two_results() -> tuple[torch.Tensor, torch.Tensor, Callable[[], object]]:
    w, v = torch.ones(3, requires_grad=True), torch.ones(4, requires_grad=True)
    return w, v, lambda: {"logits": w * 2, "loss": (v * 7).sum()}


def test_of_several_results_each_question_means_the_one_called_loss() -> None:
    w, v, run = two_results()
    assert why_gradient(v, run).cause == "fine"
    assert why_gradient(w, run).cause == "not_in_loss"
    assert why_none(v, run).cause == "backward_not_called"
    assert why_none(w, run).cause == "not_in_loss"
    assert why_none(v, record(run)).cause == "backward_not_called"
    assert record(run, backward=True).accumulated
    assert w.grad is None
    assert torch.equal(v.grad, torch.full((4,), 7.0))


def test_numbers_that_come_back_from_numpy_are_named() -> None:
    w = torch.ones(3, requires_grad=True)

    def loss() -> torch.Tensor:
        numbers = w.detach().numpy()
        return torch.from_numpy(numbers).sum()

    assert any("come back" in fact for fact in why_none(w, loss).evidence)


def back_from_memory(w: torch.Tensor) -> torch.Tensor:
    numbers = (w * 2).detach().numpy()  # HERE
    return torch.from_numpy(numbers).sum()


def back_as_a_copy(w: torch.Tensor) -> torch.Tensor:
    numbers = (w * 2).tolist()  # HERE
    (w * 3).sum().item()
    return torch.tensor(numbers).sum()


@pytest.mark.parametrize("back", [back_from_memory, back_as_a_copy])
def test_of_several_ways_out_of_torch_the_one_that_came_back_is_named(
    back: Callable[[torch.Tensor], torch.Tensor],
) -> None:
    w, v = torch.ones(3, requires_grad=True), torch.ones(3, requires_grad=True)

    def loss() -> torch.Tensor:
        print((w * 1).sum().item())
        return (back(w) * v).sum()

    answer = why_none(w, loss)
    lines, first = inspect.getsourcelines(back)
    line = first + next(i for i, text in enumerate(lines) if "# HERE" in text)
    assert (answer.cause, answer.where) == ("left_torch", f"test_graph_why_none.py:{line}")
    assert any("item hands out numbers as well" in fact for fact in answer.evidence)


# ---- what must stay as it was --------------------------------------------------------------------


def test_nothing_is_changed_by_asking() -> None:
    model = net()
    loss = model(X).square().sum()
    before = [parameter.clone() for parameter in model.parameters()]
    why_none(model[0].weight, loss, model=model)
    why_none(model[0].weight, lambda: model(X).sum(), model=model)
    why_gradient(model[0].weight, lambda: model(X).sum(), model=model)
    assert all(p.grad is None for p in model.parameters())
    assert all(torch.equal(*pair) for pair in zip(before, model.parameters(), strict=True))
    loss.backward()  # the graph was neither freed nor changed
    assert all(p.grad is not None for p in model.parameters())


def test_gradients_that_were_there_are_put_back() -> None:
    w = torch.ones(3, requires_grad=True)
    w.grad = torch.full((3,), 7.0)
    kept = w.grad
    assert why_gradient(w, lambda: (w * 0.0).sum() / 1.0).cause == "times_zero"
    assert w.grad is kept
    assert torch.equal(kept, torch.full((3,), 7.0))


def test_a_checkpoint_is_not_run_again_to_look_at_it() -> None:
    runs = []

    def block(x: torch.Tensor) -> torch.Tensor:
        runs.append(1)
        return x.exp().sin()

    w = torch.ones(3, requires_grad=True)
    loss = torch.utils.checkpoint.checkpoint(block, w, use_reentrant=False).sum()
    assert why_none(w, loss).cause == "backward_not_called"
    assert len(runs) == 1


def test_no_tensor_is_kept_alive_by_an_answer() -> None:
    model = net()

    def ask() -> weakref.ref[torch.Tensor]:
        x = torch.ones(2, 3)
        answers = [
            why_none(model[0].weight, lambda: model(x).sum()),
            why_gradient(model[0].weight, lambda: model(x).sum()),
        ]
        assert [answer.cause for answer in answers] == ["backward_not_called", "fine"]
        return weakref.ref(x)

    gone = ask()
    gc.collect()
    assert gone() is None


def test_a_long_graph_needs_no_recursion() -> None:
    w = torch.ones((), requires_grad=True)
    y = w
    for _ in range(20_000):
        y = y + 1
    assert why_none(w, y).cause == "backward_not_called"
    assert why_none(torch.ones(5, requires_grad=True), y).cause == "not_in_graph"


# ---- arguments -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("fc.weight", torch.ones(1)), "expected a tensor whose .grad is None, got str"),
        (
            (torch.ones(1, requires_grad=True), 3.5),
            "expected a loss tensor, a record or a function",
        ),
    ],
)
def test_a_wrong_argument_is_named(arguments: tuple[object, object], words: str) -> None:
    with pytest.raises(UsageError, match=words):
        why_none(*arguments)  # pyright: ignore[reportArgumentType]


def test_a_function_that_raises_before_there_is_a_loss_tells_its_error() -> None:
    w = torch.ones(3, requires_grad=True)
    assert why_none(w, lambda: w @ torch.ones(4)).cause == "not_autograd"


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("w", torch.ones(1)), "expected a tensor whose gradient is in question, got str"),
        ((torch.ones(1), 3.5), "expected a loss tensor or a function that computes it, got float"),
        (
            (torch.ones(1), record(lambda: torch.ones(1))),
            r"got GraphRecord; a record keeps no graph to go back through: give the function that "
            r"was recorded: why_gradient\(w, lambda: ",
        ),
    ],
)
def test_why_gradient_names_a_wrong_argument(arguments: tuple[Any, Any], words: str) -> None:
    with pytest.raises(UsageError, match=words):
        why_gradient(*arguments)


@pytest.mark.parametrize("ask", [why_none, why_gradient])
def test_a_model_that_is_none_is_named(ask: Callable[..., Explanation]) -> None:
    with pytest.raises(UsageError, match=r"expected model= to be an nn.Module or None, got list"):
        ask(torch.ones(1), torch.ones(1), model=[])


def test_an_optimizer_that_is_none_is_named() -> None:
    with pytest.raises(UsageError, match=r"expected optimizer= to be an Optimizer or None, got fl"):
        why_none(torch.ones(1), torch.ones(1), optimizer=0.1)  # pyright: ignore[reportArgumentType]


def test_a_function_that_raises_tells_its_own_error_through_why_gradient() -> None:
    w = torch.ones(3, requires_grad=True)

    def step() -> None:
        y = w.exp()
        y += 1
        y.sum().backward()

    assert why_gradient(w, step).cause == "in_place"


# ---- why_gradient beyond the bank ----------------------------------------------------------------


def zero_weights() -> Explanation:
    model = net()
    nn.init.zeros_(model[2].weight)
    return why_gradient(model[0].weight, lambda: model(X).sum())


def cancelling_bias() -> Explanation:
    layer = nn.Linear(3, 1)
    return why_gradient(layer.bias, lambda: (layer(X) - layer(X + 1)).sum())


def smallest_already() -> Explanation:
    w = torch.ones(3, requires_grad=True)
    return why_gradient(w, lambda: torch.nn.functional.mse_loss(w * 1, torch.ones(3)))


def zero_factor() -> Explanation:
    w = torch.ones(3, requires_grad=True)
    return why_gradient(w, lambda: (w * torch.zeros(3)).sum())


def flat_on_one_way_and_times_zero_on_the_other() -> Explanation:
    w = torch.tensor([0.5], requires_grad=True)
    return why_gradient(w, lambda: (w.floor() * w.ceil()).sum())


def weight_already_nan() -> Explanation:
    layer = nn.Linear(2, 1)
    layer.weight.data[0, 1] = float("nan")
    return why_gradient(layer.bias, lambda: layer(torch.ones(1, 2)).exp().sum())


def nothing_at_all() -> Explanation:
    w = torch.ones(3, requires_grad=True)
    return why_gradient(w, lambda: w.detach().sum() + torch.ones(1, requires_grad=True))


def gradient_given_is_nan() -> Explanation:
    w = torch.ones(3, requires_grad=True)
    return why_gradient(w, lambda: (w * 2).backward(torch.tensor([float("nan"), 1.0, 1.0])))


def from_a_loss_tensor() -> Explanation:
    w = torch.zeros(3, requires_grad=True)
    return why_gradient(w, w.sqrt().sum())


def log_softmax_overflows() -> Explanation:
    """Its node is LogSoftmaxBackward0; log's advice would be to use log_softmax."""
    w = torch.zeros(3, requires_grad=True)
    large = torch.tensor([6e4, -6e4, -6e4])
    return why_gradient(w, lambda: (w.half().log_softmax(-1).float() * large).sum())


def log1p_at_its_end() -> Explanation:
    w = torch.full((3,), -1.0, requires_grad=True)
    return why_gradient(w, lambda: w.log1p().exp().sum())


def margin_is_kept() -> Explanation:
    w = torch.tensor([[5.0, 0.0]], requires_grad=True)
    return why_gradient(w, lambda: nn.functional.multi_margin_loss(w, torch.tensor([0])))


def lowest_point_of_a_parabola() -> Explanation:
    w = torch.zeros(3, requires_grad=True)
    return why_gradient(w, lambda: (w**2).sum())


def root_of_a_negative_number() -> Explanation:
    w = torch.full((3,), -1.0, requires_grad=True)
    return why_gradient(w, lambda: w.sqrt().sum())


def gradient_given_is_zero() -> Explanation:
    w = torch.ones(3, requires_grad=True)
    return why_gradient(w, lambda: (w * 2).backward(torch.zeros(3)))


def nothing_taken_from_it() -> Explanation:
    w = torch.ones(3, requires_grad=True)
    return why_gradient(w, lambda: torch.where(w < 0, w, 2 * torch.ones(3)).sum())


def only_its_shape_is_used() -> Explanation:
    w = torch.ones(3, requires_grad=True)
    return why_none(w, lambda: torch.zeros_like(w).sum())


def hook_gives_nan() -> Explanation:
    w = torch.ones(3, requires_grad=True)

    def loss() -> torch.Tensor:
        y = w * 2
        y.register_hook(lambda grad: grad * float("nan"))
        return (y * 3).sum()

    answer = why_gradient(w, loss)
    assert answer.where == f"test_graph_why_none.py:{loss.__code__.co_firstlineno + 2}"
    return answer


def hook_gives_zero() -> Explanation:
    w = torch.ones(3, requires_grad=True)

    def loss() -> torch.Tensor:
        y = w * 2
        y.register_hook(torch.zeros_like)
        return (y**2).sum()

    return why_gradient(w, loss)


def hook_on_a_leaf() -> Explanation:
    w = torch.ones(3, requires_grad=True)
    w.register_hook(torch.zeros_like)
    return why_gradient(w, lambda: (w * 3).sum())


def hook_that_only_looks() -> Explanation:
    w = torch.zeros(3, requires_grad=True)

    def loss() -> torch.Tensor:
        y = w * 2
        y.register_hook(lambda grad: None)
        return y.sqrt().sum()

    return why_gradient(w, loss)


def hook_that_looks_behind_a_relu() -> Explanation:
    w = torch.full((3,), -1.0, requires_grad=True)
    w.register_hook(lambda grad: None)
    return why_gradient(w, lambda: w.relu().sum())


BEYOND = {
    hook_gives_nan: "hook",
    hook_gives_zero: "hook",
    hook_on_a_leaf: "hook",
    hook_that_only_looks: "infinite_slope",
    hook_that_looks_behind_a_relu: "dead_relu",
    lowest_point_of_a_parabola: "stationary",
    root_of_a_negative_number: "nan_in_forward",
    gradient_given_is_zero: "zero_given",
    nothing_taken_from_it: "masked_out",
    only_its_shape_is_used: "no_derivative",
    log_softmax_overflows: "gradient_overflow",
    log1p_at_its_end: "infinite_slope",
    margin_is_kept: "times_zero",
    zero_weights: "zero_weights",
    cancelling_bias: "cancels",
    smallest_already: "at_minimum",
    zero_factor: "times_zero",
    flat_on_one_way_and_times_zero_on_the_other: "zero_slope",
    weight_already_nan: "non_finite_parameter",
    nothing_at_all: "detached",
    gradient_given_is_nan: "gradient_given",
    from_a_loss_tensor: "infinite_slope",
}


def test_a_weight_of_zeros_is_not_its_own_reason() -> None:
    layer = nn.Linear(2, 2)
    nn.init.zeros_(layer.weight)
    nn.init.zeros_(layer.bias)
    x = torch.zeros(1, 2)
    answer = why_gradient(layer.weight, lambda: layer(x).sum())
    assert answer.cause == "times_zero"
    assert "multiplies by `x`, which is 0" in answer.says
    assert "`x`, shape (1, 2): all elements are 0" in answer.evidence


@pytest.mark.parametrize("case", BEYOND, ids=lambda case: case.__name__)
def test_further_causes_of_a_wrong_gradient(case: Callable[[], Explanation]) -> None:
    answer = case()
    assert answer.cause == BEYOND[case], answer
    assert all(len(line) <= 80 for line in str(answer).splitlines())


def test_a_loss_tensor_can_still_be_walked_back_after_the_question() -> None:
    w = torch.ones(3, requires_grad=True)
    loss = w.exp().sum()
    assert why_gradient(w, loss).cause == "fine"
    loss.backward()
    assert torch.equal(w.grad, w.detach().exp())


def test_a_loss_that_merely_begins_like_a_product_is_none() -> None:
    """MultiMarginLossBackward0 is no MulBackward0, though its targets are 0."""
    assert "multiplies" not in margin_is_kept().says


def node_names() -> set[str]:
    """What torch calls the nodes of the ops that the tables are about."""
    x, row, one = torch.rand(3, 3).requires_grad_(), torch.rand(3).requires_grad_(), torch.ones(())
    f, still = nn.functional, torch.zeros(3, 3)
    made = [
        *(x.sqrt(), x.rsqrt(), x.log(), x.log2(), x.log10(), x.log1p(), x**0.5, x / x),
        *(x.reciprocal(), x.acos(), x.asin(), torch.atan2(x, x), torch.cdist(x, x)),
        *(x.sign(), x.round(), x.floor(), x.ceil(), x.trunc(), x.sgn(), x.clamp(0, 1)),
        *(x.clamp_min(0), x.clamp_max(1), f.hardtanh(x), f.hardsigmoid(x), x.relu()),
        *(f.threshold(x, 0.1, 0.0), f.hardshrink(x), f.softshrink(x), f.hardswish(x)),
        *(x.sigmoid(), x.tanh(), x.softmax(0), x.log_softmax(0), x.erf(), f.mse_loss(x, still)),
        *(f.smooth_l1_loss(x, still), f.huber_loss(x, still), x.abs(), x.cos(), x.cosh()),
        *(x.norm(), torch.where(x > 0, x, one), x.masked_fill(x > 0, 0), x * x, x @ x, x @ row),
        *(row @ row, torch.bmm(x[None], x[None]), f.linear(x, x, row), torch.addmv(row, x, row)),
        *(torch.baddbmm(x[None], x[None], x[None]), f.conv1d(x[None], x[:, :, None])),
    ]
    return {tensor.grad_fn.name() for tensor in made}


def test_the_tables_name_nodes_that_torch_has() -> None:
    """Compared whole, so that a name that torch never gives would match nothing."""
    known = {re.sub(r"Backward\d+$", "", name) for name in node_names()}
    slopes = [stem for slope in why_bad_number._SLOPES for stem in slope.nodes]
    flat = [stem for flat in why_zero._FLAT for stem in flat.nodes]
    for stems in (slopes, flat, why_zero._PRODUCTS):
        assert len(set(stems)) == len(stems)
        assert set(stems) - {"Linear"} <= known  # a node of its own on Apple's GPUs only
