"""What is in a file, against torch.load itself; and that nothing in a file is ever run."""

import argparse
import collections
import copy
import io
import os
import pathlib
import pickle
import random
import struct
import zipfile

import numpy as np
import pytest
import torch
from torch import nn

import pytorch_lab as lab
from pytorch_lab.checkpoints import inspect
from pytorch_lab.errors import UsageError


def net():
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4), nn.Linear(4, 2))


def trained(model, optimizer):
    model(torch.randn(5, 3)).square().sum().backward()
    optimizer.step()
    return optimizer


def whole_run():
    model = net()
    optimizer = trained(model, torch.optim.Adam(model.parameters()))
    scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 3)
    return {
        "model": model.state_dict(),
        "optimizer": optimizer.state_dict(),
        "scheduler": scheduler.state_dict(),
        "epoch": 3,
        "losses": [0.5] * 30,
        "rng": torch.get_rng_state(),
    }


class Mine:
    def __init__(self):
        self.size = 3


WHOLE = whole_run()
BIG = torch.arange(40_000.0).view(5000, 8)
BROKEN = (pickle.UnpicklingError, RuntimeError, EOFError, OSError, ValueError, LookupError,
          struct.error)  # fmt: skip
FILES = {  # name: what is saved
    "whole run": WHOLE,
    "state dict": WHOLE["model"],
    "parameters": dict(net().named_parameters()),
    "a tensor": torch.zeros(3, 2),
    "plain values": {"a": 1, "b": 2.5, "c": "x", "d": None, "e": True, "f": (1, 2), "g": [1, [2]]},
    "large numbers": {"a": 2**70, "b": -(2**33), "c": 1j, "d": b"abc", "e": {1, 2}},
    "dtypes": {str(d): torch.zeros(2, dtype=d) for d in (
        torch.float16, torch.bfloat16, torch.int8, torch.uint8, torch.bool, torch.complex64,
        torch.float8_e4m3fn, torch.uint16, torch.int64)},
    "views": {"row": BIG[3], "column": BIG[:, 0], "turned": BIG.t(), "tail": BIG[4990:]},
    "tied": {"a": BIG, "b": BIG, "c": BIG.view(-1)},
    "expanded": torch.zeros(1).expand(1000, 10),
    "empty": {"a": torch.zeros(0, 3), "d": {}, "l": []},
    "sparse": torch.eye(3).to_sparse(),
    "meta": {"w": torch.zeros(2, 3, device="meta")},
    "buffer": {"rng": torch.get_rng_state(), "p": nn.Parameter(torch.zeros(2), False)},
    "counter": collections.Counter("aab"),
    "ordered": collections.OrderedDict(a=1, b=torch.zeros(2)),
    "size": {"s": torch.Size([1, 2]), "d": torch.device("cpu"), "t": torch.float32},
    "numpy scalar": {"best": np.float64(0.5), "w": torch.zeros(2)},
    "numpy array": {"a": np.arange(6).reshape(2, 3)},
    "numpy rng": {"np": np.random.get_state()},  # noqa: NPY002
    "namespace": {"args": argparse.Namespace(lr=0.1, layers=[1, 2])},
    "path": {"at": pathlib.PurePosixPath("/a/b")},
    "defaultdict": collections.defaultdict(int, a=1),
    "deque": collections.deque([1, 2]),
    "module": net(),
    "own class": {"config": Mine()},
}  # fmt: skip
REFUSED = {"numpy scalar", "numpy array", "numpy rng", "namespace", "path", "defaultdict", "deque",
           "module", "own class"}  # fmt: skip
NEVER_LISTED = {"defaultdict", "deque"}  # allowing names does not help


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    """name -> path; each as a zip archive and in the legacy format."""
    folder = tmp_path_factory.mktemp("saved")
    found = {}
    for name, value in FILES.items():
        for kind, new in (("zip", True), ("legacy", False)):
            if kind == "legacy" and name in ("dtypes", "meta"):  # the old format can't hold these
                continue
            file = folder / f"{name.replace(' ', '-')}-{kind}.pt"
            torch.save(value, file, _use_new_zipfile_serialization=new)
            found[f"{name} {kind}"] = file
    return found


