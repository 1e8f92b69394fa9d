"""Small programs with one mistake each, of the kinds that people report about gradients.

Every program takes `broken`: True is the program as it is written by mistake, False the healed one.
It asks the question that its author would ask and returns the answer. A comment `HERE` marks the
line that the answer must name.
"""

import inspect
import math
import warnings
from collections.abc import Callable
from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import nn

from pytorch_lab.graph import Explanation, why_error, why_gradient, why_none

X = torch.linspace(-1, 1, 24).view(8, 3)
Y = torch.tensor([0, 1, 2, 0, 1, 2, 0, 1])


class Mistake(NamedTuple):
    program: Callable[[bool], Explanation]
    cause: str

    @property
    def name(self) -> str:
        return self.program.__name__

    @property
    def where(self) -> str:
        """The line marked HERE; empty if none is."""
        lines, first = inspect.getsourcelines(self.program)
        marked = [first + i for i, line in enumerate(lines) if "# HERE" in line]
        return f"autograd_mistakes.py:{marked[0]}" if marked else ""


MISTAKES: list[Mistake] = []


def mistake(cause: str) -> Callable[[Callable[[bool], Explanation]], Callable[[bool], Explanation]]:
    def add(program: Callable[[bool], Explanation]) -> Callable[[bool], Explanation]:
        MISTAKES.append(Mistake(program, cause))
        return program

    return add


def net() -> nn.Sequential:
    torch.manual_seed(1)
    return nn.Sequential(nn.Linear(3, 5), nn.Tanh(), nn.Linear(5, 3))


# ---- no gradient at all ------------------------------------------------------------------------


@mistake("detached")
def features_detached(broken: bool) -> Explanation:
    model = net()

    def loss() -> torch.Tensor:
        hidden = model[1](model[0](X))
        if broken:
            hidden = hidden.detach()  # HERE
        return F.cross_entropy(model[2](hidden), Y)

    return why_none(model[0].weight, loss)


@mistake("detached")
def data_of_a_result(broken: bool) -> Explanation:
    w = torch.ones(3, requires_grad=True)
    return why_none(w, lambda: ((w * 2).data if broken else w * 2).sum())  # HERE


@mistake("no_grad")
def encoder_under_no_grad(broken: bool) -> Explanation:
    model = net()

    def loss() -> torch.Tensor:
        with torch.set_grad_enabled(not broken):
            hidden = model[0](X)  # HERE
        return F.cross_entropy(model[2](hidden.tanh()), Y)

    return why_none(model[0].bias, loss)


@mistake("inference")
def everything_in_inference_mode(broken: bool) -> Explanation:
    w = torch.ones(3, requires_grad=True)

    def loss() -> torch.Tensor:
        with torch.inference_mode(broken):
            scaled = w * 2  # HERE
            return scaled.sum()

    return why_none(w, loss)


@mistake("left_torch")
def exponential_by_math(broken: bool) -> Explanation:
    w = torch.tensor(0.5, requires_grad=True)

    def loss() -> torch.Tensor:
        if broken:
            return torch.tensor(math.exp(w.item()))  # HERE
        return w.exp()

    return why_none(w, loss)


@mistake("left_torch")
def sorted_by_numpy(broken: bool) -> Explanation:
    w = torch.tensor([3.0, 1.0], requires_grad=True)

    def loss() -> torch.Tensor:
        if broken:
            values = w.detach().numpy()  # HERE
            return torch.from_numpy(values**2).sum()
        return (w**2).sum()

    return why_none(w, loss)


@mistake("copied")
def rebuilt_with_torch_tensor(broken: bool) -> Explanation:
    w = torch.ones(4, requires_grad=True)

    def loss() -> torch.Tensor:
        parts = [part * 2 for part in w]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # torch hints at it
            return torch.tensor(parts).sum() if broken else torch.stack(parts).sum()  # HERE

    return why_none(w, loss)


@mistake("integer_op")
def share_of_hits_as_loss(broken: bool) -> Explanation:
    model = net()

    def loss() -> torch.Tensor:
        logits = model(X)
        if not broken:
            return F.cross_entropy(logits, Y)
        guess = logits.topk(1).indices.squeeze(1)  # HERE
        wrong = (guess != Y).float().mean()
        return wrong.requires_grad_()

    return why_none(model[2].weight, loss)


