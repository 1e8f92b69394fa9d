"""The X-ray's state, its still picture and its text; how it is drawn is in tests/browser."""

import json
import xml.etree.ElementTree as ET
import zlib
from base64 import b64decode
from dataclasses import replace
from itertools import pairwise

import pytest
import torch
from torch import nn

import pytorch_lab as lab
from pytorch_lab import modules
from pytorch_lab.errors import UsageError
from pytorch_lab.modules.record import Invisible, ModuleInfo, ModuleTree, TensorInfo
from pytorch_lab.svg import Picture
from pytorch_lab.widgets.xray import COLUMNS, OPEN_ROWS, Xray
from pytorch_lab.widgets.xray_rows import Row, fold_repeats, shape_text, steps


class Broken(nn.Module):
    """Two layers in a list, a Dropout in a dict, a plain tensor, one frozen bias, one eval norm."""

    def __init__(self):
        super().__init__()
        self.layers = [nn.Linear(4, 4), nn.Linear(4, 4)]  # 2 × (16 + 4)
        self.drops = {"in": nn.Dropout(0.5)}
        self.scale = torch.ones(4)
        self.norm = nn.BatchNorm1d(4).eval()  # 4 + 4
        self.head = nn.Linear(4, 2)  # 8 + 2
        self.head.bias.requires_grad_(False)

    def forward(self, x):
        for layer in self.layers:
            x = layer(x)
        return self.head(self.drops["in"](self.norm(x) * self.scale))


def tensor(path, *, shape=(2,), kind="parameter", device="cpu", **facts):
    given = {"requires_grad": kind == "parameter", "bytes": 8, "persistent": True} | facts
    return TensorInfo(path=path, kind=kind, shape=shape, dtype="float32", device=device, **given)


def module(path, type="Linear", *, tensors=(), n=0, training=True, **facts):
    depth = len(path.split(".")) if path else 0
    given = {"n_trainable": n, "bytes": 4 * n} | facts
    return ModuleInfo(path, type, depth, training, tuple(tensors), n, **given)


def record(*infos, invisible=(), **facts):
    """A ModuleTree of a root and these modules, with what a test needs and no more."""
    n = sum(info.n_parameters for info in infos if info.depth == 1)
    root = module("", "Net", n=n, training=facts.get("training", True))
    empty = {
        "shared": (), "frozen": (), "modes": (), "unused": None, "non_persistent": (), "lazy": (),
        "training": True, "n_parameters": n, "n_trainable": n, "bytes": 4 * n,
    }  # fmt: skip
    return ModuleTree("Net", (root, *infos), tuple(invisible), **(empty | facts))


def hidden(path, kind="module", *, n=0, type="Linear", holder="list"):
    why, fix = "It is in a list.", "Use `nn.ModuleList([...])`."
    return Invisible(path, kind, holder, type, (3,) if kind != "module" else None, n, why, fix)


def listed(widget):
    """Rows as a reader of the page sees them, unpacked here once more: (level, name, facts...)."""
    state = widget.state
    words, keys = state["words"], [column[0] for column in COLUMNS]
    for i in range(0, len(state["rows"]), 3):
        level, name, body = state["rows"][i : i + 3]
        kind, type_, registered, a, b, c, badges, facts, *cells = state["bodies"][body]
        yield {
            "level": level,
            "name": words[name],
            "kind": words[kind],
            "type": words[type_],
            "registered": bool(registered),
            "status": [words[a], words[b], words[c]],
            "badges": words[badges].split("\t") if words[badges] else [],
            "facts": dict(line.split("\t") for line in words[facts].split("\n") if line),
            **dict(zip(keys, (words[cell] for cell in cells), strict=True)),
        }


def by_name(widget):
    return {row["name"]: row for row in listed(widget)}


def outline(widget):
    return [(row["level"], row["name"]) for row in listed(widget)]


@pytest.fixture(scope="module")
def broken():
    return Xray(modules.describe(Broken()))


