"""What would load into a model, an optimizer, a scheduler: against load_state_dict itself."""

import copy
import io
import json
import random

import pytest
import torch
from safetensors.torch import save_file
from torch import nn

from pytorch_lab.checkpoints import inspect
from pytorch_lab.errors import ModelError, UsageError


def net(head=2):
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4), nn.ReLU(), nn.Linear(4, head))


class Tied(nn.Module):
    def __init__(self):
        super().__init__()
        self.table = nn.Embedding(5, 3)
        self.head = nn.Linear(3, 5, bias=False)
        self.head.weight = self.table.weight


def run(code, **space):
    """Run a printed fix with the names that it may use."""
    space = {"torch": torch, **space}
    exec(code, space)
    return space


def from_a_gpu(value, file):
    """A file as a machine with a GPU writes it: the location of each storage is a text in it."""
    buffer = io.BytesIO()
    torch.save(value, buffer, _use_new_zipfile_serialization=False)
    cpu, gpu = b"X\x03\x00\x00\x00cpu", b"X\x06\x00\x00\x00cuda:0"
    content = buffer.getvalue()
    assert content.count(cpu) == 1  # a text is written once, and looked up afterwards
    file.write_bytes(content.replace(cpu, gpu))


# --- names, shapes, prefixes ----------------------------------------------------------------------


def mutated(state, draw):
    """A state dict with some names gone, new, of another shape or dtype."""
    found = dict(state)
    for name in list(found):
        fate = draw.choice(["keep"] * 6 + ["drop", "shape", "dtype", "rename"])
        if fate == "drop":
            del found[name]
        elif fate == "shape":
            found[name] = torch.zeros(7, 7)
        elif fate == "dtype":
            found[name] = found[name].to(torch.float64)
        elif fate == "rename":
            found[f"{name}_old"] = found.pop(name)
    return found


@pytest.mark.parametrize("seed", range(40))
def test_load_state_dict_agrees(seed, tmp_path):
    """Strict or not, missing, unexpected and sizes: as the real function finds them."""
    state = mutated(net().state_dict(), random.Random(seed))
    torch.save(state, tmp_path / "s.pt")
    given = tmp_path / "s.pt" if seed % 2 else state
    found = inspect(given, net()).model
    if found is None:
        assert not state
        return
    model = net()
    fitting = {n: t for n, t in state.items() if n not in {key.key for key in found.of("shape")}}
    missing, unexpected = model.load_state_dict(fitting, strict=False)  # no size may be left over
    sizes = {key.key for key in found.of("shape")}
    assert {key.key for key in found.of("missing")} == set(missing) - sizes
    assert {key.key for key in found.of("unexpected")} == set(unexpected)
    said = ""
    try:
        net().load_state_dict(state)
    except RuntimeError as error:
        said = str(error)
    assert found.strict == (said == "")
    assert all(f"size mismatch for {name}" in said for name in sizes)


def test_a_name_too_many_is_enough_to_refuse():
    state = net().state_dict()
    found = inspect(dict(state) | {"extra": torch.zeros(1)}, net())
    assert not found.model.strict
    assert "1 tensor that the model doesn't know: `extra`" in found.finding("unexpected").text


WRAPPED = {
    "DataParallel": (nn.DataParallel, "module."),
    "compiled": (lambda m: torch.compile(m, backend="eager"), "_orig_mod."),
    "both": (lambda m: nn.DataParallel(torch.compile(m, backend="eager")), "module._orig_mod."),
    "held": (lambda m: nn.ModuleDict({"encoder": m}), "encoder."),
}


