"""`describe` finds what a module holds without registering it, and nothing else."""

import argparse
import collections
import functools
import linecache
import types
import weakref
from collections.abc import Callable
from dataclasses import dataclass, make_dataclass
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn
from torch.nn.utils import prune

from pytorch_lab.modules import describe


class Net(nn.Module):
    """Holds whatever it is given, beside one honest layer."""

    def __init__(self, **held: Any) -> None:
        super().__init__()
        self.fc = nn.Linear(2, 2)
        for name, value in held.items():
            setattr(self, name, value)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.fc(x)


class Pair(NamedTuple):
    left: Any
    right: Any


@dataclass
class Heads:
    first: Any
    second: Any = None


class Bag:
    """A plain object of the learner's."""

    def __init__(self, **held: Any) -> None:
        vars(self).update(held)


class Slotted:
    __slots__ = ("empty", "head")

    def __init__(self, head: Any) -> None:
        self.head = head


def seen(model: nn.Module) -> list[tuple[str, str, str]]:
    return [(thing.path, thing.kind, thing.holder) for thing in describe(model).invisible]


def linear() -> nn.Linear:
    return nn.Linear(2, 3)


def parameter() -> nn.Parameter:
    return nn.Parameter(torch.ones(3))


# what is held -> what must be found: path, kind, holder, and what the fix must say
PLANTED: dict[str, tuple[Callable[[], Any], list[tuple[str, str, str]], str]] = {
    "list": (lambda: [linear()], [("held[0]", "module", "list")], "nn.ModuleList([...])"),
    "tuple": (lambda: (linear(),), [("held[0]", "module", "tuple")], "nn.ModuleList([...])"),
    "set": (lambda: {linear()}, [("held{0}", "module", "set")], "nn.ModuleList([...])"),
    "deque": (
        lambda: collections.deque([linear()]),
        [("held[0]", "module", "deque")],
        "nn.ModuleList",
    ),
    "dict": (lambda: {"a": linear()}, [("held['a']", "module", "dict")], "nn.ModuleDict"),
    "dict with tuple keys": (
        lambda: {(0, "x"): linear()},
        [("held[(0, 'x')]", "module", "dict")],
        "nn.ModuleDict",
    ),
    "dict with object keys": (
        lambda: {torch.float32: linear()},
        [("held[<dtype>]", "module", "dict")],
        "nn.ModuleDict",
    ),
    "ordered dict": (
        lambda: collections.OrderedDict(a=linear()),
        [("held['a']", "module", "dict")],
        "nn.ModuleDict",
    ),
    "nested list": (
        lambda: [[linear()], [linear()]],
        [("held[0][0]", "module", "list"), ("held[1][0]", "module", "list")],
        "nn.ModuleList([nn.ModuleList([...])])",
    ),
    "dict of lists": (
        lambda: {"a": [linear()]},
        [("held['a'][0]", "module", "list")],
        "nn.ModuleDict({'key': nn.ModuleList([...])})",
    ),
    "namedtuple": (
        lambda: Pair(linear(), 3),
        [("held.left", "module", "namedtuple")],
        "nn.ModuleList",
    ),
    "dataclass": (
        lambda: Heads(linear()),
        [("held.first", "module", "dataclass")],
        "derive from nn.Module",
    ),
    "dataclass made by a call": (
        lambda: make_dataclass("Made", ["layer"])(linear()),
        [("held.layer", "module", "dataclass")],
        "derive from nn.Module",
    ),
    "object": (lambda: Bag(head=linear()), [("held.head", "module", "object")], "derive from nn"),
    "slots": (lambda: Slotted(linear()), [("held.head", "module", "object")], "derive from nn"),
    "namespaces": (
        lambda: [types.SimpleNamespace(a=linear()), argparse.Namespace(b=linear())],
        [("held[0].a", "module", "object"), ("held[1].b", "module", "object")],
        "derive from nn",
    ),
    "partial": (
        lambda: functools.partial(print, linear()),
        [("held[0]", "module", "partial")],
        "assign the module",
    ),
    "a method of an object": (
        lambda: Bag(head=linear()).__init__,
        [("held.__self__.head", "module", "object")],
        "derive from nn",
    ),
    "a lambda": (
        lambda: (lambda layer: lambda x: layer(x))(linear()),
        [("held().layer", "module", "closure")],
        "in __init__",
    ),
    "distribution": (
        lambda: torch.distributions.Normal(torch.zeros(2), torch.ones(2)),
        [("held.loc", "tensor", "object"), ("held.scale", "tensor", "object")],
        "register_buffer",
    ),
    "parameters in a list": (
        lambda: [parameter()],
        [("held[0]", "parameter", "list")],
        "nn.ParameterList([...])",
    ),
    "parameters in a dict": (
        lambda: {"a": parameter()},
        [("held['a']", "parameter", "dict")],
        "nn.ParameterDict({'key': ...})",
    ),
    "parameters in a dict of lists": (
        lambda: {"a": [parameter()]},
        [("held['a'][0]", "parameter", "list")],
        "nn.ModuleDict({'key': nn.ParameterList([...])})",
    ),
    "a tensor that asks for gradients": (
        lambda: torch.ones(3, requires_grad=True),
        [("held", "parameter", "attribute")],
        "nn.Parameter(...)",
    ),
    "a result of a lost parameter": (
        lambda: parameter() * 0.1,
        [("held", "parameter", "attribute")],
        "wrap last",
    ),
    "plain tensor": (
        lambda: torch.ones(3),
        [("held", "tensor", "attribute")],
        "self.held = nn.Buffer(tensor)",
    ),
    "whole numbers": (
        lambda: torch.arange(3),
        [("held", "tensor", "attribute")],
        "nn.Buffer(tensor)",
    ),
    "tensors in a list": (
        lambda: [torch.ones(3)],
        [("held[0]", "tensor", "list")],
        "self.register_buffer(f'held_{i}', tensor)",
    ),
}


