"""What is said of a curve: each finder where it should speak, and silence where all is well."""

import math
import re

import pytest
import torch
from torch.optim import lr_scheduler as S

from pytorch_lab import optim
from tests import schedules

sgd = schedules.sgd


def sequence(optimizer):
    parts = [S.LinearLR(optimizer, 0.1, total_iters=5), S.CosineAnnealingLR(optimizer, 20)]
    return S.SequentialLR(optimizer, parts, [5])


def added_late():
    optimizer = sgd(0.1)
    scheduler = S.LambdaLR(optimizer, lambda e: 0.9**e)
    optimizer.add_param_group({"params": [torch.zeros(1)]})
    return scheduler


def stepped_first():
    scheduler = S.MultiStepLR(sgd(0.1), [1, 2])
    with pytest.warns(UserWarning, match="before `optimizer.step"):
        scheduler.step()
    return scheduler


def set_by_hand():
    scheduler = S.StepLR(sgd(0.1), 2)
    scheduler.optimizer.param_groups[0]["lr"] = 0.5
    return scheduler


# Name: (scheduler, steps, metric), then the problems' codes, then words that must be said.
SAID = {
    "cosine past T_max": (
        lambda: (S.CosineAnnealingLR(sgd(0.1), 10), 35),
        ["climbs"], "from step 10 on, to 0.1 at step 20: CosineAnnealingLR is a wave",
    ),
    "a cosine that counts batches": (
        lambda: (S.CosineAnnealingLR(sgd(0.1), 10), 200),
        ["per_batch", "climbs"], "gets 200, 20 times as many",
    ),
    "a sequence past T_max": (
        lambda: (sequence(sgd(0.1)), 40), ["climbs"], "from step 25 on, to 0.07939 at step 39",
    ),
    "one cycle per epoch": (
        lambda: (S.OneCycleLR(sgd(0.1), 0.1, epochs=10, steps_per_epoch=20), 10),
        ["per_epoch"], "planned for 200 calls of step() (total_steps=200) and gets 10",
    ),
    "one cycle too long": (
        lambda: (S.OneCycleLR(sgd(0.1), 0.1, 20), 30),
        ["longer"], "call number 21 raises ValueError. Plan for all of them: total_steps=30.",
    ),
    "epochs taken for batches": (
        lambda: (S.StepLR(sgd(0.1), 30), 9000),
        ["zero_tail"], "`step_size=30` works per call of step()",
    ),
    "an exponential per batch": (
        lambda: (S.ExponentialLR(sgd(0.1), 0.9), 1000),
        ["zero_tail"], "`gamma=0.9` works per call of step()",
    ),
    "a rate from lr_lambda": (
        lambda: (S.LambdaLR(sgd(0.01), lambda n: 0.01 * (1 + 0.001 * n) ** -0.75), 50),
        ["factors"], "`lr_lambda` returns 0.01, like the lr itself",
    ),
    "another rate from lr_lambda": (
        lambda: (S.LambdaLR(sgd(1e-3), lambda n: 0.05 * 0.99**n), 50),
        ["factors"], "`lr_lambda` returns at most 0.05. It must return a factor",
    ),
    "a line below zero": (
        lambda: (S.LambdaLR(sgd(0.01), lambda n: 1 - n / 5), 10),
        ["negative"], "negative from step 6 on (down to -0.008)",
    ),
    "no number": (
        lambda: (S.LambdaLR(sgd(0.01), lambda n: 1.0 if n < 3 else math.nan), 5),
        ["not_finite"], "The lr is nan from step 3 on",
    ),
    "infinite": (
        lambda: (S.LambdaLR(sgd(0.01), lambda n: 1.0 if n < 3 else math.inf), 5),
        ["not_finite"], "The lr is inf from step 3 on",
    ),
    "nothing at all": (
        lambda: (S.StepLR(sgd(0.0), 3), 9), ["zero"], "0 in every step: nothing is learned",
    ),
    "spent early": (
        lambda: (S.PolynomialLR(sgd(0.1), 10), 40),
        ["zero_tail"], "From step 10 on the lr is 0: nothing is learned in the last 30 steps.",
    ),
    "growing": (
        lambda: (S.ExponentialLR(sgd(0.1), 1.2), 20), ["grows"], "times the 0.1 that was set",
    ),
    "a saw": (
        lambda: (S.LambdaLR(sgd(0.1), lambda n: min(1.0, (n % 10 + 1) / 30)), 40),
        ["sawtooth"], "at step 10 and 2 more times, every 10 steps",
    ),
    "a group that came late": (
        lambda: (added_late(), 5), ["groups"], "has 2 groups, the scheduler knows 1",
    ),
    "the scheduler first": (
        lambda: (stepped_first(), 5), ["order"], "run 1 time and optimizer.step() never",
    ),
    "an accuracy": (
        lambda: (S.ReduceLROnPlateau(sgd(0.1), patience=1), 10, [0.1 * k for k in range(10)]),
        ["direction"], 'mode="min": each higher value counts as a bad step',
    ),
    "a loss in max mode": (
        lambda: (
            S.ReduceLROnPlateau(sgd(0.1), "max", patience=1), 9, [1 / k for k in range(1, 10)],
        ),
        ["direction"], "The metric falls, from 1 to 0.1111",
    ),
    "a metric that is nan": (
        lambda: (S.ReduceLROnPlateau(sgd(0.1), patience=3), 4, [0.9, math.nan, 0.5, 0.4]),
        ["metric_nan"], "The metric is nan in some steps",
    ),
    "an own error": (
        lambda: (S.LambdaLR(sgd(0.1), lambda n: 1 / (3 - n)), 9),
        ["stopped"], "Call 3 of step() raised ZeroDivisionError: division by zero",
    ),
}  # fmt: skip


