"""loop.run: the numbers against loops written by hand, the reader's objects left as they were."""

import copy
import json
import math

import pytest
import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.data import DataLoader, TensorDataset

from pytorch_lab import loop
from pytorch_lab.errors import LoaderError, UsageError

RIGHT = list(loop.RIGHT)


def net():
    torch.manual_seed(3)
    return nn.Sequential(nn.Linear(5, 7), nn.Tanh(), nn.Linear(7, 3))


def pairs(count=6):
    draw = torch.Generator().manual_seed(5)
    return [
        (torch.randn(4, 5, generator=draw), torch.randint(3, (4,), generator=draw))
        for _ in range(count)
    ]


def sgd(parameters, **options):
    return torch.optim.SGD(parameters, **({"lr": 0.2} | options))


def flat(model):
    return torch.cat([p.detach().flatten().clone() for p in model.parameters()])


def norm(model):
    """The gradients' norm, from its definition."""
    return math.sqrt(sum(float((p.grad.double() ** 2).sum()) for p in model.parameters()))


def by_hand(clear):
    """Losses, norms and motions of a loop as people write it."""
    model, found = net(), []
    optimizer = sgd(model.parameters(), momentum=0.9)
    for x, y in pairs():
        before = flat(model)
        if clear:
            optimizer.zero_grad()
        loss = F.cross_entropy(model(x), y)
        loss.backward()
        found.append([loss.item(), norm(model)])
        optimizer.step()
        found[-1].append(float((flat(model) - before).norm()))
    return [pytest.approx(column, rel=1e-5) for column in zip(*found, strict=True)]


@pytest.mark.parametrize("clear", [True, False])
def test_the_numbers_are_those_of_a_loop_written_by_hand(clear):
    order = RIGHT if clear else RIGHT[1:]
    model = net()
    run = loop.run(
        order,
        turns=6,
        model=model,
        batches=pairs(),
        optimizer=sgd(model.parameters(), momentum=0.9),
    )
    losses, norms, motions = by_hand(clear)
    assert list(run.losses) == losses
    assert list(run.grad_norms) == norms
    assert list(run.motions) == motions
    assert (run.turns, run.done, run.failure) == (6, 6, None)


def test_runs_are_the_same_for_the_same_seed_only():
    assert loop.run(turns=5) == loop.run(turns=5)
    assert loop.run(turns=5).losses != loop.run(turns=5, seed=1).losses


def test_the_right_order_learns():
    for seed in range(3):
        run = loop.run(seed=seed)
        assert sum(run.losses[-5:]) < 0.6 * sum(run.losses[:5])
        assert run.remarks == ()


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        (RIGHT, ["forward", "loss", "backward", "step", "zero_grad"], True),
        (RIGHT, ["forward", "loss", "zero_grad", "backward", "step"], True),
        (RIGHT, [*RIGHT, "clip"], True),
        (RIGHT, RIGHT[1:], False),
        (RIGHT, ["step", *RIGHT[:-1]], False),
    ],
)
def test_orders_that_do_the_same_have_the_same_outcome(one, other, same):
    assert (loop.run(one).outcome == loop.run(other).outcome) is same


# --------------------------------------------------------------------------- what a step may be


def test_a_step_can_be_a_line_or_a_function():
    def quarter(here):
        here.loss = here.loss / 4

    named = loop.run(["zero_grad", "forward", "loss", quarter, "backward", "step"], turns=4)
    lined = loop.run(
        ["zero_grad", "forward", "loss", "loss = loss / 4", "backward", "step"], turns=4
    )
    plain = loop.run(RIGHT, turns=4, optimizer=lambda p: torch.optim.SGD(p, lr=0.125))
    assert named.order[3] == "quarter"
    assert named.lines[3] == "quarter(here)"
    assert named.losses == lined.losses == pytest.approx(plain.losses, rel=1e-5)


def test_a_line_of_the_table_is_known_by_its_code():
    assert loop.run(loop.lines(RIGHT), turns=2) == loop.run(RIGHT, turns=2)