@pytest.mark.parametrize("name", WRAPPED)
@pytest.mark.parametrize("nested", [False, True])
def test_the_call_that_removes_a_prefix_loads(tmp_path, name, nested):
    wrap, prefix = WRAPPED[name]
    trained = net()
    with torch.no_grad():
        trained[0].weight.fill_(3.0)
    state = wrap(trained).state_dict()
    torch.save({"epoch": 1, "model": state} if nested else state, tmp_path / "w.pt")
    model = net()
    tree = inspect(tmp_path / "w.pt", model)
    assert tree.model.prefix == prefix
    with pytest.raises(RuntimeError, match="Missing key"):
        model.load_state_dict(state)
    run(tree.finding("prefix").fix, model=model)
    assert torch.equal(model[0].weight, trained[0].weight)
    assert tree.finding("strict-false-hides") is not None


def test_a_layer_that_was_compiled_alone(tmp_path):
    trained = net()
    trained[0] = torch.compile(trained[0], backend="eager")
    torch.save(trained.state_dict(), tmp_path / "c.pt")
    model = net()
    tree = inspect(tmp_path / "c.pt", model)
    run(tree.finding("prefix").fix, model=model)
    assert torch.equal(model[0].weight, trained.state_dict()["0._orig_mod.weight"])


@pytest.mark.parametrize("wrap", [WRAPPED["DataParallel"][0], WRAPPED["compiled"][0]])
def test_the_model_is_wrapped_and_the_file_is_not(tmp_path, wrap):
    trained = net()
    torch.save(trained.state_dict(), tmp_path / "m.pt")
    model = wrap(net(head=2))
    tree = inspect(tmp_path / "m.pt", model)
    assert tree.finding("missing") is None
    run(tree.finding("wrapped-model").fix, model=model)
    assert torch.equal(next(model.parameters()), trained[0].weight)


@pytest.mark.parametrize("wrap", [lambda m: m, nn.DataParallel])
def test_the_call_that_leaves_other_shapes_out_loads(tmp_path, wrap):
    trained = net(head=10)
    torch.save({"net": wrap(trained).state_dict()}, tmp_path / "h.pt")
    model = net(head=2)
    tree = inspect(tmp_path / "h.pt", model)
    assert "`3.weight` is (10, 4) in the file and (2, 4) in the model" in tree.finding("shape").text
    with pytest.raises(RuntimeError, match="size mismatch"):
        model.load_state_dict(trained.state_dict(), strict=False)  # what the sentence warns of
    own = model[3].weight.clone()
    run(tree.finding("shape").fix, model=model)
    assert torch.equal(model[0].weight, trained[0].weight)
    assert torch.equal(model[3].weight, own)


def test_strict_false_would_hide_that_nothing_fits():
    other = nn.ModuleDict({"fc": nn.Linear(3, 2)})
    tree = inspect(other.state_dict(), nn.ModuleDict({"out": nn.Linear(5, 2)}))
    assert "would load nothing and raise nothing" in tree.finding("nothing-fits").text
    assert inspect(net().state_dict(), net()).finding("nothing-fits") is None


def test_parameters_without_buffers():
    tree = inspect({name: p.detach().clone() for name, p in net().named_parameters()}, net())
    text = tree.finding("missing-buffers").text
    assert "lacks 2 buffers of the model: `1.running_mean` and `1.running_var`" in text
    assert tree.finding("missing") is None


def test_tied_weights(tmp_path):
    model = Tied()
    save_file({"table.weight": model.table.weight}, tmp_path / "t.safetensors")
    tree = inspect(tmp_path / "t.safetensors", model)
    assert [key.key for key in tree.model.of("tied")] == ["head.weight"]
    assert tree.finding("missing") is None
    assert not tree.model.strict
    loaded = Tied()
    run(tree.finding("tied").fix, model=loaded)
    assert torch.equal(loaded.head.weight, model.table.weight)
    whole = inspect(model.state_dict(), Tied())
    assert whole.model.strict
    assert len(whole.storages) == 1
    assert "are looked at" in whole.finding("shared").text or "is looked at" in str(whole)


