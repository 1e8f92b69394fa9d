"""The graph to be filled in by hand, in a real browser."""

import pytest
from playwright.sync_api import expect

import pytorch_lab as lab

SILENT_MS = 4_100  # SILENCE_MS of piece.js, and a little

SLOPES = {"∂v1/∂a": "-1", "∂v1/∂b": "2", "∂v2/∂v1": "1", "∂v2/∂b": "1", "∂L/∂v2": "1 - L**2"}
GRADIENTS = {
    "L.grad": "1",
    "v2.grad": "0.009866",
    "v1.grad": "0.009866",
    "b.grad": "0.0296",
    "a.grad": "-0.009866",
}


def small():
    return lab.derivatives("02.d1", lambda a, b: (a * b + b).tanh(), a=2.0, b=-1.0)


def long():
    return lab.derivatives(
        "02.d2",
        lambda weight, x, bias: ((weight * x + bias).tanh() - x) ** 2 * weight + (x * bias).exp(),
        title="A `tanh` neuron, a penalty and more",
        weight=0.7,
        x=1.5,
        bias=-0.2,
    )


def field(view, label):
    return view.page.get_by_role("textbox", name=f"{label}:")


def fill(view, label, text):
    field(view, label).fill(text)
    field(view, label).press("Enter")


def says(view):
    return view.page.locator(".hand-bubble:visible")


@pytest.mark.parametrize("zoom", [1, 2])
@pytest.mark.parametrize("theme", ["light", "dark"])
def test_axe_finds_nothing_and_all_fits(stage, theme, zoom):
    view = stage(small(), theme=theme, zoom=zoom)
    view.axe()
    view.picture(f"derivatives-{theme}-{zoom}00-start")
    fill(view, "∂v1/∂a", "1")
    view.axe(covered=True)
    view.picture(f"derivatives-{theme}-{zoom}00-wrong")
    for label, text in SLOPES.items():
        fill(view, label, text)
    fill(view, "b.grad", "3")
    fill(view, "b.grad", "4")
    view.axe(covered=True)
    view.picture(f"derivatives-{theme}-{zoom}00-back")
    for label, text in GRADIENTS.items():
        fill(view, label, text)
    view.axe()
    view.picture(f"derivatives-{theme}-{zoom}00-done")
    assert view.overflow() == 0


@pytest.mark.parametrize("theme", ["vscode-dark", "colab-dark"])
def test_axe_finds_nothing_elsewhere(stage, theme):
    view = stage(small(), theme=theme)
    fill(view, "∂v1/∂a", "1")
    view.axe(covered=True)
    view.picture(f"derivatives-{theme}")


@pytest.mark.parametrize("width", [900, 420])
def test_a_long_graph_scrolls_inside(stage, width):
    view = stage(long(), width=width)
    view.axe()
    view.picture(f"derivatives-long-{width}")
    assert view.overflow() == 0


def test_the_whole_graph_by_keyboard_alone(stage):
    """Enter checks and goes on, from the first arrow to the last gradient."""
    view = stage(small())
    field(view, "∂v1/∂a").focus()
    press = view.page.keyboard
    for text in SLOPES.values():
        press.type(text)
        press.press("Enter")
    expect(field(view, "L.grad")).to_be_focused()
    expect(view.page.locator(".lab-live").last).to_have_text(
        "Right: ∂L/∂v2. All local derivatives are right. Now the gradients, from L back."
    )
    for text in GRADIENTS.values():
        press.type(text)
        press.press("Enter")
    expect(view.page.locator(".piece-verdict")).to_contain_text(
        "Done. All 10 numbers agree with autograd, all at the first try."
    )
    assert view.keys() == []
    assert [sent["with"]["key"] for sent in view.sent][::9] == ["∂v1/∂a 0", "a.grad"]
    assert len(view.widget.state["kept"]["filled"]) == 10


