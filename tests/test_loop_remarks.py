"""What is said of an order: the right trouble, nothing else, and with the right numbers."""

import pytest
import torch
from torch import nn
from torch.nn import functional as F

from pytorch_lab import loop

RIGHT = list(loop.RIGHT)
ONCE_IN_FOUR = [
    "forward", "loss", "loss = loss / 4", "backward",
    "if turn % 4 == 0: optimizer.step()", "if turn % 4 == 0: optimizer.zero_grad()",
]  # fmt: skip

# order -> the codes that are said of it, and the failure's error
SAID = {
    "right": (RIGHT, set(), None),
    "cleared last": ([*RIGHT[1:], "zero_grad"], set(), None),
    "zeros are cleared as well": (["zero_grad(set_to_none=False)", *RIGHT[1:]], set(), None),
    "validated": (
        ["train", *RIGHT, "eval", "no_grad", "forward", "loss", "total.item"], set(), None,
    ),
    "no zero_grad": (RIGHT[1:], {"adds up", "rises"}, None),
    "zero_grad before step": (
        ["forward", "loss", "backward", "zero_grad", "step"], {"nothing moves"}, None,
    ),
    "zeros before step": (
        ["forward", "loss", "backward", "zero_grad(set_to_none=False)", "step"],
        {"nothing moves"}, None,
    ),
    "step before backward": (
        ["forward", "loss", "step", "zero_grad", "backward"], {"stale"}, "RuntimeError",
    ),
    "cleared before it is used": (
        ["zero_grad", "forward", "loss", "step", "backward"], {"nothing moves"}, None,
    ),
    "begun elsewhere": (["step", *RIGHT[:-1]], {"begun elsewhere"}, None),
    "stepped twice": ([*RIGHT, "step"], {"used twice"}, None),
    "backward twice": (
        ["zero_grad", "forward", "loss", "backward(retain_graph=True)", "backward", "step"],
        {"doubled"}, None,
    ),
    "graph kept for nothing": (
        ["zero_grad", "forward", "loss", "backward(retain_graph=True)", "step"],
        {"graph kept"}, None,
    ),
    "no step": (RIGHT[:-1], {"no step"}, None),
    "no backward": (["zero_grad", "forward", "loss", "step"], {"no backward"}, None),
    "clipped": (
        [*RIGHT[:-1], "torch.nn.utils.clip_grad_norm_(model.parameters(), 0.1)", "step"],
        {"clip"}, None,
    ),
    "clipped by hand": (
        [*RIGHT[:-1], "for p in model.parameters(): p.grad.clamp_(-0.01, 0.01)", "step"],
        {"clip"}, None,
    ),
    "clipped too late": ([*RIGHT, "clip"], {"clip late"}, None),
    "clipped too early": (
        ["zero_grad", "forward", "loss", "clip", "backward", "step"], {"clip idle"}, None,
    ),
    "clipped for nothing": ([*RIGHT[:-1], "clip", "step"], {"clip idle"}, None),
    "scheduled": ([*RIGHT, "scheduler"], {"rate"}, None),
    "scheduled too early": (["scheduler", *RIGHT], {"rate early", "rate"}, None),
    "accumulated": (ONCE_IN_FOUR, {"accumulated"}, None),
    "left in eval mode": ([*RIGHT, "eval"], {"trained in eval"}, None),
    "eval records": ([*RIGHT, "eval", "forward", "train"], {"recorded for nothing"}, None),
    "total grows": ([*RIGHT, "total"], {"graph grows"}, None),
    "not a number": ([*RIGHT[:3], "loss = loss * float('inf')", *RIGHT[3:]], {"not finite"}, None),
    "warns": (["import warnings; warnings.warn('oh')", *RIGHT], {"warning"}, None),
    "no graph": (["no_grad", *RIGHT], set(), "RuntimeError"),
}  # fmt: skip


@pytest.mark.parametrize("name", SAID)
def test_the_trouble_is_said_and_no_other(name):
    order, codes, error = SAID[name]
    run = loop.run(order)
    assert {remark.code for remark in run.remarks} == codes
    assert (run.failure and run.failure.type) == error


def said(code, *args, **kwargs):
    run = loop.run(*args, **kwargs)
    (remark,) = (one for one in run.remarks if one.code == code)
    return remark.text


def sgd(**options):
    return lambda parameters: torch.optim.SGD(parameters, **({"lr": 0.1} | options))


