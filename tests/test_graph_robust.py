"""Recording what is unusual: it runs as it would alone, and what is not seen is said."""

import asyncio
import subprocess
import sys
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from pytorch_lab.graph import GraphRecord, record
from pytorch_lab.graph.recording.meanwhile import deeper


def leaf(*shape: int) -> torch.Tensor:
    return torch.linspace(0.1, 0.9, torch.Size(shape).numel()).reshape(shape).requires_grad_()


def nested(depth: int) -> nn.Module:
    net: nn.Module = nn.Tanh()
    for _ in range(depth):
        net = nn.Sequential(net)
    return net


# What recording changes, and says


def encoder() -> nn.Module:
    torch.manual_seed(0)
    layer = nn.TransformerEncoderLayer(16, 4, 32, batch_first=True)
    return nn.TransformerEncoder(layer, 2).eval()


def attention() -> nn.Module:
    return nn.MultiheadAttention(16, 4, batch_first=True).eval()


def says_slow(notes: tuple[str, ...]) -> bool:
    return any("slow path" in note for note in notes)


@pytest.mark.filterwarnings("ignore:The PyTorch API of nested tensors")
def test_attention_that_leaves_its_fast_path_is_said() -> None:
    x, mask = torch.randn(2, 5, 16), torch.zeros(2, 5, dtype=torch.bool)
    mask[0, 3:] = True
    net, alone = encoder(), attention()
    with torch.no_grad():
        results = [net(x, src_key_padding_mask=mask)]
        rec = record(lambda: results.append(net(x, src_key_padding_mask=mask)))
        assert says_slow(rec.notes)
        assert not torch.allclose(results[0], results[1])  # padded places are zeros on one side
        assert torch.allclose(results[0][~mask], results[1][~mask], atol=1e-5)
        assert says_slow(record(net, x).notes)
        assert says_slow(record(lambda: alone(x, x, x)).notes)
    for parameter in net.parameters():
        parameter.requires_grad_(False)
    assert says_slow(record(net, x).notes)  # with gradients on, and nothing that wants them


def test_attention_that_is_not_on_its_fast_path_anyway_is_not() -> None:
    x = torch.randn(2, 5, 16)
    net, alone = encoder(), attention()
    assert not says_slow(record(net, x).notes)  # gradients are wanted
    with torch.no_grad():
        assert not says_slow(record(lambda: alone(x, x.clone(), x)).notes)  # no self-attention
        assert not says_slow(record(net.train(), x).notes)
        torch.backends.mha.set_fastpath_enabled(False)
        try:
            assert not says_slow(record(net.eval(), x).notes)
        finally:
            torch.backends.mha.set_fastpath_enabled(True)
        assert not says_slow(record(lambda: F.relu(x)).notes)


# Depth


def test_what_is_just_deep_enough_alone_is_recorded() -> None:
    depth = 10
    try:
        while True:
            net = nested(depth)
            net(torch.ones(1))
            depth += 5
    except RecursionError:
        net = nested(depth - 10)
    net(torch.ones(1))
    rec = record(net, torch.ones(1))
    assert rec.error is None
    assert [op.name for op in rec.ops] == ["tanh"]
    assert len(rec.calls) == depth - 9
    for view in (str(rec), rec.to_svg()):
        assert view


def test_the_limit_is_as_it_was() -> None:
    before = sys.getrecursionlimit()
    seen = []
    record(lambda: record(lambda: seen.append(sys.getrecursionlimit())))
    assert seen[0] > before
    assert sys.getrecursionlimit() == before
    with deeper:
        sys.setrecursionlimit(before + 7)  # the reader's own choice stays
    assert sys.getrecursionlimit() == before + 7
    sys.setrecursionlimit(before)


# What does not run in this thread, now, in Python


async def double(x: torch.Tensor) -> torch.Tensor:
    return x * 2


def without_a_loop(run: Callable[[], GraphRecord]) -> GraphRecord:
    """In a thread of its own: another test's browser may have left a loop in this one."""
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(run).result()


def test_a_coroutine_is_not_run_and_that_is_said() -> None:
    rec = without_a_loop(lambda: record(double, leaf(3)))
    assert rec.ops == ()
    assert any("; record lambda: asyncio.run(fn(...))" in note for note in rec.notes)
    rec = without_a_loop(lambda: record(lambda x: asyncio.run(double(x)), leaf(3)))
    assert [op.name for op in rec.ops] == ["mul"]
    assert rec.notes == ()


def test_where_a_loop_runs_as_in_a_notebook_the_advice_is_one_that_works_there() -> None:
    async def cell() -> tuple[GraphRecord, GraphRecord]:
        refused = record(double, leaf(3))
        return refused, await asyncio.to_thread(record, lambda x: asyncio.run(double(x)), leaf(3))

    with ThreadPoolExecutor(1) as pool:
        refused, followed = pool.submit(lambda: asyncio.run(cell())).result()
    assert any("await asyncio.to_thread(record, lambda" in note for note in refused.notes)
    assert [op.name for op in followed.ops] == ["mul"]