@pytest.mark.parametrize("name", PLANTED)
def test_what_is_planted_is_found(name: str) -> None:
    make, expected, fix = PLANTED[name]
    found = describe(Net(held=make())).invisible
    assert [(thing.path, thing.kind, thing.holder) for thing in found] == expected
    assert all(fix in thing.fix for thing in found), found
    assert all(thing.why.endswith(".") and thing.fix.endswith(".") for thing in found)
    assert all(thing.used is None for thing in found)


@pytest.mark.parametrize("name", PLANTED)
def test_the_same_is_found_deep_inside(name: str) -> None:
    make, expected, _ = PLANTED[name]
    model = nn.Sequential(nn.ReLU(), nn.ModuleList([Net(held=make())]))
    assert seen(model) == [(f"1.0.{path}", kind, holder) for path, kind, holder in expected]


@pytest.mark.parametrize("name", [n for n in PLANTED if n not in ("set", "a method of an object")])
def test_it_is_found_in_what_is_invisible_itself(name: str) -> None:
    make, expected, _ = PLANTED[name]
    outer = Net(outer=[Net(held=make())])
    inner = [(f"outer[0].{path}", kind, holder) for path, kind, holder in expected]
    assert seen(outer) == [("outer[0]", "module", "list"), *inner]


def test_the_record_of_an_invisible_layer() -> None:
    tree = describe(Net(held=[nn.Linear(4, 3)]))
    [thing] = tree.invisible
    assert (thing.type, thing.shape, thing.n_parameters) == ("Linear", None, 15)
    assert tree.n_parameters == 6
    [thing] = describe(Net(held=[nn.Parameter(torch.ones(2, 5))])).invisible
    assert (thing.type, thing.shape, thing.n_parameters) == ("Parameter", (2, 5), 10)
    [thing] = describe(Net(held=torch.ones(2, 5))).invisible
    assert (thing.type, thing.shape, thing.n_parameters) == ("Tensor", (2, 5), 0)


