"""Files that were made to mislead: none runs, none hangs, none is called better than it is.

The pickles are written by hand, instruction by instruction; `pickletools.dis` reads them.
What is true of a file is asked of torch and of safetensors themselves.
"""

import io
import json
import pickle
import struct
import zipfile

import pytest
import torch
from safetensors import SafetensorError
from safetensors.torch import load_file
from torch import nn

import pytorch_lab as lab
from pytorch_lab.checkpoints import inspect
from pytorch_lab.errors import UsageError

START = b"\x80\x02"


class Evil:
    def __reduce__(self):
        return exec, ("raise AssertionError('it ran')",)


EVIL, GOOD = (pickle.dumps({"w": what}, 2) for what in (Evil(), 1))


def name(module, function):
    return b"c%b\n%b\n" % (module.encode(), function.encode())


def integer(value):
    raw = value.to_bytes(value.bit_length() // 8 + 1, "little", signed=True)
    return b"\x8b" + struct.pack("<i", len(raw)) + raw


def text(letters):
    return b"X" + struct.pack("<I", len(letters)) + letters


def archive(path, *records):
    """A zip of names and contents, with what torch.load wants beside them."""
    rest = [("a/version", b"3\n"), ("a/byteorder", b"little")]
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as file:
        for record, content in [*records, *rest]:
            file.writestr(record, content)
    return path


def looked(path, **partners):
    """The record, after every view of it was made as well."""
    tree = inspect(path, **partners)
    assert len(str(tree)) < 20_000
    assert lab.show(tree).to_html()
    return tree


def said(tree, code):
    finding = tree.finding(code)
    assert finding is not None
    return finding.text


@pytest.mark.parametrize(
    "records",
    [
        [("a/data.pkl", GOOD), ("a/DATA.PKL", EVIL)],
        [("a/DATA.PKL", EVIL), ("a/data.pkl", GOOD)],
        [("a/Data.pkl", EVIL)],
    ],
    ids=["small first", "large first", "large alone"],
)
def test_a_name_in_other_letters_hides_nothing(tmp_path, records):
    """torch finds records without regard to case, so the second of these is the evil one."""
    path = archive(tmp_path / "case.pt", *records)
    tree = looked(path)
    if len(records) == 2:
        assert tree.opens == "broken"
        assert tree.finding("two-faced") is not None
    else:
        with pytest.raises(pickle.UnpicklingError, match="exec"):
            torch.load(path)
        assert tree.opens == "danger"


def test_torch_reads_the_folder_of_the_first_record(tmp_path):
    path = archive(tmp_path / "roots.pt", ("b/data.pkl", GOOD), ("a/data.pkl", EVIL))
    with pytest.raises(RuntimeError, match='hasRecord\\("version"\\)'):  # b has none
        torch.load(path)
    tree = looked(path)
    assert (tree.opens, tree.entries[1].text) == ("danger", "1")


LOOPS = {  # a list is filled with what is made of it
    "a parameter of itself": START
    + b"]q\x000" + name("torch._utils", "_rebuild_parameter") + b"h\x00Rq\x010h\x00h\x01a0h\x01.",
    "a size of itself": START
    + b"]q\x000" + name("torch", "Size") + b"h\x00Rq\x010h\x00h\x01a0"
    + name("torch._utils", "_rebuild_tensor_v2") + b"(NK\x00h\x01h\x01\x89NtR.",
    "a subclass of itself": START
    + b"]q\x000h\x00" + name("torch._tensor", "_rebuild_from_type_v2") + b"q\x01a0h\x00Na0h\x00h"
    + b"\x00a0h\x01h\x00R.",
    "many parameters inside each other": START
    + name("torch._utils", "_rebuild_parameter") * 5000 + b"N" + b"\x85R" * 5000 + b".",
}  # fmt: skip


@pytest.mark.parametrize("kind", LOOPS)
def test_what_is_made_of_itself_ends(tmp_path, kind):
    looked(archive(tmp_path / "loop.pt", ("a/data.pkl", LOOPS[kind])))


HUGE = integer(10**6000)  # more digits than Python spells


def tensor(*, shape=b"(K\x02t", stride=b"(K\x01t", offset=b"K\x00", count=b"K\x05"):
    storage = (
        b"(" + text(b"storage") + name("torch", "FloatStorage") + text(b"0") + text(b"cpu")
        + count + b"tQ"
    )  # fmt: skip
    made = name("torch._utils", "_rebuild_tensor_v2") + b"(" + storage + offset + shape + stride
    return START + b"}(" + text(b"w") + made + b"\x89}t" + b"Ru."


FORGED = {
    "a huge shape": {"shape": b"(" + HUGE + b"t"},
    "many huge sizes": {"shape": b"(" + HUGE * 100 + b"t", "stride": b"(" + HUGE * 100 + b"t"},
    "a huge stride": {"stride": b"(" + HUGE + b"t"},
    "a huge offset": {"offset": HUGE},
    "a huge storage": {"count": HUGE},
    "a negative storage": {"count": b"J\xff\xff\xff\xff"},
    "more than the storage": {"shape": b"(K\x06t"},
    "one behind the end": {"offset": b"K\x04"},
}


@pytest.mark.parametrize("kind", FORGED)
def test_a_tensor_that_can_not_be(tmp_path, kind):
    data = ("a/data/0", bytes(20))
    path = archive(tmp_path / "forged.pt", ("a/data.pkl", tensor(**FORGED[kind])), data)
    with pytest.raises((RuntimeError, TypeError, pickle.UnpicklingError)):
        torch.load(path)
    assert looked(path, model=nn.Linear(2, 2)).opens == "broken"


def test_the_last_element_of_a_storage_is_allowed(tmp_path):
    """The measure of the test above, from its other side."""
    for more in ({"offset": b"K\x03"}, {"shape": b"(K\x00t", "offset": b"K\x05"}):
        path = archive(
            tmp_path / "good.pt", ("a/data.pkl", tensor(**more)), ("a/data/0", bytes(20))
        )
        torch.load(path)
        assert looked(path).opens == "default"


def test_numbers_that_nobody_can_spell(tmp_path):
    pickled = START + b"}(" + HUGE + b"K\x01" + text(b"a") + HUGE + text(b"b") + b"](" + HUGE
    tree = looked(archive(tmp_path / "number.pt", ("a/data.pkl", pickled + b"eu.")))
    assert "a number of 19,932 bits" in str(tree)
    live = inspect({10**6000: 10**6000})
    assert live.entries[1].text == "a number of 19,932 bits"


@pytest.mark.parametrize("dtype", [b"\x88", b"N", b")", text(b"f8")])
def test_a_number_of_numpy_without_its_dtype(tmp_path, dtype):
    scalar = name("numpy._core.multiarray", "scalar") + dtype + text(b"x") + b"\x86R."
    assert looked(archive(tmp_path / "numpy.pt", ("a/data.pkl", START + scalar))).opens == "listed"


def test_long_names_cost_little(tmp_path):
    """One name of 3 MB, forty levels deep: the paths would need 2 GB."""
    nested = START + b"}(" + text(b"k" * 3_000_000) + b"q\x00" + b"}(h\x00" * 38 + b"N" + b"u" * 39
    tree = looked(archive(tmp_path / "deep.pt", ("a/data.pkl", nested + b".")))
    assert max(len(entry.path) for entry in tree.entries) < 20_000
    many = START + text(b"k" * 3000) + b"q\x000}(" + b"h\x00}(" * 38 + b"h\x00N" * 20_000
    tree = inspect(archive(tmp_path / "many.pt", ("a/data.pkl", many + b"u" * 39 + b".")))
    assert sum(len(entry.path) for entry in tree.entries) < 30_000_000
    assert tree.entries[-1].kind == "cut"


def test_further_pickles_are_not_followed_for_ever(tmp_path):
    """Each could cost seconds, and an archive has room for thousands."""
    long = START + b"]0" * 200_000 + b"N."
    path = archive(
        tmp_path / "many.pt", ("a/data.pkl", GOOD), *((f"a/{i}.pkl", long) for i in range(30))
    )
    tree = looked(path)
    assert "30 more pickles" in said(tree, "two-faced")
    short = archive(tmp_path / "one.pt", ("a/data.pkl", GOOD), ("a/constants.pkl", EVIL))
    assert looked(short).opens == "danger"


def test_a_line_without_an_end_is_not_read_whole(tmp_path):
    path = tmp_path / "line.bin"
    with path.open("wb") as file:
        file.write(b"c")
        file.truncate(8 * 2**30)  # a hole: it takes no room on the disk
    assert looked(path).opens == "broken"


# --- names of files -------------------------------------------------------------------------------


@pytest.mark.parametrize("ending", ["safetensors", "json"])
def test_torch_save_under_another_name(tmp_path, ending):
    path = tmp_path / f"model.{ending}"
    torch.save({"w": torch.zeros(2)}, path)
    tree = looked(path)
    assert (tree.opens, tree.format) == ("default", "zip")
    assert f"It is called .{ending}" in said(tree, "wrong-name")


def test_a_pickle_with_a_brace_in_ninth_place(tmp_path):
    path = tmp_path / "brace.pkl"
    path.write_bytes(b"\x80\x02X\x05\x00\x00\x00a{b{c.")
    assert looked(path).format == "pickle"


@pytest.mark.parametrize(
    ("given", "says"),
    [("x" * 5000, "could not read 'xxx"), ("~nobody-of-this-name/x.pt", "could not find")],
)
def test_paths_that_can_not_be(given, says):
    with pytest.raises(UsageError, match=says):
        inspect(given)


def test_a_link_is_what_it_leads_to(tmp_path):
    torch.save({"w": torch.zeros(2)}, tmp_path / "there.pt")
    (tmp_path / "link").symlink_to("there.pt")
    (tmp_path / "loop").symlink_to("loop")
    assert inspect(tmp_path / "link").opens == "default"
    with pytest.raises(UsageError, match="found none"):
        inspect(tmp_path / "loop")


# --- safetensors ----------------------------------------------------------------------------------


def line(shape, start, end, dtype="F32", **more):
    return {"dtype": dtype, "shape": shape, "data_offsets": [start, end], **more}


HEADERS = {  # header, bytes behind it; whether safetensors opens it is asked of safetensors
    "sound": ({"w": line([2], 0, 8)}, 8),
    "empty": ({}, 0),
    "nothing in it": ({"w": line([0], 0, 0)}, 0),
    "a number": ({"w": line([], 0, 4)}, 4),
    "more facts": ({"w": line([2], 0, 8, x=1)}, 8),
    "metadata": ({"__metadata__": {"a": "b"}, "w": line([2], 0, 8)}, 8),
    "eight bits": ({"w": line([8], 0, 8, "F8_E8M0")}, 8),
    "data behind the end": ({"w": line([2], 0, 8)}, 16),
    "data of nobody": ({}, 4),
    "a gap at the start": ({"w": line([2], 4, 12)}, 12),
    "a gap": ({"w": line([1], 0, 4), "v": line([1], 8, 12)}, 12),
    "overlap": ({"w": line([2], 0, 8), "v": line([2], 4, 12)}, 12),
    "the same twice": ({"w": line([2], 0, 8), "v": line([2], 0, 8)}, 8),
    "too few": ({"w": line([2], 0, 8)}, 4),
    "too short": ({"w": line([3], 0, 8)}, 8),
    "a truth": ({"w": line([True, 2], 0, 8)}, 8),
    "a float": ({"w": line([2.0], 0, 8)}, 8),
    "negative": ({"w": line([-2], 0, 8)}, 8),
    "backwards": ({"w": line([2], 8, 0)}, 8),
    "huge": ({"w": line([10**4000] * 500, 0, 8)}, 8),
    "another dtype": ({"w": line([2], 0, 8, "F99")}, 8),
    "a long name": ({"w" * 200_000: line([3], 0, 8)}, 8),
    "metadata of numbers": ({"__metadata__": {"a": 3}, "w": line([2], 0, 8)}, 8),
    "metadata that is none": ({"__metadata__": 3, "w": line([2], 0, 8)}, 8),
    "deep": (b'{"w":' + b"[" * 100_000 + b"]" * 100_000 + b"}", 0),
    "no text": (b'{"\xff":1}', 0),
    "spaces": (json.dumps({"w": line([2], 0, 8)}).encode() + b"   ", 8),
}


@pytest.mark.parametrize("kind", HEADERS)
def test_a_header_is_believed_as_safetensors_believes_it(tmp_path, kind):
    header, size = HEADERS[kind]
    raw = header if isinstance(header, bytes) else json.dumps(header).encode()
    path = tmp_path / "model.safetensors"
    path.write_bytes(struct.pack("<Q", len(raw)) + raw + bytes(size))
    try:
        load_file(path)
        opens = "default"
    except (SafetensorError, UnicodeDecodeError):
        opens = "broken"
    tree = looked(path)
    assert tree.opens == opens, tree.verdict
    assert "torch.load" not in tree.verdict


def test_a_header_with_a_name_twice(tmp_path):
    one, other = (json.dumps(line([n], 0, 4 * n)) for n in (2, 1))
    raw = f'{{"w":{one},"w":{other}}}'.encode()
    path = tmp_path / "model.safetensors"
    path.write_bytes(struct.pack("<Q", len(raw)) + raw + bytes(4))
    assert "has 'w' twice" in said(looked(path), "two-faced")


def test_an_index_that_can_not_be(tmp_path):
    path = tmp_path / "model.safetensors.index.json"
    for raw in (b'{"weight_map":' + b"[" * 100_000, b'{"weight_map":{}}', b"[]"):
        path.write_bytes(raw)
        assert looked(path).opens == "broken"


# --- dicts in memory ------------------------------------------------------------------------------


def test_a_mapping_that_refuses():
    class Closed(dict):
        def items(self):
            raise RuntimeError("not today")

    with pytest.raises(UsageError, match="raised RuntimeError: not today"):
        inspect(Closed(a=1))


def test_tensors_of_every_layout(tmp_path):
    nested = torch.nested.nested_tensor([torch.ones(2), torch.ones(3)], layout=torch.jagged)
    checkpoint = {"nested": nested, "sparse": torch.eye(3).to_sparse(), "w": torch.ones(2)}
    rows = {entry.name: entry.type for entry in inspect(checkpoint).entries}
    assert rows["nested"] == "nested NestedTensor"
    assert rows["sparse"] == "sparse_coo Tensor"
    buffer = io.BytesIO()
    torch.save(checkpoint, buffer)
    (tmp_path / "odd.pt").write_bytes(buffer.getvalue())
    looked(tmp_path / "odd.pt")