def test_no_grad_ends_with_the_turn():
    seen = []

    def look(_here):
        seen.append(torch.is_grad_enabled())

    loop.run([look, "no_grad", look], turns=2)
    assert seen == [True, False, True, False]


def test_what_is_not_at_hand_is_said():
    def reads(here):
        return here.lose

    run = loop.run([*RIGHT, reads], turns=3)
    assert str(run.failure).startswith("turn 1, reads: NameError: name 'lose' is not defined. ")


# ------------------------------------------------------------------------------ left as found


def state(model, optimizer, scheduler):
    return copy.deepcopy(
        [
            model.state_dict(), optimizer.state_dict(), scheduler.state_dict(),
            [(p.grad if p.grad is None else p.grad.clone()) for p in model.parameters()],
            [m.training for m in model.modules()], [len(m._forward_hooks) for m in model.modules()],
            [p._post_accumulate_grad_hooks for p in model.parameters()],
            [len(optimizer._optimizer_step_pre_hooks), len(optimizer._optimizer_step_post_hooks)],
            torch.get_rng_state(), torch.is_grad_enabled(), torch.is_inference_mode_enabled(),
        ]
    )  # fmt: skip


def alike(one, other):
    if isinstance(one, torch.Tensor):
        return isinstance(other, torch.Tensor) and torch.equal(one, other)
    if isinstance(one, dict):
        return one.keys() == other.keys() and all(alike(one[k], other[k]) for k in one)
    if isinstance(one, list | tuple):
        return len(one) == len(other) and all(map(alike, one, other))
    return one == other


@pytest.mark.parametrize("order", [RIGHT, RIGHT[1:], ["forward", "loss", "step", "backward"]])
def test_the_readers_own_objects_are_left_as_they_were(order):
    model = nn.Sequential(nn.Linear(5, 7), nn.BatchNorm1d(7), nn.Dropout(0.5), nn.Linear(7, 3))
    model[1].eval()
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.1)
    scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 2)
    data = TensorDataset(torch.randn(20, 5), torch.randint(3, (20,)))
    loader = DataLoader(data, batch_size=4, shuffle=True, generator=torch.Generator())
    model(data.tensors[0]).sum().backward()
    optimizer.step()
    before = state(model, optimizer, scheduler)
    drawn, inputs = loader.generator.get_state(), data.tensors[0].clone()

    loop.run(
        [*order, "scheduler", "eval", lambda here: here.x.zero_()],
        turns=12, model=model, batches=loader, optimizer=optimizer, scheduler=scheduler,
    )  # fmt: skip

    assert alike(before, state(model, optimizer, scheduler))
    assert torch.equal(drawn, loader.generator.get_state())
    assert torch.equal(inputs, data.tensors[0])


def test_the_readers_momentum_and_schedule_go_on_in_the_copy():
    model = net()
    optimizer = sgd(model.parameters(), momentum=0.9)
    scheduler = torch.optim.lr_scheduler.ExponentialLR(optimizer, 0.5)
    F.cross_entropy(model(pairs()[0][0]), pairs()[0][1]).backward()
    optimizer.step()
    scheduler.step()
    run = loop.run(
        [*RIGHT, "scheduler"], turns=3,
        model=model, batches=pairs(), optimizer=optimizer, scheduler=scheduler,
    )  # fmt: skip
    assert run.rates == pytest.approx((0.05, 0.025, 0.0125))
    model.zero_grad()
    before, (x, y) = flat(model), pairs()[0]
    F.cross_entropy(model(x), y).backward()
    optimizer.step()
    assert run.motions[0] == pytest.approx(float((flat(model) - before).norm()), rel=1e-5)


def test_a_loader_that_ends_is_begun_anew():
    seen = []
    loop.run(
        [lambda here: seen.append(here.x.item())], turns=5, model=nn.Linear(1, 1),
        batches=[(torch.tensor(1.0), 0), (torch.tensor(2.0), 0)], optimizer=sgd,
    )  # fmt: skip
    assert seen == [1, 2, 1, 2, 1]


# ------------------------------------------------------------------------------- growing graphs