@mistake("only_decides")
def value_only_decides(broken: bool) -> Explanation:
    gate = torch.tensor(0.3, requires_grad=True)

    def loss() -> torch.Tensor:
        if broken:
            return X.sum() if gate > 0 else X.mean()  # HERE
        return X.sum() * gate

    return why_none(gate, loss)


@mistake("not_in_loss")
def second_head_left_out(broken: bool) -> Explanation:
    trunk, price, kind = nn.Linear(3, 4), nn.Linear(4, 1), nn.Linear(4, 3)

    def loss() -> torch.Tensor:
        hidden = trunk(X)
        a = price(hidden)  # HERE
        b = F.cross_entropy(kind(hidden), Y)
        return b if broken else b + a.mean()

    return why_none(price.weight, loss)


@mistake("unused")
def layer_never_called(broken: bool) -> Explanation:
    model, extra = net(), nn.Linear(7, 7)
    return why_none(
        extra.weight, lambda: model(X).sum() + (0 if broken else extra(torch.ones(7)).sum())
    )


@mistake("old_copy")
def weight_from_before_the_swap(broken: bool) -> Explanation:
    model = net()
    weight = model[2].weight
    if broken:
        model[2] = nn.Linear(5, 3)
    return why_none(weight, lambda: F.cross_entropy(model(X), Y))


@mistake("optimizer_of_another")
def optimizer_of_the_first_model(broken: bool) -> Explanation:
    model = net()
    optimizer = torch.optim.SGD((net() if broken else model).parameters(), lr=0.1)
    return why_none(
        model[0].weight, lambda: F.cross_entropy(model(X), Y), model=model, optimizer=optimizer
    )


@mistake("alias")
def looked_at_data(broken: bool) -> Explanation:
    model = net()
    weight = model[0].weight.data if broken else model[0].weight
    return why_none(weight, lambda: model(X).sum(), model=model)


@mistake("not_requires_grad")
def frozen_backbone(broken: bool) -> Explanation:
    model = net()
    if broken:
        model[0].requires_grad_(False)
    return why_none(model[0].weight, lambda: model(X).sum())


@mistake("cleared")
def cleared_too_early(broken: bool) -> Explanation:
    model = net()

    def step() -> torch.Tensor:
        loss = F.cross_entropy(model(X), Y)
        loss.backward()
        if broken:
            model.zero_grad()
        return loss

    return why_none(model[0].weight, step)