def gpt2(**sizes):
    import transformers

    given = {"n_embd": 16, "n_head": 2, "n_layer": 12, "vocab_size": 50, "n_positions": 8}
    config = transformers.GPT2Config(**(given | {"bos_token_id": 0, "eos_token_id": 0} | sizes))
    return transformers.GPT2LMHeadModel(config)


# --- what is said ---------------------------------------------------------------------------------

LINEAR = module("a", n=10, tensors=[tensor("a.weight")])
CASES = {
    "all registered": (record(LINEAR), "All 10 parameters are registered", True),
    "one": (record(module("a", n=1)), "The only parameter is registered", True),
    "none": (record(), "No parameters", True),
    "invisible parameters": (
        record(LINEAR, invisible=[hidden("b[0]", n=20), hidden("b[1]", n=1000)]),
        "1,030 parameters, 1,020 of them invisible to the optimizer",
        False,
    ),
    "inside another": (
        record(LINEAR, invisible=[hidden("b[0]", n=20), hidden("b[0].w", "parameter", n=5)]),
        "30 parameters, 20 of them invisible to the optimizer",
        False,
    ),
    "a plain tensor": (
        record(LINEAR, invisible=[hidden("scale", "tensor")]),
        "All 10 parameters are registered, but 1 tensor is not",
        False,
    ),
    "layers and tensors": (
        record(LINEAR, invisible=[hidden("b[0]"), hidden("b[1]"), hidden("t", "tensor")]),
        "All 10 parameters are registered, but 2 layers and 1 tensor are not",
        False,
    ),
    "lazy": (
        record(lazy=("a.weight", "a.bias")),
        "2 tensors without a shape until the first forward",
        True,
    ),
}


@pytest.mark.parametrize(("tree", "says", "good"), CASES.values(), ids=CASES)
def test_finding(tree, says, good):
    state = Xray(tree).state
    assert (state["finding"], state["good"]) == (says, good)


META = record(module("a", tensors=[tensor("a.w", device="meta"), tensor("a.b")]))
MOVES = {
    "all": (
        record(module("a", tensors=[tensor("a.w"), tensor("a.b")])),
        "to(device) would move all 2 tensors",
    ),
    "one": (record(LINEAR), "to(device) would move its only tensor"),
    "nothing": (record(), "to(device) has nothing to move"),
    "left behind": (
        record(LINEAR, invisible=[hidden("b[0]", n=3), hidden("t", "tensor")]),
        "to(device) would move 1 tensor and leave 1 layer and 1 tensor behind",
    ),
    "a layer without tensors": (
        record(LINEAR, invisible=[hidden("b[0]", type="Dropout")]),
        "to(device) would move its only tensor",
    ),
    "meta": (META, "to(device) fails: 1 tensor on meta without data; use to_empty(device=…)"),
}


@pytest.mark.parametrize(("tree", "says"), MOVES.values(), ids=MOVES)
def test_what_would_move(tree, says):
    assert Xray(tree).state["lenses"][1]["finding"] == says


def test_to_really_moves_and_leaves_what_the_xray_says():
    """The oracle is to() itself: after to(float64), who is float64?"""
    model = Broken()
    row = by_name(Xray(modules.describe(model)))
    model.to(torch.float64)
    moved = {name for name, p in model.named_parameters() if p.dtype == torch.float64}
    assert moved == {"norm.weight", "norm.bias", "head.weight", "head.bias"}
    assert row["weight"]["status"][1] == "+moves"
    assert model.layers[0].weight.dtype == model.scale.dtype == torch.float32
    assert row["[0]"]["status"][1] == row["scale"]["status"][1] == "-stays behind"


def test_eval_really_switches_and_misses_what_the_xray_says(broken):
    model = Broken()
    row = by_name(broken)
    model.eval()
    assert not model.head.training
    assert row["head"]["status"][2] == "+train → eval"
    assert row["norm"]["status"][2] == " already eval"
    assert model.drops["in"].training
    assert row["['in']"]["status"][2] == "-not reached"
    says = "eval() would switch 2 modules and not reach 3 layers (Linear, Dropout)"
    assert broken.state["lenses"][2]["finding"] == says