def test_a_cast_is_told():
    half = {
        name: t.half() if t.is_floating_point() else t for name, t in net().state_dict().items()
    }
    tree = inspect(half, net())
    assert tree.model.strict
    assert "`0.weight` from float16 in the file to float32" in tree.finding("dtype").text


def test_a_lazy_model_takes_any_shape():
    tree = inspect({"weight": torch.zeros(2, 3), "bias": torch.zeros(2)}, nn.LazyLinear(2))
    assert tree.model.strict


def test_the_best_of_several_state_dicts():
    checkpoint = {"discriminator": nn.Linear(9, 9).state_dict(), "generator": net().state_dict()}
    assert inspect(checkpoint, net()).model.path == "['generator']"
    assert inspect({"epoch": 3}, net()).finding("no-state-dict") is not None


def test_a_whole_module(tmp_path):
    torch.save(net(), tmp_path / "m.pt")
    tree = inspect(tmp_path / "m.pt", net())
    assert tree.model.strict
    assert "It holds a module itself" in tree.finding("whole-module").text


# --- memory and devices ---------------------------------------------------------------------------


def test_a_view_drags_its_storage_and_the_call_cuts_it(tmp_path):
    table = torch.arange(80_000.0).view(10_000, 8)
    checkpoint = {"rows": table[:10], "whole": table.clone(), "small": torch.zeros(4)[:2]}
    torch.save(checkpoint, tmp_path / "v.pt")
    for tree in (inspect(checkpoint), inspect(tmp_path / "v.pt")):
        finding = tree.finding("drags")
        assert finding.paths == ("['rows']",)
        assert "320 B are needed, and the whole 312.5 KiB" in finding.text
    after = run(inspect(checkpoint).finding("drags").fix, checkpoint=checkpoint)["checkpoint"]
    assert inspect(after).finding("drags") is None
    torch.save(after, tmp_path / "c.pt")
    assert (tmp_path / "v.pt").stat().st_size - (tmp_path / "c.pt").stat().st_size > 300_000


def test_all_parts_of_a_storage_together_are_no_drag():
    whole = torch.zeros(1000, 10)
    assert inspect({"a": whole[:500], "b": whole[500:]}).finding("drags") is None
    assert inspect({"a": torch.zeros(3000, 1).expand(3000, 100)}).finding("drags") is None


def test_live_weights_and_the_call_that_copies():
    model = net()
    tree = inspect({"best": model.state_dict().copy()}, model)
    assert "`['best']['0.weight']` shares it with `0.weight`" in tree.finding("alias").text
    space = run(tree.finding("alias").fix, checkpoint={"best": model.state_dict().copy()})
    assert inspect(space["checkpoint"], model).finding("alias") is None
    for copied in (copy.deepcopy(model.state_dict()), {"a": torch.zeros(2)}):
        assert inspect(copied, model).finding("alias") is None


def test_a_file_from_a_gpu_and_the_call_that_loads_it(tmp_path):
    from_a_gpu({"model": net().state_dict()}, tmp_path / "gpu.pt")
    model = net()
    tree = inspect(tmp_path / "gpu.pt", model)
    assert tree.opens == ("default" if torch.cuda.is_available() else "moved")
    if torch.cuda.is_available():
        assert tree.finding("other-device") is None
        return
    with pytest.raises(RuntimeError, match="CUDA"):
        torch.load(tmp_path / "gpu.pt")
    assert "9 tensors would go to `cuda:0`" in tree.finding("other-device").text
    space = run(f"loaded = {tree.finding('other-device').fix}")
    assert torch.equal(space["loaded"]["model"]["0.weight"], model[0].weight)


# --- optimizer and scheduler ----------------------------------------------------------------------


def trained(model, parameters=None, **settings):
    optimizer = torch.optim.Adam(parameters or model.parameters(), **settings)
    model(torch.randn(6, 3)).square().sum().backward()
    optimizer.step()
    return optimizer