class _Half(torch.autograd.Function):
    broken = True

    @staticmethod
    def forward(ctx: object, x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
        return x * w

    @staticmethod
    def backward(ctx: object, grad: torch.Tensor) -> tuple[torch.Tensor | None, ...]:
        return grad, None if _Half.broken else grad


@mistake("custom_backward")
def function_returns_none(broken: bool) -> Explanation:
    x, w = torch.ones(2, requires_grad=True), torch.ones(2, requires_grad=True)
    _Half.broken = broken

    def step() -> torch.Tensor:
        loss = _Half.apply(x, w).sum()
        loss.backward()
        return loss

    return why_none(w, step)


# ---- an error ------------------------------------------------------------------------------------


@mistake("non_leaf")
def scaled_start_values(broken: bool) -> Explanation:
    start = torch.ones(3)
    w = start.requires_grad_() / 10 if broken else (start / 10).requires_grad_()
    return why_error(lambda: torch.optim.Adam([w], lr=0.1))  # HERE


class _Carrier(nn.Module):
    """A recurrence that keeps its state from one call to the next."""

    def __init__(self, cut: bool) -> None:
        super().__init__()
        self.inner = nn.Linear(4, 4)
        self.cut = cut
        self.state = torch.zeros(4)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        state = self.state.detach() if self.cut else self.state
        self.state = torch.tanh(self.inner(state) + x)
        return self.state.sum()


def carried(cut: bool, retain: bool, steps: int) -> Callable[[], None]:
    torch.manual_seed(0)
    model = _Carrier(cut)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

    def step() -> None:
        loss = model(torch.ones(4))
        optimizer.zero_grad()
        loss.backward(retain_graph=retain)
        optimizer.step()

    for _ in range(steps):
        step()
    return step


@mistake("hidden_state")
def state_carried_and_retained(broken: bool) -> Explanation:
    return why_error(carried(cut=not broken, retain=broken, steps=2))


@mistake("hidden_state")
def state_carried(broken: bool) -> Explanation:
    return why_error(carried(cut=not broken, retain=False, steps=1))


@mistake("leaf_in_place")
def weights_filled_while_recording(broken: bool) -> Explanation:
    table = nn.Embedding(4, 2)

    def load() -> None:
        with torch.set_grad_enabled(broken):
            table.weight.fill_(0.5)  # HERE

    return why_error(load)


@mistake("leaf_in_place")
def own_descent_records_its_update(broken: bool) -> Explanation:
    w = torch.ones(3, requires_grad=True)

    def step() -> None:
        (w**2).sum().backward()
        assert w.grad is not None
        with torch.set_grad_enabled(broken):
            w.sub_(w.grad, alpha=0.1)  # HERE

    return why_error(step)


@mistake("view_of_leaf_in_place")
def one_row_overwritten(broken: bool) -> Explanation:
    table = nn.Embedding(4, 2)

    def load() -> None:
        with torch.set_grad_enabled(broken):
            table.weight[0] = 0  # HERE

    return why_error(load)


@mistake("in_place")
def written_over_tanh(broken: bool) -> Explanation:
    layer = nn.Linear(3, 3)

    def step() -> None:
        hidden = torch.tanh(layer(X))
        if broken:
            hidden *= 2  # HERE
        else:
            hidden = hidden * 2
        hidden.sum().backward()

    return why_error(step)


@mistake("in_place")
def written_through_a_view(broken: bool) -> Explanation:
    layer = nn.Linear(3, 3)

    def step() -> None:
        hidden = layer(X).exp()
        first = hidden[0] if broken else hidden[0].clone()
        first.zero_()  # HERE
        hidden.sum().backward()

    return why_error(step)


@mistake("in_place")
def layer_in_place_behind_sigmoid(broken: bool) -> Explanation:
    model = nn.Sequential(nn.Linear(3, 3), nn.Sigmoid(), nn.ReLU6(inplace=broken))
    return why_error(lambda: model(X).sum().backward())  # HERE


@mistake("stepped_between")
def step_between_two_backwards(broken: bool) -> Explanation:
    model = net()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

    def step() -> None:
        out = model(X)
        out.sum().backward(retain_graph=True)
        if broken:
            optimizer.step()  # HERE
        out.square().sum().backward()
        if not broken:
            optimizer.step()

    return why_error(step)


@mistake("twice")
def same_loss_twice(broken: bool) -> Explanation:
    w = torch.ones(3, requires_grad=True)

    def step() -> None:
        loss = (w**2).sum()
        loss.backward()
        if broken:
            loss.backward()  # HERE

    return why_error(step)


@mistake("shared_graph")
def two_losses_one_trunk(broken: bool) -> Explanation:
    model = net()

    def step() -> None:
        out = model(X)
        first, second = out.sum(), out.square().sum()
        if broken:
            first.backward()
            second.backward()  # HERE
        else:
            (first + second).backward()

    return why_error(step)


@mistake("non_scalar")
def loss_of_each_sample(broken: bool) -> Explanation:
    model = net()

    def step() -> None:
        loss = F.cross_entropy(model(X), Y, reduction="none" if broken else "mean")
        loss.backward()  # HERE

    return why_error(step)


@mistake("integer_op")
def loss_from_a_comparison(broken: bool) -> Explanation:
    model = net()

    def step() -> None:
        out = model(X)
        loss = (out > 0).float().mean() if broken else out.sigmoid().mean()  # HERE
        loss.backward()

    return why_error(step)


@mistake("nothing_requires_grad")
def all_layers_frozen(broken: bool) -> Explanation:
    model = net().requires_grad_(not broken)
    return why_error(lambda: model(X).sum().backward())  # HERE


@mistake("no_create_graph")
def penalty_on_a_constant_gradient(broken: bool) -> Explanation:
    w = torch.ones(3, requires_grad=True)

    def step() -> None:
        slope = torch.autograd.grad((w**3).sum(), w, create_graph=not broken)[0]  # HERE
        slope.square().sum().backward()

    return why_error(step)


@mistake("unused_input")
def gradient_of_a_copy(broken: bool) -> Explanation:
    w = torch.ones(3, requires_grad=True)
    other = w.clone().detach().requires_grad_() if broken else w
    return why_error(lambda: torch.autograd.grad((w * 2).sum(), other))  # HERE


@mistake("graph_kept_alive")
def losses_kept_for_the_plot(broken: bool) -> Explanation:
    model, history = net(), []

    def epoch() -> None:
        for _ in range(5):
            loss = F.cross_entropy(model(X), Y)
            history.append(loss if broken else loss.item())
        raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB.")  # HERE

    return why_error(epoch)


# ---- a gradient that is there and wrong ----------------------------------------------------------


@mistake("part_constant")
def balance_terms_copied(broken: bool) -> Explanation:
    model = net()

    def loss() -> torch.Tensor:
        shares = model(X).softmax(-1)
        terms = [share.square().mean() for share in shares.unbind(1)]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # torch hints at it
            penalty = torch.tensor(terms).sum() if broken else torch.stack(terms).sum()  # HERE
        return F.nll_loss(shares.log(), Y) + penalty

    return why_gradient(model[0].weight, loss)


@mistake("target_carries_gradient")
def bootstrap_target_with_gradient(broken: bool) -> Explanation:
    value = nn.Linear(3, 1)

    def loss() -> torch.Tensor:
        with torch.set_grad_enabled(broken):
            target = 0.9 * value(X.flip(0))
        return F.smooth_l1_loss(value(X), target)  # HERE

    return why_gradient(value.weight, loss)


@mistake("scaled_by_loss")
def loss_given_to_its_own_backward(broken: bool) -> Explanation:
    model = net()

    def step() -> None:
        loss = F.cross_entropy(model(X), Y)
        loss.backward(loss if broken else None)  # HERE

    return why_gradient(model[0].weight, step)


@mistake("infinite_slope")
def length_of_a_zero_vector(broken: bool) -> Explanation:
    w = torch.tensor([[1.0, 1.0], [2.0, 0.0], [1.0, 1.0], [0.0, 1.0]], requires_grad=True)

    def loss() -> torch.Tensor:
        gaps = w[:2] - w[2:]
        inside = gaps.square().sum(1)
        return (inside if broken else inside + 1e-6).sqrt().sum()  # HERE

    return why_gradient(w, loss)


@mistake("infinite_slope")
def log_of_a_masked_zero(broken: bool) -> Explanation:
    w = torch.tensor([0.0, 1.0, 2.0], requires_grad=True)

    def loss() -> torch.Tensor:
        logs = (w if broken else w.clamp_min(1e-6)).log()  # HERE
        return torch.where(w.detach() > 0, logs, torch.zeros(3)).sum()

    return why_gradient(w, loss)


@mistake("fully_masked")
def attention_over_nothing(broken: bool) -> Explanation:
    query = nn.Linear(3, 3)
    visible = torch.tensor([[True, True], [not broken, False]])

    def loss() -> torch.Tensor:
        scores = query(X[:2]) @ X[:2].T
        hidden = torch.zeros(2, 2).masked_fill(~visible, -math.inf)
        weights = (scores + hidden).softmax(-1)  # HERE
        return torch.where(visible, weights, 0.0).square().sum()

    return why_gradient(query.weight, loss)


@mistake("fully_masked")
def multihead_attention_over_nothing(broken: bool) -> Explanation:
    torch.manual_seed(0)
    model = nn.MultiheadAttention(4, 2, batch_first=True)
    x = torch.linspace(-1, 1, 24).view(2, 3, 4)
    padding = torch.tensor([[False, False, True], [broken, True, True]])

    def loss() -> torch.Tensor:
        out = model(x, x, x, key_padding_mask=padding, need_weights=True)[0]  # HERE
        return out[0].square().sum() + 0 * out[1].nan_to_num().sum()

    return why_gradient(model.in_proj_weight, loss)


@mistake("overflow")
def softmax_by_hand(broken: bool) -> Explanation:
    w = torch.tensor([1.0, 200.0], requires_grad=True)

    def loss() -> torch.Tensor:
        if not broken:
            return w.softmax(0)[0] + w.logsumexp(0)
        powers = w.exp()  # HERE
        return powers[0] / powers.sum() + (powers / powers.sum())[1]

    return why_gradient(w, loss)


@mistake("clamped")
def outputs_outside_the_range(broken: bool) -> Explanation:
    layer = nn.Linear(3, 1)
    nn.init.constant_(layer.bias, 7.0)

    def loss() -> torch.Tensor:
        out = layer(X)
        out = F.hardtanh(out, 0.0, 1.0) if broken else out  # HERE
        return F.mse_loss(out, torch.zeros(8, 1))

    return why_gradient(layer.weight, loss)


@mistake("zero_slope")
def rounded_threshold(broken: bool) -> Explanation:
    threshold = torch.tensor(0.2, requires_grad=True)

    def loss() -> torch.Tensor:
        soft = torch.sigmoid((X - threshold) * 5)
        gate = torch.round(soft) if broken else soft  # HERE
        return (gate * X - X).square().mean()

    return why_gradient(threshold, loss)


@mistake("dead_relu")
def unit_that_never_fires(broken: bool) -> Explanation:
    layer = nn.Linear(3, 1)
    nn.init.constant_(layer.bias, -9.0 if broken else 9.0)

    def loss() -> torch.Tensor:
        out = layer(X).relu()  # HERE
        return F.mse_loss(out, torch.ones(8, 1))

    return why_gradient(layer.bias, loss)


@mistake("saturated")
def sigmoid_far_out(broken: bool) -> Explanation:
    w = torch.tensor([200.0 if broken else 2.0], requires_grad=True)
    return why_gradient(w, lambda: w.sigmoid().sum())  # HERE


@mistake("non_finite_input")
def one_reading_is_infinite(broken: bool) -> Explanation:
    model = net()
    x = X.clone()
    x[3, 1] = math.inf if broken else 0.0

    def loss() -> torch.Tensor:
        return F.cross_entropy(model(x), Y)  # HERE

    return why_gradient(model[0].weight, loss)


@mistake("non_finite_buffer")
def statistics_poisoned_earlier(broken: bool) -> Explanation:
    model = nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4), nn.Linear(4, 3))
    if broken:
        model(X * math.inf)
    model.eval()

    def loss() -> torch.Tensor:
        return F.cross_entropy(model(X), Y)  # HERE

    return why_gradient(model[0].weight, loss)


