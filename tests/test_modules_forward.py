"""What one watched forward shows, and that nothing is changed by it."""

import dataclasses
import gc
import json
import random
import weakref
from collections.abc import Callable, Iterator
from types import ModuleType
from typing import Any, NamedTuple

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import nn

from pytorch_lab.errors import ModelError
from pytorch_lab.modules import ModuleTree, describe
from pytorch_lab.modules import copies as copies_module
from pytorch_lab.modules.copies import undo_all

X = torch.ones(2, 4)


def info(tree: ModuleTree, path: str) -> Any:
    return next(module for module in tree.modules if module.path == path)


class Steps(nn.Module):
    """A model from a function: the function is its forward."""

    def __init__(self, forward: Callable[..., Any], **parts: Any) -> None:
        super().__init__()
        self.run = forward
        for name, part in parts.items():
            setattr(self, name, part)

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        return self.run(self, *args, **kwargs)


# ---- calls and shapes


def test_calls_and_shapes_of_every_module() -> None:
    block = nn.Linear(4, 4)
    model = Steps(
        lambda self, x: self.out(self.block(self.block(x))),
        block=block,
        out=nn.Sequential(nn.Linear(4, 3), nn.Tanh()),
        spare=nn.Linear(1, 1),
    )
    tree = describe(model, X)
    calls = {module.path: module.calls for module in tree.modules}
    assert calls == {"": 1, "block": 2, "out": 1, "out.0": 1, "out.1": 1, "spare": 0}
    assert info(tree, "out.0").output_shapes == ("(2, 3)",)
    assert info(tree, "spare").output_shapes == ()
    assert tree.unused == ("spare.weight", "spare.bias")
    assert all(module.calls is None for module in describe(model).modules)
    assert describe(model).unused is None


class Point(NamedTuple):
    x: Any
    y: Any


@dataclasses.dataclass
class Answer:
    logits: Any
    note: Any = None


def numbers(x: torch.Tensor) -> Iterator[torch.Tensor]:
    yield x
    yield x[0]


OUTPUTS: dict[str, tuple[Callable[[torch.Tensor], Any], tuple[str, ...]]] = {
    "tensor": (lambda y: y, ("(2, 3)",)),
    "number": (lambda y: y.sum(), ("()",)),
    "tuple": (lambda y: (y, y[0]), ("(2, 3)", "(3,)")),
    "list": (lambda y: [y, None], ("(2, 3)", "None")),
    "dict": (lambda y: {"logits": y, "n": 3}, ("{'logits': (2, 3), 'n': 3}",)),
    "nested": (lambda y: (y, {"h": [y[0], y[0]]}), ("(2, 3)", "{'h': [(3,), (3,)]}")),
    "namedtuple": (lambda y: Point(y, 1), ("Point(x=(2, 3), y=1)",)),
    "dataclass": (lambda y: Answer(y), ("Answer(logits=(2, 3), note=None)",)),
    "nothing": (lambda y: None, ("None",)),
    "empty": (lambda y: (), ("()",)),
    "object": (lambda y: type("Thing", (), {})(), ("Thing",)),
    "long": (lambda y: dict.fromkeys(range(8), y), None),
    "generator": (numbers, ("generator",)),
}


@pytest.mark.parametrize("name", OUTPUTS)
def test_whatever_forward_returns(name: str) -> None:
    wrap, expected = OUTPUTS[name]
    tree = describe(Steps(lambda self, x: wrap(self.fc(x)), fc=nn.Linear(4, 3)), X)
    if expected is None:
        assert tree.modules[0].output_shapes[0].endswith("5: (2, 3), 2 more}")
    else:
        assert tree.modules[0].output_shapes == expected
    assert tree.unused == ()


def test_example_inputs_by_name() -> None:
    tree = describe(Steps(lambda self, *, x: self.fc(x), fc=nn.Linear(4, 3)), x=X)
    assert tree.modules[0].output_shapes == ("(2, 3)",)


# ---- which parameters have a part in the output