def test_the_line_where_it_is_assigned() -> None:
    class Lost(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layers = [nn.Linear(2, 2)]  # here

    source = Path(__file__).read_text("utf-8").splitlines()
    here = next(i for i, line in enumerate(source, 1) if line.endswith("# here"))
    assert describe(Lost()).invisible[0].line == f"test_modules_invisible.py:{here}"


def test_a_line_of_a_notebook_is_a_line_of_its_cell() -> None:
    """The kernel's file for a cell has a name that no other run has; its class has no source."""
    file = "/tmp/ipykernel_4711/1234567.py"
    lines = [
        "from torch import nn\n",
        "class Lost(nn.Module):\n",
        "    def __init__(self):\n",
        "        super().__init__()\n",
        "        self.layers = [nn.Linear(2, 2)]\n",
        "    def forward(self, x):\n",
        "        return nn.Dropout()(x)\n",
    ]
    linecache.cache[file] = (sum(map(len, lines)), None, lines, file)
    cell: dict[str, Any] = {"__name__": "__main__"}
    exec(compile("".join(lines), file, "exec"), cell)
    found = describe(cell["Lost"](), torch.ones(2, 2)).invisible
    assert [(thing.path, thing.line) for thing in found] == [
        ("layers[0]", "cell line 5"),
        ("forward().Dropout", "cell line 7"),
    ]


def test_what_forward_can_see_beyond_self() -> None:
    closed_over = nn.Linear(2, 2)

    class Sneaky(nn.Module):
        def forward(
            self,
            x: torch.Tensor,
            drop: nn.Module = nn.Dropout(0.5),  # noqa: B008
            *,
            scale: torch.Tensor = torch.ones(2),  # noqa: B008
        ) -> torch.Tensor:
            return self.more(drop(x) * scale)

        def more(self, x: torch.Tensor) -> torch.Tensor:
            return GLOBAL_LAYER(closed_over(x)) + bias_of_the_file(x)

    found = describe(Sneaky()).invisible
    assert {(thing.path, thing.kind, thing.holder) for thing in found} == {
        ("forward(drop=)", "module", "default"),
        ("forward(scale=)", "tensor", "default"),
        ("more().closed_over", "module", "closure"),
        ("more().GLOBAL_LAYER", "module", "global"),
        ("more().bias_of_the_file().GLOBAL_BIAS", "tensor", "global"),
    }
    lines = {thing.line for thing in found}
    assert all(line.startswith("test_modules_invisible.py:") for line in lines), lines


GLOBAL_LAYER = nn.Linear(2, 2)
GLOBAL_BIAS = torch.ones(2)


def bias_of_the_file(x: torch.Tensor) -> torch.Tensor:
    return x + GLOBAL_BIAS


def test_attributes_of_the_class() -> None:
    class Shared(nn.Module):
        layers = (nn.Linear(2, 2),)
        scale = torch.ones(2)
        sizes = (1, 2)

    assert seen(nn.ModuleList([Shared(), Shared()])) == [
        ("0.layers[0]", "module", "tuple"),
        ("0.scale", "tensor", "class"),
    ]


def test_a_list_of_buffers_goes_stale() -> None:
    class Anchored(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.register_buffer("anchor", torch.rand(4))
            self.anchors = [self.anchor]

    model = Anchored()
    assert seen(model) == []
    [thing] = describe(model.double()).invisible
    assert (thing.path, thing.kind) == ("anchors[0]", "tensor")
    assert "`anchor`" in thing.why
    assert "self.anchor" in thing.fix


# ---- silence


def registered_twice() -> nn.Module:
    model = Net()
    model.order = [model.fc]
    model.weights = {"w": model.fc.weight, "data": model.fc.weight.data}
    model.views = model.fc.weight.detach().view(-1)
    return model


def pruned() -> nn.Module:
    model = Net()
    model.fc.requires_grad_(
        False
    )  # so that the masked weight has no graph to tell where it is from
    prune.l1_unstructured(model.fc, "weight", amount=0.5)
    return model


def normed_without_a_graph() -> nn.Module:
    model = nn.utils.spectral_norm(nn.Linear(2, 2))
    with torch.no_grad():
        model(torch.ones(1, 2))
    return model


def with_an_optimizer() -> nn.Module:
    model = Net()
    model.optimizer = torch.optim.Adam(model.parameters())
    model(torch.ones(1, 2)).sum().backward()
    model.optimizer.step()
    model.schedule = torch.optim.lr_scheduler.StepLR(model.optimizer, 1)
    return model


def with_a_saved_state() -> nn.Module:
    model = Net()
    model.best = {name: value.clone() for name, value in model.state_dict().items()}
    return model


def with_its_parent() -> nn.Module:
    parent = Net()
    parent.child = Net()
    parent.child.parent = [parent]
    parent.child.weak = weakref.ref(parent)
    parent.child.proxy = weakref.proxy(parent)
    return parent.child


def with_its_last_output() -> nn.Module:
    model = Net()
    model.last = model(torch.ones(1, 2))
    return model


class Caching(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.fc = nn.Linear(2, 2)
        self.cache = torch.zeros(2)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.fc(x) + self.remember(x)

    def remember(self, x: torch.Tensor) -> torch.Tensor:
        self.cache = x.detach()
        return self.cache


def itself_in_a_circle() -> nn.Module:
    circle: list[Any] = []
    circle.append(circle)
    return Net(circle=circle, loop={"circle": circle}, bag=Bag(circle=circle))


class Raising(nn.Module):
    """Every way of reading it from outside raises."""

    @property
    def bad(self) -> Any:
        raise RuntimeError("do not read me")

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            return super().__getattr__(name)
        raise RuntimeError("do not ask me")

    def extra_repr(self) -> str:
        raise RuntimeError("do not print me")


class Loop:
    def __init__(self) -> None:
        self.me = self

    def __eq__(self, other: object) -> bool:
        raise RuntimeError

    def __hash__(self) -> int:
        raise RuntimeError

    def __getattr__(self, name: str) -> Any:
        raise RuntimeError


CLEAN: dict[str, Callable[[], nn.Module]] = {
    "a list of registered layers": registered_twice,
    "pruning": pruned,
    "an optimizer": with_an_optimizer,
    "a saved state": with_a_saved_state,
    "the parent": with_its_parent,
    "the last output": with_its_last_output,
    "a cache that forward fills": Caching,
    "circles": itself_in_a_circle,
    "properties that raise": lambda: nn.Sequential(Raising()),
    "an object that raises": lambda: Net(loop=Loop()),
    "activations without a state": lambda: Net(acts={"relu": nn.ReLU(), "loss": nn.MSELoss()}),
    "an unused default": lambda: Defaulted(nn.Linear(3, 3)),
    "numbers": lambda: Net(sizes=[1, 2], name="x", table={"a": None}, size=torch.Size([2])),
    "rnn": lambda: nn.LSTM(2, 3, num_layers=2, bidirectional=True).double(),
    "attention": lambda: nn.Transformer(8, 2, 1, 1, 16, batch_first=True),
    "spectral norm": lambda: nn.utils.spectral_norm(nn.Linear(2, 2)),
    "spectral norm after a run": normed_without_a_graph,
    "new weight norm": lambda: nn.utils.parametrizations.weight_norm(nn.Linear(2, 2)),
    "new spectral norm": lambda: nn.utils.parametrizations.spectral_norm(nn.Linear(2, 2)),
    "orthogonal": lambda: nn.utils.parametrizations.orthogonal(nn.Linear(2, 2)),
    "lazy": lambda: nn.Sequential(nn.LazyLinear(3), nn.LazyBatchNorm1d()),
    "adaptive softmax": lambda: nn.AdaptiveLogSoftmaxWithLoss(32, 10, [3, 6]),
    "data parallel": lambda: nn.DataParallel(Net()),
    "a compiled wrapper": lambda: torch.compile(Net(), backend="eager"),
    "an averaged copy": lambda: torch.optim.swa_utils.AveragedModel(Net()),
    "parameter containers": lambda: nn.ModuleList(
        [nn.ParameterList([parameter(), 3]), nn.ParameterDict({"a": parameter(), "b": "x"})]
    ),
}


class Defaulted(nn.Module):
    def __init__(self, layer: nn.Module = nn.Linear(2, 2)) -> None:  # noqa: B008
        super().__init__()
        self.layer = layer


@pytest.mark.filterwarnings("ignore:.*weight_norm.*:FutureWarning")
@pytest.mark.parametrize("name", CLEAN)
def test_silence_on_what_is_healthy(name: str) -> None:
    assert seen(CLEAN[name]()) == []


def test_an_activation_is_named_beside_what_is_lost_with_it() -> None:
    """Without a state and alone it is no loss; in one list with a layer it belongs to the story."""
    assert [thing.type for thing in describe(Net(held=[linear(), nn.Tanh()])).invisible] == [
        "Linear",
        "Tanh",
    ]
    assert [thing.type for thing in describe(Net(held=[nn.Dropout()])).invisible] == ["Dropout"]


def test_a_thing_held_twice_is_told_once() -> None:
    layer = linear()
    assert seen(Net(a=[layer], b={"again": layer})) == [("a[0]", "module", "list")]


# ---- any tree

HOLDERS: dict[str, Callable[[Any], tuple[Any, str]]] = {
    "list": lambda x: ([1, x], "[1]"),
    "tuple": lambda x: ((x, "a"), "[0]"),
    "dict": lambda x: ({"k": x, "z": None}, "['k']"),
    "dataclass": lambda x: (Heads("a", x), ".second"),
    "namedtuple": lambda x: (Pair(None, x), ".right"),
    "object": lambda x: (Bag(n=1, x=x), ".x"),
}
THINGS: dict[str, Callable[[], Any]] = {
    "module": lambda: nn.Linear(1, 1),
    "parameter": lambda: nn.Parameter(torch.ones(1)),
    "tensor": lambda: torch.ones(1),
}
chains = st.lists(st.sampled_from(sorted(HOLDERS)), min_size=1, max_size=4)
plants = st.lists(st.tuples(st.sampled_from(sorted(THINGS)), chains), max_size=3)
trees = st.recursive(plants, lambda inner: st.tuples(plants, st.lists(inner, max_size=3)))


def grow(tree: Any, path: str, expected: set[tuple[str, str]]) -> nn.Module:
    planted, below = tree if isinstance(tree, tuple) else (tree, [])
    model = Net()
    for i, (thing, chain) in enumerate(planted):
        value, steps = THINGS[thing](), ""
        for holder in chain:
            value, step = HOLDERS[holder](value)
            steps = step + steps
        setattr(model, f"held_{i}", value)
        expected.add((f"{path}held_{i}{steps}", thing))
    for i, child in enumerate(below):
        model.add_module(f"child_{i}", grow(child, f"{path}child_{i}.", expected))
    return model


@settings(max_examples=60)
@given(trees)
def test_any_planted_tree_is_found_exactly(tree: Any) -> None:
    """Whatever is planted anywhere is found under its own path; nothing else is, nothing twice."""
    expected: set[tuple[str, str]] = set()
    model = grow(tree, "", expected)
    found = [(thing.path, thing.kind) for thing in describe(model).invisible]
    assert set(found) == expected
    assert len(found) == len(expected)


@settings(max_examples=30)
@given(trees)
def test_any_path_leads_to_the_thing(tree: Any) -> None:
    """A path is what one would type after the model's name."""
    model = grow(tree, "", set())
    for thing in describe(model).invisible:
        value = eval(f"model.{thing.path}", {"model": model})
        assert type(value).__name__ == thing.type