def trace(made):
    scheduler, steps, *metric = made
    return optim.trace_schedule(scheduler, steps, metric=metric[0] if metric else None)


@pytest.mark.parametrize(("make", "codes", "words"), SAID.values(), ids=SAID)
def test_what_is_wrong_is_said(make, codes, words):
    curve = trace(make())
    assert [one.code for one in curve.problems] == codes
    said = " ".join(one.text for one in curve.problems)
    assert words in said, said
    assert re.sub(r"\s+", " ", words) in re.sub(r"\s+", " ", str(curve))


NOTED = {
    "constant": (lambda: (S.StepLR(sgd(0.1), 30), 10), "the first drop comes after 30 calls"),
    "a level": (lambda: (S.ConstantLR(sgd(0.1), 0.5, 4), 20), "From step 4 on the lr stays at 0"),
    "from zero": (
        lambda: (S.LambdaLR(sgd(0.1), lambda n: min(1.0, n / 10)), 20), "Step 0 has lr 0",
    ),
    "restarts": (
        lambda: (S.CosineAnnealingWarmRestarts(sgd(0.1), 5), 20),
        "as CosineAnnealingWarmRestarts is made to",
    ),
    "momentum": (
        lambda: (S.OneCycleLR(sgd(0.1), 0.1, 20), 20), "moves the momentum too, between 0.85 and",
    ),
    "betas": (
        lambda: (S.OneCycleLR(schedules.adam(0.1), 0.1, 20), 20), "moves the momentum too",
    ),
    "factors": (
        lambda: (S.LambdaLR(sgd(0.2), lambda n: 0.5**n), 4), "factors from 0.125 to 1 of lr=0.2.",
    ),
    "products": (
        lambda: (S.MultiplicativeLR(sgd(0.2), lambda _n: 0.9), 4), "multiplies the lr of the step",
    ),
    "by hand": (lambda: (set_by_hand(), 4), "lr is 0.5, but the scheduler had set 0.1"),
    "reduced": (
        lambda: (S.ReduceLROnPlateau(sgd(0.1), patience=1), 8, [0.9, 0.5] + [0.6] * 6),
        "The lr was reduced at step 4, 6.",
    ),
    "a valley": (
        lambda: (S.LambdaLR(sgd(0.1), lambda n: abs(n - 5) / 5), 11), "climbs again, to 0.1 at ste",
    ),
}  # fmt: skip


