"""Torch's real errors, explained: from the exception alone, from a function, and from a record."""

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

from pytorch_lab.errors import ModelError, UsageError
from pytorch_lab.graph import Explanation, record, why_error, why_gradient, why_none
from pytorch_lab.graph.explaining.conflicts import conflicts
from pytorch_lab.graph.explaining.error_words import WORDS
from pytorch_lab.graph.explaining.why_in_place import Change, change_in
from tests.autograd_mistakes import carried


def leaf(*shape: int) -> torch.Tensor:
    return torch.ones(*shape or (3,), requires_grad=True)


def caught(program: Callable[[], object]) -> Exception:
    always = torch.is_warn_always_enabled()
    torch.set_warn_always(True)  # some of the errors are warnings that torch gives once
    try:
        program()
    except Exception as error:  # noqa: BLE001 - whatever it raises is the subject
        return error
    finally:
        torch.set_warn_always(always)
    raise AssertionError("the program was expected to raise")


def why_gradient_of_leaf(fn: Callable[[], object]) -> Explanation:
    return why_gradient(leaf(), fn)


# ---- the real errors -----------------------------------------------------------------------------


def view_of_many() -> None:
    first, _ = (leaf(2, 3) * 1).unbind()
    first.mul_(2)


def view_without_grad() -> None:
    base = leaf(2, 3) * 1
    with torch.no_grad():
        view = base[0]
    view.mul_(2)


def view_in_inference() -> None:
    base = torch.ones(2, 3)
    with torch.inference_mode():
        view = base[0]
    view.mul_(leaf())


class Passing(torch.autograd.Function):
    @staticmethod
    def forward(ctx: object, x: torch.Tensor) -> torch.Tensor:
        return x.view(-1)

    @staticmethod
    def backward(ctx: object, grad: torch.Tensor) -> torch.Tensor:
        return grad


class TooFew(torch.autograd.Function):
    @staticmethod
    def forward(ctx: object, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        return x + y

    @staticmethod
    def backward(ctx: object, grad: torch.Tensor) -> torch.Tensor:
        return grad


class WrongShape(torch.autograd.Function):
    @staticmethod
    def forward(ctx: object, x: torch.Tensor) -> torch.Tensor:
        return x.sum()

    @staticmethod
    def backward(ctx: object, grad: torch.Tensor) -> torch.Tensor:
        return torch.ones(5)


class SavesNumber(torch.autograd.Function):
    @staticmethod
    def forward(ctx: torch.autograd.function.FunctionCtx, x: torch.Tensor) -> torch.Tensor:
        ctx.save_for_backward(2.0)  # pyright: ignore[reportArgumentType]
        return x * 2

    @staticmethod
    def backward(ctx: object, grad: torch.Tensor) -> torch.Tensor:
        return grad


class Once(torch.autograd.Function):
    @staticmethod
    def forward(ctx: object, x: torch.Tensor) -> torch.Tensor:
        return x.exp()

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: object, grad: torch.Tensor) -> torch.Tensor:
        return grad * 2


def second_derivative_of_once() -> None:
    x = leaf()
    (slope,) = torch.autograd.grad(
        Once.apply(x).sum(), x, torch.ones((), requires_grad=True), create_graph=True
    )
    slope.sum().backward()


def second_derivative_of_fused_attention() -> None:
    q = leaf(1, 1, 4, 8)
    attended = nn.functional.scaled_dot_product_attention(q, q, q).sum()
    (slope,) = torch.autograd.grad(attended, q, create_graph=True)
    slope.sum().backward()


def view_of_function() -> None:
    Passing.apply(leaf() * 1).mul_(2)


def inference(use: Callable[[torch.Tensor], object]) -> Callable[[], object]:
    def program() -> object:
        with torch.inference_mode():
            made = torch.ones(3)
        return use(made)

    return program


def checkpoint_that_changes() -> None:
    turns = []

    def block(x: torch.Tensor) -> torch.Tensor:
        turns.append(1)
        return x.sin() if len(turns) > 1 else x.exp().exp().exp()

    torch.utils.checkpoint.checkpoint(block, leaf(), use_reentrant=False).sum().backward()


def nan_in_backward() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that anomaly mode is slow
        with torch.autograd.detect_anomaly():
            (torch.zeros(2, requires_grad=True).sqrt() * 0).sum().backward()