CASES = [f"{name} {kind}" for name in FILES for kind in ("zip", "legacy")
         if (kind, name) not in (("legacy", "dtypes"), ("legacy", "meta"))]  # fmt: skip


def loads(file, **how):
    try:
        torch.load(file, **how)
    except BROKEN:
        return False
    return True


def flat(value, path=""):
    """Path -> tensor, walked once more and otherwise than the package does."""
    if isinstance(value, torch.Tensor):
        yield path, value
    elif isinstance(value, dict):
        for key, one in value.items():
            yield from flat(one, f"{path}[{key!r}]")
    elif isinstance(value, list | tuple) and not isinstance(value, torch.Size):
        for i, one in enumerate(value):
            yield from flat(one, f"{path}[{i}]")


@pytest.mark.parametrize("case", CASES)
def test_says_what_torch_load_does(saved, case):
    tree = inspect(saved[case])
    assert (tree.opens == "default") == loads(saved[case]), tree
    assert (tree.opens != "default") == (case.rpartition(" ")[0] in REFUSED)
    assert (tree.finding("refused") is not None) == (tree.opens != "default")
    if case.rpartition(" ")[0] in NEVER_LISTED:
        assert tree.opens == "trusted"
        assert "allowing names does not help" in tree.finding("refused").text


@pytest.mark.parametrize("case", [case for case in CASES if case.rpartition(" ")[0] not in REFUSED])
def test_the_rows_are_what_would_be_loaded(saved, case):
    tree = inspect(saved[case])
    rows = {entry.path: entry for entry in tree.entries if entry.kind == "tensor"}
    for path, tensor in flat(torch.load(saved[case])):
        row = rows.pop(path)
        if tensor.is_sparse:
            continue
        assert row.shape == tuple(tensor.shape)
        assert f"torch.{row.dtype}" == str(tensor.dtype)
        assert row.device == str(tensor.device)
        assert row.requires_grad == tensor.requires_grad
        assert row.bytes == tensor.nbytes
        if not tensor.is_meta:
            assert row.stored_bytes == tensor.untyped_storage().nbytes()
    assert rows == {}


@pytest.mark.parametrize(
    "case",
    [
        case
        for case in CASES
        if case.rpartition(" ")[0] in REFUSED - NEVER_LISTED and case != "module legacy"
    ],
)
def test_the_printed_call_loads_what_is_refused(saved, case):
    fix = inspect(saved[case]).finding("refused").fix
    assert "safe_globals" in fix
    space = {"torch": torch, "Mine": Mine}
    if "own class" in case:  # a class of a test module has the module's name before it
        fix = fix.replace(Mine.__module__ + ".", "").replace(f"import {Mine.__module__}", "")
    lines = fix.splitlines()
    exec("\n".join([*lines[:-1], f"    loaded = {lines[-1].strip()}"]), space)
    assert type(space["loaded"]) is type(FILES[case.rpartition(" ")[0]])


@pytest.mark.parametrize("protocol", [3, 4, 5])
def test_a_newer_pickle_protocol(tmp_path, protocol):
    file = tmp_path / "p.pt"
    torch.save({"a": [1.5, "x" * 300], "w": torch.zeros(2)}, file, pickle_protocol=protocol)
    with pytest.warns(UserWarning, match="protocol"):
        opens = loads(file)
    tree = inspect(file)
    assert (tree.opens == "default") == opens
    assert [entry.shape for entry in tree.entries if entry.kind == "tensor"] == [(2,)]


def test_values_are_spelled():
    tree = inspect(FILES["plain values"])
    assert [entry.text for entry in tree.entries[1:]][:7] == [
        "1", "2.5", "'x'", "None", "True", "(1, 2)", "",
    ]  # fmt: skip


# --- files that mean harm, and files that are broken ----------------------------------------------

RAN = []


class Trap:
    """Runs a command when it is loaded."""

    def __init__(self, function, *args):
        self.call = function, args

    def __reduce__(self):
        return self.call


def spring():
    RAN.append("a trap")