def saved_run(file, **settings):
    model = net()
    optimizer = trained(model, **settings)
    torch.save({"model": model.state_dict(), "optimizer": optimizer.state_dict()}, file)
    return model, optimizer


def test_moments_in_another_order(tmp_path):
    saved_run(tmp_path / "o.pt")
    model = net()
    optimizer = torch.optim.Adam(list(model.parameters())[::-1])
    tree = inspect(tmp_path / "o.pt", model, optimizer)
    text = tree.finding("moments").text
    assert "position 0, the moments of `0.weight`, meets `3.bias` (2,)" in text
    optimizer.load_state_dict(torch.load(tmp_path / "o.pt")["optimizer"])  # raises nothing, as said
    model(torch.randn(6, 3)).sum().backward()
    with pytest.raises(RuntimeError):
        optimizer.step()
    wrong = {m.position for m in tree.optimizer.moments if m.verdict == "shape"}
    parameters = [p for group in optimizer.param_groups for p in group["params"]]
    assert wrong == {
        i for i, p in enumerate(parameters) if optimizer.state[p]["exp_avg"].shape != p.shape
    }


class Twins(nn.Module):
    def __init__(self, *order):
        super().__init__()
        for name in order:
            setattr(self, name, nn.Linear(3, 3))

    def forward(self, x):
        return self.query(x) + self.key(x)


def test_moments_of_equal_shapes_in_another_order(tmp_path):
    """Nothing raises; only the names tell."""
    model = Twins("query", "key")
    optimizer = trained(model)
    torch.save({"m": model.state_dict(), "o": optimizer.state_dict()}, tmp_path / "t.pt")
    other = Twins("key", "query")
    tree = inspect(tmp_path / "t.pt", other, torch.optim.Adam(other.parameters()))
    text = tree.finding("moments").text
    assert "position 0, the moments of `query.weight`, meets `key.weight` (3, 3)" in text
    assert "Nothing raises, ever" in text
    same = Twins("query", "key")
    tree = inspect(tmp_path / "t.pt", same, torch.optim.Adam(same.parameters()))
    assert tree.finding("moments") is None
    assert all(moment.saved_for == moment.meets != "" for moment in tree.optimizer.moments)


def test_names_in_the_optimizer_state_are_used(tmp_path):
    model = Twins("query", "key")
    torch.save(trained(model, list(model.named_parameters())).state_dict(), tmp_path / "n.pt")
    other = Twins("key", "query")
    tree = inspect(tmp_path / "n.pt", optimizer=torch.optim.Adam(other.named_parameters()))
    assert "the moments of `query.weight`, meets `key.weight`" in tree.finding("moments").text


def test_groups_that_differ(tmp_path):
    saved_run(tmp_path / "g.pt")
    model = net()
    groups = [{"params": model[0].parameters()}, {"params": model[1:].parameters()}]
    optimizer = torch.optim.Adam(groups)
    tree = inspect(tmp_path / "g.pt", model, optimizer)
    text = tree.finding("groups").text
    assert "1 group of 6 parameters, this one has 2 groups of 2 + 4 parameters" in text
    assert not tree.optimizer.loads
    with pytest.raises(ValueError, match="parameter group"):
        optimizer.load_state_dict(torch.load(tmp_path / "g.pt")["optimizer"])


def test_the_settings_of_the_file_win(tmp_path):
    saved_run(tmp_path / "s.pt", lr=0.5)
    model = net()
    optimizer = torch.optim.Adam(model.parameters(), lr=0.001)
    tree = inspect(tmp_path / "s.pt", model, optimizer)
    assert "lr 0.5 instead of 0.001" in tree.finding("settings").text
    optimizer.load_state_dict(torch.load(tmp_path / "s.pt")["optimizer"])
    assert optimizer.param_groups[0]["lr"] == 0.5
    fresh = torch.optim.Adam(net().parameters(), lr=0.5)
    assert inspect(tmp_path / "s.pt", net(), fresh).finding("settings") is None