def test_eval_of_a_model_in_eval_mode():
    state = Xray(record(training=False)).state
    assert state["lenses"][2]["finding"] == "Every registered module is in eval mode already"


def test_a_layer_without_tensors_has_nothing_to_move():
    row = by_name(Xray(modules.describe(nn.Sequential(nn.ReLU(), nn.Linear(2, 2)))))
    assert [row[name]["status"][1] for name in ("0", "1")] == [" nothing to move", "+moves"]


def test_totals(broken):
    assert broken.state["totals"] == [
        "18 registered", "16 trainable, 2 frozen", "112 B", "3 modules", "train mode",
    ]  # fmt: skip
    facts = {"shared": (("a", "b"),), "unused": ("a.w",), "lazy": ("c",)}
    assert Xray(record(LINEAR, **facts)).state["totals"] == [
        "all trainable", "40 B", "2 modules", "train mode", "1 shared", "1 unused", "1 lazy",
    ]  # fmt: skip


# --- the rows -------------------------------------------------------------------------------------


def test_invisible_things_stand_at_their_holder(broken):
    assert outline(broken) == [
        (1, "Broken"),
        (2, "norm"),
        (3, "weight"),
        (3, "bias"),
        (3, "running_mean"),
        (3, "running_var"),
        (3, "num_batches_tracked"),
        (2, "head"),
        (3, "weight"),
        (3, "bias"),
        (2, "layers"),
        (3, "[0]"),
        (3, "[1]"),
        (2, "drops"),
        (3, "['in']"),
        (2, "scale"),
    ]
    row = by_name(broken)
    assert row["layers"]["status"][0] == "-plain list"
    assert row["layers"]["parameters"] == "40"
    assert row["[0]"]["status"][0] == "-invisible"
    assert row["[0]"]["facts"]["Fix"].count("nn.ModuleList([...])") == 1
    assert row["scale"]["shape"] == "(4,)"
    assert row["head"]["status"][0] == "+registered"


def test_deep_holders():
    tree = record(
        LINEAR, invisible=[hidden("a.grid[0]['x.y'].w", "parameter", n=3, holder="object")]
    )
    widget = Xray(tree)
    expected = [(3, "weight"), (3, "grid"), (4, "[0]"), (5, "['x.y']"), (6, "w")]
    assert outline(widget)[2:] == expected
    row = by_name(widget)
    kinds = [row[name]["status"][0] for name in ("grid", "[0]", "['x.y']", "w")]
    assert kinds == ["-plain list", "-plain dict", "-plain object", "-invisible"]
    assert row["a"]["badges"] == ["1 invisible inside"]
    assert row["a"]["status"][1] == "-1 inside stays"


def test_what_only_a_function_sees_stands_below_it():
    seen = [hidden("forward().head", holder="global"), hidden("forward(drop=)", holder="default")]
    row = by_name(Xray(record(LINEAR, invisible=seen)))
    assert (row["forward()"]["type"], row["forward()"]["status"][0]) == ("function", "-a function")
    assert row["forward(drop=)"]["level"] == 2


@pytest.mark.parametrize(("used", "says"), [(True, "used"), (False, "not used"), (None, None)])
def test_whether_forward_used_it(used, says):
    thing = replace(hidden("b[0]"), used=used)
    assert by_name(Xray(record(invisible=[thing])))["[0]"]["facts"].get("In forward") == says


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("encoder.layers.0.weight", ("encoder", "layers", "0", "weight")),
        ("heads[2].bias", ("heads", "[2]", "bias")),
        ("cache['a.b[0]'].w", ("cache", "['a.b[0]']", "w")),
        (r"cache['it\'s']", ("cache", r"['it\'s']")),
        ("forward(scale=)", ("forward(scale=)",)),
        ("", ()),
    ],
)
def test_steps(path, expected):
    assert steps(path) == expected