class Scale(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
        ctx.save_for_backward(weight)
        return x * weight

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        [weight] = ctx.saved_tensors
        return grads[0] * weight, None


def under_no_grad(self: Any, x: torch.Tensor) -> torch.Tensor:
    with torch.no_grad():
        return x * self.w


def into_place(self: Any, x: torch.Tensor) -> torch.Tensor:
    y = torch.zeros(4)
    y[1:3] = self.w[:2]
    return y


def through_a_view(self: Any, x: torch.Tensor) -> torch.Tensor:
    y = torch.zeros(2, 2)
    y.view(4).add_(self.w)
    return y


def kept_as_an_attribute(self: Any, x: torch.Tensor) -> torch.Tensor:
    self.aux_loss = self.w.sum()
    return x


def written_into_a_buffer(self: Any, x: torch.Tensor) -> torch.Tensor:
    self.kept.copy_(self.w * 2)
    return x


def decides(self: Any, x: torch.Tensor) -> torch.Tensor:
    return x if self.w.sum() > 0 else -x


def checkpointed(self: Any, x: torch.Tensor) -> torch.Tensor:
    run = torch.utils.checkpoint.checkpoint
    return run(lambda y: y * self.w, x, use_reentrant=False)


def checkpointed_reentrant(self: Any, x: torch.Tensor) -> torch.Tensor:
    run = torch.utils.checkpoint.checkpoint
    return run(lambda y: y * self.w, x.clone().requires_grad_(), use_reentrant=True)


def vmapped(self: Any, x: torch.Tensor) -> torch.Tensor:
    return torch.vmap(lambda row: row * self.w)(x)


USES: dict[str, Callable[[Any, torch.Tensor], torch.Tensor]] = {
    "plainly": lambda self, x: x * self.w,
    "detached": lambda self, x: x * self.w.detach(),
    "as data": lambda self, x: x * self.w.data,
    "under no_grad": under_no_grad,
    "as a number": lambda self, x: x * self.w[0].item(),
    "in a decision": decides,
    "written into place": into_place,
    "through a view": through_a_view,
    "in a keyword": lambda self, x: F.linear(x, weight=self.w[None]),
    "in a list": lambda self, x: torch.stack([self.w, x[0]]),
    "by a custom function": lambda self, x: Scale.apply(x, self.w),
    "as whole numbers": lambda self, x: x[:, self.w.argmax()],
    "kept as an attribute": kept_as_an_attribute,
    "written into a buffer": written_into_a_buffer,
    "checkpointed": checkpointed,
    "checkpointed with reentry": checkpointed_reentrant,
    "under vmap": vmapped,
    "through numpy": lambda self, x: x + torch.from_numpy(self.w.detach().numpy().copy()),
    "iterated": lambda self, x: sum(list(self.w)) * x,
    "unpacked": lambda self, x: x * self.w.unbind()[1],
}
NON_USES: dict[str, Callable[[Any, torch.Tensor], torch.Tensor]] = {
    "not at all": lambda self, x: x * 2,
    "its shape only": lambda self, x: x * self.w.shape[0],
    "its dtype and device": lambda self, x: x.to(self.w.device, self.w.dtype),
    "in a result that is dropped": lambda self, x: (self.w * x, x * 2)[1],
    "replaced by itself": lambda self, x: torch.zeros_like(x).copy_(x),
}


@pytest.mark.parametrize("frozen", [False, True])
@pytest.mark.parametrize("way", USES)
def test_a_parameter_that_has_a_part(way: str, frozen: bool) -> None:
    weight = nn.Parameter(torch.ones(4), requires_grad=not frozen)
    model = Steps(USES[way], w=weight, idle=nn.Parameter(torch.ones(2)))
    model.register_buffer("kept", torch.zeros(4))
    assert describe(model, X).unused == ("idle",)


@pytest.mark.parametrize("frozen", [False, True])
@pytest.mark.parametrize("way", NON_USES)
def test_a_parameter_without_a_part(way: str, frozen: bool) -> None:
    weight = nn.Parameter(torch.ones(4), requires_grad=not frozen)
    assert describe(Steps(NON_USES[way], w=weight), X).unused == ("w",)


def test_a_use_that_only_autograd_can_see() -> None:
    """Inside this context no torch function reports itself, as in an extension written in C++."""

    def forward(self: Any, x: torch.Tensor) -> torch.Tensor:
        with torch._C.DisableTorchFunction():
            return x * self.w

    model = Steps(forward, w=nn.Parameter(torch.ones(4)), idle=nn.Parameter(torch.ones(4)))
    assert describe(model, X).unused == ("idle",)


@pytest.mark.parametrize("mode", [torch.no_grad, torch.inference_mode, torch.enable_grad])
def test_the_callers_grad_mode_is_the_models(mode: Any) -> None:
    noted: list[bool] = []

    def forward(self: Any, x: torch.Tensor) -> torch.Tensor:
        seen_modes.append(torch.is_grad_enabled())
        return self.fc(x)

    seen_modes = noted
    model = Steps(forward, fc=nn.Linear(4, 3), spare=nn.Linear(1, 1))
    with mode():
        expected = torch.is_grad_enabled()
        assert describe(model, X).unused == ("spare.weight", "spare.bias")
    model(X)
    assert noted[-1] is True
    assert torch.is_grad_enabled()
    assert expected is (mode is torch.enable_grad)


def test_unused_agrees_with_backward_on_ordinary_layers() -> None:
    """The reference is autograd: what gets no gradient from the output has no part in it."""
    torch.manual_seed(0)
    models = [
        (nn.LSTM(4, 3, num_layers=2, bidirectional=True), torch.ones(5, 2, 4)),
        (nn.TransformerEncoderLayer(4, 2, 8, batch_first=True), torch.ones(2, 5, 4)),
        (nn.Sequential(nn.Conv1d(2, 3, 3), nn.BatchNorm1d(3), nn.PReLU()), torch.ones(2, 2, 8)),
        (nn.Bilinear(4, 4, 2), None),
    ]
    for model, x in models:
        inputs = (X, X) if x is None else (x,)
        unused = describe(model, *inputs).unused
        out = model(*inputs)
        (out[0] if isinstance(out, tuple) else out).sum().backward()
        idle = tuple(name for name, p in model.named_parameters() if p.grad is None)
        assert unused == idle


# ---- invisible things that only a run shows


def test_layers_made_inside_forward() -> None:
    def forward(self: Any, x: torch.Tensor) -> torch.Tensor:
        for _ in range(3):
            x = nn.Linear(4, 4)(x)
        x = nn.Dropout(0.5)(x)
        return nn.ReLU()(x) + nn.MSELoss()(x, x)  # no state, no modes: nothing is lost with these

    model = nn.Sequential(nn.Linear(4, 4), Steps(forward))
    found = describe(model, X).invisible
    assert [(thing.path, thing.kind, thing.holder, thing.n_parameters) for thing in found] == [
        ("1.forward().Linear", "module", "forward", 20),
        ("1.forward().Dropout", "module", "forward", 0),
    ]
    assert all(thing.line.startswith("test_modules_forward.py:") for thing in found)
    assert all("every call" in thing.why and "in __init__" in thing.fix for thing in found)
    assert describe(model).invisible == ()


def test_a_block_made_inside_forward_is_told_once() -> None:
    class Block(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.inner = nn.Sequential(nn.Linear(4, 4), nn.Dropout())

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return self.inner(x)

    model = Steps(lambda self, x: Block()(x) + Block()(x))
    [thing] = describe(model, X).invisible
    assert (thing.type, thing.n_parameters) == ("Block", 20)


def test_two_layers_of_one_kind_have_two_paths() -> None:
    def forward(self: Any, x: torch.Tensor) -> torch.Tensor:
        x = nn.Linear(4, 4)(x)
        return nn.Linear(4, 4)(x)

    paths = [thing.path for thing in describe(Steps(forward), X).invisible]
    assert paths == ["forward().Linear", "forward().Linear #2"]


def test_a_layer_put_on_self_by_forward() -> None:
    def forward(self: Any, x: torch.Tensor) -> torch.Tensor:
        if not hasattr(self, "late"):
            self.late = nn.Linear(4, 2)
        return self.late(x)

    model = Steps(forward)
    [thing] = describe(model, X).invisible
    assert (thing.type, thing.holder) == ("Linear", "forward")
    assert not hasattr(model, "late")


def test_parameters_made_inside_forward_or_hidden_out_of_reach() -> None:
    hidden = torch.ones(4, requires_grad=True)

    class Vault(dict):
        """A dict whose values nobody sees by looking."""

        def __missing__(self, key: str) -> torch.Tensor:
            return hidden

    vault = Vault()
    made = Steps(lambda self, x: x * nn.Parameter(torch.ones(4)))
    [thing] = describe(made, X).invisible
    assert (thing.kind, thing.type, thing.shape) == ("parameter", "Parameter", (4,))
    [thing] = describe(Steps(lambda self, x: x * vault["x"]), X).invisible
    assert (thing.kind, thing.holder, thing.path) == ("parameter", "elsewhere", "forward().Tensor")
    [thing] = describe(Steps(lambda self, x: x * vault["x"].exp()), X).invisible
    assert thing.kind == "parameter"


@pytest.mark.parametrize(
    "forward",
    [
        lambda self, x: self.fc(x.detach().requires_grad_()),
        lambda self, x: self.fc(x) + torch.zeros(3, requires_grad=True),
        lambda self, x: torch.func.functional_call(self.fc, dict(self.fc.named_parameters()), x),
        lambda self, x: torch.func.grad(lambda y: self.fc(y).sum())(x),
        lambda self, x: nn.functional.dropout(self.fc(x), training=self.training),
    ],
)
def test_healthy_ways_to_make_tensors_in_forward(forward: Callable[..., Any]) -> None:
    assert describe(Steps(forward, fc=nn.Linear(4, 3)), X).invisible == ()
    assert describe(Steps(forward, fc=nn.Linear(4, 3)), X.clone().requires_grad_()).invisible == ()


def test_which_invisible_things_forward_used() -> None:
    model = Steps(
        lambda self, x: self.layers[0](x) * self.table["w"] + self.plain,
        layers=[nn.Linear(4, 4), nn.Linear(4, 4)],
        table={"w": nn.Parameter(torch.ones(4)), "v": nn.Parameter(torch.ones(4))},
        plain=torch.ones(4),
        idle=torch.ones(4),
    )
    used = {thing.path: thing.used for thing in describe(model, X).invisible}
    assert used == {
        "layers[0]": True,
        "layers[1]": False,
        "table['w']": True,
        "table['v']": False,
        "plain": True,
        "idle": False,
    }


# ---- the patient


class Meddler(nn.Module):
    """A forward that changes all it can reach."""

    calls_of_the_class = 0

    def __init__(self) -> None:
        super().__init__()
        self.norm = nn.BatchNorm1d(4)
        self.embed = nn.Embedding(5, 4, max_norm=0.1)
        self.fc = nn.Linear(4, 4)
        self.register_buffer("steps", torch.zeros(()))
        self.register_buffer("memory", torch.zeros(4))
        self.history: list[Any] = []
        self.table: dict[str, Any] = {"a": [1]}
        self.names = {"x"}
        self.array = np.zeros(2)
        self.generator = torch.Generator().manual_seed(3)
        self.dice = random.Random(3)
        self.draws = np.random.default_rng(3)
        self.holder = dataclasses.make_dataclass("Holder", ["n", "t"])(0, torch.zeros(2))
        self.plain = torch.zeros(2)
        self.count = 0
        count = 0

        def bump() -> int:
            nonlocal count
            count += 1
            return count

        self.bump = bump

    def forward(self, x: torch.Tensor, fail: bool = False) -> torch.Tensor:
        self._change_containers(x)
        self._change_modules()
        self._draw()
        y = self.fc(self.norm(x)) + self.embed(torch.arange(2))
        y.sum().backward()
        self.fc.bias.data.add_(1)
        with torch.no_grad():
            self.fc.weight.mul_(2)
            x.add_(1)
        self.fc.weight.requires_grad_(False)
        self.memory.copy_(y[0])
        self.steps += 1
        self.plain.add_(1)
        self.last = y
        torch.set_grad_enabled(False)
        torch.set_default_dtype(torch.float64)
        if fail:
            raise ValueError("on purpose")
        return y

    def _change_containers(self, x: torch.Tensor) -> None:
        self.history.append(x)
        self.table["a"].append(2)
        self.table["b"] = 1
        self.names.add("y")
        self.array += 1
        self.count += 1
        self.holder.n += 1
        self.holder.t.add_(1)
        Meddler.calls_of_the_class += 1
        self.bump()

    def _change_modules(self) -> None:
        self.fc.eval()
        self.extra = nn.Linear(1, 1)
        self.norm.momentum = 0.5
        self.norm.double()
        self.norm.float()
        self.register_forward_hook(lambda *args: None)
        del self.names

    def _draw(self) -> None:
        torch.rand(1), random.random(), np.random.rand()  # noqa: NPY002
        torch.rand(1, generator=self.generator), self.dice.random(), self.draws.random()


def draws(model: Meddler) -> tuple[Any, ...]:
    return (
        model.generator.get_state().tolist(),
        model.dice.getstate(),
        repr(model.draws.bit_generator.state),
        model.array.tolist(),
        Meddler.calls_of_the_class,
    )


@pytest.fixture
def meddler() -> Meddler:
    torch.manual_seed(0)
    model = Meddler()
    model.fc(torch.ones(1, 4)).sum().backward()
    return model


@pytest.mark.parametrize("limit", [0, copies_module.COPY_AT_ONCE_BYTES])
@pytest.mark.parametrize("fail", [False, True])
def test_the_patient_is_left_as_found(
    models: ModuleType, meddler: Meddler, monkeypatch: pytest.MonkeyPatch, fail: bool, limit: int
) -> None:
    """With copies made at once, and with copies made when something is about to be written."""
    monkeypatch.setattr(copies_module, "COPY_AT_ONCE_BYTES", limit)
    x = torch.ones(2, 4)
    before, drawn = models.as_found(meddler), draws(meddler)
    if fail:
        with pytest.raises(Exception, match="on purpose"):
            describe(meddler, x, fail=True)
    else:
        assert describe(meddler, x).modules[0].output_shapes == ("(2, 4)",)
    after = models.as_found(meddler)
    changed = [key for key in before if before[key] != after.get(key)]
    assert changed == []
    assert draws(meddler) == drawn
    assert meddler.bump() == 1
    assert torch.equal(x, torch.ones(2, 4))
    assert meddler.memory.is_leaf


def test_the_comparison_sees_what_a_forward_changes(models: ModuleType, meddler: Meddler) -> None:
    """The twin of the test above: without our care all of this is changed."""
    before, drawn = models.as_found(meddler), draws(meddler)
    try:
        meddler(torch.tensor([[1.0, 2.0, 3.0, 4.0], [4.0, 3.0, 1.0, 2.0]]))
        after, now = models.as_found(meddler), draws(meddler)
    finally:
        torch.set_grad_enabled(True)
        torch.set_default_dtype(torch.float32)
    changed = {key for key in before if before[key] != after.get(key)}
    assert changed >= {"", "norm", "embed", "fc", "torch rng", "numpy rng", "python rng"}
    assert changed >= {"grad mode", "default dtype", "fc.weight grad"}
    assert all(one != other for one, other in zip(drawn, now, strict=True))


def test_looking_does_not_break_a_backward_that_is_due() -> None:
    model = nn.Sequential(nn.Linear(4, 4), nn.BatchNorm1d(4), nn.ReLU(inplace=True))
    loss = model(torch.randn(3, 4)).sum()
    versions = [p._version for p in model.parameters()]
    describe(model, torch.randn(3, 4))
    assert [p._version for p in model.parameters()] == versions
    loss.backward()


def test_the_users_hooks_run_and_what_they_keep_is_put_back() -> None:
    kept: dict[str, Any] = {}
    model = nn.Sequential(nn.Linear(4, 4))
    model[0].register_forward_hook(lambda module, args, out: kept.update(out=out))
    describe(model, X)
    assert kept == {}
    assert len(model[0]._forward_hooks) == 1


def test_looking_while_another_error_is_handled() -> None:
    model = Steps(lambda self, x: self.quiet(x), quiet=Steps(lambda self, x: None))
    try:
        raise KeyError("earlier")
    except KeyError:
        tree = describe(model, X)
    assert [module.calls for module in tree.modules] == [1, 1]


def test_the_record_keeps_nothing_alive() -> None:
    model = nn.Sequential(nn.Linear(4, 3), Steps(lambda self, x: x, hidden=[nn.Linear(1, 1)]))
    tree = describe(model, X)
    gone = [weakref.ref(model), *(weakref.ref(p) for p in model.parameters())]
    gone.append(weakref.ref(model[1].hidden[0]))
    del model
    gc.collect()
    assert [reference() for reference in gone] == [None] * len(gone)
    assert json.loads(json.dumps(dataclasses.asdict(tree)))["n_parameters"] == 15


# ---- unusual models


def test_lazy_modules_stay_lazy() -> None:
    model = nn.Sequential(nn.LazyLinear(3), nn.ReLU(), nn.LazyLinear(2))
    tree = describe(model, X)
    assert tree.lazy == ("0.weight", "0.bias", "2.weight", "2.bias")
    assert [module.output_shapes for module in tree.modules] == [
        ("(2, 2)",),
        ("(2, 3)",),
        ("(2, 3)",),
        ("(2, 2)",),
    ]
    assert tree.unused == ()
    assert type(model[0]) is nn.LazyLinear
    assert isinstance(model[0].weight, nn.UninitializedParameter)


def test_meta_models_run_on_meta_inputs() -> None:
    model = nn.Sequential(nn.Linear(4, 3, device="meta"), nn.BatchNorm1d(3, device="meta"))
    tree = describe(model, X.to("meta"))
    assert tree.modules[0].output_shapes == ("(2, 3)",)
    assert tree.unused == ()


def test_a_compiled_model_is_watched_uncompiled() -> None:
    compiled = torch.compile(nn.Sequential(nn.Linear(4, 3), nn.ReLU()), backend="eager")
    tree = describe(compiled, X)
    assert [(m.path, m.calls) for m in tree.modules] == [
        ("", 1),
        ("_orig_mod", 1),
        ("_orig_mod.0", 1),
        ("_orig_mod.1", 1),
    ]
    assert tree.unused == ()


@pytest.mark.filterwarnings("ignore:.*torch.jit.*:DeprecationWarning")
def test_scripted_parts() -> None:
    scripted = torch.jit.script(nn.Linear(4, 3).requires_grad_(False))
    model = Steps(lambda self, x: self.inner(x), inner=scripted)
    tree = describe(model, X)
    assert info(tree, "inner").type == "Linear"
    assert tree.n_parameters == 15
    assert tree.unused == ()
    assert describe(scripted, X).modules[0].output_shapes == ("(2, 3)",)


def test_data_parallel_and_weight_norm() -> None:
    normed = nn.utils.parametrizations.weight_norm(nn.Linear(4, 3))
    tree = describe(nn.DataParallel(nn.Sequential(normed)), X)
    assert tree.invisible == ()
    assert tree.unused == ()
    assert tree.modules[0].output_shapes == ("(2, 3)",)


def test_a_method_called_directly_counts_no_call() -> None:
    model = Steps(lambda self, x: self.fc.forward(x), fc=nn.Linear(4, 3))
    tree = describe(model, X)
    assert info(tree, "fc").calls == 0
    assert tree.unused == ()


# ------------------------------------------------------------------ tensors and errors gone wild


class Touches(nn.Module):
    """Changes a buffer and a parameter, then does what it is told."""

    def __init__(self, then):
        super().__init__()
        self.fc = nn.Linear(2, 2)
        self.register_buffer("seen", torch.zeros(1))
        self.then = then

    def forward(self, x):
        self.seen += 1
        self.fc.weight.data += 1
        return self.then(self, x)


@pytest.mark.parametrize("layout", [torch.strided, torch.jagged])
@pytest.mark.filterwarnings("ignore:The PyTorch API of nested tensors:UserWarning")
def test_a_nested_tensor_among_the_inputs_leaves_the_model_as_found(layout):
    rows = [torch.ones(3, 2), torch.ones(4, 2)]
    model = Touches(lambda self, x: self.fc(torch.ones(1, 2)))
    weight = model.fc.weight.detach().clone()
    describe(model, torch.nested.nested_tensor(rows, layout=layout))
    assert model.seen.item() == 0
    assert model.fc.weight.equal(weight)


def test_what_can_not_be_put_back_keeps_nothing_else_from_it():
    taken = []

    def fails():
        raise RuntimeError("no")

    with pytest.raises(RuntimeError, match="no"):
        undo_all([fails, lambda: taken.append(1)])
    assert taken == [1]


def test_an_error_that_can_not_be_read_is_still_told():
    class Mute(Exception):
        def __str__(self):
            raise ValueError

    def speak(self, x):
        raise Mute

    with pytest.raises(ModelError, match=r"Mute: its message could not be read"):
        describe(Touches(speak), torch.ones(1, 2))


def test_an_error_about_something_else_is_not_blamed_on_the_dtype():
    def boom(self, x):
        self.fc(x.double())
        raise RuntimeError("boom")

    with pytest.raises(ModelError, match="boom") as caught:
        describe(Touches(boom).double(), torch.ones(1, 2))
    assert "float64" not in str(caught.value)


def test_a_model_that_is_too_deep_for_python_is_told_so():
    model: nn.Module = nn.Linear(2, 2)
    for _ in range(2000):
        model = nn.Sequential(model)
    with pytest.raises(ModelError, match="more calls inside each other than it allows") as caught:
        describe(model, torch.ones(1, 2))
    assert len(str(caught.value)) < 700