def test_no_optimizer_state():
    optimizer = torch.optim.Adam(net().parameters())
    assert inspect(net().state_dict(), optimizer=optimizer).finding("no-optimizer") is not None


SCHEDULES = {
    "StepLR": lambda o, n: torch.optim.lr_scheduler.StepLR(o, n),
    "Cosine": lambda o, n: torch.optim.lr_scheduler.CosineAnnealingLR(o, n),
    "Plateau": lambda o, n: torch.optim.lr_scheduler.ReduceLROnPlateau(o, patience=n),
    "MultiStep": lambda o, n: torch.optim.lr_scheduler.MultiStepLR(o, [n, 2 * n]),
}


@pytest.mark.parametrize("name", SCHEDULES)
def test_a_scheduler_keeps_its_counters_and_the_new_settings(name):
    def make(n):
        optimizer = torch.optim.SGD([torch.zeros(1, requires_grad=True)], lr=0.1)
        return optimizer, SCHEDULES[name](optimizer, n)

    optimizer, old = make(20)
    for _ in range(3):
        optimizer.step()
        old.step(*([1.0] if name == "Plateau" else []))
    checkpoint = {"scheduler": copy.deepcopy(old.state_dict())}
    _, new = make(50)
    setting = {"StepLR": "step_size", "Cosine": "T_max", "Plateau": "patience",
               "MultiStep": "milestones"}[name]  # fmt: skip
    tree = inspect(checkpoint, scheduler=new)
    finding = tree.finding("scheduler-settings")
    assert finding.level == "problem"
    assert f"{setting} becomes 20, not 50" in finding.text or setting == "milestones"
    run(finding.fix, checkpoint=checkpoint, scheduler=new)
    assert (getattr(new, setting), new.last_epoch) == (getattr(make(50)[1], setting), 3)
    assert inspect(checkpoint, scheduler=make(20)[1]).finding("scheduler-settings") is None


# --- safetensors ----------------------------------------------------------------------------------


def test_safetensors(tmp_path):
    model = net()
    file = tmp_path / "m.safetensors"
    save_file(model.state_dict(), file, metadata={"format": "pt"})
    tree = inspect(file, model)
    assert (tree.format, tree.opens, tree.model.strict) == ("safetensors", "default", True)
    rows = {entry.name: entry for entry in tree.entries}
    for name, tensor in model.state_dict().items():
        assert (rows[name].shape, rows[name].bytes) == (tuple(tensor.shape), tensor.nbytes)
        assert f"torch.{rows[name].dtype}" == str(tensor.dtype)
    prefixed = {f"module.{name}": tensor for name, tensor in model.state_dict().items()}
    save_file(prefixed, file)
    run(inspect(file, model).finding("prefix").fix, model=net())


def shards(folder):
    state = net().state_dict()
    parts = {"a.safetensors": list(state)[:3], "b.safetensors": list(state)[3:]}
    for name, keys in parts.items():
        save_file({key: state[key] for key in keys}, folder / name)
    table = {key: name for name, keys in parts.items() for key in keys}
    index = {"metadata": {}, "weight_map": table}
    (folder / "model.safetensors.index.json").write_text(json.dumps(index))


def test_a_model_in_several_files(tmp_path):
    shards(tmp_path)
    tree = inspect(tmp_path, net())  # the folder's index is found
    assert (tree.format, tree.model.strict) == ("index", True)
    assert len(tree.storages) == 9
    wrapped = nn.DataParallel(net())
    run(inspect(tmp_path, wrapped).finding("wrapped-model").fix, model=wrapped)
    (tmp_path / "b.safetensors").unlink()
    assert "of its files b.safetensors is missing" in inspect(tmp_path).verdict