class Bracketed(nn.Module):
    """A registered name with brackets, twice, and a list whose first item is spelled like it."""

    def __init__(self):
        super().__init__()
        block = nn.Sequential(nn.Linear(4, 4))
        block.register_parameter("w[0]", nn.Parameter(torch.ones(2)))
        block.extras = [nn.Linear(2, 2)]
        self.add_module("conv[0]", block)
        self.add_module("again['x']", block)
        self.conv = [nn.Linear(3, 3)]


def test_brackets_in_a_registered_name_are_no_steps():
    row = by_name(lab.show(nn.ModuleDict({"conv[3x3]": nn.Linear(4, 4)})))
    assert row["conv[3x3]"]["kind"] == "module"
    widget = lab.show(Bracketed())
    assert outline(widget) == [
        (1, "Bracketed"),
        (2, "conv[0]"),
        (3, "w[0]"),
        (3, "0"),
        (4, "weight"),
        (4, "bias"),
        (3, "extras"),
        (4, "[0]"),
        (2, "again['x']"),
        (2, "conv"),
        (3, "[0]"),
    ]
    assert by_name(widget)["again['x']"]["type"] == "same as conv[0]"
    assert "All" not in widget.state["finding"]


@pytest.mark.parametrize("name", ["[", "a[", "]", "a]b["])
def test_any_name_of_what_is_invisible_makes_a_row(name):
    net = nn.Linear(2, 2)
    setattr(net, name, [nn.Linear(2, 2)])
    assert "[0]" in by_name(lab.show(net))


@pytest.mark.parametrize(("shape", "says"), [((), "()"), ((3,), "(3,)"), ((2, 3), "(2, 3)")])
def test_shapes_read_as_in_python(shape, says):
    assert shape_text(shape) == says == str(shape)


def test_badges():
    tree = record(
        module("a", n=4, n_trainable=0, tensors=[
            tensor("a.w", requires_grad=False),
            tensor("a.table", kind="buffer", persistent=False),
        ]),
        module("b", n=2, training=False, lazy=True, tensors=[
            tensor("b.w", shape=None),
            tensor("b.tied", aliases=("c.again",)),
            tensor("b.idle"),
        ]),
        module("c"),
        unused=("b.idle",),
    )  # fmt: skip
    widget = Xray(tree)
    row = by_name(widget)
    assert row["a"]["badges"] == ["frozen"]
    assert row["table"]["badges"] == ["not saved"]
    assert row["b"]["badges"] == ["eval", "lazy", "1 unused inside"]
    assert row["tied"]["badges"] == ["shared"]
    assert row["idle"]["badges"] == ["unused"]
    assert row["again"]["type"] == "same as b.tied"
    assert row["again"]["parameters"] == ""  # it is counted at its first name
    badges = {badge for each in listed(widget) for badge in each["badges"]}
    assert set(widget.state["legend"]) == badges


def test_tied_weights_stand_at_both_places_and_count_once():
    model = gpt2(n_layer=1)
    widget = Xray(modules.describe(model))
    rows = list(listed(widget))
    again = next(row for row in rows if row["kind"] == "again")
    assert (again["name"], again["type"]) == ("weight", "same as transformer.wte.weight")
    counted = sum(int(row["parameters"].replace(",", "") or 0)
                  for row in rows if row["kind"] == "parameter")  # fmt: skip
    assert counted == sum(parameter.numel() for parameter in model.parameters())


def test_a_shared_module_is_one_row_and_a_pointer():
    net = nn.Module()
    net.first = net.second = nn.Linear(2, 2)
    widget = Xray(modules.describe(net))
    assert outline(widget) == [
        (1, "Module"), (2, "first"), (3, "weight"), (3, "bias"), (2, "second"),
    ]  # fmt: skip
    assert by_name(widget)["second"]["type"] == "same as first"


