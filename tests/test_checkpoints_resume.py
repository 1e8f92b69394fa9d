"""How far resumed runs are: against runs resumed by hand, and exactly 0.0 with all pieces."""

import random

import numpy as np
import pytest
import torch
from torch import nn

import pytorch_lab as lab
from pytorch_lab.checkpoints import resume_gap
from pytorch_lab.errors import ModelError, UsageError


class Batches:
    """A sampler with a position: reshuffles with numbers of its own when the data is used up."""

    def __init__(self, count, size):
        self.count, self.size, self.order = count, size, []
        self.generator = torch.Generator().manual_seed(3)

    def __next__(self):
        if not self.order:
            self.order = torch.randperm(self.count, generator=self.generator).tolist()
        taken, self.order = self.order[: self.size], self.order[self.size :]
        return taken

    def state_dict(self):
        return {"order": list(self.order), "generator": self.generator.get_state()}

    def load_state_dict(self, state):
        self.order = list(state["order"])
        self.generator.set_state(state["generator"])


def make_run(scaler=False):
    torch.manual_seed(0)
    x = torch.randn(64, 4)
    y = x.sum(1, keepdim=True)
    # No bias before a BatchNorm: its gradient is rounding alone, which Adam makes steps of.
    first = nn.Linear(4, 16, bias=False)
    model = nn.Sequential(first, nn.BatchNorm1d(16), nn.Dropout(0.2), nn.Linear(16, 1))
    optimizer = torch.optim.Adam(model.parameters(), lr=0.05)
    scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 8, 0.3)
    batches = Batches(64, 16)

    def step():
        rows = next(batches)
        loss = nn.functional.mse_loss(model(x[rows] + 0.01 * random.random()), y[rows])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        scheduler.step()
        return loss

    pieces = {
        "model": model, "optimizer": optimizer, "scheduler": scheduler, "batches": batches,
    }  # fmt: skip
    return step, pieces


@pytest.fixture(scope="module")
def gap():
    return resume_gap(make_run, before=10, after=10)


def test_exactly_zero_with_everything(gap):
    assert gap.exact
    assert gap.ways[-1].losses == gap.uninterrupted
    assert gap.repeats == 0.0
    assert "Exactly 0.0 with every piece put back" in gap.verdict


def test_which_pieces_matter(gap):
    assert gap.matters == (
        "model", "optimizer", "scheduler", "batches", "python RNG", "torch RNG",
    )  # fmt: skip
    assert [way.name for way in gap.ways] == [
        "nothing", "+ model", "+ optimizer", "+ scheduler", "+ batches", "+ RNG",
    ]  # fmt: skip
    distance = {way.name: way.distance for way in gap.without}
    assert distance["all but numpy RNG"] == 0.0  # nothing draws from it
    assert all(value > 0.0 for name, value in distance.items() if "numpy" not in name)


def test_against_a_run_resumed_by_hand(gap):
    """The weights alone, put back without the package."""
    torch.manual_seed(0)
    random.seed(0)
    step, pieces = make_run()
    random.seed(0)  # as resume_gap leaves it before make_run, which draws none
    for _ in range(10):
        step()
    weights = {name: t.clone() for name, t in pieces["model"].state_dict().items()}
    for _ in range(10):
        step()
    end = pieces["model"].state_dict()
    random.seed(1)
    again, fresh = make_run()
    fresh["model"].load_state_dict(weights)
    losses = [float(again().detach()) for _ in range(10)]
    assert gap.ways[1].losses == tuple(losses)
    squares = sum(
        float((t.double() - end[name].double()).square().sum())
        for name, t in fresh["model"].state_dict().items()
        if t.is_floating_point()
    )
    assert gap.ways[1].distance == pytest.approx(squares**0.5)


def test_the_scheduler_is_missed_only_once_it_steps_on(gap):
    way = next(way for way in gap.without if way.name == "all but scheduler")
    assert way.first_off is not None
    assert way.first_off > 5  # the rate falls after 16 steps; its moment shows one loss later


def test_a_piece_that_nobody_named():
    def forgetful():
        step, pieces = make_run()
        return step, {name: piece for name, piece in pieces.items() if name != "batches"}

    gap = resume_gap(forgetful, before=5, after=3)
    assert not gap.exact
    assert "something is not among the pieces, such as the position in the data" in gap.verdict


def test_a_run_that_does_not_repeat():
    drawn = random.Random(0)

    def unsteady():
        model = nn.Linear(1, 1)
        nn.init.constant_(model.weight, drawn.random())
        return lambda: model.weight.sum(), {"model": model}

    gap = resume_gap(unsteady, before=1, after=1)
    assert gap.repeats > 0.0
    assert "is not repeatable" in gap.verdict