TRAPS = {
    "os.system": Trap(os.system, "touch sprung"),
    "eval": Trap(eval, "RAN.append('eval')"),
    "exec": Trap(exec, "open('sprung', 'w')"),
    "getattr": Trap(getattr, "x", "upper"),
    "import": Trap(__import__, "antigravity"),
    "popen": Trap(os.popen, "touch sprung"),
    "open": Trap(open, "sprung", "w"),
    "pickle": Trap(pickle.loads, pickle.dumps(1)),
    "load": Trap(torch.load, "other.pt"),
    "bytes": Trap(torch.storage._load_from_bytes, b"x"),
    "jit": Trap(torch.jit.load, "x"),
    "sys": Trap(os.sys.exit, 1),
}


@pytest.mark.parametrize("new", [True, False])
@pytest.mark.parametrize("name", TRAPS)
def test_a_trap_is_named_and_not_sprung(tmp_path, monkeypatch, name, new):
    monkeypatch.chdir(tmp_path)
    torch.save(
        {"w": torch.zeros(2), "x": [TRAPS[name]]}, "t.pt", _use_new_zipfile_serialization=new
    )
    before = sorted(tmp_path.iterdir())
    tree = inspect("t.pt", net())
    assert tree.opens == "danger"
    assert tree.needed[0].verdict == "dangerous"
    assert tree.needed[0].called == 1
    assert tree.needed[0].name in tree.finding("danger").text
    assert "weights_only" not in "".join(finding.fix for finding in tree.findings)
    assert not loads("t.pt")  # torch's default refuses it as well
    assert (RAN, sorted(tmp_path.iterdir())) == ([], before)


def test_a_call_by_every_instruction_that_calls():
    """REDUCE, INST, OBJ, NEWOBJ_EX and a name from the stack."""
    for body in (
        b"cos\nsystem\n(S'x'\ntR.",
        b"(S'x'\nios\nsystem\n.",
        b"(cos\nsystem\nS'x'\no.",
        b"\x80\x04\x8c\x02os\x8c\x06system\x93\x8c\x01x\x85R.",
        b"\x80\x04cos\nsystem\n)}\x92.",
        b"\x80\x02c__builtin__\neval\n(S'x'\ntR.",
    ):
        file = io.BytesIO()
        with zipfile.ZipFile(file, "w") as archive:
            archive.writestr("a/data.pkl", body)
            archive.writestr("a/version", "3\n")
        path = pathlib.Path(os.environ["PYTORCH_LAB_PROGRESS"]).parent / "x.pt"
        path.write_bytes(file.getvalue())
        tree = inspect(path)
        assert tree.opens == "danger", body
        assert tree.needed[0].called == 1


EVIL = 'x")\nimport os; os.system("touch sprung")  # \x1b[2J'


def test_what_a_file_says_never_becomes_code_or_moves_the_cursor(tmp_path, monkeypatch):
    """Names that a stranger chose stand in sentences, and in code that people are to run."""
    monkeypatch.chdir(tmp_path)
    state = {f"{EVIL}.{name}": tensor for name, tensor in net().state_dict().items()}
    model = net()
    torch.save({EVIL: state, "l": EVIL}, "names.pt")
    tree = inspect("names.pt", model)
    exec(tree.finding("prefix").fix, {"torch": torch, "model": model})
    assert not (tmp_path / "sprung").exists()
    name = EVIL.replace("\n", ";").encode()
    size = len(name).to_bytes(1, "little")
    body = b"\x80\x04\x8c\x01a\x8c" + size + name + b"\x93)R."
    (tmp_path / "global.pt").write_bytes(zipped(**{"a/data.pkl": body}))
    forged = inspect("global.pt")
    assert forged.opens == "danger"
    assert not any(finding.fix for finding in forged.findings)
    for each in (tree, forged):
        assert not any(letter in str(each) for letter in "\x1b\t\r")
        assert "touch sprung" in str(each)
        assert all(line.isprintable() for line in str(each).splitlines())


@pytest.fixture(scope="module")
def run_file(tmp_path_factory):
    file = tmp_path_factory.mktemp("run") / "run.pt"
    torch.save(WHOLE, file)
    return file


def damaged(tmp_path, content):
    file = tmp_path / "damaged.pt"
    file.write_bytes(content)
    tree = inspect(file, net())
    assert str(tree)
    return tree