def test_with_example_inputs():
    widget = lab.show(nn.Sequential(nn.Linear(4, 2)), torch.zeros(3, 4))
    row = by_name(widget)["0"]
    assert (row["output"], row["calls"]) == ("(3, 2)", "1")
    columns = {column["key"]: column for column in widget.state["columns"]}
    assert columns["output"]["shown"]
    assert columns["calls"]["missing"] == ""
    without = {column["key"]: column for column in lab.show(nn.Linear(4, 2)).state["columns"]}
    assert not without["output"]["shown"]
    assert without["output"]["missing"] == "needs an example input"


def test_two_devices_show_the_column_that_tells_them_apart():
    shown = {c["key"] for c in Xray(META).state["columns"] if c["shown"]}
    assert shown == {"shape", "parameters", "device"}


# --- folding --------------------------------------------------------------------------------------


def test_equal_neighbours_fold_in_large_models_only():
    widget = Xray(modules.describe(gpt2()))
    group = next(row for row in listed(widget) if row["kind"] == "repeat")
    assert (group["name"], group["type"]) == ("0 … 11", "GPT2Block")
    assert group["badges"] == ["× 12"]
    total = sum(p.numel() for p in gpt2().transformer.h.parameters())
    assert group["parameters"] == f"{total:,}"
    small = Xray(modules.describe(nn.Sequential(*(nn.Linear(2, 2) for _ in range(4)))))
    assert [row["name"] for row in listed(small) if row["level"] == 2] == ["0", "1", "2", "3"]


def test_a_different_neighbour_is_not_folded_away():
    model = gpt2()
    model.transformer.h[5].mlp.c_fc.weight.requires_grad_(False)
    names = [row["name"] for row in listed(Xray(modules.describe(model))) if row["level"] == 4]
    assert [name for name in names if name[0].isdigit()] == ["0 … 4", "5", "6 … 11"]


def test_an_unused_tensor_is_not_folded_away():
    infos = [module(f"b{i}", tensors=[tensor(f"b{i}.w")]) for i in range(30)]
    widget = Xray(record(*infos, unused=("b7.w",)))
    names = [row["name"] for row in listed(widget) if row["level"] == 2]
    assert names == ["b0 … b6", "b7", "b8 … b29"]


def test_runs_of_two_stay():
    root = Row("r", "root", kids=[Row("0", "module"), Row("1", "module"), Row("2", "parameter")])
    fold_repeats(root)
    assert [row.name for row in root.kids] == ["0", "1", "2"]


def shown(widget):
    """The rows that the default view shows, from the state alone."""
    rows, is_open = list(listed(widget)), set(widget.state["open"])
    found, closed_at = [], None
    for i, row in enumerate(rows):
        if closed_at is not None and row["level"] > closed_at:
            continue
        found.append(row)
        closed_at = None if i in is_open else row["level"]
    return found


class Deep(nn.Module):
    """Many layers, and in the last of them one layer that nobody sees."""

    def __init__(self, wide, deep):
        super().__init__()
        blocks = [
            nn.Sequential(*(nn.Linear(2, 2 + i % 3) for i in range(deep))) for _ in range(wide)
        ]
        self.blocks = nn.ModuleList(blocks)
        self.blocks[-1][-1].helpers = [nn.Linear(3, 3)]


@pytest.mark.parametrize("make", [gpt2, lambda: Deep(30, 5), lambda: Deep(3, 60), Broken])
def test_any_model_opens_with_few_rows(make):
    widget = Xray(modules.describe(make()))
    assert 1 < len(shown(widget)) <= OPEN_ROWS


def test_equal_neighbours_are_folded_at_first():
    widget = Xray(modules.describe(gpt2()))
    assert [row["level"] for row in shown(widget) if row["type"] == "GPT2Block"] == [4]