def test_a_scaler_and_generators_of_every_kind():
    def make():
        torch.manual_seed(0)
        model = nn.Linear(4, 1)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
        scaler = torch.amp.GradScaler("cpu", init_scale=2.0**10, growth_interval=3)
        own = {
            "torch": torch.Generator().manual_seed(1), "numpy": np.random.default_rng(1),
            "state": np.random.RandomState(1), "python": random.Random(1),
        }  # fmt: skip
        count = [0]

        def step():
            count[0] += 1
            noise = own["numpy"].random() + own["state"].rand() + own["python"].random()
            x = torch.randn(8, 4, generator=own["torch"]) + noise + count[0] + np.random.rand()  # noqa: NPY002
            loss = model(x).square().mean()
            optimizer.zero_grad()
            scaler.scale(loss).backward()
            scaler.step(optimizer)
            scaler.update()
            return float(loss) + scaler.get_scale()

        def load(state):
            count[0] = state

        counter = (lambda: count[0], load)
        return step, {"model": model, "scaler": scaler, **own, "counter": counter}

    gap = resume_gap(make, before=4, after=4)
    assert gap.exact
    assert set(gap.matters) == {
        "model", "torch", "numpy", "state", "python", "counter", "numpy RNG",
    }  # fmt: skip
    scaler = next(way for way in gap.without if way.name == "all but scaler")
    assert (scaler.distance, scaler.first_off) == (0.0, 0)  # powers of two cancel; the loss tells


def test_everything_is_left_as_it_was():
    before = torch.get_rng_state(), random.getstate(), np.random.get_state()[1].copy()  # noqa: NPY002
    resume_gap(make_run, before=2, after=2)
    assert torch.equal(before[0], torch.get_rng_state())
    assert before[1] == random.getstate()
    assert (before[2] == np.random.get_state()[1]).all()  # noqa: NPY002


def broken():
    raise KeyError("no such data")


BAD = {
    "no function": (3, {}, "expected a function that builds a run, got 'int'"),
    "no pair": (lambda: 3, {}, r"to return \(step, pieces\)"),
    "no pieces": (lambda: (print, {}), {}, r"to return \(step, pieces\)"),
    "odd piece": (lambda: (print, {"model": nn.Linear(1, 1), "x": 3}), {},
                  r"the piece 'x' to have state_dict\(\)"),
    "other name": (lambda: (print, {"net": nn.Linear(1, 1)}), {}, "expected the name of a piece"),
    "no weights": (lambda: (lambda: 0.0, {"model": torch.Generator()}), {},
                   "whose state_dict.. holds floating-point"),
    "steps": (make_run, {"after": 0}, "after=…. expected a number of steps from 1 on, got 0"),
    "taken name": (lambda: (print, {"model": nn.Linear(1, 1), "torch RNG": nn.Linear(1, 1)}), {},
                   "another name than 'torch RNG'"),
}  # fmt: skip


@pytest.mark.parametrize("name", BAD)
def test_what_is_no_run(name):
    make, settings, says = BAD[name]
    with pytest.raises(UsageError, match=says):
        resume_gap(make, **settings)


def test_an_error_of_the_run_is_kept():
    with pytest.raises(ModelError, match=r"make_run\(\) raised KeyError: 'no such data'") as caught:
        resume_gap(broken)
    assert isinstance(caught.value.__cause__, KeyError)
    model = nn.Linear(1, 1)
    with pytest.raises(ModelError, match="step 0 raised KeyError"):
        resume_gap(lambda: (broken, {"model": model}))


def test_text_and_picture(gap, golden):
    golden("resume_gap", str(gap))
    assert all(len(line) <= 80 for line in str(gap).splitlines())
    widget = lab.show(gap)
    assert str(widget) == str(gap)
    state = widget.state
    assert [row["exact"] for row in state["rows"]].count(True) == 2
    assert state["rows"][-1]["name"] == "all but torch RNG"
    assert max(row["share"] for row in state["rows"]) == 1.0
    assert widget.to_html() == lab.show(gap).to_html()
    with pytest.raises(UsageError, match="expected the ResumeGap alone"):
        lab.show(gap, 1)


def one_layer(made, **more):
    return lambda: (lambda: 1.0, {"model": made(), **{n: f() for n, f in more.items()}})


def test_pieces_that_change_their_names_are_refused():
    names = iter("abcdef")
    with pytest.raises(UsageError, match="the same names each time"):
        resume_gap(
            lambda: (lambda: 1.0, {"model": nn.Linear(1, 1), next(names): nn.Linear(1, 1)}),
            before=1,
            after=1,
        )


def test_a_piece_that_does_not_take_its_state_back_is_told():
    widths = iter(range(1, 9))
    with pytest.raises(ModelError, match=r"(?s)putting back 'model' raised .*mismatch"):
        resume_gap(one_layer(lambda: nn.Linear(next(widths), 1)), before=1, after=1)
    with pytest.raises(ModelError, match="putting back 'mine' raised ZeroDivisionError"):
        resume_gap(
            one_layer(lambda: nn.Linear(1, 1), mine=lambda: (lambda: 1, lambda state: state / 0)),
            before=1,
            after=1,
        )


@pytest.mark.parametrize("made", [lambda: nn.Linear(1, 1, device="meta"), lambda: nn.LazyLinear(1)])
def test_weights_without_numbers_are_refused(made):
    with pytest.raises(UsageError, match="holds floating-point tensors"):
        resume_gap(one_layer(made), before=1, after=1)
