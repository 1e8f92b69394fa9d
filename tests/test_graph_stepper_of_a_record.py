"""Which way a record goes back: its nodes are called only where nobody can have put a hook."""

from collections.abc import Callable

import pytest
import torch

from pytorch_lab import graph
from pytorch_lab.errors import UsageError
from pytorch_lab.graph.walking.direct import Direct
from tests.autograd_cases import leaf


def kept(fn: Callable[..., object], *args: object) -> graph.GraphRecord:
    return graph.record(fn, *args, values="none", keep_graph=True)


def way_of(rec: graph.GraphRecord) -> type:
    stepper = rec.stepper()
    found = type(stepper._driver)
    stepper.close()
    return found


def test_a_record_calls_the_nodes_itself_where_nobody_can_have_put_a_hook() -> None:
    x = leaf(3)
    first, second = kept(lambda: x.exp().sum()), kept(lambda: x.sin().sum())
    graph.record(lambda: x.exp().sum(), backward=True)  # our own hooks don't count
    assert way_of(first) is way_of(second) is way_of(first) is Direct
    step = first.stepper()
    step.run()
    assert step.done
    with pytest.raises(UsageError, match="gone"):
        first.stepper()
    assert way_of(second) is Direct


def hook_in_the_recording(x: torch.Tensor) -> graph.GraphRecord:
    def fn() -> torch.Tensor:
        y = x.exp()
        y.register_hook(lambda gradient: gradient * 2)
        return y.sum()

    return kept(fn)


def hook_on_a_node_in_the_recording(x: torch.Tensor) -> graph.GraphRecord:
    def fn() -> torch.Tensor:
        y = x.exp()
        y.grad_fn.register_prehook(lambda gradients: (gradients[0] * 2,))
        return y.sum()

    return kept(fn)


def hook_after_the_recording(x: torch.Tensor) -> graph.GraphRecord:
    rec = kept(lambda: x.exp().sum())
    node = rec._results[0].grad_fn.next_functions[0][0]
    node.register_prehook(lambda gradients: (gradients[0] * 2,))
    return rec


def hook_on_what_was_there_before(x: torch.Tensor) -> graph.GraphRecord:
    before = x.exp()
    before.register_hook(lambda gradient: gradient * 2)
    return kept(lambda: before.sum())


def hook_on_the_node_of_a_leaf(x: torch.Tensor) -> graph.GraphRecord:
    node = x.view_as(x).grad_fn.next_functions[0][0]
    node.register_prehook(lambda gradients: (gradients[0] * 2,))
    return kept(lambda: x.exp().sum() + 0 * (node is None))


def hook_on_a_leaf(x: torch.Tensor) -> graph.GraphRecord:
    x.register_hook(lambda gradient: gradient * 2)
    return kept(lambda: x.exp().sum())


@pytest.mark.parametrize(
    "make",
    [
        hook_in_the_recording,
        hook_on_a_node_in_the_recording,
        hook_after_the_recording,
        hook_on_what_was_there_before,
        hook_on_the_node_of_a_leaf,
        hook_on_a_leaf,
    ],
)
def test_a_hook_put_anywhere_at_any_time_runs(make: Callable[..., graph.GraphRecord]) -> None:
    x = leaf(3)
    stepper = make(x).stepper()
    while not stepper.done:
        stepper.step()
    assert torch.equal(x.grad, 2 * x.detach().exp())


@pytest.mark.parametrize("when", ["in it", "after it"])
def test_a_gradient_retained_in_or_after_a_recording_is_there(when: str) -> None:
    x, stash = leaf(3), []

    def fn() -> torch.Tensor:
        stash.append(x.exp())
        if when == "in it":
            stash[0].retain_grad()
        return stash[0].square().sum()

    rec = kept(fn)
    if when == "after it":
        assert way_of(rec) is Direct
        stash[0].retain_grad()
    stepper = rec.stepper()
    while not stepper.done:
        stepper.step()
    assert torch.equal(stash[0].grad, 2 * stash[0].detach())


def test_a_result_written_to_after_the_recording_is_refused() -> None:
    """The places of its nodes would not be those of the record."""
    rec = kept(lambda: leaf(3).exp().sum())
    rec._results[0].mul_(3)
    with pytest.raises(UsageError, match="written to since, and MulBackward0 is behind it now"):
        rec.stepper()