def deep_copy_of_a_result() -> None:
    import copy

    copy.deepcopy(leaf() * 2)


REAL: list[tuple[Callable[[], object], str]] = [
    (lambda: leaf().add_(1), "leaf_in_place"),
    (lambda: leaf()[0].fill_(1), "view_of_leaf_in_place"),
    (view_of_many, "view_of_many_in_place"),
    (view_of_function, "view_of_function_in_place"),
    (view_without_grad, "view_without_grad_in_place"),
    (view_in_inference, "view_without_grad_in_place"),
    (inference(lambda x: x * leaf()), "inference_saved"),
    (inference(lambda x: x.requires_grad_()), "inference_leaf"),
    (inference(lambda x: x.add_(1)), "inference_in_place"),
    (inference(lambda x: x._version), "inference_version"),
    (lambda: torch.autograd.grad(leaf().sum(), leaf()), "unused_input"),
    (lambda: torch.autograd.grad(leaf().sum(), torch.ones(3)), "not_requires_grad"),
    (lambda: leaf().sum().detach().backward(), "no_graph"),
    (lambda: (leaf() * 2).backward(), "non_scalar"),
    (lambda: (leaf() + 0j).sum().backward(), "complex_loss"),
    (lambda: (leaf() * 2).backward(torch.ones(2)), "gradient_shape"),
    (lambda: (leaf() + 0j).backward(torch.ones(3)), "gradient_dtype"),
    (lambda: setattr(leaf(), "grad", torch.ones(2)), "gradient_shape"),
    (lambda: setattr(leaf(), "grad", torch.ones(3).double()), "gradient_dtype"),
    (lambda: torch.ones(3, dtype=torch.int64, requires_grad=True), "integer_leaf"),
    (lambda: torch.arange(3).requires_grad_(), "integer_leaf"),
    (lambda: (leaf() * 2).requires_grad_(False), "non_leaf"),
    (lambda: torch.optim.SGD([leaf() * 2], lr=0.1), "non_leaf"),
    (lambda: (leaf() * 2).grad, "non_leaf"),
    (lambda: leaf().numpy(), "numpy_of_grad"),
    (deep_copy_of_a_result, "deepcopy_of_result"),
    (lambda: torch.tensor([leaf(1)]), "copied"),
    (lambda: torch.ones(3).retain_grad(), "not_requires_grad"),
    (lambda: torch.ones(3).register_hook(print), "not_requires_grad"),
    (lambda: TooFew.apply(leaf(), torch.ones(3)).sum().backward(), "function_gradients"),
    (lambda: WrongShape.apply(leaf()).backward(), "function_gradients"),
    (lambda: SavesNumber.apply(leaf()), "function_saves_number"),
    (lambda: Passing()(leaf()), "function_instantiated"),
    (second_derivative_of_once, "no_second_derivative"),
    (second_derivative_of_fused_attention, "no_second_derivative"),
    (nan_in_backward, "nan_in_backward"),
    (lambda: torch.ones(1, 3).expand(2, 3).add_(1), "overlapping_write"),
    (lambda: torch.func.vmap(lambda x: x.item())(torch.ones(2)), "item_in_transform"),
    (checkpoint_that_changes, "checkpoint_differs"),
    (lambda: leaf().sum().backward(inputs=[]), "no_inputs"),
    (lambda: torch.empty(1 << 45), "out_of_memory"),
    (lambda: torch.ones(3) @ torch.ones(4), "not_autograd"),
]


@pytest.mark.parametrize(("program", "cause"), REAL)
def test_a_real_error_is_known_by_its_exception_alone(
    program: Callable[[], object], cause: str
) -> None:
    answer = why_error(caught(program))
    assert answer.cause == cause, answer
    assert answer.where.startswith("test_graph_why_error.py:")
    assert answer.fix or cause == "not_autograd"
    assert all(len(line) <= 80 for line in str(answer).splitlines())


def test_every_pattern_is_met_by_a_real_error() -> None:
    """A pattern for words that torch does not say any more would explain nothing."""
    messages = [str(caught(program)) for program, _ in REAL]
    unmet = [w.cause for w in WORDS if not any(re.search(w.pattern, m) for m in messages)]
    assert not unmet