def test_the_way_to_what_is_invisible_is_opened_first():
    """Twenty different blocks could fill the view; the last of them hides something deep inside."""
    infos = []
    for i in range(20):
        infos.append(module(f"b{i}", f"Block{i}", n=4))
        infos.extend(module(f"b{i}.{k}", f"Layer{k}", n=1) for k in "abcd")
    widget = Xray(record(*infos, invisible=[hidden("b19.d.helpers[0]", n=3)]))
    assert [row["name"] for row in shown(widget) if not row["registered"]] == ["helpers", "[0]"]
    assert len(shown(widget)) <= OPEN_ROWS


def test_what_is_invisible_shows_at_first():
    widget = Xray(modules.describe(Deep(20, 8)))
    assert [row["name"] for row in shown(widget) if not row["registered"]] == ["helpers", "[0]"]
    selected = list(listed(widget))[widget.state["selected"]]
    assert selected["name"] == "[0]"


def test_many_invisible_things_fold_into_one_line():
    net = nn.Module()
    net.layers = [nn.Linear(2, 2) for _ in range(64)]
    widget = Xray(modules.describe(net))
    red = [(row["name"], row["badges"]) for row in shown(widget) if not row["registered"]]
    assert red == [("layers", []), ("[0] … [63]", ["× 64"])]
    assert widget.state["finding"] == "384 parameters, 384 of them invisible to the optimizer"


def test_details_open_at_the_worst(broken):
    assert list(listed(broken))[broken.state["selected"]]["name"] == "[0]"
    assert Xray(record(LINEAR)).state["selected"] is None


def test_state_is_json_and_small():
    """A thousand modules: rows that differ in their name alone share what they say."""
    blocks = nn.ModuleList(nn.Sequential(*(nn.Linear(4, 4) for _ in range(9))) for _ in range(100))
    widget = Xray(modules.describe(blocks))
    assert len(widget.tree.modules) == 1001
    sent = json.dumps(widget.state, allow_nan=False, separators=(",", ":")).encode()
    assert len(widget.state["bodies"]) < 12
    assert len(sent) < 40_000
    assert len(zlib.compress(sent)) < 4_000


def nested(levels):
    """One module in another, `levels` times, and in the innermost a layer that nobody sees."""
    net = nn.Linear(2, 2)
    net.helpers = [nn.Linear(3, 3)]
    for _ in range(levels):
        net = nn.Sequential(net)
    return net


def test_a_model_deeper_than_the_recursion_limit():
    widget = lab.show(nested(1200))
    rows = list(listed(widget))
    assert [row["level"] for row in rows[:1201]] == list(range(1, 1202))
    assert rows[0]["badges"] == ["1 invisible inside"]
    assert widget.state["finding"] == "18 parameters, 12 of them invisible to the optimizer"
    assert json.loads(json.dumps(widget.state)) == widget.state
    assert widget.to_html().startswith('<img alt="X-ray of Sequential')


def test_an_invisible_thing_deeper_than_the_recursion_limit():
    widget = Xray(record(LINEAR, invisible=[hidden("grid" + "[0]" * 1200, n=3)]))
    assert max(row["level"] for row in listed(widget)) == 1202
    assert widget.to_html().startswith("<img")


# --- without a kernel -----------------------------------------------------------------------------


def drawing(widget):
    """The SVG inside the `<img>`."""
    html = widget.to_html()
    data = html.split('src="data:image/svg+xml;base64,')[1].removesuffix('">')
    return html, b64decode(data).decode()


def test_still_picture(broken):
    html, svg = drawing(broken)
    name = "X-ray of Broken: 58 parameters, 40 of them invisible to the optimizer"
    assert html.startswith(f'<img alt="{name}. 18 registered, ')
    root = ET.fromstring(svg)
    ns = "{http://www.w3.org/2000/svg}"
    assert root.find(f"{ns}title").text == name
    assert root.attrib["viewBox"] == f"0 0 {root.attrib['width']} {root.attrib['height']}"
    assert root[1].attrib == {"width": "100%", "height": "100%", "fill": "#ffffff"}
    allowed = {f"{ns}{tag}" for tag in ("svg", "title", "rect", "line", "path", "text")}
    assert {element.tag for element in root.iter()} == allowed
    attributes = {name for element in root.iter() for name in element.attrib}
    assert not attributes & {"class", "style", "id"}
    said = [element.text for element in root.iter(f"{ns}text")]
    for row in shown(broken):
        assert row["name"] in said
    assert said.count("invisible") == 4
    assert said.count("registered") == 10