@mistake("clipped_infinity")
def one_infinite_gradient_clipped(broken: bool) -> Explanation:
    layer = nn.Linear(2, 1)
    x = torch.ones(4, 2)
    x[0, 0] = 3e38 if broken else 3.0

    def step() -> None:
        (10 * layer(x).mean()).backward()
        nn.utils.clip_grad_norm_(layer.parameters(), 1.0)  # HERE

    return why_gradient(layer.weight, step)


@mistake("clipped_while_scaled")
def clipped_before_unscaling(broken: bool) -> Explanation:
    model = net()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    scaler = torch.amp.GradScaler("cpu")

    def step() -> None:
        loss = F.cross_entropy(model(X), Y)
        scaler.scale(loss).backward()
        if not broken:
            scaler.unscale_(optimizer)
        nn.utils.clip_grad_norm_(model.parameters(), 0.5)  # HERE
        scaler.step(optimizer)
        scaler.update()

    return why_gradient(model[0].weight, step)


@mistake("exploding")
def recurrence_that_grows(broken: bool) -> Explanation:
    w = torch.eye(4) * (1.3 if broken else 1.0)
    w.requires_grad_()

    def loss() -> torch.Tensor:
        state = torch.ones(4)
        for _ in range(40):
            state = w @ state  # HERE
        return state.sum()

    return why_gradient(w, loss)


@mistake("vanishing")
def recurrence_that_fades(broken: bool) -> Explanation:
    w = torch.eye(4) * (0.5 if broken else 1.0)
    w.requires_grad_()

    def loss() -> torch.Tensor:
        state = torch.ones(4)
        for _ in range(40):
            state = w @ state  # HERE
        return state.sum()

    return why_gradient(w, loss)