# ---- in place ------------------------------------------------------------------------------------


def written_over() -> None:
    hidden = torch.tanh(nn.Linear(3, 2)(torch.ones(1, 3)))
    hidden.add_(1)
    hidden.sum().backward()


def test_the_message_on_an_in_place_write_is_taken_apart() -> None:
    assert change_in(str(caught(written_over))) == Change((1, 2), "Tanh", 1, 0)


def test_the_exception_alone_names_the_node_and_both_versions() -> None:
    answer = why_error(caught(written_over))
    assert answer.cause == "in_place"
    assert "TanhBackward0 saved it as `result`, shape (1, 2)" in answer.evidence
    assert "it is at version 1, expected 0" in answer.evidence
    assert "why_error(lambda: step(batch))" in answer.fix


def test_the_exception_alone_names_the_layers_that_work_in_place() -> None:
    model = nn.Sequential(nn.Linear(3, 3), nn.Sigmoid(), nn.ReLU(), nn.Hardtanh(inplace=True))

    def step() -> None:
        model[3](model[1](model[0](torch.ones(1, 3)))).sum().backward()

    answer = why_error(caught(step))
    assert "`model.3` is a Hardtanh with inplace=True" in answer.evidence


def test_a_record_names_the_line_that_wrote() -> None:
    rec = record(written_over)
    line = written_over.__code__.co_firstlineno + 2
    for answer in (why_error(rec), why_error(caught(written_over), rec)):
        assert (answer.cause, answer.where) == ("in_place", f"test_graph_why_error.py:{line}")
        assert any("add_ wrote into it: version 1" in fact for fact in answer.evidence)


def test_an_input_saved_and_overwritten_is_named() -> None:
    def step() -> None:
        x, w = torch.ones(3), leaf()
        y = x * w
        x.zero_()
        y.sum().backward()

    answer = why_error(step)
    assert answer.cause == "in_place"
    assert any(fact.startswith("MulBackward0 saved") for fact in answer.evidence)


def test_a_harmless_write_is_no_conflict() -> None:
    def step(w: torch.Tensor) -> torch.Tensor:
        y = w * 3
        y += 1  # the product keeps its factor, not its result
        return (y * y).sum()  # keeps y as it is after the write

    assert not list(conflicts(record(step, leaf())))


def test_a_write_that_is_not_behind_the_loss_is_not_blamed() -> None:
    w = leaf()

    def step() -> None:
        a = w.exp()
        u = w.tanh()
        u.add_(1)
        a.add_(5)
        a.sum().backward()

    answer = why_error(step)
    assert answer.where == f"test_graph_why_error.py:{step.__code__.co_firstlineno + 4}"
    assert answer.evidence[0].startswith("ExpBackward0 saved")


# ---- a state from an earlier step ----------------------------------------------------------------


def test_a_state_kept_with_retain_graph_is_told_from_a_plain_write() -> None:
    answer = why_error(caught(carried(cut=False, retain=True, steps=2)))
    assert answer.cause == "hidden_state"
    assert "`model.state`" in answer.says
    assert "retain_graph=True does not help" in answer.says
    assert "detach()" in answer.fix


def test_a_state_kept_without_retain_graph_is_told_from_the_same_loss_twice() -> None:
    answer = why_error(caught(carried(cut=False, retain=False, steps=1)))
    assert answer.cause == "hidden_state"
    assert "`model.state`" in answer.says


def test_a_state_in_a_plain_variable_is_found_by_the_weights_two_versions() -> None:
    inner = nn.Linear(3, 3)
    optimizer = torch.optim.SGD(inner.parameters(), lr=0.1)

    def train() -> None:
        state = torch.zeros(3)
        for _ in range(3):
            state = torch.tanh(inner(state) + 1)
            state.sum().backward(retain_graph=True)
            optimizer.step()

    answer = why_error(caught(train))
    assert answer.cause == "hidden_state"
    assert any("of the same graph saved it after the change" in f for f in answer.evidence)


def test_the_line_that_reads_the_old_state_is_named_by_a_recording() -> None:
    answer = why_error(carried(cut=False, retain=False, steps=1))
    assert answer.cause == "hidden_state"
    assert any("self.inner(state)" in fact for fact in answer.evidence)