def test_still_picture_fits():
    """Nothing is written outside the picture, names are clipped before the next column."""
    long = "a_parameter_with_a_very_long_name_that_nobody_should_ever_give_to_a_parameter_at_all"
    _, svg = drawing(Xray(record(module("a", "SomeVeryLongClassName" * 4, n=7,
                                        tensors=[tensor(f"a.{long}")]))))  # fmt: skip
    texts = [e for e in ET.fromstring(svg).iter() if e.tag.endswith("text")]
    rows: dict[str, list[tuple[float, float]]] = {}
    for text in texts:
        x, size = float(text.attrib["x"]), float(text.attrib["font-size"])
        width = 0.602 * size * len(text.text)
        start = x - width if text.attrib.get("text-anchor") == "end" else x
        if "Mono" in text.attrib["font-family"]:
            rows.setdefault(text.attrib["y"], []).append((start, start + width))
    assert len(rows) == 3
    for spans in rows.values():
        for (_, end), (start, _) in pairwise(sorted(spans)):
            assert end < start
        assert max(spans)[1] <= 860


def test_coordinates_are_rounded():
    """Equal bytes on every machine: no tail of a floating-point sum."""
    picture = Picture(100, 0.1 + 0.2, "<&>")
    picture.rect(1 / 3, 2, 0.1 + 0.2, 4.0, fill="#000000", stroke_width=2)
    assert picture.parts == [
        '<rect x="0.3" y="2" width="0.3" height="4" fill="#000000" stroke-width="2"/>'
    ]
    assert 'height="0.3"' in picture.svg()
    assert "<title>&lt;&amp;&gt;</title>" in picture.svg()


def test_a_name_that_utf_8_cannot_hold_is_drawn_with_a_question_mark():
    """Lone surrogates are what Python makes of file names in another encoding."""
    widget = lab.show(nn.ModuleDict({"a\udcff": nn.Linear(2, 2)}))
    html, svg = drawing(widget)
    assert ">a?</text>" in svg
    assert html == widget.to_html()
    assert Picture(1, 1, "a\udcff").img("b\udcff").startswith('<img alt="b?"')


def test_stills_are_the_same_bytes_each_time():
    first, second = (Xray(modules.describe(gpt2())) for _ in range(2))
    assert first.to_html() == second.to_html()
    assert str(first) == str(second) == str(first.tree)
    assert repr(first) == str(first)
    assert len(first.to_html()) < 60_000


def test_bundle(broken):
    data, _ = broken._repr_mimebundle_()
    assert data["text/plain"] == str(broken.tree)
    assert data["text/html"] == broken.to_html()
    assert "application/vnd.jupyter.widget-view+json" in data


# --- show -----------------------------------------------------------------------------------------


def test_show_a_module_and_its_record():
    net = nn.Linear(4, 2)
    live = lab.show(net)
    assert isinstance(live, Xray)
    tree = modules.describe(net)
    assert lab.show(tree).state == live.state


def test_show_refuses_what_it_does_not_know():
    with pytest.raises(UsageError) as caught:
        lab.show([1, 2])
    says = str(caught.value)
    assert "expected a " in says
    assert " an nn.Module, " in says
    assert says.endswith(", got 'list': [1, 2]")


def test_a_record_takes_no_inputs():
    with pytest.raises(UsageError, match="expected the ModuleTree alone, got inputs beside it"):
        lab.show(record(LINEAR), torch.zeros(2))
