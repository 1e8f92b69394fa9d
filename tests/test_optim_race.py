"""trace_optimizer: real steps on real surfaces; what cannot run is said; sliders run anew."""

import copy
import itertools
import json
import math
import pickle
import random
import re

import numpy
import pytest
import torch
from torch.optim import LBFGS, SGD, Adam, AdamW, Muon, RMSprop, SparseAdam

import pytorch_lab as lab
from pytorch_lab import optim
from pytorch_lab.errors import LabError, UsageError
from pytorch_lab.optim.surfaces import SURFACES

RACERS = {
    "SGD": lambda p: SGD(p, lr=0.04),
    "momentum": lambda p: SGD(p, lr=0.04, momentum=0.9),
    "Nesterov": lambda p: SGD(p, lr=0.04, momentum=0.9, nesterov=True),
    "RMSprop": lambda p: RMSprop(p, lr=0.1),
    "Adam": lambda p: Adam(p, lr=0.3),
    "AdamW": lambda p: AdamW(p, lr=0.3),
}


class Mine(torch.optim.Optimizer):
    """A learner's own gradient descent."""

    def __init__(self, params, lr):
        super().__init__(params, {"lr": lr})

    @torch.no_grad()
    def step(self):
        for group in self.param_groups:
            for p in group["params"]:
                p.add_(p.grad, alpha=-group["lr"])


class Forgetful(Mine):
    """The same without no_grad."""

    def step(self):
        for group in self.param_groups:
            for p in group["params"]:
                p -= group["lr"] * p.grad


class Lazy(Mine):
    """Computes the step and forgets to take it."""

    def step(self):
        for group in self.param_groups:
            for p in group["params"]:
                _ = p - group["lr"] * p.grad


def by_autograd(make, surface, steps, start):
    """The reference: torch's own loop, with the height differentiated by autograd."""
    point = torch.nn.Parameter(torch.tensor(start, dtype=torch.float64))
    optimizer, points = make([point]), [start]
    for _ in range(steps):
        optimizer.zero_grad()
        surface.height(point[0], point[1]).backward()
        optimizer.step()
        points.append(tuple(point.tolist()))
    return points


@pytest.mark.parametrize("name", RACERS)
@pytest.mark.parametrize("where", ["ravine", "saddle", "rosenbrock"])
def test_the_way_is_that_of_a_plain_loop(name, where):
    surface = optim.surface(where, conditioning=3)
    start = (0.4, 0.3)
    path = optim.trace_optimizer({name: RACERS[name]}, surface, start, 20)
    expected = by_autograd(RACERS[name], surface, 20, start)
    for mine, theirs in zip(path.racers[0].points, expected, strict=True):
        assert mine == pytest.approx(theirs, rel=1e-9, abs=1e-12)


@pytest.mark.parametrize("where", SURFACES)
def test_the_gradients_are_those_of_autograd(where):
    surface = optim.surface(where, conditioning=7)
    for x, y in [(-1.2, 1.0), (0.3, -0.4), (2.0, 0.0)]:
        point = torch.tensor([x, y], dtype=torch.float64, requires_grad=True)
        surface.height(point[0], point[1]).backward()
        assert surface.gradient(x, y) == pytest.approx(point.grad.tolist(), rel=1e-12)
    for goal in surface.goals:
        assert surface.height(*goal) == pytest.approx(surface.lowest)
        assert surface.gradient(*goal) == pytest.approx((0.0, 0.0))


def test_momentum_by_hand():
    path = optim.trace_optimizer({"m": lambda p: SGD(p, 0.1, 0.5)}, "ravine", (1.0, 0.0), 3)
    x, v, expected = 1.0, 0.0, [1.0]
    for _ in range(3):
        v = 0.5 * v + x
        x -= 0.1 * v
        expected.append(x)
    assert [x for x, _ in path.racers[0].points] == pytest.approx(expected)


