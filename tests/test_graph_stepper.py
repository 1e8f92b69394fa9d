"""Stepping backward: bit for bit what `backward()` gives, stop by stop, with both engines."""

import gc
import subprocess
import sys
import threading
import weakref
from collections.abc import Callable

import pytest
import torch

from benchmarks.models import MODELS, loss_of
from pytorch_lab import graph
from pytorch_lab.errors import UsageError
from pytorch_lab.graph.walking import used
from pytorch_lab.graph.walking.autograd import walk
from pytorch_lab.graph.walking.direct import Direct, needs_engine
from pytorch_lab.graph.walking.engines import Engine
from pytorch_lab.graph.walking.frozen import freeze
from pytorch_lab.graph.walking.stepper import Stepper
from tests.autograd_cases import CASES, Two, bits, build, leaf

ONLY_TORCH_CAN = {
    "function_with_unused_output",
    "function_with_both_outputs",
    "function_that_wants_none",
    "checkpointed",
    "checkpointed_reentrant",
}


def wanted(name: str) -> list[tuple[object, ...] | None]:
    loss, leaves = build(name)
    torch.manual_seed(1)
    loss.backward()
    return bits(leaves)


@pytest.mark.parametrize("hooks", [True, False], ids=["torch's engine", "nodes called"])
@pytest.mark.parametrize("name", CASES)
def test_gradients_are_equal_to_the_last_bit(name: str, hooks: bool) -> None:
    loss, leaves = build(name)
    torch.manual_seed(1)
    stepper = Stepper(loss, hooks=hooks)
    calls_nodes = not hooks and name not in ONLY_TORCH_CAN
    assert type(stepper._driver) is (Direct if calls_nodes else Engine)
    stops = []
    while not stepper.done:
        stops.append(stepper.node.index)
        stepper.step()
    assert stops == list(stepper.order)
    assert sorted(stops) == list(range(len(walk([loss]))))
    assert bits(leaves) == wanted(name)


@pytest.mark.parametrize("hooks", [True, False], ids=["torch's engine", "nodes called"])
@pytest.mark.parametrize("stop", [0, 1, 2, 5, 9])
@pytest.mark.parametrize("name", CASES)
def test_running_on_after_some_steps_gives_the_same_bits(name: str, stop: int, hooks: bool) -> None:
    """`run` lets torch's engine go on by itself, with sums that are half done."""
    loss, leaves = build(name)
    torch.manual_seed(1)
    stepper = Stepper(loss, hooks=hooks)
    for _ in range(stop):
        if not stepper.done:
            stepper.step()
    stepper.run()
    assert sorted(stepper.order) == list(range(len(walk([loss]))))
    assert bits(leaves) == wanted(name)


