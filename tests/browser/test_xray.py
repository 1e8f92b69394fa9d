"""The X-ray in a page: drawn, folded, searched and operated by keyboard."""

import pytest
import torch
from playwright.sync_api import expect
from torch import nn

from pytorch_lab import modules
from pytorch_lab.widgets.xray import Xray


class Broken(nn.Module):
    """Two layers in a list, a Dropout in a dict, a plain tensor, one frozen bias, one eval norm."""

    def __init__(self):
        super().__init__()
        self.layers = [nn.Linear(4, 4), nn.Linear(4, 4)]
        self.drops = {"in": nn.Dropout(0.5)}
        self.scale = torch.ones(4)
        self.norm = nn.BatchNorm1d(4).eval()
        self.head = nn.Linear(4, 2)
        self.head.bias.requires_grad_(False)


@pytest.fixture(scope="module")
def broken():
    return Xray(modules.describe(Broken()))


@pytest.fixture(scope="module")
def thousand():
    """1,001 modules and 1,800 tensors in a hundred equal blocks."""
    blocks = (nn.Sequential(*(nn.Linear(4, 4) for _ in range(9))) for _ in range(100))
    return Xray(modules.describe(nn.ModuleList(blocks)))


def names(view):
    """The names of the rows in sight, from top to bottom."""
    rows = view.page.locator(".lab-tree-body [role=row]")
    return rows.evaluate_all(
        "rows => rows.sort((a, b) => a.ariaRowIndex - b.ariaRowIndex)"
        ".map(row => row.querySelector('.lab-xray-id').textContent)"
    )


def row(view, name):
    """The first row of this name."""
    exact = view.page.locator(".lab-xray-id").get_by_text(name, exact=True)
    return view.page.locator(".lab-tree-body [role=row]", has=exact).first


def active(view):
    """The row that a screen reader is at: the tree names it as its active descendant."""
    return view.page.evaluate(
        "() => { const tree = document.querySelector('[role=treegrid]');"
        " return document.getElementById(tree.getAttribute('aria-activedescendant'))"
        ".querySelector('.lab-xray-id').textContent; }"
    )


def status(view, name):
    return row(view, name).locator(".lab-xray-status")


@pytest.mark.parametrize(
    ("theme", "zoom"),
    [("light", 1), ("light", 2), ("dark", 1), ("dark", 2), ("vscode-dark", 1), ("colab-dark", 1)],
)
def test_looks_right_to_axe(stage, broken, theme, zoom):
    view = stage(broken, theme=theme, zoom=zoom, width=1000)
    view.axe()
    assert view.overflow() == 0
    view.page.get_by_role("radio", name="eval() switches").check()
    view.page.get_by_text("Columns", exact=True).click()
    view.axe(covered=True)
    view.picture(f"xray-{theme}-{zoom}")


@pytest.mark.parametrize("width", [340, 420, 600, 780, 1000])
def test_no_overflow(stage, broken, width):
    view = stage(broken, width=width)
    assert view.overflow() == 0
    grid = view.page.get_by_role("treegrid")
    assert grid.evaluate("grid => grid.scrollWidth - grid.clientWidth") == 0


def test_names_and_roles(stage, broken):
    view = stage(broken)
    finding = "58 parameters, 40 of them invisible to the optimizer"
    region = view.page.get_by_role("region", name=f"X-ray of Broken: {finding}")
    expect(region).to_have_count(1)
    tree = region.get_by_role("treegrid", name="Modules of Broken")
    expect(tree.get_by_role("columnheader")).to_have_text(["Name", "Status", "Shape", "Parameters"])
    expect(tree).to_have_attribute("aria-rowcount", "17")
    layers = row(view, "layers")
    for attribute, value in {"level": 2, "expanded": "true", "posinset": 3, "setsize": 5}.items():
        expect(layers).to_have_attribute(f"aria-{attribute}", str(value))
    expect(row(view, "scale")).not_to_have_attribute("aria-expanded", "true")


def test_red_and_green_are_words_too(stage, broken):
    view = stage(broken)
    expect(status(view, "head")).to_have_text("registered")
    expect(status(view, "[0]")).to_have_text("invisible")
    for name, colour in (("head", "--lab-good"), ("[0]", "--lab-bad")):
        expect(status(view, name).locator("svg")).to_have_count(1)
        cell = status(view, name)
        assert cell.evaluate(
            "(cell, name) => { const probe = cell.appendChild(document.createElement('i'));"
            " probe.style.color = `var(${name})`;"
            " return getComputedStyle(probe).color === getComputedStyle(cell).color; }",
            colour,
        )