def test_ones_own_optimizer_walks_as_torchs():
    both = {"mine": lambda p: Mine(p, 0.04), "SGD": RACERS["SGD"]}
    mine, theirs = optim.trace_optimizer(both, "ravine").racers
    assert mine.points == theirs.points


def test_muon_gets_a_matrix_and_this_is_said():
    path = optim.trace_optimizer(
        {"Muon": lambda p: Muon(p, lr=0.1, weight_decay=0.0)}, "ravine", steps=30
    )
    (racer,) = path.racers
    assert len(racer.points) == 31
    assert [one.code for one in path.remarks] == ["matrix"]
    lengths = [math.dist(a, b) for a, b in itertools.pairwise(racer.points)]
    assert max(lengths) / min(lengths) < 2  # a step of nearly fixed length
    assert racer.heights[-1] < racer.heights[0]


def test_lbfgs_gets_its_closure():
    path = optim.trace_optimizer({"LBFGS": lambda p: LBFGS(p, lr=0.5)}, "ravine", steps=5)
    assert path.racers[0].arrived is not None


def test_the_noise_is_the_same_for_all_and_for_every_run_of_a_seed():
    two = {"a": RACERS["SGD"], "b": RACERS["SGD"]}
    first = optim.trace_optimizer(two, "bowl", seed=3)
    assert first.racers[0].points == first.racers[1].points
    assert first == optim.trace_optimizer(two, "bowl", seed=3)
    assert first != optim.trace_optimizer(two, "bowl", seed=4)
    quiet = optim.trace_optimizer(two, optim.surface("ravine", conditioning=4))
    moved = zip(quiet.racers[0].points[1], first.racers[0].points[1], strict=True)
    assert all(mine != theirs for mine, theirs in moved)  # noise in both numbers


def test_a_function_of_ones_own_is_a_surface():
    path = optim.trace_optimizer([Adam], lambda p: (p**4).sum(), (1.0, -1.0), 10)
    expected = by_autograd(Adam, optim.surface(lambda p: (p**4).sum()), 10, (1.0, -1.0))
    for mine, theirs in zip(path.racers[0].points, expected, strict=True):
        assert mine == pytest.approx(theirs)
    assert (path.racers[0].name, path.surface, path.lowest) == ("Adam", "own surface", None)


SAID = {
    "too fast": (
        {"SGD": lambda p: SGD(p, lr=0.2)}, "diverged",
        "On this surface SGD bears an lr below 2 / 20 = 0.1.",
    ),
    "recorded": ({"mine": lambda p: Forgetful(p, 0.1)}, "recorded", "Write `@torch.no_grad()`"),
    "idle": ({"mine": lambda p: Lazy(p, 0.1)}, "stuck", "mine never moved"),
    "sparse": ({"s": SparseAdam}, "stopped", "s stopped after 0 steps: RuntimeError"),
    "not made": (
        {"bad": lambda p: SGD(p, lr=-1.0)}, "stopped", "bad was not made: ValueError: Inv",
    ),
}  # fmt: skip


@pytest.mark.parametrize(("racers", "code", "words"), SAID.values(), ids=SAID)
def test_what_goes_wrong_is_said_and_the_others_go_on(racers, code, words):
    path = optim.trace_optimizer(racers | {"Adam": RACERS["Adam"]}, "ravine")
    assert [one.code for one in path.problems] == [code]
    assert words in path.problems[0].text
    assert path.winner == "Adam"
    assert all(len(line) <= 80 for line in str(path).splitlines())


def test_the_limit_of_the_rate_is_where_it_is_said_to_be():
    for conditioning in (5, 20, 80):
        limit = 2 / conditioning
        ends = [
            optim.trace_optimizer(
                {"SGD": lambda p, lr=lr: SGD(p, lr=lr)}, "ravine", steps=400,
                conditioning=conditioning,
            ).racers[0].heights[-1]
            for lr in (0.99 * limit, 1.01 * limit)
        ]  # fmt: skip
        assert ends[0] < 1 < ends[1]


