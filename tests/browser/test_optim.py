"""The optim room in a page: curves, races and groups, by pointer and by keyboard."""

import pytest
import torch
from playwright.sync_api import expect
from torch.optim import lr_scheduler

import pytorch_lab as lab
from pytorch_lab import optim


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
    # Step 20 of 34 between the axis at 76 and the edge at 628 of 640.
    x = box["x"] + (76 + 552 * 20 / 34) / 640 * box["width"]
    view.page.mouse.move(x, box["y"] + 50)
    expect(view.page.get_by_role("slider")).to_have_attribute(
        "aria-valuetext", "step 20: group 0 0.1, group 1 0.02"
    )
    before = view.page.locator(".lr-line.lr-0").first.get_attribute("d")
    view.page.get_by_role("button", name="Logarithmic").click()
    assert view.page.locator(".lr-line.lr-0").first.get_attribute("d") != before
    view.axe()
    view.picture("lr-curve-log")


# ------------------------------------------------------------------------------------ the race

RACERS = {
    "SGD": lambda p: torch.optim.SGD(p, lr=0.04),
    "momentum": lambda p: torch.optim.SGD(p, lr=0.04, momentum=0.9),
    "Adam": lambda p: torch.optim.Adam(p, lr=0.3),
    "Muon": lambda p: torch.optim.Muon(p, lr=0.3),
}


def race(where="ravine", **options):
    return lab.show(optim.trace_optimizer(RACERS, where), **options)


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("zoom", [1, 2])
def test_a_race_reads_well(stage, theme, zoom):
    view = stage(race("rosenbrock"), theme=theme, zoom=zoom)
    expect(view.root).to_contain_text("momentum diverged at step")
    view.axe()
    assert view.overflow() == 0
    view.picture(f"race-{theme}-{zoom}")


def test_the_race_is_moved_by_hand(stage):
    view = stage(race())
    scrub = view.page.get_by_role("slider", name="Step of the race")
    lines = view.page.locator(".race-way.race-0")
    whole = lines.get_attribute("d")
    scrub.focus()
    view.page.keyboard.press("Home")
    expect(view.root).to_contain_text("step 0 of 60")
    assert lines.get_attribute("d") == ""
    for _ in range(2):
        view.page.keyboard.press("ArrowRight")
    expect(view.root).to_contain_text("step 2 of 60")
    assert whole.startswith(lines.get_attribute("d"))
    assert view.keys() == []


def test_no_way_runs_over_the_head_of_another(stage):
    view = stage(race())
    kinds = view.page.locator(".race-picture > *").evaluate_all(
        "all => all.map((one) => one.getAttribute('class').split(' ')[0])"
    )
    assert kinds.count("race-way") == kinds.count("race-head") == len(RACERS)
    assert "race-way" not in kinds[kinds.index("race-head") :]


def test_the_race_plays_to_its_end(stage):
    view = stage(race())
    view.page.clock.install()
    view.page.get_by_role("button", name="Play").click()
    expect(view.page.get_by_role("button", name="Pause")).to_be_visible()
    view.page.clock.run_for(2_000)
    step = int(view.page.locator(".race-step").text_content().split()[1])
    assert 10 < step < 40
    view.page.clock.run_for(10_000)
    expect(view.root).to_contain_text("step 60 of 60")
    expect(view.page.get_by_role("button", name="Play")).to_be_visible()


def test_a_slider_races_anew_and_reaches_the_target(stage):
    view = stage(race(target="momentum"))
    expect(view.root).to_contain_text("Reached.")
    slider = view.page.get_by_role("slider", name="conditioning")
    slider.focus()
    view.page.keyboard.press("End")
    expect(view.root).to_contain_text("ravine with conditioning 100")
    expect(view.root).to_contain_text("Target: Let momentum arrive within 60 steps.")
    assert view.sent[-1] == {"ask": "tune", "with": {"conditioning": 100}}
    expect(slider).to_be_focused()
    view.page.keyboard.press("Home")
    expect(view.root).to_contain_text("60 steps from (-4, 1)")
    expect(view.page.locator(".lab-live")).to_contain_text("SGD")
    assert view.overflow() == 0
    view.axe()
    view.picture("race-tuned")


def test_a_slow_kernel_gets_the_last_place_of_the_slider_only(stage):
    view = stage(race(), wired=False)
    slider = view.page.get_by_role("slider", name="every lr ×")
    slider.focus()
    for _ in range(3):
        view.page.keyboard.press("ArrowRight")
    assert [sent["with"] for sent in view.sent] == [{"rate": 1.4}]
    view.push(trouble=None)
    expect(view.root).to_contain_text("every lr ×3")
    view.page.wait_for_function("document.querySelectorAll('.race-way').length === 4")
    assert [sent["with"] for sent in view.sent] == [{"rate": 1.4}, {"rate": 3}]


# ---------------------------------------------------------------------------------- the groups


def grouped():
    net = torch.nn.ModuleDict(
        {"body": torch.nn.TransformerEncoderLayer(8, 2, 16), "head": torch.nn.Linear(8, 3)}
    )
    decay = [p for p in net.parameters() if p.dim() > 1]
    rest = [p for p in net.parameters() if p.dim() < 2]
    optimizer = torch.optim.AdamW(
        [{"params": decay}, {"params": rest, "weight_decay": 0.0, "lr": 0.01}], lr=0.001
    )
    net["head"] = torch.nn.Linear(8, 5)
    return lab.show(optimizer, net)


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("zoom", [1, 2])
def test_groups_read_well(stage, theme, zoom):
    view = stage(grouped(), theme=theme, zoom=zoom)
    expect(view.root).to_contain_text("2 trainable tensors in no group")
    expect(view.root.locator("tbody tr", has_text="head.*")).to_contain_text("in no group")
    view.axe()
    assert view.overflow() == 0
    view.picture(f"groups-{theme}-{zoom}")


def test_a_long_name_breaks_between_its_words(stage):
    view = stage(grouped(), zoom=2)
    broken = view.page.locator("tbody th code").evaluate_all(
        """all => all.flatMap((one) => [...one.childNodes]).filter((node) => {
            const range = document.createRange();
            range.selectNodeContents(node);
            return node.nodeType === Node.TEXT_NODE && range.getClientRects().length > 1;
        }).map((node) => node.data)"""
    )
    assert broken == []
    assert view.overflow() == 0


def test_a_group_picks_out_its_rows(stage):
    view = stage(grouped())
    button = view.page.get_by_role("button", name="group 1")
    rows = view.page.get_by_role("region", name="Parameters").locator("tbody tr")
    everything = rows.count()
    button.focus()
    view.page.keyboard.press("Enter")
    expect(button).to_have_attribute("aria-pressed", "true")
    assert 0 < rows.count() < everything
    for text in rows.all_text_contents():
        assert "group 1" in text
    view.page.keyboard.press("Enter")
    expect(rows).to_have_count(everything)
    assert view.keys() == []