def test_zeros_move_parameters_by_momentum_and_decay():
    """By hand: the first gradient g, then zeros: v = 0.9 v + wd p, p -= lr v."""
    weight, rate, decay = 2.0, 0.1, 0.5
    order = ["if turn == 1: model(x).sum().backward()", "step", "zero_grad(set_to_none=False)"]
    model = nn.Linear(1, 1, bias=False)
    nn.init.constant_(model.weight, weight)
    batches = [(torch.tensor([[3.0]]), None)]
    optimizer = sgd(lr=rate, momentum=0.9, weight_decay=decay)
    run = loop.run(order, turns=4, model=model, batches=batches, optimizer=optimizer)
    velocity, motions = 0.0, []
    for gradient in (3.0, 0.0, 0.0, 0.0):
        velocity = 0.9 * velocity + gradient + decay * weight
        weight -= rate * velocity
        motions.append(rate * abs(velocity))
    assert run.motions == pytest.approx(motions)
    (remark,) = run.problems
    assert remark.code == "moved by zeros"
    assert f"in every turn from 2 on, by up to {max(motions[1:]):.3g}" in remark.text
    order[-1] = "zero_grad"
    run = loop.run(order, turns=4, model=model, batches=batches, optimizer=optimizer)
    assert run.motions[1:] == (0, 0, 0)


def test_how_much_gradients_add_up_to():
    run = loop.run(RIGHT[1:], turns=15)
    times = run.grad_norms[-1] / run.grad_norms[0]
    assert (
        f"In turn 15 the optimizer used the sum of 15 backward passes, of norm "
        f"{run.grad_norms[-1]:.3g}: {times:.3g}x that of turn 1." in run.problems[0].text
    )


def test_whose_gradients_are_used_too_late():
    """A single layer saves no weights, so that torch does not raise."""
    x, y = torch.randn(4, 3), torch.tensor([0, 1, 1, 0])
    model = nn.Linear(3, 2)
    order = ["forward", "loss", "step", "zero_grad", "backward"]
    run = loop.run(order, turns=6, model=model, batches=[(x, y)], optimizer=sgd())
    assert (
        "in every turn from 2 on it used gradients of an earlier batch (in turn 2 those of turn 1)"
        in run.problems[0].text
    )
    assert run.motions[0] == 0
    loss = F.cross_entropy(model(x), y)
    first = torch.cat([g.flatten() for g in torch.autograd.grad(loss, list(model.parameters()))])
    assert run.motions[1] == pytest.approx(0.1 * float(first.norm()), rel=1e-5)


def test_a_gradient_made_and_cleared_inside_one_step_is_not_old():
    def whole_turn(here):
        here.optimizer.zero_grad()
        loss = here.loss_fn(here.model(here.x), here.y)
        loss.backward()
        here.optimizer.step()
        here.loss = loss

    run = loop.run([whole_turn])
    assert run.remarks == ()
    assert (run.losses, run.grad_norms) == (loop.run().losses, loop.run().grad_norms)


def test_an_update_by_hand_is_one():
    """Plain gradient descent, without an optimizer's step."""

    def descend(here):
        with torch.no_grad():
            for parameter in here.model.parameters():
                parameter -= 0.5 * parameter.grad

    run = loop.run([*RIGHT[:-1], descend])
    assert run.remarks == ()
    assert run.losses == pytest.approx(loop.run().losses, rel=1e-5)


def test_two_backward_passes_inside_one_step_are_two():
    def both(here):
        here.loss.backward(retain_graph=True)
        here.loss.backward()

    run = loop.run(["zero_grad", "forward", "loss", both, "step"], turns=3)
    assert [remark.code for remark in run.remarks] == ["doubled"]


def test_what_accumulation_leaves_over():
    """Case of torchseq issue 8: ten batches, an update for every four."""
    text = said("left over", ONCE_IN_FOUR, turns=10)
    assert text.startswith("The gradients of the last 2 turns were never used")
    assert "Gradients of 4 turns are added" in said("accumulated", ONCE_IN_FOUR, turns=10)
    codes = {remark.code for remark in loop.run(ONCE_IN_FOUR, turns=4).remarks}
    assert codes == {"accumulated"}


def test_what_was_used_is_not_left_over():
    begins, ends = "if turn % 4 == 1: optimizer.zero_grad()", "if turn % 4 == 0: optimizer.step()"
    run = loop.run([begins, "forward", "loss", "backward", ends], turns=8)
    assert [remark.code for remark in run.remarks] == ["accumulated"]