def test_details_open_at_the_worst_and_say_the_fix(stage, broken):
    view = stage(broken)
    details = view.page.get_by_role("region", name="Details")
    expect(details).to_contain_text("layers[0]")
    expect(details).to_contain_text("nn.Module does not look into a plain list")
    details.get_by_role("button", name="Copy code").click()
    expect(details.get_by_role("button", name="Copied")).to_be_visible()
    copied = view.page.evaluate("navigator.clipboard.readText()")
    assert copied == "self.layers = nn.ModuleList([...])"


def test_details_of_a_registered_row(stage, broken):
    view = stage(broken)
    row(view, "head").click()
    details = view.page.get_by_role("region", name="Details")
    expect(details.locator("code").first).to_have_text("head")
    expect(details).to_contain_text("Linear(in_features=4, out_features=2, bias=True)")
    expect(details).to_contain_text("8 of 10")
    expect(row(view, "head")).to_have_attribute("aria-selected", "true")
    details.get_by_role("button", name="Close details").click()
    expect(details).to_have_count(0)
    expect(view.page.get_by_role("treegrid")).to_be_focused()


def test_fold_by_mouse(stage, broken):
    view = stage(broken)
    row(view, "layers").locator("[data-fold]").click()
    expect(row(view, "[0]")).to_have_count(0)
    expect(row(view, "layers")).to_have_attribute("aria-expanded", "false")
    row(view, "layers").locator("[data-fold]").click()
    expect(row(view, "[0]")).to_have_count(1)


def test_a_folded_row_tells_what_it_hides(stage, broken):
    view = stage(broken)
    badge = row(view, "head").get_by_text("1 frozen inside")
    expect(badge).to_have_count(0)
    row(view, "head").locator("[data-fold]").click()
    expect(badge).to_be_visible()


def test_keyboard(stage, broken):
    view = stage(broken)
    press = view.page.keyboard.press
    view.page.get_by_role("treegrid").focus()
    for keys, at in [
        ("Home", "Broken"),
        ("ArrowDown", "norm"),
        ("ArrowRight", "weight"),  # open already: goes in
        ("ArrowLeft", "norm"),
        ("ArrowLeft", "norm"),  # closes
        ("ArrowDown", "head"),
        ("ArrowUp", "norm"),
        ("ArrowRight", "norm"),  # opens
        ("ArrowDown", "weight"),
        ("End", "scale"),
        ("PageUp", "Broken"),
        ("l", "layers"),
        ("d", "drops"),
    ]:
        press(keys)
        assert active(view) == at, f"after {keys}"
    press("Enter")
    details = view.page.get_by_role("region", name="Details")
    expect(details.locator("code").first).to_have_text("drops")
    press("Enter")
    expect(details).to_have_count(0)
    press(" ")
    expect(details).to_have_count(1)
    press("Tab")
    expect(view.page.get_by_role("button", name="Close details")).to_be_focused()


def test_star_unfolds_the_neighbours(stage, broken):
    view = stage(broken)
    view.page.get_by_role("button", name="Fold all").click()
    view.page.get_by_role("treegrid").focus()
    assert names(view) == ["Broken", "norm", "head", "layers", "drops", "scale"]
    view.page.keyboard.press("ArrowDown")
    view.page.keyboard.press("*")
    assert len(names(view)) == 16


@pytest.mark.parametrize("where", ["treegrid", "searchbox", "button", "radio"])
def test_the_notebook_hears_no_key(stage, broken, where):
    """Keys stop here, so that "d d" deletes no cell; and the element is marked for Lumino."""
    view = stage(broken)
    element = view.page.get_by_role(where).first
    element.focus()
    for key in ("d", "d", "ArrowDown", "x", "Escape"):
        view.page.keyboard.press(key)
    assert view.keys() == []
    expect(element).to_have_attribute("data-lm-suppress-shortcuts", "true")


def test_search(stage, broken):
    view = stage(broken)
    view.page.get_by_role("button", name="Fold all").click()
    box = view.page.get_by_role("searchbox", name="Search the tree")
    box.fill("linear")
    expect(view.page.get_by_text("3 found").first).to_be_visible()
    assert names(view) == ["Broken", "head", "layers", "[0]", "[1]"]
    expect(view.page.locator("mark")).to_have_text(["Linear"] * 3)
    assert active(view) == "head"
    box.press("Enter")
    assert active(view) == "[0]"
    box.press("Shift+Enter")
    box.press("Shift+Enter")
    assert active(view) == "[1]"
    view.axe()
    box.press("Escape")
    expect(box).to_have_value("")
    # folded as before, but for the way to the row that was found
    assert names(view) == ["Broken", "norm", "head", "layers", "[0]", "[1]", "drops", "scale"]


