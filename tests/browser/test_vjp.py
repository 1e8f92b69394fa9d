"""The chooser of v in a real browser: keyboard, target, themes, and a silent kernel."""

import pytest
import torch
from playwright.sync_api import expect

from pytorch_lab.widgets.vjp import vjp


def bent():
    return vjp(
        lambda x: torch.stack([x[0] * x[1], x[0] + x[1] ** 2]),
        torch.tensor([1.0, 0.5]),
        target=(0.0, 1.0),
    )


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("zoom", [1, 2])
def test_it_reads_well(stage, theme, zoom):
    view = stage(bent(), theme=theme, zoom=zoom)
    expect(view.root).to_contain_text("Make v @ J end in the ring: [0, 1]")
    view.axe()
    assert view.overflow() == 0
    view.picture(f"vjp-{theme}-{zoom}")


def test_the_arrow_keys_reach_the_target(stage):
    view = stage(bent())
    first, second = view.page.get_by_role("slider").all()
    expect(view.root).to_contain_text("Not there yet.")
    first.focus()
    for _ in range(2):
        view.page.keyboard.press("ArrowRight")
    view.page.keyboard.press("Tab")
    for _ in range(2):
        view.page.keyboard.press("ArrowLeft")
    expect(view.root).to_contain_text("v @ J = 2 × row 0 + -1 × row 1 = [0, 1]")
    expect(view.root).to_contain_text("Reached.")
    expect(view.page.locator(".lab-live")).to_have_text("v @ J = [0, 1], reached")
    assert view.sent[-1] == {"ask": "choose", "with": {"v": [2, -1]}}
    assert view.keys() == []
    expect(second).to_be_focused()
    view.axe()
    view.picture("vjp-reached")


def test_a_silent_kernel_is_told(stage):
    view = stage(bent(), wired=False)
    view.page.clock.install()
    view.page.get_by_role("slider").first.focus()
    view.page.keyboard.press("ArrowRight")
    view.page.clock.fast_forward(4_100)
    expect(view.root).to_contain_text("The kernel has not answered.")
    view.push(trouble="The folder is full.")
    expect(view.page.get_by_role("alert")).to_contain_text("The folder is full.")
