"""The optim room in a page: curves, races and groups, by pointer and by keyboard."""

import pytest
import torch
from playwright.sync_api import expect
from torch.optim import lr_scheduler

import pytorch_lab as lab


def wave():
    optimizer = torch.optim.SGD(
        [{"params": [torch.zeros(1)]}, {"params": [torch.zeros(1)], "lr": 0.02}], lr=0.1
    )
    return lab.show(lr_scheduler.CosineAnnealingLR(optimizer, 10), 35)


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("zoom", [1, 2])
def test_a_curve_reads_well(stage, theme, zoom):
    view = stage(wave(), theme=theme, zoom=zoom)
    expect(view.root).to_contain_text("1 thing to look at")
    expect(view.root).to_contain_text(
        "The lr of group 0 (and 1 alike) climbs again from step 10 on"
    )
    view.axe()
    assert view.overflow() == 0
    view.picture(f"lr-curve-{theme}-{zoom}")


def test_the_arrow_keys_read_the_rates_step_by_step(stage):
    view = stage(wave())
    slider = view.page.get_by_role("slider", name="Step")
    slider.focus()
    for _ in range(3):
        view.page.keyboard.press("ArrowRight")
    expect(slider).to_have_attribute("aria-valuetext", "step 3: group 0 0.07939, group 1 0.01588")
    view.page.keyboard.press("End")
    expect(view.root).to_contain_text("group 00.03455")
    assert view.keys() == []


def test_the_pointer_reads_too_and_the_scale_can_be_logarithmic(stage):
    view = stage(wave())
    chart = view.page.locator(".lr-chart")
    box = chart.bounding_box()
    # Step 20 of 34 between the axis at 64 and the edge at 628 of 640.
    x = box["x"] + (64 + 564 * 20 / 34) / 640 * box["width"]
    view.page.mouse.move(x, box["y"] + 50)
    expect(view.page.get_by_role("slider")).to_have_attribute(
        "aria-valuetext", "step 20: group 0 0.1, group 1 0.02"
    )
    before = view.page.locator(".lr-line.lr-0").first.get_attribute("d")
    view.page.get_by_role("button", name="Logarithmic").click()
    assert view.page.locator(".lr-line.lr-0").first.get_attribute("d") != before
    view.axe()
    view.picture("lr-curve-log")