def test_the_graph_that_hangs_on_total_is_counted_exactly():
    """A Linear and a mean: addmm, its transpose, mean and the sum make four operations a turn.

    Without backward each keeps its input: 8 * 3 * 4 bytes; the batches are different tensors.
    """
    model = nn.Linear(3, 1)
    batches = [(torch.randn(8, 3), None) for _ in range(5)]
    run = loop.run(
        ["forward", "loss", "total"],
        turns=5, model=model, batches=batches, loss_fn=lambda out, _y: out.mean(), optimizer=sgd,
    )  # fmt: skip
    assert run.nodes == (4, 8, 12, 16, 20)
    assert run.held_bytes == (96, 192, 288, 384, 480)
    trained = loop.run(
        [*RIGHT, "total"],
        turns=5, model=model, batches=batches, loss_fn=lambda out, _y: out.mean(), optimizer=sgd,
    )  # fmt: skip
    assert trained.nodes == (4, 8, 12, 16, 20)
    assert trained.held_bytes == (0, 0, 0, 0, 0)


def test_weights_are_there_anyway_and_do_not_count_as_held():
    """The second layer keeps its weights and 8 * 4 numbers, the first 8 * 3."""
    run = loop.run(
        ["forward", "loss", "total"],
        turns=2, model=nn.Sequential(nn.Linear(3, 4), nn.Linear(4, 1)), optimizer=sgd,
        batches=[(torch.randn(8, 3), None) for _ in range(2)], loss_fn=lambda out, _y: out.mean(),
    )  # fmt: skip
    assert run.held_bytes == (224, 448)


def test_numbers_add_up_without_a_graph():
    run = loop.run([*RIGHT, "total.item"], turns=3)
    assert run.nodes == (0, 0, 0)


def test_a_total_that_begins_anew_lets_its_graph_go():
    run = loop.run([*RIGHT, "total", "total = loss if turn == 3 else total"], turns=4)
    assert run.nodes == (8, 16, 7, 15)


# ---------------------------------------------------------------------------------- failures

FAILURES = {
    "backward twice": (
        ["zero_grad", "forward", "loss", "backward", "backward", "step"], 1, 5,
        "The first backward freed what the graph had saved.",
    ),
    "step before backward": (
        ["forward", "loss", "step", "zero_grad", "backward"], 2, 5,
        "the optimizer has stepped since",
    ),
    "step between": (
        ["zero_grad", "forward", "loss", "backward(retain_graph=True)", "step", "backward"], 1, 6,
        "the optimizer has stepped since",
    ),
    "written in place": (
        ["forward", "loss", lambda here: here.output.sigmoid_().mul_(2), "output.sum().backward()"],
        1, 4, "A tensor that the graph had saved was written to",
    ),
    "under no_grad": (["no_grad", *RIGHT], 1, 5, "The forward ran under no_grad"),
    "detached": (
        ["forward", "loss", "loss = loss.detach()", "backward"], 1, 4,
        "Nothing that the loss was computed from requires a gradient.",
    ),
    "a name of nobody": (["zero_grad", "print(net)"], 1, 2, "there are x, y, turn, torch, model"),
    "no loss": (["zero_grad", "backward"], 1, 2, "is made by the step 'loss'"),
    "loss before forward": (["loss", "forward"], 1, 1, "is made by the step 'forward'"),
    "many losses": (
        ["forward", "loss = torch.nn.functional.cross_entropy(output, y, reduction='none')",
         "backward"], 1, 3, "backward starts from one number",
    ),
    "of the reader": (["forward", "raise ValueError('no')"], 1, 2, "ValueError: no"),
}  # fmt: skip


@pytest.mark.parametrize("name", FAILURES)
def test_a_failure_names_the_turn_and_the_step_and_says_why(name):
    order, turn, place, says = FAILURES[name]
    run = loop.run(order, turns=4)
    assert (run.failure.turn, run.failure.place) == (turn, place)
    assert says in " ".join(str(run.failure).split())
    assert run.done == turn - 1
    assert f"Stopped in turn {turn}" in " ".join(str(run).split())


