"""The loop room in a page: one order, several beside each other, by pointer and by keyboard."""

import re

import pytest
from playwright.sync_api import expect

import pytorch_lab as lab
from pytorch_lab import loop

RIGHT = list(loop.RIGHT)
ORDERS = {
    "right": RIGHT,
    "no zero_grad": RIGHT[1:],
    "step before backward": ["forward", "loss", "step", "zero_grad", "backward"],
}


def several():
    return lab.show(loop.compare(ORDERS))


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("zoom", [1, 2])
def test_several_orders_read_well(stage, theme, zoom):
    view = stage(several(), theme=theme, zoom=zoom)
    expect(view.root).to_contain_text("Gradients add up")
    expect(view.root).to_contain_text("Stopped in turn 2, backward")
    expect(view.root.locator(".code-faulty")).to_contain_text("loss.backward()")
    view.axe()
    assert view.overflow() == 0
    view.picture(f"loop-{theme}-{zoom}")


def test_the_arrow_keys_read_the_numbers_turn_by_turn(stage):
    widget = several()
    right, wrong, failed = (run for _, run in widget.record.runs)
    view = stage(widget)
    slider = view.page.get_by_role("slider", name="Turn")
    slider.focus()
    for _ in range(2):
        view.page.keyboard.press("ArrowRight")
    expect(slider).to_have_attribute(
        "aria-valuetext",
        f"turn 3: right loss {right.losses[2]:.3g}, no zero_grad loss {wrong.losses[2]:.3g}, "
        "step before backward loss –",
    )
    view.page.keyboard.press("End")
    row = view.root.locator("tbody tr", has_text="no zero_grad")
    expect(row.locator("td").first).to_have_text(f"{wrong.losses[-1]:.3g}")
    assert len(failed.losses) == 2
    assert view.keys() == []


def test_the_pointer_reads_and_the_scale_can_be_logarithmic(stage):
    view = stage(several())
    chart = view.page.locator(".loop-chart")
    box = chart.bounding_box()
    # Turn 20 of 40: 19/39 of the way between the axis at 64 and the edge at 628 of 640.
    x = box["x"] + (64 + 564 * 19 / 39) / 640 * box["width"]
    view.page.mouse.move(x, box["y"] + 50)
    expect(view.page.locator(".loop-turn")).to_have_text("20")
    before = view.page.locator(".loop-line.loop-1").first.get_attribute("d")
    view.page.get_by_role("button", name="Logarithmic").click()
    after = view.page.locator("main .loop-chart .loop-line.loop-1").get_attribute("d")
    assert after != before
    view.axe()
    view.picture("loop-log")


@pytest.mark.parametrize("theme", ["light", "vscode-dark", "colab-dark"])
def test_one_order_reads_well(stage, theme):
    grows = loop.run([*RIGHT, "eval", "no_grad", "forward", "loss", "train", "total"])
    view = stage(lab.show(grows), theme=theme, width=500)
    expect(view.root).to_contain_text("with torch.no_grad():")
    view.axe()
    assert view.overflow() == 0
    view.picture(f"loop-one-{theme}")


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_the_puzzle_shows_the_real_curve_of_a_wrong_order(stage, theme):
    view = stage(
        lab.order("07.o1", "One turn of training", lines=loop.lines(RIGHT), measure=loop.run,
                  start=[1, 2, 4, 3, 0]),
        theme=theme,
    )  # fmt: skip
    view.page.get_by_role("button", name="Run this order").click()
    expect(view.root).to_contain_text("Nothing moves: zero_grad clears what backward has computed")
    expect(view.root.locator(".curve")).to_have_attribute("aria-label", re.compile("Your order"))
    view.axe()
    assert view.overflow() == 0
    view.picture(f"loop-puzzle-{theme}")
