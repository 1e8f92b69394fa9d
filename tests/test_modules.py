"""`describe` agrees with torch about what is registered, and refuses what it cannot look at."""

import contextlib
from collections.abc import Callable
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn

from pytorch_lab.errors import ModelError, UsageError
from pytorch_lab.modules import ModuleTree, describe


def agrees_with_torch(model: nn.Module) -> ModuleTree:
    """The reference is torch's own walk, module by module and name by name."""
    tree = describe(model)
    named = dict(model.named_modules())
    assert [info.path for info in tree.modules] == list(named)
    for info in tree.modules:
        module = named[info.path]
        parameters = list(module.parameters())
        assert info.n_parameters == sum(p.numel() for p in parameters)
        assert info.n_trainable == sum(p.numel() for p in parameters if p.requires_grad)
        assert info.bytes == sum(t.nbytes for t in {*parameters, *module.buffers()})
        assert info.training == module.training
        assert info.depth == (info.path.count(".") + 1 if info.path else 0)
    infos = [t for info in tree.modules for t in info.tensors]
    for kind, reference in (
        ("parameter", model.named_parameters(remove_duplicate=False)),
        ("buffer", model.named_buffers(remove_duplicate=False)),
    ):
        names: dict[int, list[str]] = {}
        for name, tensor in reference:
            names.setdefault(id(tensor), []).append(name)
        found = [[t.path, *t.aliases] for t in infos if t.kind == kind]
        assert sorted(map(sorted, found)) == sorted(map(sorted, names.values()))
    assert (tree.n_parameters, tree.n_trainable, tree.bytes) == (
        tree.modules[0].n_parameters,
        tree.modules[0].n_trainable,
        tree.modules[0].bytes,
    )
    return tree


