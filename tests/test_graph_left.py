"""Recording: exceptions, recordings in recordings, and that nothing is left behind."""

import gc
import json
import random
import subprocess
import sys
import weakref
from types import ModuleType
from typing import Any, ClassVar

import numpy
import pytest
import torch
from torch import nn
from torch.nn.modules import module as nn_module

from pytorch_lab.errors import UsageError
from pytorch_lab.graph import GraphRecord, record
from pytorch_lab.graph.recording import log
from pytorch_lab.modules.outputs import tensors_of
from tests.recorded import Cube, check, independent_walk, leaf, names, net


def test_an_exception_halfway_keeps_what_ran() -> None:
    class Broken(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.first = nn.Linear(4, 3)
            self.second = nn.Linear(5, 2)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return self.second(self.first(x))

    rec = record(Broken(), torch.ones(2, 4), backward=True)
    check(rec)
    line = Broken.forward.__code__.co_firstlineno + 1
    assert rec.error is not None
    assert rec.error.startswith("RuntimeError: mat1 and mat2 shapes")
    assert rec.error.endswith(f"at test_graph_left.py:{line}")
    assert [(op.name, op.module, op.outputs != ()) for op in rec.ops] == [
        ("linear", "first", True),
        ("linear", "second", False),
    ]
    assert "AddmmBackward0" in [node.name for node in rec.nodes]
    assert [call.end_op for call in rec.calls] == [2, 1, 2]


def test_the_stack_of_modules_is_right_after_an_exception_that_was_caught() -> None:
    inner = nn.Linear(4, 3)

    class Careful(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.inner = inner

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            try:
                return self.inner(x)
            except RuntimeError:
                return x * 2

    rec = record(Careful(), torch.ones(1, 2))
    check(rec)
    assert rec.error is None
    assert [(op.name, op.module) for op in rec.ops] == [("linear", "inner"), ("mul", "")]


def test_an_interrupt_goes_through_and_leaves_nothing() -> None:
    def stop(x: torch.Tensor) -> None:
        x.exp()
        raise KeyboardInterrupt

    before = surroundings()
    with pytest.raises(KeyboardInterrupt):
        record(stop, torch.ones(1))
    assert surroundings() == before


def test_one_recording_inside_another() -> None:
    seen: list[GraphRecord] = []

    def outer(x: torch.Tensor) -> torch.Tensor:
        y = x * 2
        seen.append(record(lambda: (y + 1).exp(), backward=True))
        return y.sum()

    w = leaf(2)
    rec = record(outer, w)
    check(rec)
    check(seen[0])
    assert names(seen[0]) == ["add", "exp"]
    assert names(rec)[:3] == ["mul", "add", "exp"]
    assert names(rec)[-1] == "sum"
    assert "backward" in names(rec)
    assert not any(name.startswith(("aminmax", "count_nonzero")) for name in names(rec))
    assert w.grad is not None


class Shouting(torch.Tensor):
    heard: ClassVar[list[str]] = []

    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        cls.heard.append(getattr(func, "__name__", str(func)))
        return super().__torch_function__(func, types, args, kwargs or {})


def test_a_class_of_the_readers_hears_only_its_own_calls() -> None:
    x = torch.ones(2).as_subclass(Shouting)
    Shouting.heard.clear()
    (x * 2).exp()
    plain = list(Shouting.heard)
    Shouting.heard.clear()
    rec = record(lambda x: (x * 2).exp(), x)
    assert Shouting.heard == plain
    assert names(rec) == ["mul", "exp"]


def surroundings() -> dict[str, Any]:
    return {
        "hooks": {
            name: len(value)
            for name, value in vars(nn_module).items()
            if name.startswith("_global_") and isinstance(value, dict)
        },
        "modes": len(torch.overrides._get_current_function_mode_stack()),
        "collector": gc.isenabled(),
        "grad": torch.is_grad_enabled(),
        "rng": torch.get_rng_state().tolist(),
        "python": random.getstate(),
        "numpy": repr(numpy.random.get_state()),  # noqa: NPY002
        "forward": nn.Module.__call__,
        "apply": torch.autograd.Function.apply,
        "filters": len(__import__("warnings").filters),
    }


@pytest.mark.parametrize("collects", [True, False])
def test_everything_is_as_it_was(collects: bool) -> None:
    model, x = net(), torch.ones(2, 4)
    (gc.enable if collects else gc.disable)()
    try:
        before = surroundings()
        record(model, x, backward=True)
        record(lambda: model(torch.ones(3)))
        assert surroundings() == before
    finally:
        gc.enable()


def test_random_numbers_are_those_of_a_plain_run() -> None:
    model = nn.Sequential(nn.Linear(4, 4), nn.Dropout(0.5))
    x = torch.ones(3, 4)
    kept: list[torch.Tensor] = []
    torch.manual_seed(3)
    plain = model(x)
    torch.manual_seed(3)
    record(lambda: kept.append(model(x)), values="full")
    assert torch.equal(plain, kept[0])


def dropped(how: str) -> list[weakref.ref[Any]]:
    """Weak references to all that a recorded function made."""
    refs: list[weakref.ref[Any]] = []
    model = net()

    def run() -> torch.Tensor:
        x = torch.ones(2, 4)
        a = model(x)
        refs.extend(weakref.ref(t) for t in (x, a))
        if how == "raises":
            raise ValueError(a)
        if how == "function":
            a = Cube.apply(a)
        if how == "step":
            a.sum().backward()
        loss = a.sum()
        refs.append(weakref.ref(loss))
        return loss

    if how == "later":
        kept = record(run, keep_graph=True)
        assert refs[-1]() is not None
        kept.release()
        records.append(kept)
    elif how == "walked":
        records.append(record(run, keep_graph=True).backward())
    else:
        records.append(record(run, backward=how == "backward", values="full"))
    refs.extend(weakref.ref(p) for p in model.parameters())
    return refs


records: list[GraphRecord] = []


@pytest.mark.parametrize(
    "how", ["plain", "backward", "raises", "later", "walked", "function", "step"]
)
def test_no_tensor_is_kept_alive(how: str) -> None:
    gc.collect()
    gc.disable()  # what only the collector finds is kept too long already
    try:
        refs = dropped(how)
        if how == "raises":
            gc.collect()  # an exception and its frames point at each other
        assert [ref() for ref in refs] == [None] * len(refs)
    finally:
        gc.enable()
        records.clear()


def test_a_long_graph_needs_no_recursion() -> None:
    def long(x: torch.Tensor) -> torch.Tensor:
        for _ in range(20_000):
            x = x + 1
        return x.sum()

    rec = record(long, leaf(1), values="none", backward=True)
    assert len(rec.ops) == 20_001
    assert len(rec.backward_order) == 20_002
    assert len(rec.path_to("x")) == 20_002


def test_what_record_refuses() -> None:
    with pytest.raises(UsageError, match=r"expected something to call, got 'Tensor'.*graph\.of"):
        record(torch.ones(1))  # pyright: ignore[reportArgumentType]
    with pytest.raises(UsageError, match="expected one of none, summary, full, got 'all'"):
        record(lambda: None, values="all")


def test_equal_runs_give_equal_records() -> None:
    texts = set()
    for _ in range(2):
        given = record(net(), torch.ones(2, 4), backward=True).to_dict()
        for op in given["ops"]:
            del op["elapsed_ns"]
        for node in given["nodes"]:
            del node["sequence"]
        texts.add(json.dumps(given))
    assert len(texts) == 1


def test_importing_costs_nothing_and_patches_nothing() -> None:
    code = (
        "import torch; before = dict(vars(torch.Tensor)); import pytorch_lab.graph;"
        "assert vars(torch.Tensor) == before;"
        "import sys; assert 'torch._dynamo' not in sys.modules"
    )
    subprocess.run([sys.executable, "-W", "error", "-c", code], check=True)


@pytest.mark.heavy
@pytest.mark.parametrize("name", ["bert", "gpt2", "t5", "llama", "vit", "whisper", "mamba", "unet"])
def test_models_that_nobody_here_wrote(models: ModuleType, name: str) -> None:
    model, inputs = models.LIBRARY_MODELS[name]()
    model.eval()
    kept: list[Any] = []

    def run(**given: Any) -> Any:
        kept.append(model(**given))
        return kept[0]

    before = models.as_found(model)
    rec = record(run, **inputs)
    assert rec.error is None
    check(rec)
    assert models.as_found(model) == before
    roots = [t for t in tensors_of(kept[0]) if t.grad_fn is not None]
    nodes, edges = independent_walk(*roots)
    assert (len(rec.nodes), sum(len(node.next) for node in rec.nodes)) == (nodes, edges)
    assert sum(op.columns is not None for op in rec.ops) >= 0.95 * len(rec.ops)
    assert all(op.line for op in rec.ops)
    assert all("/torch/" not in op.file for op in rec.ops)
    called = [op for op in rec.ops if op.module]
    assert len(called) > 0.5 * len(rec.ops)


def test_without_compiled_code_nothing_is_said_of_it() -> None:
    import torch._dynamo

    assert record(net(), torch.ones(1, 4)).notes == ()


def test_a_tensor_from_nowhere_is_not_taken_for_a_dead_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """`from_numpy` is not seen by a function mode, and its tensor gets the id of a dropped one."""
    monkeypatch.setattr(log, "MOST", 1)  # else the log keeps the dropped one for a bit
    array = numpy.ones(3, dtype=numpy.float32)
    taken = 0

    def run(x: torch.Tensor) -> None:
        nonlocal taken
        for _ in range(50):
            gone = x * 2
            number = id(gone)
            del gone
            fresh = torch.from_numpy(array)
            taken += id(fresh) == number
            fresh.exp()

    rec = record(run, torch.ones(2))
    check(rec)
    assert taken
    assert {rec.values[op.inputs[0]].shape for op in rec.ops if op.name == "exp"} == {(3,)}


def test_the_addresses_of_all_storages_are_given_back(monkeypatch: pytest.MonkeyPatch) -> None:
    taken, given = [], []
    take, give = torch.UntypedStorage._weak_ref, torch.UntypedStorage._free_weak_ref
    monkeypatch.setattr(
        torch.UntypedStorage, "_weak_ref", lambda one: taken.append(take(one)) or taken[-1]
    )
    monkeypatch.setattr(
        torch.UntypedStorage, "_free_weak_ref", lambda weak: given.append(weak) or give(weak)
    )
    record(lambda x: (x.exp() + 1).sum(), torch.ones(3))
    assert len(taken) == 4
    assert given == taken


def test_the_lists_are_made_once_whichever_is_asked_for_first() -> None:
    x = torch.ones(3, requires_grad=True)
    recs = [record(lambda: (x.exp() + 1).sum(), backward=True) for _ in range(3)]
    lists = [recs[0].ops, recs[1].values, recs[2].nodes]
    for rec, first in zip(recs, lists, strict=True):
        assert any(first is one for one in (rec.ops, rec.values, rec.nodes))
        assert [node.freed for node in rec.nodes] == [None, None, True, None]
        assert rec.ops[0].saved_bytes == 12