@pytest.mark.heavy
@pytest.mark.parametrize("steps", ["all", "half"])
@pytest.mark.parametrize("name", MODELS)
def test_a_model_stepped_to_its_end_has_the_gradients_of_backward(name: str, steps: str) -> None:
    torch.manual_seed(0)
    model, inputs = MODELS[name].build()
    torch.manual_seed(1)
    loss_of(model, inputs).backward()
    expected = [(name, p, p.grad) for name, p in model.named_parameters()]
    model.zero_grad(set_to_none=True)
    torch.manual_seed(1)
    rec = graph.record(loss_of, model, inputs, values="none", keep_graph=True)
    stepper = rec.stepper()
    assert type(stepper._driver) is Direct
    for _ in range(len(rec.nodes) // (1 if steps == "all" else 2)):
        stepper.step()
    assert stepper.done is (steps == "all")
    stepper.run()
    assert expected
    for path, parameter, gradient in expected:
        assert parameter.grad.numpy().tobytes() == gradient.numpy().tobytes(), path


@pytest.mark.parametrize("hooks", [True, False])
@pytest.mark.parametrize("name", CASES)
def test_looking_at_the_gradients_changes_nothing(name: str, hooks: bool) -> None:
    loss, leaves = build(name)
    torch.manual_seed(1)
    stepper = Stepper(loss, hooks=hooks)
    while not stepper.done:
        shapes = [None if one is None else tuple(one.shape) for one in stepper.gradients]
        for shape, own in zip(shapes, stepper.node.shapes, strict=True):
            assert shape in (None, own)
        assert stepper.node in stepper.ready
        stepper.step()
    assert bits(leaves) == wanted(name)


@pytest.mark.parametrize("hooks", [True, False])
def test_both_engines_take_the_nodes_in_the_order_of_torch(hooks: bool) -> None:
    for name in ("mlp", "gpt", "recurrent", "lstm"):
        loss, _ = build(name)
        planned: list[object] = []

        def plan(_: object, planned: list[object] = planned) -> None:
            planned.extend(torch._C._current_graph_task_execution_order())

        handle = loss.grad_fn.register_prehook(plan)
        with torch.autograd.set_multithreading_enabled(False):
            loss.backward(retain_graph=True)
        handle.remove()
        live = walk([loss])
        places = [live.place[node] for node in planned]
        stepper = Stepper(loss, live=live, hooks=hooks)
        stepper.run()
        leaves = {n.index for n in stepper.nodes if n.kind == "accumulate"}
        inner = [place for place in places if place not in leaves]
        assert [place for place in stepper.order if place not in leaves] == inner


@pytest.mark.parametrize("hooks", [True, False])
def test_run_to_the_end_and_up_to_a_node(hooks: bool) -> None:
    loss, leaves = build("mlp")
    stepper = Stepper(loss, hooks=hooks)
    assert stepper.run("ReluBackward0").name == "ReluBackward0"
    assert [one.grad is not None for one in leaves] == [False] * 4 + [True, True]
    place = stepper.nodes[-1].index
    assert stepper.run(place).index == place
    assert stepper.run("no such node") is None
    assert stepper.run() is None
    assert bits(leaves) == wanted("mlp")
    assert len(stepper.order) == len(stepper.nodes)


@pytest.mark.parametrize("hooks", [True, False])
def test_a_gradient_changed_in_place_or_replaced(hooks: bool) -> None:
    def gradient_of(change: Callable[[Stepper], None]) -> list[float]:
        x = torch.tensor([1.0, 2.0], requires_grad=True)
        stepper = Stepper((x * x).sum(), hooks=hooks)
        stepper.run("MulBackward0")
        change(stepper)
        stepper.run()
        return x.grad.tolist()

    def zero(stepper: Stepper) -> None:
        stepper.gradients[0] *= 0

    def one_element(stepper: Stepper) -> None:
        stepper.gradients[0][1] = 10

    def other(stepper: Stepper) -> None:
        stepper.gradients[0] = torch.tensor([5.0, 7.0])

    assert gradient_of(lambda stepper: None) == [2, 4]
    assert gradient_of(zero) == [0, 0]
    assert gradient_of(one_element) == [2, 40]
    assert gradient_of(other) == [10, 28]


@pytest.mark.parametrize("hooks", [True, False])
def test_a_change_reaches_only_the_node_it_is_for(hooks: bool) -> None:
    """Both sides of a sum get one and the same tensor: what is changed is a copy."""
    x, y = leaf(3), leaf(3)
    stepper = Stepper((x.exp() + y.sin()).sum(), hooks=hooks)
    stepper.run("ExpBackward0")
    stepper.gradients[0] *= 0
    stepper.run()
    assert x.grad.tolist() == [0, 0, 0]
    assert torch.equal(y.grad, y.detach().cos())
    assert x.grad.data_ptr() != y.grad.data_ptr()


def test_the_graph_stands_still_between_two_steps() -> None:
    x = torch.ones(2, requires_grad=True)
    seen: list[str] = []
    middle = x.exp()
    middle.register_hook(lambda gradient: seen.append("hook"))
    stepper = Stepper(middle.sin().sum())
    stepper.step()
    assert (seen, x.grad) == ([], None)
    stepper.step()  # in front of exp: its gradient is there, and so the hook has run
    assert (seen, x.grad) == (["hook"], None)
    stepper.run()
    assert x.grad is not None


def test_hooks_of_every_kind_run_as_in_backward() -> None:
    def run(go: Callable[[torch.Tensor], None]) -> tuple[list[object], list[object]]:
        x, log = torch.ones(2, requires_grad=True), []
        middle = x.exp()
        middle.retain_grad()

        def note(word: str, value: object = None, back: object = None):
            def hook(*arguments):
                log.append(word)
                return value(*arguments) if value else back

            return hook

        x.register_hook(note("leaf"))
        x.register_post_accumulate_grad_hook(note("accumulated"))
        middle.register_hook(note("tensor", lambda gradient: gradient * 3))
        middle.grad_fn.register_prehook(note("before", lambda gradients: (gradients[0] + 1,)))
        middle.grad_fn.register_hook(note("after", lambda gave, got: (gave[0] * 2,)))
        layer = torch.nn.Linear(2, 2)
        torch.nn.init.ones_(layer.weight)
        torch.nn.init.ones_(layer.bias)
        layer.register_full_backward_pre_hook(note("module before"))
        layer.register_full_backward_hook(note("module after"))
        loss = layer(middle[None]).sum()
        del middle  # its hooks live on in the graph
        go(loss)
        return log, bits([x, layer.weight])

    def steps(loss: torch.Tensor) -> None:
        stepper = Stepper(loss)
        while not stepper.done:
            stepper.step()

    log, gradients = run(torch.Tensor.backward)
    assert run(steps) == (log, gradients)
    assert run(lambda loss: Stepper(loss).run()) == (log, gradients)
    assert len(log) == 7


def test_a_retained_gradient_is_there() -> None:
    x = leaf(3)
    middle = x.exp()
    middle.retain_grad()
    Stepper(middle.square().sum()).run()
    assert torch.equal(middle.grad, 2 * middle.detach())


@pytest.mark.filterwarnings("ignore:Using backward")  # torch warns of what create_graph keeps alive
def test_second_derivatives() -> None:
    def second(first: Callable[[torch.Tensor], object]) -> object:
        torch.manual_seed(0)
        x = leaf(3)
        first(x.exp().square().sum())
        x.grad.sum().backward()
        return bits([x])

    def steps(loss: torch.Tensor) -> None:
        stepper = Stepper(loss, create_graph=True, hooks=False)
        while not stepper.done:
            assert stepper.gradients[0].shape == stepper.node.shapes[0]
            stepper.step()

    assert second(steps) == second(lambda loss: torch.autograd.backward(loss, create_graph=True))


def test_a_reentrant_checkpoint_is_one_step() -> None:
    loss, _ = build("checkpointed_reentrant")
    stepper = Stepper(loss)
    assert stepper.step().kind == "checkpoint"
    assert stepper.step().name == "MulBackward0"


@pytest.mark.parametrize("hooks", [True, False])
def test_the_graph_is_freed_as_by_backward_or_retained(hooks: bool) -> None:
    loss, leaves = build("mlp")
    Stepper(loss, retain_graph=True, hooks=hooks).run()
    loss.backward()
    twice = bits(leaves)
    loss, leaves = build("mlp")
    Stepper(loss, retain_graph=True, hooks=hooks).run()
    Stepper(loss, hooks=hooks).run()
    assert bits(leaves) == twice
    with pytest.raises(RuntimeError, match="backward through the graph a second time"):
        loss.backward()
    with pytest.raises(RuntimeError, match="backward through the graph a second time"):
        Stepper(loss, hooks=hooks).run()
    assert bits(leaves)[-1] == twice[-1] or leaves[-1].grad is not None


def test_torchs_engine_frees_node_by_node() -> None:
    x = leaf(3)
    exp = x.exp()
    node = exp.grad_fn
    stepper = Stepper(exp.sin().sum())
    stepper.run("ExpBackward0")
    assert node._raw_saved_result.data is not None
    stepper.step()
    assert node._raw_saved_result.data is None


@pytest.mark.parametrize("steps", [1, 2, 3, 4, 5])
def test_much_memory_is_let_go_of_wherever_one_ran_on(
    steps: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The nodes called from here and those that torch's engine ran behind them."""
    monkeypatch.setattr(used, "MUCH", -1)
    x = leaf(3)
    first = x.exp()
    second = first.sin()
    loss = (second * first).sum()
    nodes = walk([loss]).nodes
    stepper = Stepper(loss, hooks=False)
    for _ in range(steps):
        stepper.step()
    stepper.run()
    y = x.detach().requires_grad_()
    (y.exp().sin() * y.exp()).sum().backward()
    assert torch.allclose(x.grad, y.grad)
    kept = [node._raw_saved_self.data for node in nodes if hasattr(node, "_raw_saved_self")]
    kept += [node._raw_saved_result.data for node in nodes if hasattr(node, "_raw_saved_result")]
    assert kept == [None] * 3
    assert [len(one.register_prehook(print).hooks_dict_ref()) for one in nodes] == [1] * len(nodes)


@pytest.mark.parametrize("hooks", [True, False])
def test_nothing_of_torch_is_kept_at_the_end(hooks: bool) -> None:
    loss, leaves = build("gpt")
    node = weakref.ref(loss)
    stepper = Stepper(loss, hooks=hooks)
    stepper.run()
    refs = [weakref.ref(one) for one in leaves]
    del loss, leaves
    assert node() is None
    assert [ref() for ref in refs] == [None] * len(refs)
    assert stepper.done


@pytest.mark.parametrize("end", ["close", "forget", "with"])
def test_who_stops_in_the_middle_leaves_no_thread_and_no_hook(end: str) -> None:
    loss, leaves = build("mlp")
    ref, count = weakref.ref(loss), threading.active_count()
    stepper = Stepper(loss, retain_graph=True)
    thread = stepper._driver._worker
    stepper.step()
    assert threading.active_count() == count + 1
    if end == "close":
        stepper.close()
        assert stepper.done
    elif end == "with":
        with stepper:
            pass
    del stepper
    gc.collect()
    thread.join(timeout=60)
    assert not thread.is_alive()
    assert all(one.grad is None for one in leaves)
    for node in walk([loss]).nodes:
        probe = node.register_prehook(print)
        assert len(probe.hooks_dict_ref()) == 1  # itself
        probe.remove()
    del node
    loss.backward()
    assert bits(leaves) == wanted("mlp")
    del loss, thread
    gc.collect()
    assert ref() is None


def test_an_interpreter_that_ends_in_the_middle_ends_quietly() -> None:
    code = (
        "import torch; from pytorch_lab.graph.walking.stepper import Stepper\n"
        "x = torch.ones(2, requires_grad=True); s = Stepper(x.exp().sum()); s.step(); print('on')"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120)
    assert (done.returncode, done.stdout, done.stderr) == (0, "on\n", "")


@pytest.mark.parametrize("hooks", [True, False])
def test_an_error_in_a_node_reaches_the_learner(hooks: bool) -> None:
    x = leaf(3)
    y = x.exp()
    loss = y.sum()
    y.data.add_(1)
    y.add_(1)
    stepper = Stepper(loss, hooks=hooks)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        stepper.run()
    assert stepper.done
    with pytest.raises(UsageError, match="backward is done"):
        stepper.step()


def test_an_error_in_a_hook_reaches_the_learner() -> None:
    x = leaf(3)
    y = x.exp()

    def hook(gradient):
        raise ValueError("on purpose")

    y.register_hook(hook)
    stepper = Stepper(y.sum())
    with pytest.raises(ValueError, match="on purpose"):
        stepper.step()
    assert stepper.done


def test_another_backward_over_the_same_nodes_passes_by() -> None:
    x = leaf(3)
    y = x.exp()
    loss, other = y.sum(), y.sin().sum()
    stepper = Stepper(loss, retain_graph=True)
    stepper.step()
    other.backward(retain_graph=True)
    assert stepper.node.name == "ExpBackward0"
    stepper.run()
    z = x.detach().clone().requires_grad_()
    (z.exp().sum() + z.exp().sin().sum()).backward()
    assert torch.allclose(x.grad, z.grad)


@pytest.mark.parametrize("hooks", [True, False])
def test_what_a_node_cannot_be_given_is_refused(hooks: bool) -> None:
    x = leaf(4)
    first, _ = x.exp().split([3, 1])
    stepper = Stepper(first.sum(), hooks=hooks)
    stepper.step()
    for wrong, words in (
        (torch.ones(2), r"expected a gradient of shape \(3,\).*got \(2,\)"),
        (torch.ones(3, dtype=torch.float64), "float32.*float64"),
        (0, "expected a tensor as a gradient of SplitWithSizesBackward0, got int; to stop"),
    ):
        before = stepper.gradients[0]
        stepper.gradients[0] = wrong
        with pytest.raises(UsageError, match=words):
            stepper.step()
        stepper.gradients[0] = before
    stepper.gradients[1] = torch.ones(1)
    with pytest.raises(UsageError, match="expected None to stay"):
        stepper.step()
    stepper.gradients[1] = None
    stepper.gradients.append(None)
    with pytest.raises(UsageError, match=r"expected 2 gradients for SplitWithSizes.*, got 3"):
        stepper.step()
    stepper.gradients.pop()
    stepper.run()
    assert torch.equal(x.grad, x.detach().exp() * torch.tensor([1.0, 1, 1, 0]))


@pytest.mark.parametrize("hooks", [True, False])
def test_where_it_starts(hooks: bool) -> None:
    x = leaf(3)
    with pytest.raises(UsageError, match="expected a result with a graph behind it"):
        Stepper(torch.ones(2), hooks=hooks)
    with pytest.raises(UsageError, match=r"expected a result of one number, got shape \(3,\)"):
        Stepper(x.exp(), hooks=hooks)
    with pytest.raises(UsageError, match=r"shape of the result, \(3,\), got \(2,\)"):
        Stepper(x.exp(), torch.ones(2), hooks=hooks)
    _, second = x.exp().split([1, 2])
    stepper = Stepper(second, torch.tensor([5.0, 7.0]), hooks=hooks)
    assert stepper.gradients[0] is None
    assert stepper.gradients[1].tolist() == [5, 7]
    stepper.run()
    assert torch.allclose(x.grad, x.detach().exp() * torch.tensor([0.0, 5.0, 7.0]))
    alone = torch.ones((), requires_grad=True)
    stepper = Stepper(alone, hooks=hooks)
    assert stepper.node.kind == "accumulate"
    stepper.run()
    assert alone.grad == 1


def test_the_text_says_where_it_stands() -> None:
    stepper = Stepper(leaf(3).exp().sum())
    assert repr(stepper) == "<Stepper: 0 of 3 nodes ran, next is SumBackward0>"
    stepper.run()
    assert repr(stepper) == "<Stepper: 3 of 3 nodes ran, done>"


def test_why_a_graph_needs_torchs_engine() -> None:
    def why(root: torch.Tensor) -> str:
        live = walk([root])
        return needs_engine(live, freeze(live))

    x = leaf(3)
    assert why(x.exp()) == ""
    assert "TwoBackward is not one of torch's own nodes" in why(Two.apply(x, x)[0])
    assert "keeps what a hook made" in why(build("checkpointed")[0])
    assert "meta" in why(torch.ones(2, device="meta", requires_grad=True).exp())
    with torch.autograd.set_detect_anomaly(True, check_nan=False):
        assert why(x.exp()) == "anomaly mode is on"
    x.register_post_accumulate_grad_hook(lambda leaf: None)
    assert why(x.exp()) == "a leaf has a hook"


def test_the_stepper_says_what_is_one_step() -> None:
    loss, _ = build("checkpointed_reentrant")
    stepper = Stepper(loss)
    assert "reentrant checkpoint is one step" in stepper.notes[0]
    stepper.close()
    assert Stepper(leaf(3).exp().sum(), hooks=False).notes == ()


def test_what_keeps_much_is_freed_and_what_keeps_little_is_marked(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for much, freed in ((2**30, False), (0, True)):
        monkeypatch.setattr(used, "MUCH", much)
        loss, leaves = build("mlp")
        node = loss.grad_fn.next_functions[0][0]  # of log_softmax
        stepper = Stepper(loss, hooks=False)
        while not stepper.done:
            stepper.step()
        assert (node._raw_saved_result.data is None) is freed
        assert bits(leaves) == wanted("mlp")
        with pytest.raises(RuntimeError, match="backward through the graph a second time"):
            loss.backward()


DROPPED = """
import os, sys
import torch
from pytorch_lab import graph

imported = torch.ones(1, requires_grad=True).exp()
graph.of(imported).stepper()  # once, and not in each child
for _ in range(20):
    child = os.fork()
    if child == 0:  # ends as Python ends, not with _exit
        w = torch.ones(3, requires_grad=True)
        loss = (w.exp() * w).sum()
        graph.of(loss).stepper().step()
        sys.exit()
    status = os.waitpid(child, 0)[1]
    if status:
        sys.exit(f"a child ended with {status}")
"""


def test_a_stepper_that_was_dropped_halfway_lets_python_end_in_peace() -> None:
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", DROPPED],
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
