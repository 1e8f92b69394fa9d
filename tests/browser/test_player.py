"""The player in a page: played, stepped, searched, folded, and operated by keyboard."""

import json
import linecache
import re

import pytest
import torch
from playwright.sync_api import expect
from torch import nn

from pytorch_lab import graph
from pytorch_lab.widgets import player_state
from pytorch_lab.widgets.player import Player
from tests.player_runs import trained_step


def chain(x):
    for _ in range(300):
        x = (x * 1.01).sin()
    return x.sum()


@pytest.fixture(scope="module")
def trained():
    return trained_step()


@pytest.fixture(scope="module")
def long():
    return graph.record(chain, torch.ones(2, requires_grad=True), backward=True)


def says(view):
    return view.page.locator(".lab-player-says")


def key(view, name):
    return view.page.get_by_role("button", name=name, exact=True)


def heading(view):
    return view.page.locator(".lab-player-heading strong")


def lit_line(view):
    return view.page.locator(".lab-player-now .lab-player-text")


UNPACK = """async ([esm, packed]) => {
  const url = URL.createObjectURL(new Blob([esm], { type: "text/javascript" }));
  const { unpackFilm } = await import(url);
  const film = unpackFilm(packed);
  return {
    ops: film.ops.map((op) => ({ name: op.name, kind: op.kind, module: op.module, call: op.call,
      inputs: op.inputs, outputs: op.outputs, saved: op.saved, line: op.site?.line ?? 0,
      from: op.site?.from ?? -1, mode: op.mode, inPlace: op.inPlace, node: op.node,
      inside: op.inside })),
    values: film.values.map(({ kind, name, shape, dtype, device, bytes, grad, leaf, node }) =>
      ({ kind, name, shape, dtype, device, bytes, grad, leaf, node })),
    nodes: film.nodes.map(({ name, kind, next, op, parameter, freed }) =>
      ({ name, kind, next, op, parameter, freed })),
    order: film.steps.filter(({ back }) => back).map(({ index }) => index), held: film.held,
  };
}"""


def nothing(place):
    return -1 if place is None else place


def expected(record):
    """What the front end must know of a record, with its nodes numbered as in the film."""
    order = player_state.node_order(record)
    place = {node: i for i, node in enumerate(order)} | {None: -1}
    ops = [
        {
            "name": op.name,
            "kind": op.kind,
            "module": op.module,
            "call": nothing(op.call),
            "inputs": list(op.inputs),
            "outputs": list(op.outputs),
            "saved": op.saved_bytes,
            "line": op.line,
            "from": op.columns[0] if op.columns else -1,
            "mode": op.grad_mode,
            "inPlace": op.in_place,
            "node": place[op.node],
            "inside": nothing(op.inside),
        }
        for op in record.ops
    ]
    values = [
        {
            "kind": value.kind,
            "name": value.name,
            "shape": list(value.shape),
            "dtype": value.dtype,
            "device": value.device,
            "bytes": value.bytes,
            "grad": value.requires_grad,
            "leaf": value.is_leaf,
            "node": place[value.node],
        }
        for value in record.values
    ]
    nodes = [
        {
            "name": node.name,
            "kind": node.kind,
            "next": [place[target] for target in node.next],
            "op": nothing(node.op),
            "parameter": node.parameter,
            "freed": node.freed,
        }
        for node in (record.nodes[i] for i in order)
    ]
    back = [place[node] for node in record.backward_order]
    held = [held for *_, held in record.memory()]
    return {"ops": ops, "values": values, "nodes": nodes, "order": back, "held": held}


def in_place(x):
    y = x * 2
    y.mul_(3)
    y[0].add_(1)
    a, b = y.split(2)
    return (a @ b.t().detach()).sum().item(), y.sum()


@pytest.mark.parametrize("case", ["trained", "long", "in_place"])
def test_the_front_end_knows_what_the_record_knows(stage, trained, long, case):
    records = {"trained": trained, "long": long}
    x = torch.ones(4, 3, requires_grad=True)
    record = records[case] if case in records else graph.record(in_place, x)
    player = Player(record)
    view = stage(player)
    packed = json.loads(json.dumps(player.state["films"][0]))
    found = view.page.evaluate(UNPACK, [player._esm, packed])
    for part, wanted in expected(record).items():
        assert found[part] == wanted, part