@pytest.mark.parametrize(("make", "words"), NOTED.values(), ids=NOTED)
def test_what_is_worth_knowing_is_noted_and_is_no_problem(make, words):
    curve = trace(make())
    assert curve.problems == ()
    assert words in " ".join(one.text for one in curve.remarks), curve.remarks


SILENT = {
    "step": lambda: (S.StepLR(sgd(0.1), 30), 100),
    "cosine to its end": lambda: (S.CosineAnnealingLR(sgd(0.1), 30), 30),
    "cosine, one more": lambda: (S.CosineAnnealingLR(sgd(0.1), 30), 31),
    "one cycle": lambda: (S.OneCycleLR(sgd(0.1), 0.1, 30), 30),
    "one cycle in three": lambda: (S.OneCycleLR(sgd(0.1), 0.1, 30, three_phase=True), 30),
    "cyclic": lambda: (S.CyclicLR(sgd(0.1), 0.01, 0.1, 5), 50),
    "sequence": lambda: (sequence(sgd(0.1)), 25),
    "chain": lambda: (schedules.chained(sgd(0.1)), 20),
    "warm-up alone": lambda: (S.LambdaLR(sgd(0.1), lambda n: min(1.0, (n + 1) / 1000)), 50),
    "warm-up from zero": lambda: (S.LambdaLR(sgd(0.1), lambda n: min(1.0, n / 10)), 50),
    "inverse root": lambda: (S.LambdaLR(sgd(1.0), lambda n: (n + 1) ** -0.5), 500),
    "plateau": lambda: (
        S.ReduceLROnPlateau(sgd(0.1), patience=2), 30, [max(0.3, 1 - k / 10) for k in range(30)],
    ),
    "plateau of an accuracy": lambda: (
        S.ReduceLROnPlateau(sgd(0.1), "max", patience=2), 20, [k / 20 for k in range(20)],
    ),
    "two groups": lambda: (S.ExponentialLR(sgd(0.1, 0.001), 0.95), 60),
}  # fmt: skip


@pytest.mark.parametrize("make", SILENT.values(), ids=SILENT)
def test_a_good_schedule_has_no_problem(make):
    curve = trace(make())
    assert curve.problems == ()
    assert not curve.stopped


def test_groups_that_move_alike_are_spoken_of_once():
    curve = optim.trace_schedule(S.PolynomialLR(sgd(0.1, 0.02, 0.5), 10), 40)
    assert [one.code for one in curve.problems] == ["zero_tail"]
    assert "the lr of group 0 (and 2 alike) is 0" in curve.problems[0].text


def test_groups_are_called_by_their_names():
    optimizer = sgd(0.1, 0.02)
    optimizer.param_groups[1]["name"] = "head"
    two = [lambda n: 1.0, lambda n: 1 - n / 4]
    curve = optim.trace_schedule(S.LambdaLR(optimizer, two), 8)
    assert curve.names == ("group 0", "head")
    assert "The lr of head is negative from step 5 on" in curve.problems[0].text
    assert curve.problems[0].span == (5, 7)


def test_the_record_is_plain():
    import json

    curve = optim.trace_schedule(S.OneCycleLR(sgd(0.1), 0.1, 6), 4)
    again = json.loads(json.dumps(curve.to_dict()))
    assert again["rates"] == [list(row) for row in curve.rates]
    assert again["momenta"] == [list(row) for row in curve.momenta]
    assert (again["planned"], again["began"], again["steps"]) == (6, 0, 4)
    assert len(again["following"]) == 1