def test_a_clip_whose_last_gradients_alone_are_unused_is_not_late():
    limit = "torch.nn.utils.clip_grad_norm_(model.parameters(), 0.1)"
    run = loop.run(["step", *RIGHT[:-1], limit], turns=8)
    assert {remark.code for remark in run.remarks} == {"begun elsewhere", "clip"}


def test_windows_that_grow_are_accumulation():
    ends = "if turn in (1, 3, 6): optimizer.step(); optimizer.zero_grad()"
    run = loop.run(["forward", "loss", "backward", ends], turns=6)
    assert [remark.code for remark in run.remarks] == ["accumulated"]


def test_the_first_rate_that_a_warm_up_never_used():
    make = lambda opt: torch.optim.lr_scheduler.LinearLR(opt, 0.1, 1.0, total_iters=9)  # noqa: E731
    text = said("rate early", ["scheduler", *RIGHT], turns=12, scheduler=make)
    assert "the first rate, 0.05, was never used, the first step ran with 0.1" in text


def moody():
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(5, 8), nn.BatchNorm1d(8), nn.Dropout(0.5), nn.Linear(8, 2))


def own(order):
    batches = [(torch.randn(6, 5), torch.randint(2, (6,))) for _ in range(4)]
    return loop.run(order, turns=4, model=moody(), batches=batches, optimizer=sgd())


def test_training_in_eval_mode_is_a_problem_where_modules_differ():
    """Case of joeynmt issue 184: nothing switches back after a validation."""
    run = own([*RIGHT, "if turn == 2: model.eval()"])
    (remark,) = run.problems
    assert remark.text.startswith(
        "The model was in eval mode while it was trained in every turn from 3 on: its BatchNorm1d "
        "and Dropout did not behave as in training."
    )


def test_a_module_frozen_on_purpose_is_no_trouble():
    assert own(["train", "model[1].eval()", *RIGHT]).remarks == ()


def test_looking_in_training_mode_is_a_problem_where_modules_differ():
    """Case of DeepHyperX issue 51: no_grad alone does not make an evaluation."""
    (remark,) = own([*RIGHT, "no_grad", "forward", "loss"]).problems
    assert remark.code == "looked in training"
    assert "BatchNorm1d and Dropout" in remark.text
    assert own([*RIGHT, "eval", "no_grad", "forward", "loss", "train"]).problems == ()


def test_how_clipping_shortened_the_gradient():
    limit = "torch.nn.utils.clip_grad_norm_(model.parameters(), 0.1)"
    free = loop.run(turns=1)
    run = loop.run([*RIGHT[:-1], limit, "step"], turns=1)
    assert run.grad_norms[0] == pytest.approx(0.1, rel=1e-4)
    assert f"at most from norm {free.grad_norms[0]:.3g} to 0.1 (turn 1)" in run.remarks[0].text


def test_a_nan_is_said_with_its_turn():
    order = ["zero_grad", "forward", "loss", "if turn == 3: loss = loss * float('nan')", *RIGHT[3:]]
    assert "The loss is nan from turn 4 on" in said("not finite", order, turns=6)


def test_one_bad_batch_does_not_spoil_parameters_that_are_not_stepped():
    order = [*RIGHT[:2], "if turn == 2: output = output * float('nan')", *RIGHT[2:4]]
    text = said("not finite", [*order, "if loss.isfinite(): optimizer.step()"], turns=4)
    assert "The loss is nan in turn 2, and the parameters are still numbers" in text
    assert "the batch of turn 2" in text


def test_torchs_warning_of_a_broadcast_is_passed_on():
    """MSELoss on (4,) and (4, 1) only warns."""
    run = loop.run(
        turns=2, model=nn.Linear(3, 1), batches=[(torch.randn(4, 3), torch.randn(4))],
        loss_fn=F.mse_loss, optimizer=sgd(),
    )  # fmt: skip
    (remark,) = run.remarks
    assert "target size (torch.Size([4])) that is different to the input size" in remark.text


def test_what_a_kept_graph_holds():
    """A Linear of 3 inputs keeps its batch of 8: 96 bytes."""
    run = loop.run(
        ["zero_grad", "forward", "loss", "backward(retain_graph=True)", "step"],
        turns=2, model=nn.Linear(3, 1), batches=[(torch.randn(8, 3), None)], optimizer=sgd(),
        loss_fn=lambda out, _y: out.mean(),
    )  # fmt: skip
    assert "it still holds 96 B" in run.remarks[0].text