@pytest.mark.parametrize("new", [True, False])
def test_a_file_that_is_cut_anywhere_is_broken(tmp_path, new):
    buffer = io.BytesIO()
    torch.save(WHOLE, buffer, _use_new_zipfile_serialization=new)
    whole = buffer.getvalue()
    for length in [0, 1, 2, 10, 100, *range(500, len(whole) - 1, len(whole) // 23), len(whole) - 1]:
        tree = damaged(tmp_path, whole[:length])
        assert tree.opens == "broken", length
        assert tree.verdict.startswith("torch.load can't read it: ")
        assert not loads(tmp_path / "damaged.pt")


@pytest.mark.parametrize("new", [True, False])
def test_flipped_bytes_raise_nothing(tmp_path, new):
    buffer = io.BytesIO()
    torch.save(FILES["numpy scalar"] | {"l": [1, "a"]}, buffer, _use_new_zipfile_serialization=new)
    draw = random.Random(0)
    for _ in range(150):
        content = bytearray(buffer.getvalue())
        for _ in range(draw.choice([1, 3, 30])):
            content[draw.randrange(len(content))] = draw.randrange(256)
        damaged(tmp_path, bytes(content))


def zipped(**records):
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name, content in records.items():
            archive.writestr(name.replace("__", "/"), content)
    return buffer.getvalue()


OTHERS = {
    "empty": (b"", "it is empty"),
    "zeros": (bytes(5000), "nothing but zeros"),
    "web page": (b"<!DOCTYPE html><html>Not found", "a web page"),
    "lfs": (b"version https://git-lfs.github.com/spec/v1\noid sha256:1", "git lfs pull"),
    "hdf5": (b"\x89HDF\r\n\x1a\n" + bytes(100), "HDF5"),
    "gzip": (b"\x1f\x8b\x08" + bytes(40), "unpack it first"),
    "noise": (bytes(range(200, 100, -1)), "it is no checkpoint"),
    "openssl": (b"Salted__" + bytes(range(50)), "decrypt it first"),
    "plain pickle": (pickle.dumps({"w": 1}), "a plain pickle, which torch.save did not write"),
    "npz": (zipped(**{"arr_0.npy": b"x"}), "numpy.load"),
    "zip": (zipped(**{"readme.txt": b"x"}), "without a data.pkl; it holds readme.txt"),
    "byte order": (zipped(a__data=b"", **{"a/data.pkl": b"\x80\x02}.", "a/byteorder": b"odd"}),
                   "its byte order is 'odd'"),
    "text": (b"lr = 0.1\n" * 20, "torch.load can't read it"),
}  # fmt: skip


@pytest.mark.parametrize("name", OTHERS)
def test_what_is_no_checkpoint_gets_a_sentence(tmp_path, name):
    content, says = OTHERS[name]
    tree = damaged(tmp_path, content)
    assert tree.opens == "broken"
    assert says in tree.verdict


def test_an_encrypted_archive(tmp_path):
    content = bytearray(zipped(**{"a/data.pkl": b"\x80\x02}."}))
    content[6] |= 1  # the flag in the local header, and in the directory
    content[content.index(b"PK\x01\x02") + 8] |= 1
    assert "encrypted with a password" in damaged(tmp_path, bytes(content)).verdict


def test_an_archive_that_reads_in_two_ways(tmp_path):
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        archive.writestr("a/data.pkl", b"\x80\x02}.")
        with pytest.warns(UserWarning, match="Duplicate"):
            archive.writestr("a/data.pkl", b"cos\nsystem\n(S'x'\ntR.")
    tree = damaged(tmp_path, buffer.getvalue())
    assert tree.opens == "broken"
    assert tree.finding("two-faced") is not None
    one, other = zipped(**{"a/data.pkl": b"\x80\x02}."}), zipped(**{"b/data.pkl": b"\x80\x02}."})
    assert "two files in one" in damaged(tmp_path, one + other).verdict


def test_a_pickle_that_would_unpack_to_very_much(tmp_path, monkeypatch):
    monkeypatch.setattr("pytorch_lab.checkpoints.files.LARGEST_PICKLE", 1000)
    tree = damaged(tmp_path, zipped(**{"a/data.pkl": b"\x80\x02}." + bytes(2000)}))
    assert "its data.pkl would unpack to 2.0 KiB" in tree.verdict


def test_loops_and_depths_end(tmp_path):
    loop = []
    loop.append(loop)
    deep = []
    for _ in range(5000):
        deep = [deep]
    shared = [1.0, [2.0]]
    for value in (loop, {"a": [shared] * 50}):
        torch.save(value, tmp_path / "l.pt")
        assert len(inspect(tmp_path / "l.pt").entries) < 120
    laughs = b"\x80\x02]q\x00" + b"".join(
        b"]q%c(" % (i + 1) + b"h%c" % i * 10 + b"e" for i in range(20)
    )
    tree = damaged(tmp_path, zipped(**{"a/data.pkl": laughs + b".", "a/version": b"3"}))
    assert len(tree.entries) < 1000
    nested = b"\x80\x02" + b"]" * 5000 + b"a" * 4999 + b"."
    assert len(damaged(tmp_path, zipped(**{"a/data.pkl": nested})).entries) < 100


def test_other_byte_order_is_told(tmp_path, run_file):
    with zipfile.ZipFile(run_file) as old, zipfile.ZipFile(tmp_path / "big.pt", "w") as new:
        for record in old.infolist():
            content = old.read(record)
            new.writestr(record.filename, b"big" if "byteorder" in record.filename else content)
    tree = inspect(tmp_path / "big.pt")
    assert tree.opens == "default"
    assert "big-endian" in tree.finding("byte-order").text


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ("/no/such/file.pt", "expected a file, found none at '/no/such/file.pt'"),
        (3, "expected a path or a dict, got 'int'"),
        (net(), "got a module; give its state_dict()"),
    ],
)
def test_what_can_not_be_inspected(given, says):
    with pytest.raises(UsageError) as caught:
        inspect(given)
    assert says in str(caught.value)