def test_search_finds_nothing(stage, broken):
    view = stage(broken)
    view.page.get_by_role("searchbox").fill("convolution")
    expect(view.page.get_by_text("0 found").first).to_be_visible()
    assert names(view) == []
    view.axe()
    view.page.keyboard.press("Escape")  # the tree comes back, with a row to go on from
    expect(view.page.get_by_text("0 found")).to_have_count(0)
    assert active(view) == "Broken"


def test_a_hit_can_be_unfolded(stage, broken):
    view = stage(broken)
    view.page.get_by_role("searchbox").fill("batchnorm")
    assert names(view) == ["Broken", "norm"]
    row(view, "norm").locator("[data-fold]").click()
    assert names(view)[2:] == [
        "weight", "bias", "running_mean", "running_var", "num_batches_tracked",
    ]  # fmt: skip


def test_what_would_move_and_switch(stage, broken):
    view = stage(broken)
    view.page.get_by_role("radio", name="to(device) moves").check()
    finding = "to(device) would move 7 tensors and leave 2 layers and 1 tensor behind"
    expect(view.page.locator(".lab-xray-finding")).to_have_text(finding)
    expect(view.page.get_by_role("status")).to_have_text(finding)
    expect(status(view, "[0]")).to_have_text("stays behind")
    expect(status(view, "norm")).to_have_text("moves")
    view.page.get_by_role("radio", name="eval() switches").check()
    expect(status(view, "['in']")).to_have_text("not reached")
    expect(status(view, "head")).to_have_text("train → eval")
    expect(status(view, "norm")).to_have_text("already eval")


def test_columns(stage, broken):
    view = stage(broken)
    summary = view.page.get_by_text("Columns", exact=True)
    summary.click()
    expect(view.page.get_by_role("checkbox", name="Calls")).to_be_disabled()
    view.page.get_by_role("checkbox", name="Dtype").check()
    view.page.get_by_role("checkbox", name="Shape").uncheck()
    expect(view.page.get_by_role("columnheader")).to_have_text(
        ["Name", "Status", "Parameters", "Dtype"]
    )
    expect(row(view, "bias").get_by_role("gridcell").last).to_have_text("float32")
    view.page.keyboard.press("Escape")
    expect(view.page.get_by_role("checkbox", name="Dtype")).to_be_hidden()
    expect(summary).to_be_focused()


@pytest.mark.parametrize("width", [340, 640, 800])
def test_the_menu_of_columns_lies_inside(stage, broken, width):
    view = stage(broken, width=width)
    view.page.get_by_text("Columns", exact=True).click()
    menu = view.page.get_by_role("group", name="Columns to show").bounding_box()
    whole = view.root.bounding_box()
    assert whole["x"] + 10 <= menu["x"]
    assert menu["x"] + menu["width"] <= whole["x"] + whole["width"]
    assert view.overflow() == 0


def test_a_thousand_modules_are_few_elements(stage, thousand):
    view = stage(thousand)
    grid = view.page.get_by_role("treegrid")
    assert names(view) == ["ModuleList", "0 … 99"]
    view.page.get_by_role("button", name="Unfold all").click()
    rows = view.page.locator(".lab-tree-body [role=row]")
    expect(grid).to_have_attribute("aria-rowcount", "2903")  # 1,001 + 1,800 + 101 groups + heading
    assert rows.count() < 60
    grid.focus()
    view.page.keyboard.press("End")
    assert active(view) == "bias"
    expect(rows.last).to_be_in_viewport()
    assert rows.count() < 60
    box = view.page.get_by_role("searchbox")
    box.fill("bias")
    expect(view.page.get_by_text("900 found").first).to_be_visible()
    assert rows.count() < 60


def test_the_active_row_is_an_element_wherever_the_tree_is_scrolled(stage, thousand):
    view = stage(thousand)
    view.page.get_by_role("button", name="Unfold all").click()
    grid = view.page.get_by_role("treegrid")
    grid.focus()
    view.page.keyboard.press("Home")
    grid.evaluate("grid => { grid.scrollTop = 40000; }")
    expect(view.page.locator("[aria-rowindex='1550']")).to_have_count(1)
    assert active(view) == "ModuleList"
    view.page.keyboard.press("ArrowDown")
    assert grid.evaluate("grid => grid.scrollTop") < 30


def test_follows_a_new_state(stage):
    view = stage(Xray(modules.describe(Broken())))
    healed = Xray(modules.describe(nn.Linear(4, 2)))
    view.push(**healed.state)
    expect(view.page.locator(".lab-xray-finding")).to_have_text("All 10 parameters are registered")
    expect(view.root).to_have_attribute(
        "aria-label", "X-ray of Linear: All 10 parameters are registered"
    )
    assert names(view) == ["Linear", "weight", "bias"]
    assert view.sent == []  # the view asks the kernel nothing
    view.axe()