def test_nothing_around_is_changed():
    torch.manual_seed(1)
    random.seed(1)
    numpy.random.seed(1)  # noqa: NPY002
    before = (torch.get_rng_state().tolist(), random.getstate(), str(numpy.random.get_state()))  # noqa: NPY002
    with torch.no_grad():
        optim.trace_optimizer(RACERS, "bowl", steps=5)
        assert not torch.is_grad_enabled()
    after = (torch.get_rng_state().tolist(), random.getstate(), str(numpy.random.get_state()))  # noqa: NPY002
    assert before == after


def test_the_record_is_plain_can_be_copied_and_compared():
    path = optim.trace_optimizer(RACERS, "saddle", steps=5)
    again = pickle.loads(pickle.dumps(path))
    assert again == path == copy.deepcopy(path)
    assert again.again is None
    assert json.loads(json.dumps(path.to_dict()))["racers"][0]["name"] == "SGD"
    assert "again" not in path.to_dict()


REFUSED = {
    "no racers": (({}, "ravine"), {}, "expected a dict of 1 to 12 names"),
    "an optimizer": (({"a": SGD([torch.zeros(1)])}, "ravine"), {}, "callables that make an optim"),
    "no optimizer made": (({"a": lambda p: p}, "ravine"), {}, "expected `a` to make a torch.optim"),
    "an unknown surface": ((RACERS, "hill"), {}, "one of ravine, bowl, saddle, rosenbrock, got"),
    "a number": ((RACERS, 3), {}, "a name or a function of a tensor of shape (2,), got 3"),
    "flat": ((RACERS, "ravine"), {"conditioning": 0}, "expected `conditioning` above 0, got 0"),
    "three numbers": ((RACERS, "ravine", (1, 2, 3)), {}, "expected `start` as two numbers"),
    "no number": ((RACERS, "ravine", (math.nan, 2)), {}, "as finite numbers"),
    "no steps": ((RACERS, "ravine", (1, 2), 0), {}, "expected `steps` as a whole number"),
}


@pytest.mark.parametrize(("given", "options", "says"), REFUSED.values(), ids=REFUSED)
def test_what_is_no_race_is_refused(given, options, says):
    with pytest.raises(UsageError, match=re.escape(says)):
        optim.trace_optimizer(*given, **options)


# ------------------------------------------------------------------------------- the picture


def test_the_sliders_race_anew_with_the_real_optimizers():
    race = lab.show(optim.trace_optimizer(RACERS, "ravine", steps=20))
    assert [one["name"] for one in race.state["sliders"]] == ["conditioning", "rate", "momentum"]
    race.on_tune(conditioning=5.0, rate=0.5, momentum=0.5)
    expected = optim.trace_optimizer(
        {
            "SGD": lambda p: SGD(p, lr=0.02),
            "momentum": lambda p: SGD(p, lr=0.02, momentum=0.5),
            "Nesterov": lambda p: SGD(p, lr=0.02, momentum=0.5, nesterov=True),
            "RMSprop": lambda p: RMSprop(p, lr=0.05),
            "Adam": lambda p: Adam(p, lr=0.15, betas=(0.5, 0.999)),
            "AdamW": lambda p: AdamW(p, lr=0.15, betas=(0.5, 0.999)),
        },
        "ravine", steps=20, conditioning=5.0,
    )  # fmt: skip
    assert race.path == expected
    race.on_tune()
    assert race.path == optim.trace_optimizer(RACERS, "ravine", steps=20)


def test_only_sliders_that_do_something_are_there():
    names = lambda *given: [  # noqa: E731
        one["name"] for one in lab.show(optim.trace_optimizer(*given)).state["sliders"]
    ]
    assert names({"SGD": RACERS["SGD"]}, "ravine") == ["conditioning", "rate"]
    assert names({"Adam": RACERS["Adam"]}, lambda p: (p**2).sum()) == ["rate", "momentum"]
    copied = copy.deepcopy(optim.trace_optimizer(RACERS, "ravine"))
    assert lab.show(copied).state["sliders"] == []