def test_gradients_wait_for_the_local_derivatives(stage):
    view = stage(small())
    expect(field(view, "L.grad")).to_have_count(0)
    for label, text in SLOPES.items():
        fill(view, label, text)
    expect(field(view, "L.grad")).to_be_visible()
    expect(view.page.get_by_text("2. The gradients, from L back: 0 of 5")).to_be_visible()


def test_a_wrong_number_gets_a_sentence_and_then_the_rule(stage):
    view = stage(small())
    wrong = field(view, "∂v1/∂a")
    fill(view, "∂v1/∂a", "1")
    expect(says(view)).to_have_text(
        "The size is right, the sign is not: does v1 grow or shrink when a grows?"
    )
    expect(wrong).to_have_attribute("aria-invalid", "true")
    expect(wrong).to_be_focused()
    wrong.press("Escape")
    expect(says(view)).to_have_count(0)
    fill(view, "∂v1/∂a", "2")
    view.page.get_by_role("button", name="Show the rule").click()
    expect(says(view)).to_have_text("The rule for this op: ∂v1/∂a = b.")
    expect(wrong).to_be_focused()
    fill(view, "∂v1/∂a", "b")
    expect(says(view)).to_have_count(0)
    expect(wrong).to_have_value("−1")
    expect(wrong).not_to_be_editable()
    assert view.widget.state["kept"]["first"] == {"∂v1/∂a 0": False}


def test_a_number_is_checked_when_the_field_is_left(stage):
    view = stage(small())
    field(view, "∂v1/∂b").fill("1")
    field(view, "∂v2/∂b").focus()
    expect(says(view)).to_have_count(1)
    assert len(view.sent) == 1
    field(view, "∂v1/∂b").focus()
    field(view, "∂v2/∂b").focus()
    assert len(view.sent) == 1  # the same number is not asked twice


def test_what_is_no_number_is_not_counted(stage):
    view = stage(small())
    fill(view, "∂v1/∂a", "minus one")
    expect(says(view)).to_have_text("Type a number, or a sum such as 1 - 0.5**2 or a * 2.")
    fill(view, "∂v1/∂a", " ")
    assert view.sent == []


def test_what_was_right_earlier_is_there_again(stage):
    view = stage(small())
    fill(view, "∂v1/∂b", "2.01")
    view = stage(small())
    expect(field(view, "∂v1/∂b")).to_have_value("2")
    expect(view.page.get_by_text("1. The local derivatives: 1 of 5")).to_be_visible()
    view.page.get_by_role("button", name="Empty all").click()
    expect(field(view, "∂v1/∂b")).to_have_value("")
    expect(field(view, "∂v1/∂a")).to_be_focused()
    assert view.widget.state["kept"]["filled"] == {}


def test_a_silent_kernel_is_said_and_checks_go_on(stage):
    view = stage(small(), wired=False)
    view.page.clock.install()
    fill(view, "∂v1/∂a", "-1")
    expect(field(view, "∂v1/∂a")).to_have_value("−1")
    view.page.clock.run_for(SILENT_MS)
    expect(view.page.get_by_text("This number is not kept yet")).to_be_visible()


def test_a_trouble_of_ours_is_said(stage):
    view = stage(small())
    view.push(trouble="expected to write your progress, but got 'No space left'")
    expect(view.page.get_by_role("alert")).to_contain_text("No space left")


@pytest.mark.parametrize("width", [900, 420])
def test_a_sentence_is_seen_whole(stage, width):
    """It lies within the part of the graph that is in sight, wherever its field is."""
    view = stage(small(), width=width)
    for label in SLOPES:
        fill(view, label, "77")
        seen = view.page.locator(".hand-scroll").bounding_box()
        bubble = says(view).last.bounding_box()
        assert bubble["x"] >= seen["x"] - 1
        assert bubble["x"] + bubble["width"] <= seen["x"] + seen["width"] + 1
        assert bubble["y"] + bubble["height"] <= seen["y"] + seen["height"] + 1
        field(view, label).press("Escape")