@pytest.mark.parametrize(
    ("theme", "zoom"),
    [("light", 1), ("light", 2), ("dark", 1), ("dark", 2), ("vscode-dark", 1), ("colab-dark", 1)],
)
def test_looks_right_to_axe(stage, trained, theme, zoom):
    view = stage(Player(trained), theme=theme, zoom=zoom, width=1100)
    view.axe()
    assert view.overflow() == 0
    view.picture(f"player-{theme}-{zoom}")
    view.page.get_by_role("slider").fill(str(len(trained.ops) + 3))
    view.page.get_by_text("More", exact=True).click()
    view.axe(covered=True)
    view.picture(f"player-back-{theme}-{zoom}")


@pytest.mark.parametrize("width", [360, 520, 700, 900, 1300])
@pytest.mark.parametrize("backward", [True, False])
def test_no_overflow(stage, trained, width, backward):
    record = trained if backward else graph.record(torch.sin, torch.ones(2, requires_grad=True))
    view = stage(Player(record), width=width)
    assert view.overflow() == 0


@pytest.mark.parametrize("width", [360, 640, 760])
def test_the_menu_lies_inside(stage, trained, width):
    view = stage(Player(trained), width=width)
    view.page.get_by_role("searchbox").fill("linear")  # with the count beside it
    view.page.get_by_text("More", exact=True).click()
    menu = view.page.locator(".lab-player-items").bounding_box()
    whole = view.root.bounding_box()
    assert whole["x"] + 10 <= menu["x"]
    assert menu["x"] + menu["width"] <= whole["x"] + whole["width"]


def test_opens_where_forward_ends_and_plays_from_the_start(stage, trained):
    view = stage(Player(trained))
    n = len(trained.ops)
    expect(says(view)).to_have_text(f"forward {n} of {n}: cross_entropy → scalar")
    view.page.get_by_label("Speed").select_option("8")
    key(view, "Play").click()
    expect(key(view, "Pause")).to_be_visible()
    expect(says(view)).to_contain_text("backward")
    expect(key(view, "Play")).to_be_visible(timeout=20_000)
    last = len(trained.backward_order)
    expect(says(view)).to_contain_text(f"backward {last} of {last}")


def test_keys_step_through_forward_and_backward_in_one_timeline(stage, trained):
    view = stage(Player(trained))
    slider = view.page.get_by_role("slider", name="Step of the run")
    view.page.get_by_role("listbox", name="Source").focus()
    press = view.page.keyboard.press
    press("Home")
    expect(says(view)).to_have_text("before the first step")
    expect(heading(view)).to_have_text("loss")
    press("ArrowRight")
    expect(says(view)).to_have_text(f"forward 1 of {len(trained.ops)}: linear → (3, 8)")
    expect(heading(view)).to_have_text("linear")
    expect(slider).to_have_value("1")
    press("ArrowRight")
    press("ArrowLeft")
    expect(slider).to_have_value("1")
    press("End")
    expect(slider).to_have_value(str(player_state.n_steps(trained)))
    heard = view.keys()
    assert "ArrowRight" not in heard  # by the notebook's own shortcuts
    press("Home")
    press(" ")
    expect(key(view, "Pause")).to_be_visible()
    press(" ")
    expect(key(view, "Play")).to_be_visible()


def test_the_line_and_its_expression_are_lit(stage, trained):
    view = stage(Player(trained))
    view.page.get_by_role("slider").fill("1")
    expect(lit_line(view)).to_have_text("    h = self.fc1(x).relu()")
    expect(lit_line(view).locator("mark")).to_have_text("self.fc1(x)")
    view.page.get_by_role("slider").fill("2")
    expect(lit_line(view).locator("mark")).to_have_text("self.fc1(x).relu()")
    made = trained.values[trained.ops[1].outputs[0]].stats
    values = view.page.locator(".lab-player-now + .lab-player-values")
    expect(values).to_contain_text("→ (3, 8)min 0mean 0.")
    expect(values).to_contain_text(f"max {made.max:.3}")


def test_backward_lights_the_line_that_made_the_node(stage, trained):
    view = stage(Player(trained))
    view.page.get_by_role("slider").fill(str(len(trained.ops) + 1))
    expect(lit_line(view)).to_contain_text("cross_entropy")
    expect(view.page.locator(".lab-player-now.lab-player-back")).to_have_count(1)
    expect(says(view)).to_contain_text("backward 1 of")
    expect(view.page.locator(".lab-player-values")).to_have_text("gradient scalar 1")