def test_an_index_that_leads_elsewhere(tmp_path):
    (tmp_path / "secret.safetensors").write_bytes(b"x" * 20)
    folder = tmp_path / "model"
    folder.mkdir()
    index = folder / "m.safetensors.index.json"
    index.write_text(json.dumps({"weight_map": {"w": "../secret.safetensors"}}))
    assert "is missing" in inspect(index).verdict
    index.write_text("[1]")
    assert "it has no weight_map" in inspect(index).verdict


def test_damaged_safetensors(tmp_path):
    file = tmp_path / "d.safetensors"
    save_file(net().state_dict(), file)
    whole = file.read_bytes()
    for length in (0, 4, 9, 60, len(whole) // 2, len(whole) - 1):
        file.write_bytes(whole[:length])
        assert inspect(file).opens == "broken", length
    for old, new in ((b'"F32"', b'"X32"'), (b'"shape":[4,3]', b'"shape":[4,9]'), (b"{", b"[")):
        assert old in whole
        file.write_bytes(whole.replace(old, new, 1))
        assert inspect(file).opens == "broken", new
    draw = random.Random(0)
    for _ in range(100):
        content = bytearray(whole)
        content[draw.randrange(len(whole) - 200)] = draw.randrange(256)
        file.write_bytes(bytes(content))
        assert str(inspect(file, net()))


# --- the bank's cases -----------------------------------------------------------------------------


def test_the_head_was_replaced_after_the_optimizer_was_made():
    model = nn.ModuleDict({"body": nn.Linear(6, 32), "head": nn.Linear(32, 10)})
    optimizer = torch.optim.Adam(model.parameters())
    model["head"] = nn.Linear(32, 2)
    text = inspect(model.state_dict(), model, optimizer).finding("optimizer-of-another").text
    assert "`head.weight` and `head.bias` of the model are in no group" in text
    assert "holds 2 tensors outside the model" in text
    checkpoint = {"m": model.state_dict(), "o": optimizer.state_dict()}
    assert inspect(checkpoint, model, optimizer).finding("moments") is None  # said once
    fixed = torch.optim.Adam(model.parameters())
    assert inspect(model.state_dict(), model, fixed).finding("optimizer-of-another") is None


def test_unreadable_by_rights(tmp_path, monkeypatch):
    def refuse(*_args, **_kwargs):
        raise PermissionError(13, "Permission denied")

    (tmp_path / "p.pt").write_bytes(b"x")
    monkeypatch.setattr("pathlib.Path.open", refuse)
    with pytest.raises(UsageError, match="Permission denied; check the path and the rights"):
        inspect(tmp_path / "p.pt")


def test_a_model_whose_state_dict_raises_is_told():
    class Shy(nn.Module):
        def state_dict(self, *_args, **_options):
            raise RuntimeError("not now")

    with pytest.raises(ModelError, match=r"the model's state_dict.*RuntimeError: not now"):
        inspect({"weight": torch.zeros(1)}, Shy())


def test_a_parameter_that_changed_shape_in_its_place_is_no_other_parameter(tmp_path):
    def build(classes):
        torch.manual_seed(0)
        net = nn.Sequential(nn.Linear(4, 3), nn.Linear(3, classes))
        return net, torch.optim.Adam(net.parameters())

    net, optimizer = build(5)
    net(torch.ones(2, 4)).sum().backward()
    optimizer.step()
    states = {"model": net.state_dict(), "optimizer": optimizer.state_dict()}
    torch.save(states, tmp_path / "five.pt")
    tree = inspect(tmp_path / "five.pt", *build(2))
    (said,) = [found.text for found in tree.findings if found.code == "moments"]
    assert "another parameter's" not in said
    assert "2 parameters changed shape" in said
    assert "`1.weight` have the shape (5, 3), it has (2, 3)" in said
    net, optimizer = build(2)
    state = states["optimizer"]
    for position in (2, 3):  # as the sentence says
        del state["state"][position]
    optimizer.load_state_dict(state)
    net(torch.ones(2, 4)).sum().backward()
    optimizer.step()