def test_what_was_measured_before_a_failure_is_kept():
    order = [*RIGHT, "if turn == 4: raise ValueError('enough')"]
    run = loop.run(order, turns=9)
    assert run.losses[:3] == loop.run(turns=3).losses
    assert len(run.motions) == run.done == 3


def test_an_interrupt_is_no_failure():
    with pytest.raises(KeyboardInterrupt):
        loop.run(["raise KeyboardInterrupt"])


# ------------------------------------------------------------------------------------ bad input

BAD = {
    "a word": (lambda: loop.run("step"), "expected a list of steps"),
    "nothing": (lambda: loop.run([]), "at least one step"),
    "a slip": (lambda: loop.run(["zerograd"]), "did you mean 'zero_grad'?"),
    "no name": (lambda: loop.run(["qqq"]), "known are forward, loss"),
    "no Python": (lambda: loop.run(["loss = ("]), "or a line of Python"),
    "no step": (lambda: loop.run([3]), "a line of Python or a function, got 3"),
    "no turns": (lambda: loop.run(turns=0), "from 1 to 100,000, got 0"),
    "half": (lambda: loop.run(turns=True), "`turns` as a whole number"),
    "no model": (lambda: loop.run(model=3, batches=[], optimizer=sgd), "as an nn.Module"),
    "no optimizer": (lambda: loop.run(model=net(), batches=pairs()), "`optimizer` beside"),
    "no batches": (lambda: loop.run(model=net(), optimizer=sgd), "`batches` beside"),
    "batches alone": (lambda: loop.run(batches=pairs()), "`model` beside `batches`"),
    "optimizer alone": (lambda: loop.run(optimizer=sgd(net().parameters())), "`model` beside"),
    "made nothing": (lambda: loop.run(optimizer=lambda _p: None), "makes one from parameters"),
    "empty": (lambda: loop.run(model=net(), batches=[], optimizer=sgd), "at least one batch"),
    "generator": (
        lambda: loop.run(model=net(), batches=iter(pairs()), optimizer=sgd), "gone through again",
    ),
    "singles": (
        lambda: loop.run(model=net(), batches=[torch.ones(3)], optimizer=sgd), "a pair (x, y)",
    ),
    "no parameters": (
        lambda: loop.run(model=nn.ReLU(), batches=pairs(), optimizer=sgd),
        "`optimizer` as a function that makes one, got ValueError: optimizer got an empty",
    ),
    "lazy": (
        lambda: loop.run(model=nn.LazyLinear(2), batches=pairs(), optimizer=sgd), "lazy module",
    ),
    "makes no schedule": (
        lambda: loop.run(scheduler=lambda opt: torch.optim.lr_scheduler.StepLR(opt)),
        "`scheduler` as a function that makes one, got TypeError",
    ),
    "scheduler": (lambda: loop.run(scheduler=3), "`scheduler` as a scheduler"),
    "another's": (
        lambda: loop.run(
            model=net(), batches=pairs(), optimizer=sgd,
            scheduler=torch.optim.lr_scheduler.StepLR(sgd(net().parameters()), 1),
        ),
        "of another optimizer",
    ),
    "no dict": (lambda: loop.compare([RIGHT]), "a dict from a name to an order"),
}  # fmt: skip


@pytest.mark.parametrize("name", BAD)
def test_bad_input_is_a_sentence(name):
    call, says = BAD[name]
    with pytest.raises(UsageError) as caught:
        call()
    assert says in str(caught.value)


def test_a_model_that_cannot_be_copied_is_a_sentence():
    model = net()
    model.kept = model(pairs()[0][0])
    with pytest.raises(UsageError, match=r"that copy.deepcopy can copy, got RuntimeError"):
        loop.run(model=model, batches=pairs(), optimizer=sgd)


# ------------------------------------------------------------------------------------ the record