def test_details_tell_formula_saved_tensors_and_values(stage, trained):
    view = stage(Player(trained))
    view.page.get_by_role("slider").fill("2")
    details = view.page.get_by_role("region", name="Details")
    expect(details).to_contain_text("ReluBackward0")
    expect(details).to_contain_text("dL/dx = ")
    expect(details).to_contain_text("saved result")
    expect(details).to_contain_text("96 B")
    expect(details.get_by_role("img")).to_have_count(2)  # heat maps of what went in and came out
    relu = next(node for node in trained.nodes if node.name == "ReluBackward0")
    ran = len(trained.ops) + trained.backward_order.index(relu.index)
    view.page.get_by_role("slider").fill(str(ran + 1))
    expect(details).to_contain_text("freed result")
    heat = details.get_by_role("img", name="gradient of the result: 3 rows of 8")
    (numbers,) = relu.numbers
    expect(heat.locator("i")).to_have_count(len(numbers))
    largest = max(range(len(numbers)), key=lambda i: abs(numbers[i]))
    expect(heat.locator("i").nth(largest)).to_have_attribute(
        "style", re.compile("orange\\) 100%" if numbers[largest] < 0 else "blue\\) 100%")
    )


def test_a_box_that_was_clicked_tells_the_gradient_that_it_will_get(stage, trained):
    view = stage(Player(trained))
    details = view.page.get_by_role("region", name="Details")
    expect(details).not_to_contain_text("gradient scalar")  # the step that runs is forward
    walk_to(view, "cross_entropy")
    expect(details).to_contain_text("will get the gradient scalar 1")


def test_a_folded_module_of_one_op_tells_of_that_op(stage, trained):
    view = stage(Player(trained))
    details = view.page.get_by_role("region", name="Details")
    walk_to(view, "Linear fc1")
    expect(heading(view)).to_have_text("Linear")
    expect(details).to_contain_text("AddmmBackward0")
    expect(details.get_by_role("img", name="values of net.fc1.weight")).to_have_count(1)
    expect(details.get_by_role("img", name="gradient of the result: 3 rows of 8")).to_be_visible()
    expect(details.get_by_role("button", name="Unfold")).to_be_visible()


def test_the_details_of_a_long_run_are_asked_for_a_folded_module(stage, monkeypatch):
    monkeypatch.setattr("pytorch_lab.widgets.player.SENT_STEPS", 3)
    net = nn.Sequential(nn.Linear(2, 2), nn.Tanh())
    view = stage(Player(graph.record(net, torch.ones(1, 2))))
    walk_to(view, "Linear 0")
    expect(view.page.get_by_role("region", name="Details")).to_contain_text("norm")


def test_a_line_lights_its_boxes(stage, trained):
    view = stage(Player(trained))
    view.page.get_by_text("h = self.fc1(x).relu()").click()
    says = f"Line {trained.ops[0].line} called 2 operations."
    expect(view.page.locator(".lab-player-note")).to_have_text(says)
    expect(view.page.locator(".lab-player-picked")).to_have_count(1)
    view.page.get_by_text("h = self.fc1(x).relu()").click()
    expect(view.page.locator(".lab-player-note")).to_be_hidden()


def test_a_parameter_lights_the_path_that_reaches_it(stage, trained):
    view = stage(Player(trained))
    view.page.get_by_role("slider").fill("1")
    view.page.get_by_role("button", name="net.fc1.weight").click()
    length = len(trained.path_to("net.fc1.weight"))
    expect(view.page.locator(".lab-player-note")).to_have_text(
        f"The path by which a gradient reaches net.fc1.weight: {length} nodes from the result."
    )


def test_search_counts_and_goes_from_hit_to_hit(stage, trained):
    view = stage(Player(trained))
    box = view.page.get_by_role("searchbox")
    box.fill("linear")
    count = view.page.locator(".lab-player-count")
    expect(count).to_have_text("2 found")
    box.press("Enter")
    expect(count).to_have_text("1 of 2")
    expect(heading(view)).to_have_text("linear")
    box.press("Enter")
    expect(count).to_have_text("2 of 2")
    box.press("Escape")
    expect(count).to_be_hidden()


def cursor(view):
    return view.page.locator(".lab-player-cursor")


def walk_to(view, start):
    """Press the down arrow until the box whose description begins like this has the focus."""
    cursor(view).focus()
    seen = []
    for _ in range(40):
        view.page.keyboard.press("ArrowDown")
        seen.append(cursor(view).get_attribute("aria-label"))
        if seen[-1].startswith(start):
            return seen
    raise AssertionError(f"no box is called {start}: {seen}")


