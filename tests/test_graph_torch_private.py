"""The private names of torch that the graph room stands on are there, and all are listed."""

import ast
import re
from pathlib import Path

import pytest
import torch

import pytorch_lab.graph
from pytorch_lab.graph.torch_private import PRIVATE, exists

ROOM = Path(pytorch_lab.graph.__file__).parent


@pytest.mark.parametrize("name", [one.name for one in PRIVATE])
def test_the_installed_torch_has_it(name: str) -> None:
    assert exists(name)


def test_what_torch_lacks_does_not_exist() -> None:
    assert not exists("torch._C._no_such_name")


def test_each_says_why_and_what_instead() -> None:
    assert all(one.why and one.instead for one in PRIVATE)
    assert len({one.name for one in PRIVATE}) == len(PRIVATE)


def test_a_node_has_what_is_read_of_it() -> None:
    node = torch.ones(2, requires_grad=True).exp().grad_fn
    for one in PRIVATE:
        if ".Node." in one.name:
            assert hasattr(node, one.name.rpartition(".")[2])


def test_nobody_else_imports_private_names() -> None:
    """Neither `from torch.x import _y` nor `torch.x._y`; attributes of objects cannot be told."""
    found = []
    for file in ROOM.rglob("*.py"):
        if file.name == "torch_private.py":
            continue
        for node in ast.walk(ast.parse(file.read_text("utf-8"))):
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("torch"):
                found += [(file.name, alias.name) for alias in node.names if alias.name[0] == "_"]
            elif isinstance(node, ast.Attribute) and re.match(
                r"torch\.([a-zA-Z_.]+\.)?_[a-zA-Z]", ast.unparse(node)
            ):
                found.append((file.name, ast.unparse(node)))
    known = {one.name for one in PRIVATE}
    assert [one for one in found if one[1] not in known] == []