class Block(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv1d(3, 3, 3, padding=1)
        self.norm = nn.BatchNorm1d(3)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.norm(self.conv(x))


def tied() -> nn.Module:
    model = nn.ModuleDict(
        {"emb": nn.Embedding(7, 4), "mid": nn.Linear(4, 4), "head": nn.Linear(4, 7)}
    )
    model["head"].weight = model["emb"].weight
    return model


def half_frozen() -> nn.Module:
    model = nn.Sequential(
        nn.Linear(2, 3), nn.Sequential(nn.Linear(3, 3), nn.Dropout()), nn.Linear(3, 1)
    )
    model[0].requires_grad_(False)
    model[2].bias.requires_grad_(False)
    return model


def with_gaps() -> nn.Module:
    model = nn.Sequential(nn.Linear(2, 2, bias=False), nn.BatchNorm1d(2, affine=False))
    model.register_module("nothing", None)
    model.register_buffer("none", None)
    model.register_buffer("scratch", torch.ones(5, dtype=torch.int8), persistent=False)
    return model


ORDINARY: dict[str, Callable[[], nn.Module]] = {
    "one layer": lambda: nn.Linear(4, 2),
    "no parameters": lambda: nn.Sequential(nn.ReLU(), nn.Identity()),
    "nothing at all": lambda: nn.Sequential(),
    "ten times one block": lambda: nn.Sequential(*[Block()] * 10),
    "tied weights": tied,
    "a module under two names": lambda: nn.ModuleDict(
        {"a": (b := Block()), "b": nn.ModuleList([b])}
    ),
    "half frozen": half_frozen,
    "gaps": with_gaps,
    "transformer": lambda: nn.Transformer(8, 2, 1, 1, 16, batch_first=True),
    "rnn": lambda: nn.GRU(3, 4, num_layers=2, bidirectional=True),
    "complex and half": lambda: nn.ModuleList(
        [nn.Linear(2, 2, dtype=torch.complex64), nn.Linear(2, 2, dtype=torch.bfloat16)]
    ),
    "meta": lambda: nn.Linear(2, 3, device="meta"),
    "weight norm": lambda: nn.utils.parametrizations.weight_norm(nn.Linear(2, 2)),
    "data parallel": lambda: nn.DataParallel(Block()),
    "compiled": lambda: torch.compile(Block(), backend="eager"),
}


@pytest.mark.parametrize("name", ORDINARY)
def test_the_record_agrees_with_torch(name: str) -> None:
    agrees_with_torch(ORDINARY[name]())


layers = st.sampled_from(["linear", "norm", "relu", "again", "tie"])
shapes = st.recursive(layers, lambda inner: st.lists(inner, max_size=4), max_leaves=15)


def build(shape: Any, made: list[nn.Module]) -> nn.Module:
    if isinstance(shape, list):
        model: nn.Module = nn.ModuleList([build(part, made) for part in shape])
    elif shape == "again" and made:
        return made[len(made) // 2]
    elif shape == "tie":
        model = nn.Linear(2, 2)
        earlier = [m for m in made if isinstance(m, nn.Linear)]
        model.weight = earlier[0].weight if earlier else model.weight
    else:
        model = {"linear": nn.Linear, "norm": nn.BatchNorm1d}.get(shape, lambda *_: nn.ReLU())(
            *((2, 2) if shape == "linear" else (2,))
        )
    made.append(model)
    return model


@settings(max_examples=60)
@given(st.lists(shapes, max_size=4))
def test_any_tree_agrees_with_torch(shape: list[Any]) -> None:
    """However modules and weights are shared: same order, same names, same sums as torch's."""
    agrees_with_torch(build(shape, []))


def test_the_fields_of_a_tensor() -> None:
    tree = describe(with_gaps())
    weight, *_ = tree.modules[1].tensors
    scratch = tree.modules[0].tensors[0]
    assert (weight.path, weight.kind, weight.shape, weight.dtype, weight.device) == (
        "0.weight",
        "parameter",
        (2, 2),
        "float32",
        "cpu",
    )
    assert (weight.numel, weight.bytes, weight.persistent) == (4, 16, True)
    assert (scratch.kind, scratch.dtype, scratch.bytes, scratch.persistent) == (
        "buffer",
        "int8",
        5,
        False,
    )
    assert tree.non_persistent == ("scratch",)
    assert tree.modules[1].extra == "in_features=2, out_features=2, bias=False"


def test_shared_things_once_with_all_their_names() -> None:
    assert describe(tied()).shared == (("emb.weight", "head.weight"),)
    tree = describe(nn.Sequential(*[Block()] * 10))
    assert tree.shared == (tuple("0123456789"),)
    assert tree.modules[1].aliases == tuple("123456789")
    assert tree.modules[2].aliases[0] == "1.conv"
    assert describe(nn.Sequential(Block(), Block())).shared == ()
    buffers = nn.ModuleList([nn.Module(), nn.Module()])
    buffers[0].register_buffer("mask", torch.ones(2))
    buffers[1].register_buffer("mask", buffers[0].mask)
    assert describe(buffers).shared == (("0.mask", "1.mask"),)


def test_frozen_parts_and_other_modes() -> None:
    model = half_frozen()
    model[1].eval()
    tree = describe(model)
    assert tree.frozen == ("0.weight", "0.bias", "2.bias")
    assert tree.modes == (("1", False), ("1.0", False), ("1.1", False))
    assert tree.training is True
    model.eval()
    model[1][1].train()
    assert describe(model).modes == (("1.1", True),)


def test_bytes_count_memory_once() -> None:
    """Two views of one memory are not more than the memory; an expanded tensor is one row."""
    model = nn.Module()
    flat = torch.zeros(10)
    model.a, model.b = nn.Parameter(flat[:6]), nn.Parameter(flat.view(-1))
    model.register_buffer("rows", torch.zeros(1, 4).expand(100, 4))
    tree = describe(model)
    assert [t.bytes for t in tree.modules[0].tensors] == [24, 40, 16]
    assert tree.bytes == 40 + 16
    assert tree.n_parameters == 16 == sum(p.numel() for p in model.parameters())


@pytest.mark.filterwarnings("ignore:Sparse (CSR|invariant).*:UserWarning")
def test_bytes_of_sparse_tensors() -> None:
    dense = torch.eye(3)
    model = nn.Module()
    model.coo = nn.Parameter(dense.to_sparse())
    model.register_buffer("csr", dense.to_sparse_csr())
    tree = describe(model)
    coo, csr = tree.modules[0].tensors
    assert coo.bytes == 2 * 3 * 8 + 3 * 4  # two int64 coordinates and a value, for three entries
    assert csr.bytes == 4 * 8 + 3 * 8 + 3 * 4
    assert tree.invisible == ()


def test_lazy_modules_have_no_size_yet() -> None:
    model = nn.Sequential(nn.LazyLinear(3), nn.LazyBatchNorm1d(), nn.Linear(3, 2))
    tree = describe(model)
    assert tree.n_parameters == 8
    assert tree.bytes == 32 + 8  # and num_batches_tracked
    assert tree.lazy == (
        "0.weight",
        "0.bias",
        "1.weight",
        "1.bias",
        "1.running_mean",
        "1.running_var",
    )
    assert [info.lazy for info in tree.modules] == [False, True, True, False]
    assert tree.modules[1].tensors[0].shape is None


def test_a_thousand_levels_deep_and_wide() -> None:
    model: nn.Module = nn.Linear(1, 1)
    for _ in range(3000):
        model = nn.Sequential(model)
    tree = describe(model)
    assert len(tree.modules) == 3001
    assert tree.modules[0].n_parameters == 2
    assert all(len(line) <= 80 for line in str(tree).splitlines())
    wide = describe(nn.ModuleList([nn.Linear(1, 1) for _ in range(5000)]))
    assert wide.n_parameters == 10_000


def test_a_module_that_contains_itself() -> None:
    model = nn.Sequential(nn.Linear(2, 2))
    model.append(model)
    tree = describe(model)
    assert [info.path for info in tree.modules] == ["", "0"]
    assert tree.n_parameters == 6
    assert tree.modules[0].aliases == ("1",)


def test_sharing_that_multiplies_ends() -> None:
    """2**40 ways lead to one layer; the names are cut off, the sums are right."""
    model: nn.Module = nn.Linear(2, 2)
    for _ in range(40):
        model = nn.Sequential(model, model)
    tree = describe(model)
    assert len(tree.modules) == 41
    assert tree.n_parameters == 6


# ---- refusals


class Forgetful(nn.Module):
    def __init__(self) -> None:
        pass


NO_MODULES: dict[str, tuple[Callable[[], Any], str]] = {
    "a tensor": (lambda: torch.ones(2), r"expected an nn\.Module, got 'Tensor'; give the model"),
    "a state dict": (lambda: nn.Linear(1, 1).state_dict(), r"got 'OrderedDict'"),
    "nothing": (lambda: None, r"got 'NoneType'"),
    "a class": (lambda: nn.Linear, r"got the class Linear itself; make one first"),
    "an unready module": (
        Forgetful,
        r"a Forgetful whose nn\.Module\.__init__ never ran; call super",
    ),
}


@pytest.mark.parametrize("name", NO_MODULES)
def test_what_is_no_module_is_refused(name: str) -> None:
    make, message = NO_MODULES[name]
    with pytest.raises(UsageError, match=message):
        describe(make())


def test_a_lazy_model_that_cannot_be_copied_is_refused() -> None:
    model = nn.Sequential(nn.LazyLinear(2))
    model.lock = (i for i in range(2))
    with pytest.raises(UsageError, match=r"lazy model that copy.deepcopy can copy.*TypeError"):
        describe(model, torch.ones(1, 2))


class Net(nn.Module):
    def __init__(self, layer: nn.Module) -> None:
        super().__init__()
        self.body = nn.Sequential(nn.Identity(), layer)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.body(x)  # the line


def ones(*shape: int, **kwargs: Any) -> Callable[[], torch.Tensor]:
    return lambda: torch.ones(*shape, **kwargs)


WRONG: dict[str, tuple[Callable[[], nn.Module], Callable[[], Any], str]] = {
    "linear": (
        lambda: nn.Linear(4, 3),
        ones(2, 5),
        r"^Net could not run: expected an input of shape \(\.\.\., 4\), got \(2, 5\), in "
        r"`body\.1`, a Linear, at test_modules\.py:\d+ \(RuntimeError: mat1 and mat2 shapes "
        r"cannot be multiplied \(2x5 and 4x3\)\); give it 4 values on axis -1, or make the layer "
        r"with in_features=5\.$",
    ),
    "channels": (
        lambda: nn.Conv2d(3, 8, 3),
        ones(2, 1, 8, 8),
        r"shape \(N, 3, \.\.\.\), got \(2, 1, 8, 8\), in `body\.1`, a Conv2d.*in_channels=1",
    ),
    "axes of a convolution": (
        lambda: nn.Conv2d(3, 8, 3),
        ones(8, 8),
        r"an input with 4 axes, \(N, 3, \.\.\.\), got \(8, 8\).*unsqueeze\(0\)",
    ),
    "batch norm": (lambda: nn.BatchNorm1d(3), ones(2, 4), r"\(N, 3, \.\.\.\), got \(2, 4\)"),
    "batch of one": (
        lambda: nn.BatchNorm1d(3),
        ones(1, 3),
        r"more than one value per channel while training, got \(1, 3\).*model\.eval\(\) first",
    ),
    "layer norm": (lambda: nn.LayerNorm(3), ones(2, 4), r"\(\.\.\., 3\), got \(2, 4\)"),
    "rnn": (lambda: nn.GRU(3, 2), ones(5, 2, 4), r"\(\.\.\., 3\), got \(5, 2, 4\).*input_size=4"),
    "embedding of floats": (
        lambda: nn.Embedding(10, 2),
        ones(2, 3),
        r"whole numbers, the rows to look up, got float32 of shape \(2, 3\).*"
        r"randint\(0, 10, \(2, 3\)\)",
    ),
    "embedding out of range": (
        lambda: nn.Embedding(10, 2),
        lambda: torch.tensor([3, 10]),
        r"numbers below 10, got 10, in `body\.1`, an Embedding.*num_embeddings=11",
    ),
    "dtype": (
        lambda: nn.Linear(4, 3),
        ones(2, 4, dtype=torch.float64),
        r"an input of torch\.float32, like the weights, got one of torch\.float64.*x\.to\(torch",
    ),
    "device": (
        lambda: nn.Linear(4, 3, device="meta"),
        ones(2, 4),
        r"an input on meta, where the weights are, got one on cpu.*x\.to\('meta'\)",
    ),
    "no forward": (
        lambda: nn.ModuleList([nn.Linear(4, 3)]),
        ones(2, 4),
        r"a module with a forward, got a ModuleList, which has none, in `body\.1`.*leave out",
    ),
    "another error": (
        lambda: Failing(),
        ones(2, 4),
        r"forward to take the example inputs, got an error on inputs of shape \(2, 4\), in "
        r"`body\.1`, a Failing, at test_modules\.py:\d+ \(ValueError: two lines here\); call model",
    ),
}


class Failing(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        raise ValueError("two\nlines   here")


@pytest.mark.parametrize("name", WRONG)
def test_a_forward_that_raises_names_layer_line_and_shapes(name: str) -> None:
    layer, x, message = WRONG[name]
    with pytest.raises(ModelError, match=message) as caught:
        describe(Net(layer()), x())
    assert caught.value.__cause__ is not None
    assert "\n" not in str(caught.value)


def test_wrong_example_inputs() -> None:
    with pytest.raises(ModelError, match=r"inputs that fit forward\(x: torch\.Tensor\).*, got 2"):
        describe(Net(nn.ReLU()), torch.ones(1), torch.ones(1))
    with pytest.raises(ModelError, match=r"inputs that fit forward\(x: torch\.Tensor\)"):
        describe(Net(nn.ReLU()), y=torch.ones(1))


def test_an_error_that_the_model_handles_is_none() -> None:
    class Careful(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.first, self.second = Failing(), nn.Linear(4, 3)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            try:
                return self.first(x)
            except ValueError:
                return self.second(x)

    assert describe(Careful(), torch.ones(2, 4)).modules[0].output_shapes == ("(2, 3)",)
    with pytest.raises(ModelError, match=r"in `second`, a Linear"):
        describe(Careful(), torch.ones(2, 5))


def test_an_error_raised_from_another_names_the_layer_of_the_first() -> None:
    class Wrapping(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.inner = Net(Failing())

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            try:
                return self.inner(x)
            except ValueError as error:
                raise RuntimeError("something went wrong") from error

    with pytest.raises(
        ModelError, match=r"in `inner\.body\.1`, a Failing.*RuntimeError: something"
    ):
        describe(Wrapping(), torch.ones(2, 4))


def test_an_error_of_a_generator_is_not_blamed_on_an_earlier_one() -> None:
    class Late(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.first = Failing()

        def forward(self, x: torch.Tensor) -> Any:
            with contextlib.suppress(ValueError):
                self.first(x)
            return (1 // int(value) for value in (x * 0).flatten())

    with pytest.raises(ModelError, match=r"in Late, at test_modules\.py:\d+ \(ZeroDivisionError"):
        describe(Late(), torch.ones(2, 4))