def test_the_record_is_json_and_its_text_fits():
    orders = {"right": RIGHT, "网络": RIGHT[1:], "fails": ["no_grad", *RIGHT]}
    runs = loop.compare(orders)
    assert json.loads(json.dumps(runs.to_dict()))["fails"]["failure"]["turn"] == 1
    assert runs["right"] == loop.run()
    assert runs.names == ("right", "网络", "fails")
    assert len(runs) == 3
    for text in (str(runs), *(str(run) for _, run in runs.runs)):
        assert all(len(line) <= 80 for line in text.splitlines())


def test_the_text_of_a_wrong_order(golden):
    golden("loop_no_zero_grad", str(loop.run(RIGHT[1:], turns=12)))
    golden(
        "loop_compare",
        str(loop.compare({"right": RIGHT, "late": [*RIGHT[1:4], *RIGHT[:1], "step"]}, turns=12)),
    )


@pytest.mark.parametrize(
    "loss", ["None", "'abc'", "{'a': 1}", "(1, 2)", "10**400", "1j", "torch.eye(2).to_sparse()",
             "torch.zeros((), device='meta')"],
)  # fmt: skip
def test_a_loss_that_is_no_number_is_none_of_the_losses(loss):
    run = loop.run(["zero_grad", "forward", f"loss = {loss}", "step"], turns=3)
    assert (run.losses, run.done, run.failure) == ((), 3, None)
    assert "not finite" not in {remark.code for remark in run.remarks}


@pytest.mark.parametrize(
    "line",
    [
        "del total",
        "optimizer.param_groups.clear()",
        "optimizer.param_groups[0]['lr'] = None",
        "del optimizer.param_groups[0]['lr']",
        "model[0].weight.data = torch.zeros(2, 2)",
    ],
)
def test_a_line_that_breaks_what_is_at_hand_is_a_failure_or_nothing(line):
    assert loop.run([*RIGHT, line], turns=3).done >= 1


def test_sparse_gradients_have_a_norm():
    torch.manual_seed(0)
    words = torch.randint(0, 5, (4, 2))
    nets = [nn.Sequential(nn.EmbeddingBag(5, 3, sparse=sparse), nn.Linear(3, 3))
            for sparse in (True, False)]  # fmt: skip
    nets[1].load_state_dict(nets[0].state_dict())
    sparse, dense = (
        loop.run(model=one, batches=[(words, torch.tensor([0, 1, 2, 0]))], optimizer=sgd, turns=3)
        for one in nets
    )
    assert sparse.grad_norms == pytest.approx(dense.grad_norms)
    assert sparse.motions == pytest.approx(dense.motions)


def test_what_hooks_and_a_loss_of_the_readers_note_is_as_it_was():
    model, noted, calls = net(), [], {"loss": 0}
    model.register_forward_hook(lambda *_: noted.append(1))

    def counting(output, y):
        calls["loss"] += 1
        return F.cross_entropy(output, y)

    run = loop.run(model=model, batches=pairs(), loss_fn=counting, optimizer=sgd, turns=3)
    assert (run.done, noted, calls) == (3, [], {"loss": 0})


def test_it_runs_in_inference_mode_as_elsewhere():
    with torch.inference_mode():
        inside = loop.run(turns=3)
        assert torch.is_inference_mode_enabled()
    assert inside == loop.run(turns=3)


class Broken(torch.utils.data.Dataset):
    def __len__(self):
        return 3

    def __getitem__(self, index):
        raise OSError("the file is gone")


@pytest.mark.parametrize("workers", [0, 1])
def test_an_error_of_the_loader_is_told(workers):
    loader = DataLoader(Broken(), num_workers=workers)
    with pytest.raises(LoaderError, match=r"got OSError: .*the file is gone"):
        loop.run(model=net(), batches=loader, optimizer=sgd)


def test_parameters_without_numbers_are_refused():
    with pytest.raises(UsageError, match="on the meta device"):
        loop.run(model=net().to("meta"), batches=pairs(), optimizer=sgd)


@pytest.mark.parametrize("line", ["a = '\0'", "a = '\ud800'", "a = " + "-" * 100_000 + "1"])
def test_a_line_that_python_cannot_read_is_refused(line):
    with pytest.raises(UsageError, match="a line of Python"):
        loop.run([line])