def test_a_target_is_reached_or_not():
    path = optim.trace_optimizer({"SGD": lambda p: SGD(p, lr=0.01)}, "ravine", steps=60)
    race = lab.show(path, target="SGD")
    assert race.state["goal"] == {"says": "Let SGD arrive within 60 steps.", "reached": False}
    race.on_tune(conditioning=3.0, rate=10.0)
    assert race.state["goal"]["reached"]
    with pytest.raises(UsageError, match="expected one of SGD, got 'Adam'"):
        lab.show(path, target="Adam")


def test_all_that_is_drawn_lies_inside_the_picture():
    race = lab.show(optim.trace_optimizer(RACERS, "rosenbrock", conditioning=50.0))
    width, height = race.state["size"]
    assert any(racer["stopped"] for racer in race.state["racers"])
    for racer in race.state["racers"]:
        assert len(racer["places"]) == len(racer["lines"]) == len(racer["heights"])
        for x, y in racer["places"]:
            assert 0 <= x <= width
            assert 0 <= y <= height
        for line in filter(None, racer["lines"]):
            assert all(-0.2 <= v <= width + 0.2 for v in line[::2])
            assert all(-0.2 <= v <= height + 0.2 for v in line[1::2])


def test_level_lines_are_level():
    """Every point of a line has one height, and the heights halve from line to line."""
    from pytorch_lab.widgets.race_picture import Frame

    surface = optim.surface("ravine", conditioning=4)
    race = lab.show(optim.trace_optimizer({"SGD": RACERS["SGD"]}, surface))
    frame = Frame(surface.box)
    means = []
    for path in race.state["levels"]:
        pixels = re.findall(r"[ML]([\d.]+) ([\d.]+)", path)
        points = [
            (float(a) / frame.scale + frame.left, frame.top - float(b) / frame.scale)
            for a, b in pixels
        ]
        heights = [surface.height(x, y) for x, y in points]
        assert max(heights) == pytest.approx(min(heights), rel=0.2, abs=0.01)
        means.append(sum(heights) / len(heights))
    assert all(b == pytest.approx(a / 2, rel=0.1) for a, b in itertools.pairwise(means))


def test_a_strange_question_of_the_front_end_becomes_a_note():
    race = lab.show(optim.trace_optimizer({"SGD": RACERS["SGD"]}, "ravine", steps=3))
    race._answer(race, {"ask": "tune", "with": {"rate": "fast"}}, [])
    assert "expected `rate` as a number, got 'fast'" in race.state["trouble"]
    race._answer(race, {"ask": "tune", "with": {"conditioning": -3}}, [])
    assert "expected `conditioning` above 0" in race.state["trouble"]
    race._answer(race, {"ask": "tune", "with": {"rate": 2}}, [])
    assert race.state["trouble"] is None


def test_the_page_without_a_kernel_is_stable():
    make = lambda: lab.show(optim.trace_optimizer(RACERS, "saddle", steps=9))  # noqa: E731
    page = make().to_html()
    assert page == make().to_html()
    assert "<img alt=" in page
    assert "<script" not in page


@pytest.mark.parametrize(
    ("own", "says"),
    [
        (lambda p: p, "got (2,)"),
        (lambda p: None, "got None"),
        (lambda p: 1.0, "got 1.0"),
        (lambda p: p.sum() * 1j, "one real number"),
        (lambda p: 1 / 0, "ZeroDivisionError: division by zero"),
        (lambda: 1, "the surface raised TypeError"),
    ],
)
def test_a_surface_of_ones_own_that_is_none_is_refused_in_words(own, says):
    with pytest.raises(LabError, match=re.escape(says)):
        optim.trace_optimizer(RACERS, own, steps=2)


@pytest.mark.parametrize(
    "box", [(1, 1, 1, 1), (2, 1, 0, 1), (1, 2), "a", 3, (math.nan,) * 4, (0, math.inf, 0, 1)]
)
def test_a_box_without_an_inside_is_refused(box):
    with pytest.raises(UsageError, match="expected `box` as four numbers"):
        optim.surface("saddle", box=box)
