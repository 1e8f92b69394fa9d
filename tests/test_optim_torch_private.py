"""The private names of torch that the optim room reads are there, and are read in one place."""

import ast
from pathlib import Path

import pytest
import torch
from torch.optim import lr_scheduler

import pytorch_lab.optim
from pytorch_lab import optim
from pytorch_lab.optim import torch_private
from pytorch_lab.optim.torch_private import PRIVATE, Private

ROOM = Path(pytorch_lab.optim.__file__).parent


def holders():
    """A live object of each kind that holds a private name."""
    weight = torch.zeros(1, requires_grad=True)
    optimizer = torch.optim.SGD([weight], lr=0.1)
    step = lr_scheduler.StepLR(optimizer, 3)
    optimizer.step()
    return {
        "Optimizer": optimizer,
        "Optimizer.step": optimizer.step,
        "LRScheduler": step,
        "SequentialLR": sequence(),
        "ChainedScheduler": lr_scheduler.ChainedScheduler([step]),
        "Tensor": weight,
    }


def sequence():
    optimizer = torch.optim.SGD([torch.zeros(1)], lr=0.1)
    parts = [lr_scheduler.LinearLR(optimizer), lr_scheduler.CosineAnnealingLR(optimizer, 7)]
    return lr_scheduler.SequentialLR(optimizer, parts, [5])


@pytest.mark.parametrize("one", PRIVATE, ids=lambda one: f"{one.holder}.{one.name}")
def test_the_installed_torch_has_it(one: Private) -> None:
    assert hasattr(holders()[one.holder], one.name), (
        f"torch {torch.__version__} has no {one.holder}.{one.name} any more, which tells "
        f"{one.why}; until pytorch_lab/optim/torch_private.py reads something else, {one.instead}."
    )


def test_nobody_else_in_the_room_reads_private_names() -> None:
    found = []
    for file in ROOM.glob("*.py"):
        if file.name == "torch_private.py":
            continue
        for node in ast.walk(ast.parse(file.read_text("utf-8"))):
            if isinstance(node, ast.Attribute) and ast.unparse(node.value) not in (
                "self",
                "super()",
            ):
                found += [(file.name, node.attr)] if is_private(node.attr) else []
            elif isinstance(node, ast.Call) and ast.unparse(node.func) in ("getattr", "hasattr"):
                name = ast.literal_eval(node.args[1]) if is_literal(node.args[1]) else ""
                found += [(file.name, name)] if is_private(name) else []
    assert found == []


def is_literal(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant)


def is_private(name: str) -> bool:
    return name.startswith("_") and not name.startswith("__")


def test_each_listed_name_is_read_and_no_other() -> None:
    source = Path(torch_private.__file__).read_text("utf-8").partition("def has_stepped")[2]
    read = {
        node.value
        for node in ast.walk(ast.parse("def has_stepped" + source))
        if isinstance(node, ast.Constant) and is_private(str(node.value))
    }
    assert read == {one.name for one in PRIVATE}


def test_without_them_a_remark_is_lost_and_not_the_curve(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = optim.trace_schedule(sequence(), 30)
    assert whole.planned == 12
    for name in ("parts", "milestones"):
        monkeypatch.setattr(f"pytorch_lab.optim.plans.{name}", lambda _: ())
        assert optim.trace_schedule(sequence(), 30).rates == whole.rates
        assert optim.trace_schedule(sequence(), 30).planned is None
        monkeypatch.undo()
