"""watch_schedule: what a loop really did, and nothing left behind."""

import re

import pytest
import torch
from torch import nn
from torch.optim import lr_scheduler as S

from pytorch_lab import optim
from pytorch_lab.errors import UsageError
from tests import schedules

BATCHES, EPOCHS = 20, 10


def loop(scheduler, *, per_epoch=False, first=False, never=False, epochs=EPOCHS):
    """A training without a model: only the calls matter."""
    for _ in range(epochs):
        for _ in range(BATCHES):
            if first:
                scheduler.step()
            scheduler.optimizer.step()
            if not (per_epoch or first or never):
                scheduler.step()
        if per_epoch:
            scheduler.step()


def watched(scheduler, **how):
    with optim.watch_schedule(scheduler) as seen:
        loop(scheduler, **how)
    return seen.curve


def one_cycle(calls=EPOCHS * BATCHES):
    return S.OneCycleLR(schedules.sgd(0.1), 0.1, calls)


@pytest.mark.parametrize("name", schedules.SCHEDULERS)
def test_what_is_seen_is_what_was_used(name):
    make = schedules.SCHEDULERS[name]
    torch.manual_seed(0)
    schedules.CALLS = 0
    expected = schedules.plain_loop(make(schedules.sgd(0.1, 0.02)), 12)
    torch.manual_seed(0)
    schedules.CALLS = 0
    scheduler = make(schedules.sgd(0.1, 0.02))
    with optim.watch_schedule(scheduler) as seen:
        used = schedules.plain_loop(scheduler, 12)
    assert [list(row) for row in zip(*seen.curve.rates, strict=True)] == used == expected


def test_nothing_is_left_behind_also_when_the_loop_raises():
    scheduler = one_cycle(3)
    optimizer = scheduler.optimizer
    before = ({*vars(scheduler)}, len(optimizer._optimizer_step_pre_hooks), optimizer.step)
    with pytest.raises(ValueError, match="Tried to step 4 times"), optim.watch_schedule(scheduler):
        loop(scheduler)
    after = ({*vars(scheduler)}, len(optimizer._optimizer_step_pre_hooks), optimizer.step)
    assert before == after


SAID = {
    "once per epoch": (
        one_cycle, {"per_epoch": True}, ["per_epoch"],
        "planned for 200 calls of step() (total_steps=200) and got 10 in 200 optimizer steps, one "
        "in 20: call it after every batch.",
    ),
    "the scheduler first": (
        lambda: S.MultiStepLR(schedules.sgd(0.1), [1, 2]), {"first": True, "epochs": 1}, ["order"],
        "scheduler.step() came before the first optimizer.step(), which used 0.01",
    ),
    "never": (
        lambda: S.StepLR(schedules.sgd(0.1), 3), {"never": True}, ["never"],
        "200 optimizer steps and not one call of scheduler.step().",
    ),
    "as it should be": (one_cycle, {}, [], ""),
    "epochs on purpose": (lambda: S.StepLR(schedules.sgd(0.1), 3), {"per_epoch": True}, [], ""),
}  # fmt: skip


@pytest.mark.filterwarnings("ignore:Detected call of `lr_scheduler.step")
@pytest.mark.parametrize(("make", "how", "codes", "words"), SAID.values(), ids=SAID)
def test_the_order_and_the_number_of_calls_are_judged(make, how, codes, words):
    curve = watched(make(), **how)
    assert [one.code for one in curve.problems] == codes
    assert words in " ".join(one.text for one in curve.problems)
    assert all(len(line) <= 80 for line in str(curve).splitlines())


def test_a_scheduler_that_counts_epochs_is_noted():
    curve = watched(S.StepLR(schedules.sgd(0.1), 3), per_epoch=True)
    assert "called once in 20 optimizer steps, 10 times in all." in curve.remarks[0].text
    curve = watched(one_cycle())
    assert "called after each optimizer step, 200 times in all." in str(curve).replace("\n  ", " ")


def test_a_metric_in_the_wrong_direction_is_found_in_the_loop():
    scheduler = S.ReduceLROnPlateau(schedules.sgd(0.1), patience=1)
    with optim.watch_schedule(scheduler) as seen:
        for accuracy in (0.5, 0.6, 0.7, 0.8, 0.9):
            scheduler.optimizer.step()
            scheduler.step(metrics=accuracy)
    assert seen.curve.metric == (0.5, 0.6, 0.7, 0.8, 0.9)
    assert [one.code for one in seen.curve.problems] == ["direction"]


@pytest.mark.parametrize(("counts", "codes"), [("inside", ["sawtooth"]), ("global", [])])
def test_a_rate_set_by_hand_is_seen_through_the_optimizer(counts, codes):
    optimizer = torch.optim.SGD(nn.Linear(2, 1).parameters(), lr=0.0)
    with optim.watch_schedule(optimizer) as seen:
        for epoch in range(4):
            for i in range(10):
                place = i if counts == "inside" else 10 * epoch + i
                for group in optimizer.param_groups:
                    group["lr"] = 0.1 * min(1.0, (place + 1) / 30)
                optimizer.step()
    assert [one.code for one in seen.curve.problems] == codes
    assert str(seen.curve).startswith("SGD, as it ran: 40 steps")


def test_what_was_not_run_is_an_empty_curve():
    with optim.watch_schedule(one_cycle()) as seen:
        pass
    assert (seen.curve.steps, seen.curve.rates) == (0, ())
    assert str(seen.curve).endswith("as it ran: 0 steps")


@pytest.mark.parametrize("given", [3, "StepLR", S.StepLR, nn.Linear(1, 1)])
def test_what_is_no_scheduler_is_refused(given):
    with pytest.raises(UsageError, match=re.escape("expected a scheduler or an optimizer, got")):
        optim.watch_schedule(given)


def test_a_watch_is_opened_once_at_a_time():
    scheduler = S.StepLR(schedules.sgd(0.1), 1)
    watch = optim.watch_schedule(scheduler)
    with watch, pytest.raises(UsageError, match="open already"), watch:
        pass
    with watch:
        scheduler.optimizer.step()
        scheduler.step()
    assert "step" not in vars(scheduler)
    assert len(watch.curve.rates[0]) == 1


def test_rates_of_which_none_is_a_number_are_shown():
    optimizer = torch.optim.SGD([torch.zeros(1)], lr=float("nan"))
    with optim.watch_schedule(optimizer) as seen:
        for _ in range(4):
            optimizer.step()
    assert [remark.code for remark in seen.curve.problems] == ["not_finite"]