def test_the_keyboard_goes_from_box_to_box_and_folds(stage, trained):
    view = stage(Player(trained))
    press = view.page.keyboard.press
    walk_to(view, "Net net")
    expect(cursor(view)).to_have_attribute("aria-expanded", "true")
    expect(heading(view)).to_have_text("Net")
    press("Enter")
    expect(cursor(view)).to_have_attribute("aria-expanded", "false")
    press("ArrowDown")
    expect(cursor(view)).to_have_attribute("aria-label", re.compile("^cross_entropy"))
    press("ArrowUp")
    press("Enter")
    expect(cursor(view)).to_have_attribute("aria-expanded", "true")
    press("ArrowDown")
    expect(cursor(view)).to_have_attribute("aria-label", re.compile("^Linear fc1"))
    press("Escape")
    expect(view.page.get_by_label("Back to the step that runs")).to_have_count(0)


def test_folding_keeps_the_place(stage, long):
    view = stage(Player(long))
    walk_to(view, "step 0")
    before = cursor(view).bounding_box()
    view.page.keyboard.press("Enter")
    after = cursor(view).bounding_box()
    assert before["height"] != after["height"]
    assert abs(before["y"] - after["y"]) < 2
    middle = (before["x"] + before["width"] / 2) - (after["x"] + after["width"] / 2)
    assert abs(middle) < 2


class Tall(nn.Module):
    """A frame of boxes under one another, no two alike."""

    def __init__(self, n):
        super().__init__()
        self.ops = [(torch.sin, torch.cos, torch.tanh, torch.exp)[k * k % 7 % 4] for k in range(n)]

    def forward(self, x):
        for op in self.ops:
            x = op(x)
        return x


@pytest.mark.parametrize("n", [7, 40])
def test_what_was_unfolded_is_in_sight(stage, n):
    """Whole if the window can hold it, else from its upper end on."""
    net = nn.Sequential(*[nn.Sequential(nn.Linear(2, 2), nn.Tanh()) for _ in range(5)], Tall(n))
    view = stage(Player(graph.record(net, torch.ones(1, 2))), motion=False)
    walk_to(view, "Tall 5")
    press = view.page.keyboard.press
    for expanded in ("false", "true"):
        if cursor(view).get_attribute("aria-expanded") != expanded:
            press("Enter")
    window, box = (
        where.bounding_box() for where in (view.page.locator(".lab-player-graph"), cursor(view))
    )
    above, below = box["y"] - window["y"], window["height"] + window["y"] - box["y"] - box["height"]
    assert (box["height"] < window["height"]) == (n == 7)
    assert above >= 27
    assert below >= 27 if n == 7 else above <= 29


def test_colours_have_a_legend(stage, trained):
    view = stage(Player(trained))
    legend = view.page.locator(".lab-player-legend")
    expect(legend).to_contain_text("Linear")
    view.page.get_by_label("Colour by").select_option("bytes")
    expect(legend).to_contain_text("Bytes")
    view.page.get_by_label("Colour by").select_option("gradient")
    expect(legend).to_contain_text("Gradient")


def test_a_long_run_asks_for_what_is_on_stage(stage, long):
    view = stage(Player(long))
    assert long.nodes
    view.page.get_by_role("slider").fill("3")
    expect(view.page.locator(".lab-player-figures").first).to_be_visible()
    asked = [each["with"]["first"] for each in view.sent if each["ask"] == "details"]
    assert asked == [512, 0]
    view.page.get_by_role("slider").fill("4")
    expect(heading(view)).to_have_text("sin")
    assert len(view.sent) == 2  # nothing twice


def test_the_other_view_is_the_autograd_graph(stage, trained):
    view = stage(Player(trained))
    view.page.get_by_label("Graph", exact=True).select_option(label="Autograd nodes")
    assert {"ask": "scene", "with": {"view": "autograd"}} in view.sent
    view.page.get_by_role("searchbox").fill("ReluBackward0")
    expect(view.page.locator(".lab-player-count")).to_have_text("1 found")
    view.page.get_by_role("searchbox").press("Enter")
    expect(heading(view)).to_have_text("Relu")
    view.page.get_by_role("searchbox").fill("fc1.weight")  # a chip, on the node that feeds it
    expect(view.page.locator(".lab-player-count")).to_have_text("1 found")


def downloaded(view, name):
    view.page.get_by_text("More", exact=True).click()
    with view.page.expect_download() as waiting:
        view.page.get_by_role("button", name=name).click()
    return waiting.value.path().read_text("utf-8")


def test_saves_an_svg(stage, trained):
    view = stage(Player(trained))
    text = downloaded(view, "Save as SVG")
    assert text.startswith("<svg ")
    assert "cross_entropy" in text
    assert "class=" not in text
    assert "NaN" not in text
    assert "undefined" not in text


