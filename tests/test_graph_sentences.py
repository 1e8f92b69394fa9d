"""What `record`, `of`, `compare` and what they give refuse, and in which words."""

import re
from collections.abc import Callable

import pytest
import torch

from pytorch_lab.errors import UsageError
from pytorch_lab.graph import GraphRecord, compare, of, record


def leaf() -> torch.Tensor:
    return torch.ones(3, requires_grad=True)


def written_to(go_on: Callable[[GraphRecord], object]) -> None:
    loss = (leaf() * 2).sum()
    rec = of(loss)
    loss += 1
    try:
        go_on(rec)
    finally:
        assert rec.backward_order == ()
        assert rec.memory() == []
        assert str(rec)


def detached(go_on: Callable[[GraphRecord], object]) -> None:
    loss = (leaf() * 2).sum()
    rec = of(loss)
    loss.detach_()
    go_on(rec)


def kept() -> GraphRecord:
    return record(lambda x: x * 2, leaf(), keep_graph=True)


REFUSED: dict[str, tuple[Callable[[], object], str]] = {
    "backward of a result written to": (
        lambda: written_to(lambda rec: rec.backward()),
        "expected the graph that was recorded, but the result of loss was written to since, and "
        "AddBackward0 is behind it now; record it again, or call graph.of(tensor) again",
    ),
    "stepper of a result written to": (
        lambda: written_to(lambda rec: rec.stepper()),
        "AddBackward0 is behind it now",
    ),
    "backward of a result that was detached": (
        lambda: detached(lambda rec: rec.backward()),
        "no graph is behind it now",
    ),
    "a number as gradient": (
        lambda: kept().stepper(3),  # pyright: ignore[reportArgumentType]
        "expected a tensor as the gradient to start from, of shape (3,), got int",
    ),
    "a number as gradient of backward": (
        lambda: kept().backward(3),  # pyright: ignore[reportArgumentType]
        "expected a tensor as the gradient to start from, of shape (3,), got int",
    ),
    "a gradient of another shape": (
        lambda: kept().backward(torch.ones(5)),
        "expected a gradient of the shape of the result, (3,), got (5,)",
    ),
    "a parameter called values": (
        lambda: record(lambda values: values, values=torch.ones(2)),  # pyright: ignore[reportArgumentType]
        "got Tensor; for an argument of that name write record(lambda: fn(values=...))",
    ),
    "a parameter called backward": (
        lambda: record(lambda backward: backward, backward=3),  # pyright: ignore[reportArgumentType]
        "expected True or False, got 3; for an argument of that name write "
        "record(lambda: fn(backward=...))",
    ),
    "a parameter called keep_graph": (
        lambda: record(lambda keep_graph: keep_graph, keep_graph="yes"),  # pyright: ignore[reportArgumentType]
        "expected True or False, got 'yes'",
    ),
    "compare without a function": (
        lambda: compare(torch.ones(2), 1, 2),  # pyright: ignore[reportArgumentType]
        "compare(fn, a, b) expected something to call, got 'Tensor'",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_it_is_refused_in_a_sentence(case: str) -> None:
    do, says = REFUSED[case]
    with pytest.raises(UsageError, match=re.escape(says)):
        do()


def test_torchs_own_error_in_backward_is_shown_and_kept_in_fields() -> None:
    class Broken(torch.autograd.Function):
        @staticmethod
        def forward(ctx: object, x: torch.Tensor) -> torch.Tensor:
            return x * 2

        @staticmethod
        def backward(ctx: object, gradient: torch.Tensor) -> torch.Tensor:
            raise KeyError("lost")

    rec = record(lambda: Broken.apply(leaf()).sum(), backward=True)
    assert rec.failure is not None
    assert (rec.failure.kind, rec.failure.message) == ("KeyError", "'lost'")
    assert rec.failure.in_backward
    assert rec.error == "KeyError: 'lost' (in backward)"
    assert "Error     KeyError: 'lost' (in backward)" in str(rec)
    assert rec.to_dict()["failure"]["kind"] == "KeyError"


def test_an_error_in_forward_knows_its_place() -> None:
    def fails(x: torch.Tensor) -> torch.Tensor:
        return x @ torch.ones(5)

    rec = record(fails, leaf())
    assert rec.failure is not None
    assert rec.failure.kind == "RuntimeError"
    assert rec.failure.site.function.endswith("fails")
    assert rec.failure.site.columns is not None
    assert rec.failure.site.line == fails.__code__.co_firstlineno + 1