def by_thread(x: torch.Tensor) -> None:
    thread = threading.Thread(target=lambda: x * 2)
    thread.start()
    thread.join()


def by_pool(x: torch.Tensor) -> None:
    with ThreadPoolExecutor(1) as pool:
        pool.submit(lambda: x * 2).result()


@pytest.mark.parametrize("run", [by_thread, by_pool])
def test_ops_of_other_threads_are_not_recorded_and_that_is_said(run: object) -> None:
    assert callable(run)
    before = threading.getprofile()
    rec = record(run, leaf(3))
    assert rec.ops == ()
    assert rec.notes == ("code ran in another thread; ops of other threads are not recorded",)
    assert threading.getprofile() is before
    assert record(lambda: leaf(3) * 2).notes == ()


def test_a_module_called_in_a_thread_that_was_there_before_is_said() -> None:
    net = nn.Linear(3, 1)
    with ThreadPoolExecutor(1) as pool:
        x = torch.ones(3)
        pool.submit(net, x).result()
        rec = record(lambda: pool.submit(net, x).result() * 1)
    assert [op.name for op in rec.ops] == ["mul"]
    assert any("another thread" in note for note in rec.notes)


def test_a_profiler_of_threads_goes_on() -> None:
    seen: list[str] = []

    def profiler(frame: object, event: str, arg: object) -> None:
        seen.append(event)

    threading.setprofile(profiler)
    try:
        record(by_thread, leaf(3))
        assert threading.getprofile() is profiler
    finally:
        threading.setprofile(None)  # pyright: ignore[reportArgumentType]
    assert seen[0] == "call"
    assert "return" in seen


@pytest.mark.filterwarnings("ignore:`torch.jit.script` is deprecated")
def test_scripted_code_shows_by_its_nodes_and_that_is_said() -> None:
    net = torch.jit.script(nn.Sequential(nn.Linear(3, 2), nn.ReLU()))
    rec = record(lambda x: net(x).sum(), torch.ones(1, 3))
    assert [op.name for op in rec.ops] == ["sum"]
    assert rec.nodes[1].op is None
    assert any(note.startswith("3 nodes made by code that calls no") for note in rec.notes)


# Transforms


@pytest.mark.filterwarnings("ignore:`torch.jit.script` is deprecated")  # torch's own use of it
@pytest.mark.parametrize(
    "transform",
    [
        torch.func.hessian,
        lambda f: torch.func.jacrev(torch.func.jacfwd(f)),
        lambda f: torch.func.jacfwd(torch.func.jacrev(f)),
        lambda f: torch.func.jacrev(torch.func.jacrev(f)),
        lambda f: torch.func.grad(lambda x: torch.func.grad(f)(x).sum()),
        lambda f: torch.func.vmap(torch.func.grad(f)),
        lambda f: torch.func.vmap(torch.func.hessian(f)),
    ],
)
def test_transforms_in_one_another(transform: object) -> None:
    assert callable(transform)
    function = transform(lambda x: (x**3).sum())
    x = leaf(2, 3).detach()
    results = [function(x)]
    rec = record(lambda: results.append(function(x)))
    assert rec.error is None
    assert torch.equal(results[0], results[1])


# Code without a file


def test_code_of_python_c_has_lines_and_no_text_and_that_is_said() -> None:
    program = """
import torch
from dataclasses import dataclass
from pytorch_lab.graph import record
@dataclass
class Pair:
    x: torch.Tensor
    def __post_init__(self):
        self.x = self.x.exp()
def f(x):
    y = Pair(x).x
    return y * missing if y.sum() < 0 else y * 2
rec = record(f, torch.ones(3))
print([(op.site.where, op.site.function) for op in rec.ops[:2]], *rec.notes, sep="|")
"""
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert run.stdout.strip().split("|") == [
        "[('<string>:9', 'Pair.__post_init__'), ('<string>:12', 'f')]",
        "the text of <string> is kept nowhere, so its lines have numbers and no words",
    ], run.stderr


def test_code_of_exec_has_lines_of_its_own() -> None:
    space: dict[str, object] = {"x": leaf(3)}
    exec("def f():\n    return x * 2\ndef g():\n    raise ValueError('no')", space)
    rec = record(lambda: space["f"]())  # pyright: ignore[reportCallIssue]
    assert rec.ops[0].site.where == "<string>:2"
    failed = record(lambda: space["g"]())  # pyright: ignore[reportCallIssue]
    assert failed.error == "ValueError: no at <string>:4"