def test_saves_a_page_that_works_offline(stage, trained, browser, tmp_path):
    view = stage(Player(trained))
    text = downloaded(view, "Save as a page that works offline")
    file = tmp_path / "run.html"
    file.write_text(text, "utf-8")
    context = browser.new_context(offline=True)
    page = context.new_page()
    errors = []
    page.on("pageerror", lambda error: errors.append(str(error)))
    page.goto(file.as_uri())
    page.get_by_role("slider").fill("2")
    expect(page.locator(".lab-player-details")).to_contain_text("ReluBackward0")
    expect(page.locator(".lab-player-details")).to_contain_text("dL/dx = ")
    page.keyboard.press("End")
    expect(page.get_by_role("img", name=re.compile("^gradient of net.fc1"))).to_be_visible()
    context.close()
    assert errors == []


def test_a_run_that_failed_opens_at_its_end_with_the_error(stage):
    def broken(x):
        h = x * 2
        return h @ torch.ones(7)

    view = stage(Player(graph.record(broken, torch.ones(3))))
    expect(view.page.locator(".lab-note.lab-bad")).to_contain_text("RuntimeError")
    expect(lit_line(view)).to_contain_text("h")
    view.axe()


def test_the_graph_behind_a_tensor_has_no_timeline(stage):
    w = torch.ones(3, requires_grad=True)
    view = stage(Player(graph.of((w * 2).exp().sum())))
    expect(view.page.get_by_role("slider")).to_have_count(0)
    expect(view.page.locator(".lab-player-details")).to_contain_text("Click a box")
    walk_to(view, "Exp")
    expect(heading(view)).to_have_text("Exp")
    expect(view.page.locator(".lab-player-details")).to_contain_text("dL/dx = dL/dy · y")
    view.axe()
    view.picture("player-tensor")


def test_two_runs_have_one_timeline(stage):
    def branch(x):
        y = x * 2
        if y.sum() > 0:
            y = y.relu()
            y = y + 1
        else:
            y = y.sigmoid()
        return y.sum()

    view = stage(Player(graph.compare(branch, torch.ones(3), -torch.ones(3))))
    expect(view.page.locator(".lab-player-canvas")).to_have_count(2)
    view.page.get_by_role("slider").fill("1")
    expect(lit_line(view)).to_contain_text("y = x * 2")
    view.page.keyboard.press("End")
    view.axe()
    view.picture("player-two")


def test_reduced_motion_moves_at_once(stage, trained):
    view = stage(Player(trained), motion=False)
    assert view.page.evaluate("matchMedia('(prefers-reduced-motion: reduce)').matches")
    cursor(view).focus()
    view.page.keyboard.press("ArrowDown")
    expect(cursor(view)).to_have_class("lab-player-cursor lab-player-on")


def test_the_line_that_runs_stays_in_sight_of_a_long_source(stage):
    """Whole, for it is wrapped, and wherever on the page the player stands."""
    lines = [f"    x = x + {n}" for n in range(60)]
    lines[55] = f"    x = x if len(x) == 0 else torch.add(x{'.reshape(-1)' * 4}, 1).exp()"
    space = {"torch": torch}
    text = "\n".join(["def long(x):", *lines, "    return x", ""])
    linecache.cache["long.py"] = (len(text), None, text.splitlines(keepends=True), "long.py")
    exec(compile(text, "long.py", "exec"), space)
    record = graph.record(space["long"], torch.ones(2))
    exp = next(place for place, op in enumerate(record.ops) if op.name == "exp")
    view = stage(Player(record))
    view.page.evaluate("document.querySelector('main').style.marginTop = '400px'")
    view.page.get_by_role("slider").fill(str(exp + 1))
    source = view.page.get_by_role("listbox", name="Source").bounding_box()
    mark = lit_line(view).locator("mark")
    expect(mark).to_contain_text(".exp()")
    row = view.page.locator(".lab-player-values").bounding_box()
    assert source["y"] < row["y"] < row["y"] + row["height"] < source["y"] + source["height"]
    box = mark.bounding_box()
    assert source["x"] < box["x"] < box["x"] + box["width"] < source["x"] + source["width"]
    assert source["y"] < box["y"] < box["y"] + box["height"] < source["y"] + source["height"]
    view.page.get_by_role("slider").fill("1")
    row = lit_line(view).bounding_box()
    assert source["y"] < row["y"] < source["y"] + source["height"]


def test_what_is_lit_can_be_put_out_with_the_mouse(stage, trained):
    view = stage(Player(trained))
    view.page.get_by_text("h = self.fc1(x).relu()").click()
    key(view, "Light everything again").click()
    expect(view.page.locator(".lab-player-note")).to_be_hidden()
    expect(cursor(view)).to_be_focused()
