"""The text of a recorded graph: golden files, and what must be true of any text."""

from collections.abc import Callable

import pytest
import torch
from torch import nn

from pytorch_lab.graph import GraphRecord, of, record
from pytorch_lab.graph.text import MOST_LINES
from pytorch_lab.words import WIDTH, columns


def layers() -> GraphRecord:
    """Layers, a branch on a value, a write in place, a view, a detour and no_grad."""
    torch.manual_seed(0)
    net = nn.Sequential(nn.Linear(4, 3), nn.ReLU(), nn.BatchNorm1d(3), nn.Linear(3, 2))

    def loss(batch: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
        if batch.sum() > 0:
            batch = batch * 2
        score = net(batch)
        score += 1
        flat = score.view(-1)
        with torch.no_grad():
            scale = flat.detach().norm()
        return nn.functional.cross_entropy(flat.view(2, 2) / scale, target)

    return record(loss, torch.ones(2, 4), torch.tensor([0, 1]), backward=True)


def loop() -> GraphRecord:
    """A hundred equal steps."""
    cell = nn.Linear(3, 3)

    def unrolled(x: torch.Tensor) -> torch.Tensor:
        for _ in range(100):
            x = torch.tanh(cell(x)) + x
        return x

    return record(unrolled, torch.zeros(1, 3))


class Square(torch.autograd.Function):
    @staticmethod
    def forward(ctx: object, x: torch.Tensor) -> torch.Tensor:
        return x * x

    @staticmethod
    def backward(ctx: object, gradient: torch.Tensor) -> torch.Tensor:
        return gradient


def function_and_error() -> GraphRecord:
    """A custom Function with its inside, then shapes that do not fit."""
    w = torch.ones(2, 3, requires_grad=True)
    return record(lambda: Square.apply(w) @ torch.ones(2))


RECORDS = {"layers": layers, "loop": loop, "function": function_and_error}


@pytest.mark.parametrize("name", RECORDS)
def test_the_text_of_a_record(name: str, golden: Callable[[str, str], None]) -> None:
    golden(f"graph_{name}", str(RECORDS[name]()))


@pytest.mark.parametrize("name", RECORDS)
def test_any_text_is_narrow_and_the_same_again(name: str) -> None:
    first, second = str(RECORDS[name]()), str(RECORDS[name]())
    assert first == second
    assert max(map(len, first.splitlines())) <= WIDTH
    assert all(line == line.rstrip() for line in first.splitlines())


def test_every_op_is_there_unless_lines_are_left_out() -> None:
    rec = layers()
    numbers = [line.split()[0] for line in str(rec).splitlines()]
    assert [n for n in numbers if n.isdigit()] == [str(op.index) for op in rec.ops]


def test_a_long_text_is_shortened_in_the_middle() -> None:
    def many(x: torch.Tensor) -> torch.Tensor:
        for i in range(200):
            x = x[: -1 - i % 7 % 3] if len(x) > 300 else x + i
            x = x.sin() if i % 3 else x.cos().sqrt()
        return x

    lines = str(record(many, torch.ones(1000))).splitlines()
    assert len(lines) < MOST_LINES + 10
    assert any("left out" in line for line in lines)


def test_texts_of_nothing() -> None:
    assert str(record(lambda: None)) == "<lambda>: 0 ops, 0 nodes\nGraph     none"
    assert repr(record(lambda x: x + 1, torch.ones(1))) == "GraphRecord(<lambda>: 1 op, 0 nodes)"


def test_long_names_are_cut() -> None:
    x = torch.ones(1)

    def a_function_with_a_name_that_is_much_longer_than_any_line_of_eighty_columns_should_be() -> (
        torch.Tensor
    ):
        return torch.nn.functional.scaled_dot_product_attention(*[x[None, None, None]] * 3)

    text = str(
        record(a_function_with_a_name_that_is_much_longer_than_any_line_of_eighty_columns_should_be)
    )
    assert max(map(len, text.splitlines())) <= WIDTH
    assert "…" in text


def longest(text: str) -> int:
    return max(columns(line) for line in text.splitlines())


def test_large_bytes_and_long_lines_stay_within_80_columns() -> None:
    many = torch.ones(1000, 262, requires_grad=True)
    text = str(record(lambda: many.exp()))
    assert "1023.4 KiB" in text
    assert longest(text) == 80


def test_letters_of_two_columns_are_counted_as_such() -> None:
    def 中文函数(x: torch.Tensor) -> torch.Tensor:
        return x.exp()

    net = nn.ModuleDict(
        {"网络网络网络网络网络网络网络网络网络网络网络网络网络网络": nn.Linear(2, 2)}
    )
    权重 = torch.ones(2, requires_grad=True)
    rec = record(lambda: 中文函数(next(iter(net.values()))(权重 * 权重)))
    lines = str(rec).splitlines()
    assert longest(str(rec)) == 80
    there = {columns(line[: line.index("text.py:")]) for line in lines if "text.py:" in line}
    assert len(there) == 1
    assert any("权重 权重" in line for line in lines)


def test_a_very_long_message_is_shortened_and_kept_whole_in_the_record() -> None:
    def fails() -> None:
        raise ValueError("begin " + "x" * 1_000_000 + " end")

    rec = record(fails)
    assert len(str(rec)) < 1500
    assert "more characters" in str(rec)
    assert rec.error is not None
    assert rec.error.startswith("ValueError: begin xx")
    assert " end at test_graph_text.py:" in rec.error
    assert rec.failure is not None
    assert len(rec.failure.message) == 1_000_010


def test_the_graph_of_a_result_says_what_its_nodes_keep() -> None:
    x = torch.ones(3, requires_grad=True)
    y = x.exp()
    loss = (y * y).sum()  # exp and mul keep one and the same
    assert "4 nodes, 12 B kept" in str(of(loss))
    assert "4 nodes, 12 B kept" in str(record(lambda: (lambda y: (y * y).sum())(x.exp())))