def state_fed_back(optimised: bool, retain: bool = False) -> Callable[[], None]:
    cell = nn.RNNCell(3, 3)
    optimizer = torch.optim.SGD(cell.parameters(), lr=0.1)

    def train() -> None:
        state = torch.zeros(1, 3)
        for _ in range(3):
            state = cell(torch.ones(1, 3), state)  # STATE
            optimizer.zero_grad()
            state.sum().backward(retain_graph=retain)
            if optimised:
                optimizer.step()

    return train


def state_of_tensors() -> None:
    w, state = leaf(), torch.zeros(3)
    for _ in range(2):
        state = torch.tanh(state * w + 1)  # STATE
        state.sum().backward()


def total_of_losses() -> None:
    w, total = leaf(), torch.zeros(())
    for _ in range(2):
        loss = w.exp().sum()
        total = total + loss  # STATE
        total.backward()


def total_in_place() -> None:
    w, total = leaf(), 0
    for _ in range(2):
        loss = w.exp().sum()
        total += loss  # STATE
        total.backward()


@pytest.mark.parametrize(
    ("program", "cure"),
    [
        (state_fed_back(optimised=False), "hidden.detach()"),
        (state_fed_back(optimised=True), "hidden.detach()"),
        (state_fed_back(optimised=True, retain=True), "hidden.detach()"),
        (state_of_tensors, "hidden.detach()"),
        (total_of_losses, "loss.item()"),
        (total_in_place, "loss.item()"),
    ],
)
def test_a_loop_that_feeds_its_result_back_is_not_two_losses(
    program: Callable[[], None], cure: str
) -> None:
    answer = why_error(program)
    assert answer.cause == "hidden_state", answer
    assert cure in answer.fix
    assert "retain_graph=True in the first" not in answer.fix
    lines, first = inspect.getsourcelines(program)
    line = first + next(i for i, text in enumerate(lines) if "# STATE" in text)
    assert answer.where == f"test_graph_why_error.py:{line}"


def test_an_exception_alone_cannot_tell_a_loop_and_says_both_cures() -> None:
    """The backward that fails has freed the newer turn as well, before it came to the older."""
    answer = why_error(caught(state_of_tensors))
    assert answer.cause == "twice"
    assert "state.detach(), loss.item()" in answer.fix
    assert "why_error(lambda: step(batch))" in answer.fix


def test_two_passes_of_one_critic_over_one_picture_are_no_loop() -> None:
    maker, critic = nn.Linear(3, 3), nn.Sequential(nn.Linear(3, 3), nn.Sigmoid())

    def step() -> None:
        fake = maker(torch.ones(1, 3)).square()
        for _ in range(2):
            critic(fake).sum().backward()

    assert why_error(step).cause == "shared_graph"


def test_the_same_loss_again_after_another_is_the_same_loss() -> None:
    w = leaf()

    def step() -> None:
        loss = (w * w).sum()
        loss.backward()
        (w * w * w).sum().backward()
        loss.backward()

    answer = why_error(step)
    assert answer.cause == "twice"
    line = step.__code__.co_firstlineno
    assert f"backward() ran (test_graph_why_error.py:{line + 2})" in answer.evidence


def test_the_same_loss_twice_is_not_blamed_on_a_state() -> None:
    def step() -> None:
        loss = (leaf() ** 2).sum()
        loss.backward()
        loss.backward()

    answer = why_error(caught(step))
    assert answer.cause == "twice"
    assert "2 of" not in answer.evidence[0]
    assert answer.evidence[0] == "1 of 1 saved tensors of this graph are freed"


def test_two_losses_with_a_common_part_are_seen_in_the_frames() -> None:
    def step() -> None:
        hidden = leaf().exp()
        loss_a, loss_b = hidden.sum(), hidden.square().sum()
        loss_a.backward()
        loss_b.backward()

    answer = why_error(caught(step))
    assert answer.cause == "shared_graph"
    assert any("`loss_a`" in fact for fact in answer.evidence)


# ---- no graph ------------------------------------------------------------------------------------


def test_frozen_layers_in_sight_are_the_reason() -> None:
    model = nn.Linear(2, 1).requires_grad_(False)

    def step() -> None:
        model(torch.ones(1, 2)).sum().backward()

    assert why_error(caught(step)).cause == "nothing_requires_grad"