def test_wrong_partners():
    with pytest.raises(UsageError, match=r"model=…\) expected an nn.Module, got 'dict'"):
        inspect({}, {})
    with pytest.raises(UsageError, match="expected a torch optimizer, got 'int'"):
        inspect({}, optimizer=3)
    with pytest.raises(UsageError, match=r"expected an object with state_dict\(\), got 'int'"):
        inspect({}, scheduler=3)


def test_folders(tmp_path, run_file):
    with pytest.raises(UsageError, match="expected a checkpoint in"):
        inspect(tmp_path)
    for name in ("a.pt", "b.pt"):
        (tmp_path / name).write_bytes(run_file.read_bytes())
    with pytest.raises(UsageError, match=r"found 2: a.pt, b.pt; give one of them"):
        inspect(tmp_path)
    (tmp_path / "b.pt").unlink()
    assert inspect(tmp_path).source == "a.pt"


def test_everything_is_left_as_it_was(run_file):
    model = net()
    optimizer = trained(model, torch.optim.Adam(model.parameters()))
    scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 3)
    before = copy.deepcopy([model.state_dict(), optimizer.state_dict(), scheduler.state_dict()])
    rng = torch.get_rng_state(), random.getstate()
    grads = [p.grad.clone() for p in model.parameters()]
    inspect(run_file, model, optimizer, scheduler=scheduler)
    inspect(model.state_dict(), model, optimizer)
    after = [model.state_dict(), optimizer.state_dict(), scheduler.state_dict()]
    assert str(after) == str(before)
    assert torch.equal(rng[0], torch.get_rng_state())
    assert rng[1] == random.getstate()
    assert all(torch.equal(p.grad, g) for p, g in zip(model.parameters(), grads, strict=True))


def test_text(golden):
    torch.manual_seed(0)
    checkpoint = {"model": nn.DataParallel(net()).state_dict(), "rows": BIG[:3], "epoch": 7}
    golden("checkpoint", str(inspect(checkpoint, net())))


def test_the_text_keeps_to_80_columns_and_is_the_same_twice(saved):
    for file in saved.values():
        text = str(inspect(file, net()))
        assert text == str(inspect(file, net()))
        for line in text.splitlines():
            assert len(line) <= 80 or line.startswith("    ")  # code is not broken


def test_a_dict_in_memory_is_shown():
    saved = {"module.weight": torch.zeros(2, 3), "module.bias": torch.zeros(2)}
    widget = lab.show(saved, nn.Linear(3, 2))
    assert widget.checkpoint == inspect(saved, nn.Linear(3, 2))
    assert widget.checkpoint.model.prefix == "module."