def test_gradients_switched_off_are_found_by_a_recording() -> None:
    w = leaf()

    def step() -> None:
        with torch.no_grad():
            loss = (w * 2).sum()
        loss.backward()

    assert why_error(caught(step)).cause == "no_graph"
    assert why_error(step).cause == "no_grad"


# ---- the three ways to ask -----------------------------------------------------------------------


def test_an_error_inside_another_is_found() -> None:
    def step() -> None:
        try:
            leaf().add_(1)
        except RuntimeError as error:
            raise ModelError("the model could not run") from error

    assert why_error(caught(step)).cause == "leaf_in_place"


def test_errors_in_a_ring_come_to_an_end() -> None:
    one, other = RuntimeError("one"), RuntimeError("other")
    one.__context__, other.__context__ = other, one
    assert why_error(one).cause == "not_autograd"


@pytest.mark.parametrize(
    "words",
    [
        "the cache was modified by an inplace operation of the loader",
        "redis: out of memory",
        "OOM command not allowed: out of memory",
    ],
)
def test_an_error_of_somebody_else_is_not_explained_as_autograds(words: str) -> None:
    assert why_error(RuntimeError(words)).cause == "not_autograd"


@pytest.mark.parametrize(
    "words",
    [
        "CUDA out of memory. Tried to allocate 2.00 GiB.",
        "CUDA error: out of memory",
        "HIP out of memory. Tried to allocate 2.00 GiB.",
        "MPS backend out of memory (MPS allocated: 9.00 GB)",
        "XPU out of memory. Tried to allocate 2.00 GiB.",
        "[enforce fail at alloc_cpu.cpp:117] err == 0. DefaultCPUAllocator: can't allocate memory",
        "DefaultCPUAllocator: not enough memory: you tried to allocate 9 bytes.",
    ],
)
def test_memory_that_ran_out_in_torch_is_known(words: str) -> None:
    assert why_error(RuntimeError(words)).cause == "out_of_memory"


def test_what_ends_well_has_no_error() -> None:
    assert why_error(lambda: leaf().sum().backward()).cause == "no_error"
    assert why_error(record(lambda: leaf().sum())).cause == "no_error"


def test_a_record_without_its_exception_still_knows_the_error() -> None:
    rec = record(lambda: (leaf() * 2).backward())
    answer = why_error(rec)
    assert answer.cause == "non_scalar"
    assert answer.where.startswith("test_graph_why_error.py:")


@pytest.mark.parametrize("ask", [why_error, lambda fn: why_none(leaf(), fn), why_gradient_of_leaf])
def test_nothing_is_kept_alive_without_the_collectors_help(
    ask: Callable[[Callable[[], object]], Explanation],
) -> None:
    gone: list[weakref.ref[torch.Tensor]] = []

    def step() -> None:
        hidden = torch.tanh(leaf())
        gone.append(weakref.ref(hidden))
        hidden.add_(1)
        hidden.sum().backward()

    gc.disable()
    try:
        ask(step)
        assert [ref() for ref in gone] == [None]
    finally:
        gc.enable()


def test_an_interrupt_goes_through() -> None:
    def step() -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        why_error(step)


def test_a_wrong_argument_is_named() -> None:
    with pytest.raises(UsageError, match="expected an exception, a record or a function that rai"):
        why_error("RuntimeError: ...")  # pyright: ignore[reportArgumentType]


@pytest.mark.parametrize("asked", [ValueError(), lambda: None])
def test_a_second_argument_that_is_no_record_is_named(asked: object) -> None:
    with pytest.raises(UsageError, match=r"expected record= to be a GraphRecord or None, got int"):
        why_error(asked, 3)  # pyright: ignore[reportArgumentType]


@pytest.mark.parametrize("asked", [record(lambda: 1), lambda: None])
def test_a_record_goes_with_an_exception_only(asked: Any) -> None:
    with pytest.raises(UsageError, match=r"expected record= with an exception only, got it with"):
        why_error(asked, record(lambda: 1))


def test_a_message_that_cannot_be_read_is_no_reason_to_fail() -> None:
    class Silent(RuntimeError):
        def __str__(self) -> str:
            raise ValueError("not even this")

    assert isinstance(why_error(Silent()), Explanation)
